"""Rules out of examples: the smallest conditions that tell outcomes apart (`learn`). Pure: no files, no cases, no records."""

from harness.rules.learn import Example, Rule, learn
from harness.rules.table import Inseparable, TooManyRules

__all__ = ["Example", "Inseparable", "Rule", "TooManyRules", "learn"]
