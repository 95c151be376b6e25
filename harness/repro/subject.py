"""The cell to reproduce: its record, and the program exactly as the compiler receives it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from packaging.version import Version

from harness.backends import BACKENDS, WHEELS
from harness.cases.options import NAMED, include_of, options_for
from harness.errors import UsageError
from harness.model import Case, Cell, Target, Toolchain, ToolkitRef
from harness.model.host import named
from harness.protocol.backend import Job
from harness.protocol.job import Options
from harness.protocol.wire import Setup
from harness.records import Record, not_repeatable
from harness.repro.program import Program, gather

CUDA, HEADERS = "cuda", "cuda-headers"
"""Folders of the toolkit that the compiler comes from, and of the one that headers come from where that is another."""

_TAKEN = (CUDA, f"{CUDA}-wheels", HEADERS, f"{HEADERS}-wheels", ".venv")


@dataclass(frozen=True)
class ReproTarget:
    """A cell to show.

    Parameters
    ----------
    record : Record
        What became of it.
    cell : Cell
        The cell.
    program : Program
        Its program and headers.
    job : Job
        What its compiler is asked, with the places that files have in the folder that is made.
    setup : Setup
        Its toolkit, likewise.
    """

    record: Record
    cell: Cell
    program: Program
    job: Job
    setup: Setup

    @property
    def backend(self) -> str:
        """Name of its backend."""
        return self.cell.toolchain.backend

    @property
    def library(self) -> str:
        """Version of the library behind it, without where that takes CUDA's headers from."""
        return self.cell.toolchain.library.removesuffix(WHEELS)

    @property
    def series(self) -> tuple[int, int]:
        """The library's first two numbers."""
        version = Version(self.library)
        return version.major, version.minor

    @property
    def observed(self) -> dict[str, Any]:
        """Versions of what was really loaded."""
        return self.record["toolchain"]["observed"]

    @property
    def relocatable(self) -> bool:
        """Return whether the compiler's output still has to be linked."""
        return "link" in self.record["stages"] or any(note.startswith("not linked") for note in self.record["notes"])


def check_shown(record: Record) -> None:
    """Raise `UsageError` for a record that cannot be reproduced."""
    if why := not_repeatable(record):
        raise UsageError(f"{record['cell']} {why}")


def cell_of(record: Record, case: Case) -> Cell:
    """The cell of a record, out of its case as that is now.

    Raises
    ------
    UsageError
        When the case has no such cell any more.
    """
    requested = record["toolchain"]["requested"]
    try:
        toolkit = ToolkitRef(
            release=requested["toolkit"], headers=requested["headers"], home=requested.get("cuda_home", ""),
            local="cuda_home" in requested,
        )  # fmt: skip
        packages, said = dict(requested["packages"]), str(requested.get("host_compiler", ""))
        # These become part of scripts, and a record may come from a stranger.
        if not all(re.fullmatch(r"\d{1,3}\.\d{1,3}", release) for release in (toolkit.release, toolkit.headers)):
            raise ValueError
        if record["library"]:
            Version(record["library"].removesuffix(WHEELS))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(
            f"the record of {record['cell']} does not tell which toolkit and which version of a library were asked for"
        ) from None
    variant = next((each for each in case.variants if each.name == record["variant"]), None)
    info = BACKENDS.get(record["backend"])
    if info is None or variant is None or not info.language(case):
        what = f"[{record['variant']}]" if record["variant"] else "a program"
        raise UsageError(f"{case.path} has no {what} for {record['backend']} any more: run the case again")
    return Cell(
        case=case,
        variant=variant,
        toolchain=Toolchain(
            backend=record["backend"], library=record["library"], toolkit=toolkit,
            environment=record["environment"], packages=packages, host=named(record.get("host_compiler", ""), said),
        ),
        target=Target.parse(record["target"]),
    )  # fmt: skip


def subject_of(record: Record, case: Case, include: Sequence[Path] = ()) -> ReproTarget:
    """Everything that is needed to show a record's outcome.

    Parameters
    ----------
    record : Record
        The record.
    case : Case
        Its case, or the program without a case as one.
    include : sequence of Path
        Include directories of the run.

    Raises
    ------
    UsageError
        When there is nothing to show, or the case has changed.
    """
    check_shown(record)
    cell = cell_of(record, case)
    language = BACKENDS[record["backend"]].language(case) or ""
    options, source = options_for(cell), case.sources[language]
    if apart := [name for name in NAMED if name in options]:
        raise UsageError(
            f"{case.name} has what one tool made finished by another ({apart[0]}), and repro makes a folder of what one toolkit compiles: "
            "the record's command has both steps"
        )
    own = [*include, *include_of(case, options)]
    options.pop("memory", None)
    program = gather([source, *(case.together if language != "python" else ())], own)
    # cuda.core receives text: headers next to the program are not found, although they would be in the script's folder.
    if record["backend"] == "cuda-core" or any(place.split("/")[0] in _TAKEN for place in program.files):
        program = program.below("program")
    toolkit = cell.toolchain.toolkit
    headers = CUDA if toolkit.headers == toolkit.release else HEADERS
    # From 13 on, CCCL has a folder of its own.
    cccl = [f"{headers}/include/cccl"] if int(toolkit.headers.split(".")[0]) >= 13 else []
    folders = [f"{headers}/include", *cccl]
    beside = [f"{name}-wheels/{folder}" for name in cell.variant.libraries for folder in case.libraries[name].include]
    setup = Setup(
        home=Path(CUDA), release=toolkit.release, headers=toolkit.headers, include=folders, tools=Path(),
        wheels=cell.toolchain.library.endswith(WHEELS),
    )  # fmt: skip
    job = Job(
        cell=cell.id, source=Path(program.sources[0]), together=list(map(Path, program.sources[1:])), entries=dict(case.entries.get(language, {})),
        definitions=dict(cell.variant.definitions), target=str(cell.target), options=cast("Options", options),
        include=[*beside, *folders, *program.include], scratch=Path(),
    )  # fmt: skip
    return ReproTarget(record, cell, program, job, setup)
