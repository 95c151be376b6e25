"""Analyses of many cells: support statements, disagreements, changes, coverage and history."""

from harness.analysis.diff import Change, Changes, changes, is_regression
from harness.analysis.disagreements import Disagreement, disagreements
from harness.analysis.frame import Coverage, cells_frame, coverage, kernels_frame, make_frame
from harness.analysis.support import Statement, statements

__all__ = [
    "Change",
    "Changes",
    "Coverage",
    "Disagreement",
    "Statement",
    "cells_frame",
    "changes",
    "coverage",
    "disagreements",
    "is_regression",
    "kernels_frame",
    "make_frame",
    "statements",
]
