"""Running cells: what ``cumatrix run`` and ``cumatrix try`` do, without a terminal."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

import click

from cumatrix._results import Cell, Results
from harness.cli.run import run as run_command
from harness.cli.run import try_ as try_command
from harness.cli.selection import Selection, select_cases, select_files, start
from harness.engine.proof import unanswered, without_answer
from harness.errors import UsageError, did_you_mean
from harness.records import Record, RecordWriter, make_plan, this_commit
from harness.records.failures import remarks, with_remark
from harness.records.files import check_writable, replace_files
from harness.tables import cache_folder

Words = str | Iterable[str]
"""``"12.4,13.0"``, or ``["12.4", "13.0"]``."""

Versions = str | Iterable[str] | Mapping[str, Words]
"""``{"cupy": ["13.0", "14"]}``, or as the command takes them: ``["cupy=13.0,14", "-e ../numba-cuda"]``."""


class Options(TypedDict, total=False):
    """Keywords of `run`, `try_` and their like; each means what the command's option of that name means (``cumatrix run --help``).

    Attributes
    ----------
    backend, toolkit, target : str or iterable of str
        The axes: ``"nvrtc,nvcc"``, ``["12.4", "13.0"]``, ``"sm_80..sm_120"``. Defaults are those of the command.
    with_, library : mapping, str or iterable of str
        Releases of the libraries under test (``--with``), and of header libraries (``--library``).
    host_compiler : str or iterable of str
        What nvcc hands the host's half of a program to: ``"gcc-11,gcc-13"``, ``"all"``.
    where : str
        A condition that cells must hold.
    python, environment, device : str
        The environment under test, and the devices that cells may run on.
    require : str or iterable of str
        Requirements that the environment was made for.
    trust : bool
        Whether the project's configuration may name programs that are run (``--trust``).
    sanitize, offline : bool
        Whether compute-sanitizer goes over launches; whether nothing may be downloaded.
    from_ : str or iterable of str
        Results of others, whose outcomes are taken where nothing has changed (``--from``).
    cache : bool
        Whether outcomes of earlier runs may answer; true when left out.
    jobs : int
        Cells that compile at the same time; as many as there are cores when left out.
    timeout : float
        Seconds that a cell may take.
    memory, total_memory : int or str
        What each process of a cell, and all cells together, may need: bytes, or ``"8G"``.
    limit : mapping
        Further limits of each process, as ulimit has them: ``{"stack": "64M"}``.
    trace : str or Path
        File for a trace of the run.
    keep_artifacts : str or Path
        Folder that what was built is kept in, each file under its SHA-256 (``--keep-artifacts``).
    executor : str
        Where cells are compiled; ``threads`` when left out.
    out : str or Path
        File of records that the run adds to, as cells finish; none when left out.
    fresh : bool
        Whether what that file has of earlier runs is forgotten.
    """

    backend: Words
    toolkit: Words
    target: Words
    with_: Versions
    library: Versions
    host_compiler: Words
    where: str
    python: str | Path
    environment: str
    require: Words
    device: str
    trust: bool
    sanitize: bool
    offline: bool
    from_: Words
    cache: bool
    jobs: int
    timeout: float
    memory: int | str
    total_memory: int | str
    limit: Mapping[str, int | str]
    trace: str | Path
    keep_artifacts: str | Path
    executor: str
    out: str | Path
    fresh: bool


class TryOptions(Options, total=False):
    """Further keywords of `try_` and `iter_try`.

    Attributes
    ----------
    include : str, Path or iterable of them
        Further include directories.
    define : mapping
        Macros, or constants of a Python module: ``{"N": 4}``; None for a macro without a value.
    std : str
        C++ dialect: ``"c++17"``.
    option : str or iterable of str
        Words as ``cumatrix try`` takes them: nvcc's options (``["-lineinfo", "-rdc=true"]``), any other as ``"--option=-default-device"``,
        and ``"nvcc:-Werror=all-warnings"`` for one backend alone.
    signature : mapping
        Signatures of Numba's kernels by name: ``{"axpy": "void(float32[:], float32)"}``.
    device_only : bool
        Whether nvcc leaves the host pass out.
    toolkit_first : bool
        Whether the toolkit's include directories come before `include` and header libraries.
    """

    include: str | Path | Iterable[str | Path]
    define: Mapping[str, Any]
    std: str
    option: Words
    signature: Mapping[str, str]
    device_only: bool
    toolkit_first: bool


_FOR_ONE = re.compile(r"[A-Za-z][\w-]*:-")
_FLAGS = ("trust", "sanitize", "offline", "fresh", "device_only", "toolkit_first")
_LISTS = ("backend", "toolkit", "target", "host_compiler")
_SEVERAL = ("with_", "library", "require", "limit", "from_")


def words_of(function: str, options: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """The words of the command line that say the same.

    Parameters
    ----------
    function : str
        Whose keywords they are, for errors.
    options : Mapping
        Keywords with their values; None is the default.
    known : iterable of str
        Keywords that the function takes.

    Raises
    ------
    TypeError
        On a keyword that it does not take.
    """
    names = list(known)
    words: list[str] = []
    for name, value in options.items():
        if name not in names:
            raise TypeError(f"{function}() has no keyword {name!r}{did_you_mean(name, names)}")
        if value is not None:
            words += _spelled(name, value)
    return words


def _spelled(name: str, value: Any) -> Iterator[str]:
    option = f"--{name.strip('_').replace('_', '-')}"
    if name in _FLAGS:
        yield from [option] if value else []
    elif name == "cache":
        yield from [] if value else ["--no-cache"]
    elif name in _LISTS:
        yield f"{option}={','.join(several(value))}"
    elif name in _SEVERAL:
        yield from (f"{option}={each}" for each in _named(value))
    elif name == "include":
        yield from (f"-I{each}" for each in several(value))
    elif name == "define":
        yield from (f"-D{macro}" if given is None else f"-D{macro}={_number(given)}" for macro, given in value.items())
    elif name == "signature":
        yield from (f"{option}={kernel}={signature}" for kernel, signature in value.items())
    elif name == "option":
        yield from (f"--option={each}" if _FOR_ONE.match(each) else each for each in several(value))
    else:
        yield f"{option}={value}"


def several(value: Any) -> list[str]:
    """One text or path, or any number of them, as texts."""
    return [str(value)] if isinstance(value, str | Path) else [str(each) for each in value]


def _named(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}={','.join(several(given))}" if not isinstance(given, int) else f"{name}={given}"
                for name, given in value.items()]  # fmt: skip
    return several(value)


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


SourcePath = str | PathLike[str]
Progress = Callable[[int, int, Cell], object]


@dataclass
class _Work:
    """Cells to run, and their closing notes."""

    selection: Selection
    out: Path | None
    fresh: bool
    argv: list[str]
    records: list[Record] = field(default_factory=list)

    def cells(self) -> Iterator[Cell]:
        """Yield each cell as it finishes; closing the iterator ends the running cells."""
        run_id, cells = uuid.uuid4().hex[:12], self.selection.cells
        if self.out:
            check_writable(self.out)
        with start(self.selection) as run, ExitStack() as stack:
            plan = make_plan(cells, run=run_id, environment=run.context.name, argv=self.argv, commit=this_commit())
            writer = stack.enter_context(RecordWriter(self.out, plan, fresh=self.fresh)) if self.out else None
            for result in run.results(cells):
                record = result.record(run_id)
                self.records.append(record)
                if writer:
                    writer.append(record)
                yield Cell(record)
            if writer:
                writer.remarks = remarks(self.records)
                writer.inputs = run.inputs(record["fingerprint"] for record in self.records)

    def results(self, progress: Progress | None) -> Results:
        """All cells, once they have finished, in the order of the plan."""
        total = len(self.selection.cells)
        for done, cell in enumerate(self.cells(), 1):
            if progress:
                progress(done, total, cell)
        order = {cell.id: place for place, cell in enumerate(self.selection.cells)}
        found = remarks(self.records)
        records = sorted((with_remark(record, found) for record in self.records), key=lambda each: order[each["cell"]])
        silence = without_answer(records)
        artifacts = self.selection.context.artifacts
        notes = [silence] if silence else unanswered(self.selection.requested, records)
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
    # Unnamed settings come from the project (harness.cli.config_defaults).
    named = [] if os.fspath(cases) == "cases" else [f"--cases={os.fspath(cases)}"]
    argv = [*named, *words, "--", *(os.fspath(each) for each in selection)]
    params = params_of(run_command, "run", argv)
    return _Work(select_cases(params), params["out"], params["fresh"], ["run", *argv])


def _of_files(function: str, source: SourcePath | Iterable[SourcePath], language: str, options: TryOptions) -> _Work:
    words = words_of(function, dict(options), TryOptions.__annotations__)
    argv = [*words, "--", *map(str, _files(source, language))]
    params = params_of(try_command, "try", argv)
    return _Work(select_files(params, params["files"]), params["out"], params["fresh"], ["try", *argv])


def params_of(command: click.Command, name: str, argv: list[str]) -> dict[str, Any]:
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
