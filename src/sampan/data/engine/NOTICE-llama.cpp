llama-server in this folder is built from llama.cpp, commit 0c1e57098, as the source archive of the Python package
llama-cpp-python 0.3.36 carries it. The source is modified by the authors of sampan: each change follows in full, as a
unified diff. The changes are under llama.cpp's own licence (LICENSE-llama.cpp).
