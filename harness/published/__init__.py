"""The matrix that is published with cumatrix: where it lies, what it was made of, and whether that is still so."""
