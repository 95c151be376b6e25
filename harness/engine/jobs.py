"""What a child is asked for one cell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import cast

from harness.backends import BACKENDS
from harness.cases.launch import launches_for, references_of
from harness.cases.options import include_of, options_for, releases_named
from harness.engine.key import Key
from harness.engine.roots import Roots
from harness.engine.toolchain import PreparedToolchain
from harness.errors import PartUnavailable
from harness.model import Cell, HeaderLibrary, Headers
from harness.protocol.job import CellJob, Options, Tools
from harness.protocol.limits import limits_of_cell
from harness.protocol.wire import Limits
from harness.toolkits import Installed, LibraryStore, ToolkitStore


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
    """Toolkits of which one tool takes part in cells: each is looked for once in a run.

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


def job_of(
    cell: Cell,
    toolchain: PreparedToolchain,
    libraries: Iterable[Installed | Headers],
    include: Iterable[Path],
    tools: Mapping[str, Installed] | None = None,
) -> CellJob:
    """The job of a cell.

    Parameters
    ----------
    cell, toolchain
        The cell, and where it runs.
    libraries : iterable of Installed or Headers
        Its header libraries. They stand before the toolkit's headers, which may hold another version of them.
    include : iterable of Path
        Include directories that the run was asked for.
    tools : Mapping, optional
        Other toolkits, by the option that names them (`OtherToolkits`).
    """
    language = BACKENDS[cell.toolchain.backend].language(cell.case) or ""
    options, source = options_for(cell), source_of(cell)
    folders = include_of(cell.case, options)
    options.pop("memory", None)  # the scheduler's, and no compiler's
    others = {name: Tools(found.release, found.home) for name, found in (tools or {}).items()}
    beside = [folder for library in libraries for folder in library.include]
    return CellJob(
        cell=cell.id,
        source=source.absolute(),
        entries=dict(cell.case.entries.get(language, {})),
        definitions=dict(cell.variant.definitions),
        target=str(cell.target),
        options=cast("Options", options),
        include=[str(folder) for folder in (*beside, *toolchain.include, *include, *folders)],
        launches=launches_for(cell) if cell.toolchain.device else [],
        together=[path.absolute() for path in cell.case.together] if language != "python" else [],
        assembler=others.get("assembler"),
        linker=others.get("linker"),
    )


def question_of(
    cell: Cell,
    job: CellJob,
    libraries: Mapping[str, Installed | Headers],
    limits: Limits,
    roots: Roots,
    tools: Mapping[str, Installed] | None = None,
) -> str:
    """Hash over all that is asked of a worker for a cell, but for the cell's name and for what files say.

    Where programs and headers lie comes in by the names of `roots`: options and macros as they are.
    """
    paths = references_of(cell.case) if job.launches else []
    references = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    others = {name: [found.fingerprint, roots.name(str(found.home))] for name, found in (tools or {}).items()}
    places = {"source": roots.name(str(job.source)), "include": list(map(roots.name, job.include)), **others}
    key = Key("question").add("job", {**job.to_json(), **places, "cell": ""})
    key.add("references", references)
    key.add("root", str(cell.case.root or ""))  # the log names files as seen from there
    key.add("libraries", {name: found.fingerprint for name, found in libraries.items()})
    return key.add("limits", limits_of_cell(limits.memory, limits.rlimits)).hex()
