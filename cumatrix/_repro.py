"""Folders that reproduce a cell, as ``cumatrix repro`` writes them."""

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
        The result of the check, in words; empty if it was not checked.
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
        The folder to create.
    results : path or iterable of paths
        Records to search. The default is ``reports``, then the published matrix.
    cases : str or path, optional
        Folder of cases.
    program : str or path, optional
        The program of a `try_` cell, if the file has moved since.
    include : iterable of paths
        Include directories of a `try_` cell outside the current folder.
    check : bool
        Whether to run the folder in a clean environment.

    Raises
    ------
    UsageError
        If `cell` matches no cell or several cells, or if the cell cannot be reproduced.
    PartUnavailable
        If a part that the check requires is missing.
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
