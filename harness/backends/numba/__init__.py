"""Numba's own CUDA target, and its successor numba-cuda."""
