import sys
from pathlib import Path

# The builders of records are shared with the tests of the records.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "records")]
