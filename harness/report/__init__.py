"""The report: `harness.report.build.build_report` turns records into a page and data files.

pandas, pyarrow and jinja2 are imported here and in `harness.analysis` and nowhere else.
"""
