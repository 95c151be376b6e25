"""Known causes of what compilers say, with remedies; and what a kernel may use of a multiprocessor."""

from harness.causes.catalogue import Cause, Explained, Match, catalogue, causes_in_log, causes_of, explain_log
from harness.causes.occupancy import Budget, Limits, budget, limits_of

__all__ = [
    "Budget",
    "Cause",
    "Explained",
    "Limits",
    "Match",
    "budget",
    "catalogue",
    "causes_in_log",
    "causes_of",
    "explain_log",
    "limits_of",
]
