"""Numba's own CUDA target, and numba-cuda, which took its place."""
