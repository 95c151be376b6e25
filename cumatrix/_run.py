"""Running cells: what ``cumatrix run`` and ``cumatrix try`` do, without a terminal."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import click

from cumatrix._cells import Cell
from cumatrix._results import Results
from cumatrix._words import Options, TryOptions, words_of
from harness.cli.chosen import Chosen, cells_of_cases, cells_of_files
from harness.cli.install import install_for
from harness.cli.run import run as run_command
from harness.cli.try_ import try_ as try_command
from harness.engine.cores import usable_cores
from harness.engine.run import Run
from harness.engine.session import record_of
from harness.engine.unanswered import unanswered, without_answer
from harness.errors import UsageError
from harness.records import Record, RecordWriter, make_plan, this_commit
from harness.records.atomic import check_writable, replace_files
from harness.records.remarks import remarks, with_remark
from harness.user_folders import cache_folder

SourcePath = str | PathLike[str]
Progress = Callable[[int, int, Cell], object]


@dataclass
class _Work:
    """Cells to run, and their closing notes."""

    chosen: Chosen
    params: dict[str, Any]
    argv: list[str]
    records: list[Record] = field(default_factory=list)

    def cells(self) -> Iterator[Cell]:
        """Yield each cell as it finishes; closing the iterator ends the running cells."""
        run_id, cells, out = uuid.uuid4().hex[:12], self.chosen.cells, self.params["out"]
        if out:
            check_writable(out)
        context = install_for(cells, self.chosen.context, offline=self.params["offline"])
        plan = make_plan(cells, run=run_id, environment=context.name, argv=self.argv, commit=this_commit())
        with Run(context, self.params["jobs"] or usable_cores()) as run, ExitStack() as stack:
            writer = stack.enter_context(RecordWriter(out, plan, fresh=self.params["fresh"])) if out else None
            for result in run.results(cells):
                record = record_of(result, run_id)
                self.records.append(record)
                if writer:
                    writer.append(record)
                yield Cell(record)
            if writer:
                writer.remarks = remarks(self.records)
                writer.inputs = run.inputs(record["fingerprint"] for record in self.records)

    def results(self, progress: Progress | None) -> Results:
        """All cells, once they have finished, in the order of the plan."""
        total = len(self.chosen.cells)
        for done, cell in enumerate(self.cells(), 1):
            if progress:
                progress(done, total, cell)
        order = {cell.id: place for place, cell in enumerate(self.chosen.cells)}
        found = remarks(self.records)
        records = sorted((with_remark(record, found) for record in self.records), key=lambda each: order[each["cell"]])
        silence = without_answer(records)
        artifacts = self.chosen.context.artifacts
        notes = [silence] if silence else unanswered(self.chosen.asked, records)
        return Results(records, notes=[*notes, *(artifacts.problems if artifacts else ())])


def run(
    *selection: SourcePath, cases: SourcePath = "cases", progress: Progress | None = None, **options: Unpack[Options]
) -> Results:
    """Run cases through backends, toolkits and targets, as ``cumatrix run`` does, and wait for all of them.

    Parameters
    ----------
    *selection : str or path
        Names (``"wmma/fragments"``), topics (``"wmma"``) or paths of cases; all cases without one.
    cases : path
        Folder of cases.
    progress : callable, optional
        Is called with how many cells have finished, how many there are, and the `Cell` that just did.
    **options
        See `Options`. What is left out is as the command has it, with the environment's variables (``CUMATRIX_TOOLKIT``, …).

    Returns
    -------
    Results
        Every cell, whatever its outcome: refusals and missing parts appear as cells, not as exceptions.

    Raises
    ------
    UsageError
        On what cannot be read: names, versions, conditions, case files.
    NothingToRun
        When nothing is left of the selection.
    PartUnavailable
        When what is needed for any cell is not there.
    TypeError
        On an unknown keyword.
    """
    return _of_cases("run", selection, cases, options).results(progress)


def iter_run(*selection: SourcePath, cases: SourcePath = "cases", **options: Unpack[Options]) -> Iterator[Cell]:
    """As `run`, but gives each cell as it finishes. Closing the iterator ends what is under way.

    Errors of `run` are raised at once, before the first cell.
    """
    return _of_cases("iter_run", selection, cases, options).cells()


def try_(
    source: SourcePath | Iterable[SourcePath], *, language: str = "cuda", progress: Progress | None = None, **options: Unpack[TryOptions]
) -> Results:  # fmt: skip
    """Try a program for every architecture and version, as ``cumatrix try`` does.

    Parameters
    ----------
    source : str, path or iterable of paths
        Files, each a program of its own; or one program's text, recognized by a line break or a brace.
    language : str
        Of a text: ``"cuda"`` or ``"python"``.
    progress : callable, optional
        As for `run`.
    **options
        See `Options` and `TryOptions`.

    Returns
    -------
    Results
        As of `run`. All that is refused is not as expected.

    Raises
    ------
    UsageError, NothingToRun, PartUnavailable, TypeError
        As `run`.
    """
    return _of_files("try_", source, language, options).results(progress)


def iter_try(
    source: SourcePath | Iterable[SourcePath], *, language: str = "cuda", **options: Unpack[TryOptions]
) -> Iterator[Cell]:
    """As `try_`, but gives each cell as it finishes. Closing the iterator ends what is under way."""
    return _of_files("iter_try", source, language, options).cells()


def _of_cases(function: str, selection: Iterable[SourcePath], cases: SourcePath, options: Options) -> _Work:
    words = words_of(function, dict(options), Options.__annotations__)
    # Unnamed settings come from the project (harness.cli.configured).
    named = [] if os.fspath(cases) == "cases" else [f"--cases={os.fspath(cases)}"]
    argv = [*named, *words, "--", *(os.fspath(each) for each in selection)]
    params = _params(run_command, "run", argv)
    names = ("selection", "cases", "order", "shard", "costs")
    rest = {name: value for name, value in params.items() if name not in names}
    return _Work(cells_of_cases(rest, **{name: params[name] for name in names}), params, ["run", *argv])


def _of_files(function: str, source: SourcePath | Iterable[SourcePath], language: str, options: TryOptions) -> _Work:
    words = words_of(function, dict(options), TryOptions.__annotations__)
    argv = [*words, "--", *map(str, _files(source, language))]
    params = _params(try_command, "try", argv)
    return _Work(cells_of_files(params, params["files"]), params, ["try", *argv])


def _params(command: click.Command, name: str, argv: list[str]) -> dict[str, Any]:
    """Parse these words as the command does; its errors become ours."""
    try:
        return command.make_context(name, list(argv)).params
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None


def _files(source: SourcePath | Iterable[SourcePath], language: str) -> list[Path]:
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return [_written(source, language)]
    return [Path(each) for each in ([source] if isinstance(source, str | PathLike) else source)]


def _written(text: str, language: str) -> Path:
    """A file for a text: the same for the same text, so that its cells are answered by an earlier run."""
    suffixes = {"cuda": ".cu", "python": ".py"}
    if language not in suffixes:
        raise UsageError(f"language {language!r} of a program's text is neither cuda nor python")
    data = text.encode("utf-8", "surrogatepass")
    path = cache_folder() / "texts" / hashlib.sha256(data).hexdigest()[:16] / f"kernel{suffixes[language]}"
    if not path.is_file() or path.read_bytes() != data:
        replace_files({path: data})
    return path
