"""Rule learning: the smallest conditions that separate outcomes (`learn`). Uses no files, cases or records."""

from harness.rules.axes import Inseparable, TooManyRules
from harness.rules.search import Example, Rule, learn

__all__ = ["Example", "Inseparable", "Rule", "TooManyRules", "learn"]
