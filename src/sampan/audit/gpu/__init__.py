"""Code for NVIDIA's cards inside of ELF files: read from fat binaries, judged by card and driver."""
