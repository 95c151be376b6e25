"""The index's releases of the libraries under test, and one uv environment for each release."""
