"""Files of records, read strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.diagnostics import one_line
from harness.records.errors import RecordError
from harness.records.inputs import Inputs, read_inputs
from harness.records.jsontext import read_json
from harness.records.plan import Plan, plan_path, read_plans
from harness.records.record import Record
from harness.records.schema import check_record, upgrade

_CELL = re.compile(rb'"cell": ?("(?:[^"\\]|\\.)+")')


@dataclass(frozen=True, kw_only=True)
class Results:
    """The records of a reading.

    Parameters
    ----------
    records : tuple of dict
        In the order of files and lines.
    plans : tuple of dict
        The plans next to the files.
    warnings : tuple of str
        What the caller should pass on to the user: incomplete lines, missing plans.
    incomplete : tuple of str
        Those of the warnings that tell of incomplete lines.
    inputs : Inputs
        The input manifest of the records, if it exists and was requested.
    """

    records: tuple[Record, ...]
    plans: tuple[Plan, ...]
    warnings: tuple[str, ...]
    incomplete: tuple[str, ...] = ()
    inputs: Inputs = field(default_factory=Inputs)


def read_records(paths: Iterable[Path], *, inputs: bool = False) -> Results:
    """Read files of records, and folders of them with all below.

    Parameters
    ----------
    paths : iterable of Path
        ``.jsonl`` files or folders. A file that is named twice is read once.
    inputs : bool
        Whether to read what the records follow from as well.

    Raises
    ------
    RecordError
        On anything damaged; it names file, line and key. Only an incomplete last line is left out,
        with a warning, because that is what a run leaves that is killed or has no more disk.
    """
    records: list[Record] = []
    plans: list[Plan] = []
    warnings: list[str] = []
    incomplete: list[str] = []
    files = list(_files(paths))
    for path in files:
        found: list[str] = []
        records += read_file(path, found)
        incomplete += found
        warnings += found
        beside = plan_path(path)
        if beside.is_file():
            plans += read_plans(beside)
        else:
            warnings.append(f"{path}: no {beside.name} beside it, so cells that never arrived cannot be told")
    return Results(
        records=tuple(records), plans=tuple(plans), warnings=tuple(warnings), incomplete=tuple(incomplete),
        inputs=read_inputs(files) if inputs else Inputs(),
    )  # fmt: skip


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in map(Path, paths):
        if not path.exists():
            raise RecordError(f"{path}: no such file or folder")
        if not path.is_dir() and not path.is_file():
            raise RecordError(f"{path}: is a pipe or a device, and no file of records: write them to a file first")
        for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            if file.is_file() and file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def read_file(path: Path, warnings: list[str]) -> list[Record]:
    """Read one file; says in `warnings` what was left out."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    # Not splitlines(): a log may hold other characters that Python takes for ends of lines.
    *lines, rest = data.split(b"\n")
    records = [_read_line(line, f"{path}: line {number}") for number, line in enumerate(lines, 1)]
    if rest:
        where = f"{path}: line {len(lines) + 1}"
        if _is_incomplete(rest):
            others = "all before it are used" if records else "the file has no other"
            warnings.append(
                f"{where}: cut off: the line is incomplete, probably because the run was interrupted or the disk was full; "
                f"{_cut(rest)} is left out, {others}; run the same command again to complete the file"
            )
        else:
            records.append(_read_line(rest, where))
    return records


def _is_incomplete(line: bytes) -> bool:
    """Return whether an unfinished last line is the beginning of a record, or null bytes that some file systems leave."""
    begin = line.strip(b"\0 ")
    if begin and not begin.startswith(b"{"):
        return False
    try:
        json.loads(line.decode())
    except (ValueError, RecursionError):
        return True
    return False


def _cut(line: bytes) -> str:
    """Describe a truncated record: ``the record of wmma/fragments nvrtc cuda12.4 sm_80``, if that much of it is there."""
    found = _CELL.search(line)
    try:
        return f"the record of {one_line(json.loads(found[1]), 200)}" if found else "its record"
    except ValueError:
        return "its record"


def _read_line(line: bytes, where: str) -> Record:
    try:
        value = read_json(line)
        if not isinstance(value, dict):
            raise RecordError("must be a table")
        return check_record(upgrade(value))
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"{where}: not UTF-8: {error}") from None
    except ValueError as error:
        raise RecordError(f"{where}: not JSON: {error}") from None
