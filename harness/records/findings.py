"""Unexpected cells by their place in a file, for CI annotations, code scanning and code quality."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.diagnostics import one_line
from harness.matrix.kinds import Mark, kind_of
from harness.matrix.order import target_key
from harness.records.alike import Records, failures, places_of, said_of, words_of
from harness.records.repeat import again_command
from harness.records.spell import failed_at


@dataclass(frozen=True, kw_only=True)
class ProgramFailure:
    """One failure of one program, of however many cells.

    Parameters
    ----------
    file : str
        The file that it is about, as seen from the current folder; empty where none is there.
    line : int
        The line, from 1; 1 where none is known.
    title : str
        Case and what happened: ``wmma/fragments: rejected at compile``.
    message : str
        The message, on one line.
    always : str
        The same without its architecture, for any cells.
    where : str
        The cells: toolchains with their targets.
    again : str
        A command that compiles the first of them again; may be empty.
    kind : Mark
        Its kind of cell.
    cells : tuple of str
        Ids of the cells.
    """

    file: str
    line: int
    title: str
    message: str
    always: str
    where: str
    again: str
    kind: Mark
    cells: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """The same as long as the failure is the same, whatever line it moves to and however many cells have it."""
        return hashlib.sha256(f"{self.file}\n{self.title}\n{self.always}".encode()).hexdigest()[:32]


def findings(records: Iterable[Mapping[str, Any]], cases: Sequence[Path] = (Path("cases"),)) -> list[ProgramFailure]:
    """List each failure of each program once, in the terminal's order (`harness.records.alike.failures`).

    Parameters
    ----------
    records : iterable of Mapping
        All of them; those that are as expected are passed over.
    cases : sequence of Path
        Folders of cases to search for the files of a case.
    """
    records = list(records)
    targets = sorted({record["target"] for record in records}, key=target_key)
    found = []
    for group in failures(records):
        programs: dict[str, list[Mapping[str, Any]]] = {}
        for record in group:
            programs.setdefault(record["case"], []).append(record)
        found += [_finding(each, targets, cases) for each in programs.values()]
    return found


def _finding(group: Records, targets: Sequence[str], cases: Sequence[Path]) -> ProgramFailure:
    first: Any = group[0]
    said = first["diagnostics"][0] if first["diagnostics"] else {}
    return ProgramFailure(
        file=_place(first, said.get("file") or "", cases), line=said.get("line") or 1,
        title=one_line(f"{first['case']}: {failed_at(first).replace('_', ' ')}", 200),
        message=one_line(words_of(group), 500) or kind_of(first).meaning, always=said_of(first)[0],
        where=one_line("; ".join(places_of(group, targets)), 500), again=again_command(first), kind=kind_of(first),
        cells=tuple(record["cell"] for record in group),
    )  # fmt: skip


def _place(record: Mapping[str, Any], named: str, cases: Sequence[Path]) -> str:
    """A file below the current folder: the one that was named, else the program or its case."""
    case = PurePosixPath(record["case"].partition("@")[0])
    folders = [folder / case for folder in cases]
    places = [*(folder / named for folder in folders), Path(case.parent) / named, Path(named)] if named else []
    for place in [*places, Path(case), *(folder / "case.toml" for folder in folders)]:
        if not place.is_absolute() and ".." not in place.parts and place.is_file():
            return place.as_posix()
    return ""
