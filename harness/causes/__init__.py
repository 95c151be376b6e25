"""Known causes of compiler messages with remedies, and the occupancy of kernels."""

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
