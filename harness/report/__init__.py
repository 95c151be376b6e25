"""The report: `harness.report.build.build_report` turns records into a page and data files.

Only this package and `harness.analysis` import pandas, pyarrow and jinja2.
"""
