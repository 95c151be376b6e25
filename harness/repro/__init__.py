"""``cumatrix repro``: a folder that reproduces a cell's outcome without cumatrix.

The folder contains the program, requirements with exact versions and hashes, a short script, and a README to paste into
a bug report. cumatrix copies the files in `files/` into the folder and never imports them.
"""

from harness.repro.folder import make_folder
from harness.repro.reduce import check_folder, reduce_folder

__all__ = ["check_folder", "make_folder", "reduce_folder"]
