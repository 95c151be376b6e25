"""NVIDIA's compilers, assembler, linkers and driver, as backends call them in workers. Standard library only."""
