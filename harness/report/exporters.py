"""Exports that other distributions add: functions that make files of the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from harness.errors import UsageError, did_you_mean
from harness.plugins import Table


class ReportError(UsageError):
    """A report cannot be written to its destination; the message is one plain sentence."""


class NothingToReport(ReportError):
    """There is not one record and not one planned cell."""

    exit_code = 3


FOLDER = "exports"
"""Folder of a report that they write into, each into one of its own."""

Exporter = Callable[[Sequence[Mapping[str, Any]]], Iterable[tuple[str, bytes]]]
"""Receives the merged and judged records of a report; returns files by name."""


def _plugged(_name: str, value: object) -> Exporter:
    if not callable(value):
        raise TypeError("it is no function of records")
    return value


EXPORTERS: Mapping[str, Exporter] = Table({}, "cumatrix.exporters", _plugged)


def check(names: Iterable[str]) -> None:
    """Raise `UsageError` where there is no exporter of a name."""
    for name in names:
        if name not in EXPORTERS:
            none = "" if EXPORTERS else "; no installed distribution has one (group cumatrix.exporters)"
            raise UsageError(f"unknown exporter {name!r}{none or did_you_mean(name, EXPORTERS)}")


def exported(names: Iterable[str], records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """The files of some exporters, by their places in the report.

    Raises
    ------
    ReportError
        When an exporter fails, or names a file that is none of its folder.
    """
    for name in names:
        try:
            files = list(EXPORTERS[name](records))
        except Exception as error:
            raise ReportError(f"the exporter {name} failed: {type(error).__name__}: {error}") from error
        for file, data in files:
            if PurePath(file).name != file or not isinstance(data, bytes):
                raise ReportError(f"the exporter {name} gave {file!r}, which is no name of a file with its bytes")
            yield f"{FOLDER}/{name}/{file}", data
