"""From records to what people look at. pandas, pyarrow and jinja2 are imported here and in `harness.analysis`, and nowhere else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.report.errors import NothingToReport, ReportError

if TYPE_CHECKING:
    from harness.report.build import ReportSummary, build_report

__all__ = ["NothingToReport", "ReportError", "ReportSummary", "build_report"]


def __getattr__(name: str) -> Any:
    # When asked for only: the build uses harness.analysis, which uses the marks and texts of this package.
    if name in ("ReportSummary", "build_report"):
        return getattr(import_module("harness.report.build"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
