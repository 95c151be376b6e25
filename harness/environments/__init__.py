"""Releases of the libraries under test as the index has them, and an environment for each, made by uv and kept."""
