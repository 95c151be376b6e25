"""Rules out of examples: the smallest conditions that tell outcomes apart (`learn`). Pure: no files, no cases, no records."""

from harness.rules.axes import Inseparable, TooManyRules
from harness.rules.search import Example, Rule, learn

__all__ = ["Example", "Inseparable", "Rule", "TooManyRules", "learn"]
