"""Model folders by llama.cpp's own converter, in an environment that is not ours."""
