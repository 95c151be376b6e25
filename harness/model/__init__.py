"""The domain model as plain values: no files, no processes, no libraries."""

from harness.model.case import Case, Expectation, HeaderLibrary, Headers, OptionRule, UnsupportedRule, Variant
from harness.model.cell import Cell, HostCompiler, Toolchain, ToolkitRef
from harness.model.outcome import Artifact, Diagnostic, KernelResources, Outcome, Stage, Status, Verdict
from harness.model.target import KNOWN_TARGETS, Target, TargetError

__all__ = [
    "KNOWN_TARGETS",
    "Artifact",
    "Case",
    "Cell",
    "Diagnostic",
    "Expectation",
    "HeaderLibrary",
    "Headers",
    "HostCompiler",
    "KernelResources",
    "OptionRule",
    "Outcome",
    "Stage",
    "Status",
    "Target",
    "TargetError",
    "Toolchain",
    "ToolkitRef",
    "UnsupportedRule",
    "Variant",
    "Verdict",
]
