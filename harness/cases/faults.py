"""Reading ``faults.toml``: faults of a library that every case below its folder meets.

The folder of cases and the folder of each topic may have one. A case's own expectations come first, then those of its topic, then those of the folder of cases.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from harness.cases.errors import Report
from harness.cases.rules import read_expectations
from harness.cases.schema import FAULTS
from harness.cases.toml import check_integers, parse_toml, read_toml_text
from harness.cases.values import check_table
from harness.model.case import Expectation

FILE_NAME = "faults.toml"


def faults_of(topic: Path, root: Path) -> tuple[Expectation, ...]:
    """Faults that the cases of a topic meet, in order.

    Parameters
    ----------
    topic, root : Path
        The topic's folder, and the folder of cases.

    Raises
    ------
    CaseError
        With everything that is wrong with a file, each with file, line and key.
    """
    found: list[Expectation] = []
    for folder in dict.fromkeys((topic, root)):
        path = folder / FILE_NAME
        if path.exists():
            shown = path.resolve().relative_to(root.resolve().parent).as_posix()
            found += _read(read_toml_text(path, shown), shown)
    return tuple(found)


@lru_cache(maxsize=64)
def _read(text: str, shown: str) -> tuple[Expectation, ...]:
    data = parse_toml(text, shown)
    report = Report(shown, text)
    check_integers(report, data)
    report.close()
    faults = read_expectations(report, check_table(report, (), data, FAULTS))
    for number, fault in enumerate(faults):
        if not fault.xfail or not fault.reason:
            report.add(
                ("expect", number), "a fault is expected to fail, and has a reason: write xfail = true and reason"
            )
    report.close()
    return tuple(faults)
