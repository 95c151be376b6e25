"""Tests of the matrix's axes, order and kinds of cell."""

import sys
from pathlib import Path

# The builders of records are shared with the tests of the records.
sys.path.insert(0, str(Path(__file__).parents[1] / "records"))
