"""The empty program that CuPy compiles before the first one with new options, in each process: its PTX names NVRTC's release, for the key of CuPy's own cache.

Each cell is such a process, and half of what a small program takes went there. What comes out follows from the options and the architecture alone,
so a child of the fork server compiles it once for the cells that have both in common, as CuPy does, and CuPy is given that. Macros of a case are options,
too: only those are ignored that occur nowhere in NVRTC's builtin headers, the content of an empty program. When NVRTC refuses the options,
or a macro could matter, CuPy compiles it itself.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.backends.cupy.program import is_program
from harness.backends.nvrtc import macros
from harness.nvidia.first_includes import Words, defined
from harness.nvidia.pch_store import builtin
from harness.nvidia.precompiled import PLAIN
from harness.protocol import aside
from harness.protocol.backend import Job

_WORTH = 2
"""Number of cells from which on it is compiled once: a fork takes half as long as the compilation."""


class _Left(BaseException):
    """Leaves CuPy with what came out, or nothing; no ``except Exception`` of CuPy's holds it up."""

    def __init__(self, found: dict[str, Any] | None) -> None:
        self.found = found


class EmptyProgram:
    """The state of the empty program in one fork server.

    Parameters
    ----------
    compiler : module
        ``cupy.cuda.compiler``.
    """

    def __init__(self, compiler: Any) -> None:
        self._compiler, self._real = compiler, compiler._preprocess
        self._known: dict[str, dict[str, Any] | None] = {}
        self._asked_for: Counter[str] = Counter()

    @cached_property
    def _words(self) -> Words:
        """Those of an empty program; none where they are not known."""
        return Words(builtin())

    def ahead(self, job: Job, alike: int, compile_job: Callable[[Job], None], pulse: Callable[[], None]) -> None:
        """Have it compiled for a cell and those like it, where there are some.

        Parameters
        ----------
        job : Job
            The cell.
        alike : int
            How many cells of the same options come next: 0 where that is not known, less where nothing is to be made.
        compile_job : callable
            Compiles a job as cells are compiled.
        pulse : callable
            Called now and then.
        """
        if alike < 0:
            return
        key = _key(job)
        self._asked_for[key] += 1
        if key not in self._known and self._asked_for[key] + alike > _WORTH:
            self._known[key] = self._asked(job, compile_job, pulse)
        if self._known.get(key):
            _ = [name.encode() in self._words for name in job.definitions]  # once here, not in each cell

    def stand_before(self, job: Job) -> None:
        """In a cell: let CuPy have what is known. A program in Python tells of each text that it compiles, and of this one, too."""
        known = None if is_program(job) else self._known.get(_key(job))
        given = macros(job.definitions)
        # Words are not looked for where there is no macro: `ahead` has had no reason to either, and each cell would read NVRTC's library.
        if known is None or (given and defined(given, self._words) is None):
            return

        def preprocess(source: str, options: tuple[str, ...], architecture: str, backend: str) -> str:
            rest = [option for option in options if option not in given]
            same = (source, backend, architecture, rest) == ("", "nvrtc", known["architecture"], known["options"])
            return str(known["lines"]) if same else str(self._real(source, options, architecture, backend))

        self._compiler._preprocess = preprocess

    def _asked(self, job: Job, compile_job: Callable[[Job], None], pulse: Callable[[], None]) -> dict[str, Any] | None:
        """The reply of a child that compiles it with a cell's options; None without one."""
        blank = replace(job, definitions={}, entries={}, stages=[], command=[], logs=[], notes=[])
        try:
            folder = Path(tempfile.mkdtemp())
        except OSError:
            return None
        try:
            return aside.answer(folder, lambda scratch: self._compiled(scratch, blank, compile_job), pulse)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _compiled(self, folder: Path, blank: Job, compile_job: Callable[[Job], None]) -> dict[str, Any] | None:
        """In a child: what CuPy makes of the empty program, with the options that it gives a cell's."""
        blank = replace(blank, source=folder / "empty.cu", scratch=folder)
        blank.source.write_text("")

        def leave(source: str, options: tuple[str, ...], architecture: str, backend: str) -> str:
            if not all(map(PLAIN.fullmatch, options)):
                raise _Left(None)
            lines = self._real(source, options, architecture, backend)
            raise _Left({"architecture": architecture, "options": options, "lines": lines})

        self._compiler._preprocess = leave
        try:
            compile_job(blank)
        except _Left as left:
            return left.found
        except Exception:  # noqa: BLE001 (whatever NVRTC or CuPy refuses, the cell will tell)
            return None
        return None


def _key(job: Job) -> str:
    return json.dumps([job.target, job.options, job.include], sort_keys=True, default=str)
