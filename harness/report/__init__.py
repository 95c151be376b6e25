"""From records to what people look at: `harness.report.build.build_report` makes all of it.

pandas, pyarrow and jinja2 are imported here and in `harness.analysis` and nowhere else.
"""
