"""Known causes of what compilers say, with remedies; and what a kernel may use of a multiprocessor."""

from harness.causes.budget import Budget, Limits, budget, limits_of
from harness.causes.catalogue import Cause, Match, catalogue, causes_in_log, causes_of

__all__ = ["Budget", "Cause", "Limits", "Match", "budget", "catalogue", "causes_in_log", "causes_of", "limits_of"]
