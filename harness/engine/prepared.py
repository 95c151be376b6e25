"""Input and output of executors: prepared cells and results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

from harness.backends import BACKENDS
from harness.cases.launch import launches_for, references_of
from harness.cases.rules import include_of, releases_named
from harness.engine.file_states import Roots
from harness.engine.fingerprints import Key, canonical
from harness.engine.machine import Need
from harness.engine.reads import observes_place
from harness.engine.toolchain import PreparedToolchain
from harness.errors import PartUnavailable
from harness.model import Case, Cell, HeaderLibrary, Headers, Outcome
from harness.model.judge import expectation_of, judge
from harness.nvidia.includes import first_includes
from harness.protocol.messages import CellJob, Limits, Options, Ready, Tools, header_options, limits_of_cell
from harness.protocol.text import decoded
from harness.records import Record, make_record
from harness.toolkits import Installed, LibraryStore, ToolkitStore


@dataclass(frozen=True)
class Result:
    """A cell and its outcome.

    Parameters
    ----------
    cell : Cell
        The cell.
    outcome : Outcome
        Its outcome.
    cached : bool
        Whether the outcome is from an earlier run.
    key : str
        Content key: a hash of the question and of every file that was read; empty if there is none.
    taken_from : str
        Origin of the result (``--from``): the file or address, and the run; empty for the user's own.
    """

    cell: Cell
    outcome: Outcome
    cached: bool = False
    key: str = ""
    taken_from: str = ""

    def record(self, run: str) -> Record:
        """Judge the outcome by the case's expectation; `run` names the run."""
        expected = expectation_of(self.cell)
        return make_record(
            self.cell, self.outcome, expected, judge(expected, self.outcome), run=run, cached=self.cached,
            fingerprint=self.key, taken_from=self.taken_from,
        )  # fmt: skip


_UNKNOWN = Need(0)


@cache
def _first_includes(source: Path) -> tuple[str, ...]:
    """Return the headers that a program begins with; none if the program cannot be read."""
    try:
        found = first_includes(decoded(source.read_bytes()))
    except OSError:
        return ()
    return found.names if found else ()


@dataclass(frozen=True)
class PreparedCell:
    """A cell that a compiler has to answer, with everything the compiler needs; it can be pickled.

    Parameters
    ----------
    cell : Cell
        The cell.
    toolchain : PreparedToolchain
        The toolchain that compiles it.
    job : CellJob
        The job of its child process.
    limits : Limits
        Limits of its resources.
    question : str
        Hash of the whole job; with the key of the worker's reads, it forms the first key of the result.
    need : Need
        Estimated needs of its compiler.
    requested : frozenset of str
        Keys of workers for which the cache has no result.
    """

    cell: Cell
    toolchain: PreparedToolchain
    job: CellJob
    limits: Limits
    question: str
    need: Need = _UNKNOWN
    requested: frozenset[str] = frozenset()

    @cached_property
    def alike(self) -> str:
        """Equal for cells that share a preparation by their fork server; empty without preparation."""
        prepares = BACKENDS[self.toolchain.toolchain.backend].prepares
        includes = _first_includes(self.job.source) if "includes" in prepares else ()
        if not includes and "options" not in prepares:
            return ""
        options = header_options(self.job.options)
        return json.dumps([self.job.target, options, self.job.include if includes else [], includes], sort_keys=True)

    def first_key(self, worker: str) -> str:
        """Return the `first_key` of its question."""
        return first_key(worker, self.question)


def first_key(worker: str, question: str) -> str:
    """Return the first cache key of a question for a worker with the key `worker`; empty without one."""
    return Key("cell").add("worker, question", [worker, question]).hex() if worker else ""


@dataclass(frozen=True)
class Worker:
    """Facts about the fork servers of one toolchain.

    Parameters
    ----------
    ready : Ready
        Report of one of them.
    keys : tuple of str
        Keys of the files that such a fork server reads, newest first; empty if its reads are unknown. Several keys may
        cover the same files, because Python looks up more files while it still writes its compiled modules.
    unfollowed : str
        Reason why the reads are unknown; empty if they are known.
    """

    ready: Ready
    keys: tuple[str, ...] = ()
    unfollowed: str = ""


class HeaderLibraries:
    """The installed header libraries of cells; each is looked up once per run."""

    def __init__(self) -> None:
        self.store = LibraryStore()
        self._found: dict[tuple[str, str], Installed | Headers | None] = {}

    def of(self, cell: Cell) -> dict[str, Installed | Headers | None]:
        """Return the libraries by name; None for a library that is not installed."""
        return {
            name: self._find(cell.case.libraries[name], version) for name, version in cell.variant.libraries.items()
        }

    def _find(self, library: HeaderLibrary, version: str) -> Installed | Headers | None:
        if version in library.built:
            return library.built[version]
        key = (library.name, version)
        if key not in self._found:
            self._found[key] = self.store.find(library, version)
        return self._found[key]


def source_of(cell: Cell) -> Path:
    """Return the source file that the cell's backend compiles."""
    return cell.case.sources[BACKENDS[cell.toolchain.backend].language(cell.case) or ""]


