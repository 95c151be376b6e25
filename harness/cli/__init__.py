"""The command ``cumatrix``."""

from harness.cli.main import main

__all__ = ["main"]
