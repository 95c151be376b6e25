"""From records to what people look at. pandas, pyarrow and jinja2 are imported here and nowhere else."""

from harness.report.build import ReportSummary, build_report
from harness.report.errors import NothingToReport, ReportError

__all__ = ["NothingToReport", "ReportError", "ReportSummary", "build_report"]
