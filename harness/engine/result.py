"""What goes into an executor and what comes out: a cell with all that its compilation needs, and a cell with what became of it; and what compiles it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from harness.backends import BACKENDS
from harness.engine.key import Key
from harness.engine.needs import Need
from harness.engine.toolchain import PreparedToolchain
from harness.model import Cell, Outcome
from harness.nvidia.first_includes import first_includes
from harness.protocol.job import CellJob, header_options
from harness.protocol.wire import Limits, Ready


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


_UNKNOWN = Need(0)


@cache
def _first_includes(source: Path) -> tuple[str, ...]:
    """The headers that a program begins with; none where it cannot be read."""
    try:
        found = first_includes(source.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
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
    asked : frozenset of str
        Keys of workers under which no answer of an earlier run was found.
    """

    cell: Cell
    toolchain: PreparedToolchain
    job: CellJob
    limits: Limits
    question: str
    need: Need = _UNKNOWN
    asked: frozenset[str] = frozenset()

    @cached_property
    def alike(self) -> str:
        """What it has in common with the cells for which its fork server prepares something once; empty where there is no such thing."""
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
    """First key of the answer to a question, of a worker that has read what the key `worker` stands for; empty without one."""
    return Key("cell").add("worker, question", [worker, question]).hex() if worker else ""


@dataclass(frozen=True)
class Worker:
    """What is known of the fork servers of one toolchain.

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
