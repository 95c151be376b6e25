"""Code that runs in the interpreter under test. Standard library only."""
