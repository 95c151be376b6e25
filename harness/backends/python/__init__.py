"""Programs in Python that use a library under test: running them, and telling whose fault it is when one ends early."""
