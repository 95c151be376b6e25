"""Cases on disk: reading and checking ``case.toml``, choosing cases, their options, their JSON Schema."""

from harness.cases.errors import CaseError, Problem
from harness.cases.load import load_case
from harness.cases.options import options_for
from harness.cases.select import find_cases, load_cases

__all__ = ["CaseError", "Problem", "find_cases", "load_case", "load_cases", "options_for"]
