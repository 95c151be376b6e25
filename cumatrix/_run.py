"""Runs of cases and programs, as ``cumatrix run`` and ``cumatrix try`` start them."""

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
"""One string or several: ``"12.4,13.0"`` or ``["12.4", "13.0"]``."""

Versions = str | Iterable[str] | Mapping[str, Words]
"""Versions by library, ``{"cupy": ["13.0", "14"]}``, or the command's words: ``["cupy=13.0,14", "-e ../numba-cuda"]``."""


class Options(TypedDict, total=False):
    """Keywords of `run`, `try_`, `iter_run`, `iter_try` and `bisect`.

    Each keyword has the meaning and the default of the command's option with that name (``cumatrix run --help``).

    Attributes
    ----------
    backend, toolkit, target : str or iterable of str
        The axes: ``"nvrtc,nvcc"``, ``["12.4", "13.0"]``, ``"sm_80..sm_120"``.
    with_, library : mapping, str or iterable of str
        Releases of the libraries under test (``--with``) and of header libraries (``--library``).
    host_compiler : str or iterable of str
        Host compilers of nvcc: ``"gcc-11,gcc-13"``, ``"all"``.
    where : str
        A condition that selects cells.
    python, environment, device : str
        The interpreter and the name of the environment under test, and the devices that cells may use.
    require : str or iterable of str
        Requirements that the environment was created with.
    trust : bool
        Whether the project's configuration may name programs to execute (``--trust``).
    sanitize, offline : bool
        Whether compute-sanitizer checks launches; whether downloads are forbidden.
    from_ : str or iterable of str
        Results of others; their outcomes are reused if nothing has changed (``--from``).
    cache : bool
        Whether outcomes of earlier runs are reused; true by default.
    jobs : int
        Number of cells that compile at the same time; the number of cores by default.
    timeout : float
        Time limit of a cell in seconds.
    memory, total_memory : int or str
        Memory limit of each process of a cell, and of all cells together: bytes, or ``"8G"``.
    limit : mapping
        Further limits of each process, with ulimit's names: ``{"stack": "64M"}``.
    trace : str or Path
        File for a trace of the run.
    keep_artifacts : str or Path
        Folder for artifacts; each file is named after its SHA-256 (``--keep-artifacts``).
    executor : str
        The executor that compiles cells; ``threads`` by default.
    out : str or Path
        Record file that the run appends finished cells to; none by default.
    fresh : bool
        Whether to discard the records of earlier runs in `out`.
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
        Compiler options, as words of ``cumatrix try``: nvcc's options (``["-lineinfo", "-rdc=true"]``), other options as
        ``"--option=-default-device"``, and options of a single backend as ``"nvcc:-Werror=all-warnings"``.
    signature : mapping
        Signatures of Numba kernels by name: ``{"axpy": "void(float32[:], float32)"}``.
    device_only : bool
        Whether nvcc skips the host pass.
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
    """Return the command-line words for keywords.

    Parameters
    ----------
    function : str
        Name of the function, for errors.
    options : Mapping
        Keywords with their values; None selects the default.
    known : iterable of str
        Keywords that the function accepts.

    Raises
    ------
    TypeError
        If a keyword is not in `known`.
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
    """Return one string or path, or an iterable of them, as a list of strings."""
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
        """Run all cells and return them in the order of the plan."""
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
    """Run cases with every selected backend, toolkit and target, as ``cumatrix run`` does.

    Parameters
    ----------
    *selection : str or path
        Names (``"wmma/fragments"``), topics (``"wmma"``) or paths of cases; all cases by default.
    cases : path
        Folder of cases.
    progress : callable, optional
        Called with the number of finished cells, the number of all cells, and the `Cell` that finished last.
    **options
        See `Options`. Environment variables (``CUMATRIX_TOOLKIT``, …) set defaults, as for the command.

    Returns
    -------
    Results
        Every cell, whatever its outcome: refusals and missing parts appear as cells, not as exceptions.

    Raises
    ------
    UsageError
        If a name, version, condition or case file is invalid.
    NothingToRun
        If the selection is empty.
    PartUnavailable
        If a part that every cell requires is missing.
    TypeError
        If a keyword is unknown.
    """
    return _of_cases("run", selection, cases, options).results(progress)


def iter_run(*selection: SourcePath, cases: SourcePath = "cases", **options: Unpack[Options]) -> Iterator[Cell]:
    """Run cases as `run` does, and yield each cell as it finishes. Closing the iterator ends the running cells.

    Errors of `run` are raised by the call itself, before the first cell.
    """
    return _of_cases("iter_run", selection, cases, options).cells()


def try_(
    source: SourcePath | Iterable[SourcePath], *, language: str = "cuda", progress: Progress | None = None, **options: Unpack[TryOptions]
) -> Results:  # fmt: skip
    """Compile programs for every selected architecture and version, as ``cumatrix try`` does.

    Parameters
    ----------
    source : str, path or iterable of paths
        Files, each a separate program; or the text of one program. A string with a line break or a brace is a text.
    language : str
        Language of a text: ``"cuda"`` or ``"python"``.
    progress : callable, optional
        Same as for `run`.
    **options
        See `Options` and `TryOptions`.

    Returns
    -------
    Results
        Every cell, as `run` returns them. A rejected program is not as expected.

    Raises
    ------
    UsageError, NothingToRun, PartUnavailable, TypeError
        As for `run`.
    """
    return _of_files("try_", source, language, options).results(progress)


def iter_try(
    source: SourcePath | Iterable[SourcePath], *, language: str = "cuda", **options: Unpack[TryOptions]
) -> Iterator[Cell]:
    """Compile programs as `try_` does, and yield each cell as it finishes. Closing the iterator ends the running cells."""
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
    """Parse command-line words as the command does; click's errors become `UsageError`."""
    try:
        return command.make_context(name, list(argv)).params
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None


def _files(source: SourcePath | Iterable[SourcePath], language: str) -> list[Path]:
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return [_written(source, language)]
    return [Path(each) for each in ([source] if isinstance(source, str | PathLike) else source)]


def _written(text: str, language: str) -> Path:
    """Return the file of a text. Equal texts share a file, which lets the cache of an earlier run answer."""
    suffixes = {"cuda": ".cu", "python": ".py"}
    if language not in suffixes:
        raise UsageError(f"language {language!r} of a program's text is neither cuda nor python")
    data = text.encode("utf-8", "surrogatepass")
    path = cache_folder() / "texts" / hashlib.sha256(data).hexdigest()[:16] / f"kernel{suffixes[language]}"
    if not path.is_file() or path.read_bytes() != data:
        replace_files({path: data})
    return path