class OtherToolkits:
    """Toolkits that provide a single tool to cells; each is looked up once per run.

    Parameters
    ----------
    store : ToolkitStore
        The installed toolkits.
    """

    def __init__(self, store: ToolkitStore) -> None:
        self._find = cache(store.find)

    def of(self, cell: Cell) -> dict[str, Installed]:
        """Return the toolkits by the option that names them.

        Raises
        ------
        PartUnavailable
            If a toolkit is not installed or is damaged.
        """
        found = {}
        for name, release in releases_named(cell).items():
            toolkit = self._find(release)
            if toolkit is None:
                raise PartUnavailable(f"CUDA {release} is not installed: run `cumatrix toolkits install {release}`")
            _ = toolkit.fingerprint
            found[name] = toolkit
        return found


@dataclass(frozen=True)
class Common:
    """The part of a job that cells with the same case, toolchain and options share.

    Parameters
    ----------
    job : CellJob
        The job without a cell's own fields.
    key : Key
        Hash of the shared part; folders of programs and headers enter under their root names, options and macros
        literally.
    case : Case
        The case of the cells.
    """

    job: CellJob
    key: Key
    case: Case

    def job_of(self, cell: Cell) -> CellJob:
        """Return the job of a cell."""
        return replace(self.job, cell=cell.id, **_own(cell))

    def question_of(self, cell: Cell) -> str:
        """Hash a cell's job without the cell's name and the content of files."""
        own = {
            name: value if name != "launches" else [each.to_json() for each in value]
            for name, value in _own(cell).items()
        }
        key = self.key.copy().add("own", own)
        if observes_place(canonical(own["definitions"]).decode()):
            key.add("place", str(self.job.source))
        return key.hex()


def _own(cell: Cell) -> dict[str, Any]:
    """Return the cell's own fields of its job, by name."""
    return {
        "target": str(cell.target),
        "definitions": dict(cell.variant.definitions),
        "launches": launches_for(cell) if cell.toolchain.device else [],
    }


class Jobs:
    """The jobs of a run's cells; shared parts are created once.

    Parameters
    ----------
    include : sequence of Path
        Include directories of the request.
    limits : Limits
        Limits of each cell.
    roots : Roots
        Names of folders in questions.
    """

    def __init__(self, include: Sequence[Path], limits: Limits, roots: Roots) -> None:
        self.include = include
        self.limits = limits
        self.roots = roots
        self._known: dict[tuple[Any, ...], Common] = {}

    def common(
        self,
        cell: Cell,
        toolchain: PreparedToolchain,
        options: dict[str, Any],
        libraries: Mapping[str, Installed | Headers],
        tools: Mapping[str, Installed],
    ) -> Common:
        """Return the shared part of a cell's job.

        Parameters
        ----------
        cell, toolchain
            The cell and its toolchain.
        options : dict
            The case's options for the cell (`options_for`).
        libraries : Mapping
            Header libraries of the cell. They precede the toolkit's headers, which may contain another version of them.
        tools : Mapping
            Other toolkits, by the option that names them (`OtherToolkits`); they follow from the options.
        """
        versions = tuple(cell.variant.libraries.items())
        which = (
            id(cell.case),
            cell.toolchain,
            versions,
            canonical(options),
        )  # the stored case keeps its id unique
        if which not in self._known:
            self._known[which] = self._make(cell, toolchain, options, libraries, tools)
        return self._known[which]

    def _make(
        self,
        cell: Cell,
        toolchain: PreparedToolchain,
        options: dict[str, Any],
        libraries: Mapping[str, Installed | Headers],
        tools: Mapping[str, Installed],
    ) -> Common:
        case, named = cell.case, self.roots.name
        language = BACKENDS[cell.toolchain.backend].language(case) or ""
        options = dict(options)
        folders = include_of(case, options)
        options.pop("memory", None)  # an option of the scheduler
        if not BACKENDS[cell.toolchain.backend].nvcc:
            # Only nvcc uses it; without it, cells that differ only in depth share their headers.
            options.pop("depth", None)
        others = {name: Tools(found.release, found.home) for name, found in tools.items()}
        library_folders = [folder for library in libraries.values() for folder in library.include]
        job = CellJob(
            cell="",
            source=source_of(cell).absolute(),
            entries=dict(case.entries.get(language, {})),
            definitions={},
            target="",
            options=cast("Options", options),
            include=[str(folder) for folder in (*library_folders, *toolchain.include, *self.include, *folders)],
            together=[path.absolute() for path in case.together] if language != "python" else [],
            assembler=others.get("assembler"),
            linker=others.get("linker"),
        )
        paths = references_of(case) if cell.toolchain.device else []
        fingerprints = {tool: [found.fingerprint, named(str(found.home))] for tool, found in tools.items()}
        places = {"source": named(str(job.source)), "include": list(map(named, job.include)), **fingerprints}
        key = Key("question").add("job", {**job.to_json(), **places})
        if observes_place(canonical(options).decode()):
            key.add("place", [str(job.source), *job.include])
        key.add("references", [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths])
        key.add("root", str(case.root or ""))  # paths in the log are relative to it
        key.add("libraries", {name: found.fingerprint for name, found in libraries.items()})
        return Common(job, key.add("limits", limits_of_cell(self.limits.memory, self.limits.rlimits)), case)
