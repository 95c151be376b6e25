"""Releases of the libraries under test on the index, and one uv environment for each."""
