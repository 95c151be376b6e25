"""Code that runs in the interpreter under test: standard library only."""
