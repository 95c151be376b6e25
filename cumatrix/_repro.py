"""Folders that reproduce a cell: what ``cumatrix repro`` does, without a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from cumatrix._run import SourcePath
from harness.cli.repro import write_folder
from harness.repro import check_folder


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A folder that shows a cell's outcome without cumatrix.

    Parameters
    ----------
    folder : Path
        The folder, with a ``README.md`` and a script ``repro.py``.
    cell : str
        Id of the cell.
    confirmed : bool or None
        Whether the folder showed the recorded outcome in a clean environment; None if it was not checked.
    sentence : str
        The result of the check; empty without one.
    """

    folder: Path
    cell: str
    confirmed: bool | None = None
    sentence: str = ""


def repro(
    cell: str,
    *,
    out: SourcePath,
    results: SourcePath | Iterable[SourcePath] = (),
    cases: SourcePath | None = None,
    program: SourcePath | None = None,
    include: Iterable[SourcePath] = (),
    check: bool = False,
) -> Reproduction:
    """Write a folder that reproduces a cell, as ``cumatrix repro`` does.

    Parameters
    ----------
    cell : str
        A cell's id, a unique part of it, or a pattern with ``*``.
    out : str or path
        The folder to make.
    results : path or iterable of paths
        Records to look in; ``reports``, then the published matrix, when left out.
    cases : str or path, optional
        Folder of cases.
    program : str or path, optional
        The program of a cell of `try_`, if it is not where the cell says.
    include : iterable of paths
        Include directories of a cell of `try_` that are outside of the current folder.
    check : bool
        Whether to run the folder in a clean environment.

    Raises
    ------
    UsageError
        When no cell, or more than one, has that name, or it cannot be reproduced.
    PartUnavailable
        When a part that the check needs is missing.
    """
    places = (results,) if isinstance(results, str | PathLike) else tuple(results)
    subject = write_folder(
        cell,
        tuple(map(Path, places)),
        Path(out),
        lambda _: None,
        cases=Path(cases) if cases else None,
        program=Path(program) if program else None,
        include=[Path(folder) for folder in include],
    )
    name = str(subject.record["cell"])
    if not check:
        return Reproduction(folder=Path(out), cell=name)
    confirmed, sentence = check_folder(Path(out), lambda _: None)
    return Reproduction(folder=Path(out), cell=name, confirmed=confirmed, sentence=sentence)
