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
    """A cell and what became of it.

    Parameters
    ----------
    cell : Cell
        The cell.
    outcome : Outcome
        What happened.
    cached : bool
        Whether an earlier run found it.
    key : str
        Content key, which follows from what was asked and from every file that was read; empty where there is none.
    taken_from : str
        Whose results had it (``--from``): the file or address, and the run; empty for one's own.
    """

    cell: Cell
    outcome: Outcome
    cached: bool = False
    key: str = ""
    taken_from: str = ""

    def record(self, run: str) -> Record:
        """Judge the outcome by what the case expects; `run` names the run."""
        expected = expectation_of(self.cell)
        return make_record(
            self.cell, self.outcome, expected, judge(expected, self.outcome), run=run, cached=self.cached,
            fingerprint=self.key, taken_from=self.taken_from,
        )  # fmt: skip


_UNKNOWN = Need(0)


@cache
def _first_includes(source: Path) -> tuple[str, ...]:
    """The headers that a program begins with; none where it cannot be read."""
    try:
        found = first_includes(decoded(source.read_bytes()))
    except OSError:
        return ()
    return found.names if found else ()


@dataclass(frozen=True)
class PreparedCell:
    """A cell that a compiler has to answer, with everything that this takes; it can be pickled.

    Parameters
    ----------
    cell : Cell
        The cell.
    toolchain : PreparedToolchain
        Where it runs.
    job : CellJob
        What its child is asked.
    limits : Limits
        What it may use.
    question : str
        Hash over all that is asked: with the key of what the worker has read, it makes the first key of the answer.
    need : Need
        What its compiler may need.
    requested : frozenset of str
        Keys of workers under which no answer of an earlier run was found.
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
        """The cells for which its fork server prepares something once have equal values; empty without preparation."""
        prepares = BACKENDS[self.toolchain.toolchain.backend].prepares
        includes = _first_includes(self.job.source) if "includes" in prepares else ()
        if not includes and "options" not in prepares:
            return ""
        options = header_options(self.job.options)
        return json.dumps([self.job.target, options, self.job.include if includes else [], includes], sort_keys=True)

    def first_key(self, worker: str) -> str:
        """`first_key` of its question."""
        return first_key(worker, self.question)


def first_key(worker: str, question: str) -> str:
    """First key of the answer to a question, for a worker with the key `worker`; empty without one."""
    return Key("cell").add("worker, question", [worker, question]).hex() if worker else ""


@dataclass(frozen=True)
class Worker:
    """Facts of the fork servers of one toolchain.

    Parameters
    ----------
    ready : Ready
        What one of them said.
    keys : tuple of str
        Keys of all that such a fork server has read, the newest first. There may be several for the same files: Python
        looks for more of them while its compiled modules are still being written. None where it is not known what was read.
    unfollowed : str
        Why that is not known; empty where it is.
    """

    ready: Ready
    keys: tuple[str, ...] = ()
    unfollowed: str = ""


class HeaderLibraries:
    """The header libraries of cells, as they are installed: each is looked for once in a run."""

    def __init__(self) -> None:
        self.store = LibraryStore()
        self._found: dict[tuple[str, str], Installed | Headers | None] = {}

    def of(self, cell: Cell) -> dict[str, Installed | Headers | None]:
        """By name; None for one that is not installed."""
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
    """The program that the cell's backend compiles."""
    return cell.case.sources[BACKENDS[cell.toolchain.backend].language(cell.case) or ""]


class OtherToolkits:
    """Toolkits that lend one tool to cells; each is looked up once in a run.

    Parameters
    ----------
    store : ToolkitStore
        Where they are.
    """

    def __init__(self, store: ToolkitStore) -> None:
        self._find = cache(store.find)

    def of(self, cell: Cell) -> dict[str, Installed]:
        """By the option that names it.

        Raises
        ------
        PartUnavailable
            When one is not installed, or is damaged.
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
    """The part of jobs that cells of one case, toolchain and choice of options share.

    Parameters
    ----------
    job : CellJob
        The job of each, but for what is the cell's own.
    key : Key
        Hash over all that is asked of a worker for it: where programs and headers lie comes in by the names of roots, options and macros as they are.
    case : Case
        Whose it is.
    """

    job: CellJob
    key: Key
    case: Case

    def job_of(self, cell: Cell) -> CellJob:
        """The job of a cell."""
        return replace(self.job, cell=cell.id, **_own(cell))

    def question_of(self, cell: Cell) -> str:
        """Hash over all that is asked of a worker for a cell, but for the cell's name and for what files say."""
        own = {
            name: value if name != "launches" else [each.to_json() for each in value]
            for name, value in _own(cell).items()
        }
        key = self.key.copy().add("own", own)
        if observes_place(canonical(own["definitions"]).decode()):
            key.add("place", str(self.job.source))
        return key.hex()


def _own(cell: Cell) -> dict[str, Any]:
    """The cell's own fields of its job, by name."""
    return {
        "target": str(cell.target),
        "definitions": dict(cell.variant.definitions),
        "launches": launches_for(cell) if cell.toolchain.device else [],
    }


class Jobs:
    """The jobs of a run's cells; what cells have in common is made once.

    Parameters
    ----------
    include : sequence of Path
        Include directories of the request.
    limits : Limits
        What a cell may use.
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
        """The part of a cell's job that others share.

        Parameters
        ----------
        cell, toolchain
            The cell, and where it runs.
        options : dict
            The case's options for it (`options_for`).
        libraries : Mapping
            Its header libraries. They stand before the toolkit's headers, which may hold another version of them.
        tools : Mapping
            Other toolkits, by the option that names them (`OtherToolkits`); they follow from the options.
        """
        versions = tuple(cell.variant.libraries.items())
        which = (
            id(cell.case),
            cell.toolchain,
            versions,
            canonical(options),
        )  # the case is kept, so that its id stays its own
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
        options.pop("memory", None)  # the scheduler's, and no compiler's
        if not BACKENDS[cell.toolchain.backend].nvcc:
            # Nothing else depends on it, and cells that differ by it share their headers.
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
        key.add("root", str(case.root or ""))  # the log names files as seen from there
        key.add("libraries", {name: found.fingerprint for name, found in libraries.items()})
        return Common(job, key.add("limits", limits_of_cell(self.limits.memory, self.limits.rlimits)), case)
