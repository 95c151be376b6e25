"""``cumatrix repro``: a folder that reproduces a cell's outcome without cumatrix.

It holds the program, requirements by exact version with hashes, a short script and a README that can be pasted into a bug report.
The files in `files/` are copied into the folder as they are; cumatrix itself never imports them.
"""

from harness.repro.folder import make_folder
from harness.repro.reduce import check_folder, reduce_folder

__all__ = ["check_folder", "make_folder", "reduce_folder"]
