"""The interface between a worker and a backend.

These modules run in the interpreter under test, which may differ from cumatrix's own. They import the standard library
only, and the backend's library inside functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from harness.protocol.messages import CellJob, Order, Product, Ready, Setup, made_for
from harness.protocol.process_output import cut

_MOST_AT_ONCE, _MOST_OUTPUT = (
    3 << 20,
    12 << 20,
)  # characters; a tool's output is already cut (harness.protocol.process_output.KEPT)

__all__ = ["Backend", "Crashed", "Ended", "Job", "Rejected", "Setup", "Unavailable", "Unsupported"]


@dataclass
class Job(CellJob):
    """One cell in progress in a child: the request, and the results so far.

    Parameters
    ----------
    scratch : Path
        The cell's own folder, empty at first and removed with the cell.
    steps : str
        Folder of compile steps that the cells of its program share; empty if they share none.
    device : dict
        The scheduler's description of the real device; empty without one.
    modules : tuple of str
        Modules of the library under test, for programs in Python: an exception raised through one of them is a refusal.
    stages, command, logs, notes : list of str
        Stages that began, commands or calls, output of tools, remarks.
    shared_steps : list of str
        Tools whose work was reused from another cell of the run.
    observed : dict
        Versions that are known only in the cell.
    artifact : Product or None
        The last product.
    parts : list of Product
        Earlier products, if each kernel is a separate program.
    take_slot : callable
        Waits for a slot of the real device; called once, before stage ``load``.
    """

    scratch: Path = field(default_factory=Path)
    steps: str = ""
    device: dict[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    stages: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shared_steps: list[str] = field(default_factory=list)
    observed: dict[str, Any] = field(default_factory=dict)
    artifact: Product | None = None
    parts: list[Product] = field(default_factory=list)
    take_slot: Callable[[], None] | None = None

    @classmethod
    def of(cls, order: Order) -> Job:
        """Create the job of an order."""
        values = {each.name: getattr(order.job, each.name) for each in fields(CellJob)}
        return cls(**values, scratch=order.scratch, steps=order.steps, device=dict(order.device))

    @property
    def virtual(self) -> bool:
        """Return whether the target is a virtual architecture."""
        return self.target.startswith("compute_")

    @property
    def made_for(self) -> str:
        """The architecture that the compiler targets; it differs from the cell's if another tool finishes the code."""
        return made_for(self.options, self.target)

    @property
    def lto(self) -> bool:
        """Return whether the user's flags request link-time code generation (LTO)."""
        return not {"-dlto", "--dlink-time-opt", "-lto", "--lto"}.isdisjoint(self.options.get("flags", ()))

    @property
    def one_of_several(self) -> bool:
        """Return whether the user's flags mark this file for linking with other files."""
        return not {"-dc", "--device-c"}.isdisjoint(self.options.get("flags", ()))

    @property
    def arch(self) -> str:
        """The target without its prefix: ``"80"``, ``"90a"``, ``"942"`` of ``gfx942``."""
        return re.sub(r"^[a-z]+_?", "", self.target)

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of an NVIDIA target as two numbers: ``(8, 0)``."""
        number = int(self.arch.rstrip("af"))
        return number // 10, number % 10

    @property
    def compute_capability(self) -> str:
        """Compute capability as text: ``"8.0"``."""
        return ".".join(map(str, self.capability))

    @property
    def sources(self) -> list[Path]:
        """Every file of the program, in order."""
        return [self.source, *self.together]

    def include_next_to_source(self, setup: Setup) -> list[str]:
        """Return the requested include directories, without one occurrence of each of the toolkit's."""
        folders = list(self.include)
        for folder in setup.include:
            if folder in folders:
                folders.remove(folder)
        return folders

    def toolkit_include(self, setup: Setup) -> list[str]:
        """Return the include directories of the toolkit; none if the case excludes them."""
        return setup.include if self.options.get("toolkit_headers", True) else []

    @property
    def toolkit_first(self) -> bool:
        """Return whether the toolkit's include directories come before the requested ones."""
        return bool(self.options.get("toolkit_first", False))

    def every_include(self, setup: Setup) -> list[str]:
        """Return the include directories in search order, for a compiler without defaults."""
        next_to_source, toolkit = self.include_next_to_source(setup), self.toolkit_include(setup)
        return [*toolkit, *next_to_source] if self.toolkit_first else [*next_to_source, *toolkit]

    def enter(self, stage: str) -> None:
        """Record that `stage` begins, in a file that remains if the process dies."""
        if self.stages[-1:] == [stage]:
            return
        if stage == "load" and self.take_slot:
            self.take_slot()
            self.take_slot = None
        self.stages.append(stage)
        with open(self.scratch / "stages", "a") as file:
            file.write(stage + "\n")

    def say(self, text: str | bytes) -> None:
        """Log a tool's output; very long output is kept without its middle."""
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        text = cut(text.rstrip("\0\n "), _MOST_AT_ONCE)
        before = sum(map(len, self.logs))
        if before > _MOST_OUTPUT:
            return
        if before + len(text) > _MOST_OUTPUT:
            text += "\n[... further output left out ...]"
        if text:
            self.logs.append(text)
            with open(self.scratch / "log", "a", errors="replace") as file:
                file.write(text + "\n")

    def keep(self, data: bytes, kind: str) -> Path:
        """Keep a product (``ptx``, ``cubin``, ``object``, ``ltoir``, ``hsaco``); the last one counts."""
        if kind == "cubin" and data[16:18] == b"\x01\x00":  # ELF's ET_REL, with or without options that request it
            kind = "object"
        path = self.scratch / f"artifact.{kind}"
        path.write_bytes(data)
        self.artifact = Product(str(path), kind)
        return path

    @property
    def relocatable(self) -> bool:
        """Return whether the kept artifact still has to be linked."""
        return self.artifact is not None and self.artifact.format in ("object", "ltoir")

    def complete(self) -> None:
        """Move the current product aside; the next product is another part of the same artifact."""
        assert self.artifact is not None
        path = Path(self.artifact.path)
        aside = path.with_name(f"part-{len(self.parts) + 1}{path.suffix}")
        path.replace(aside)
        self.parts.append(replace(self.artifact, path=str(aside)))
        self.artifact = replace(self.parts[0], parts=self.parts)

    def leave_to_driver(self) -> None:
        """Record that the driver's own linker may have made the product: it builds for the device, suffix or not."""
        assert self.artifact is not None
        self.artifact.by_driver = True


class Ended(Exception):
    """Ends a cell with a status; the message is the reason, or the compiler's words."""

    status = "harness_error"

    def __init__(self, reason: str = "", *, stage: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.stage = stage


class Rejected(Ended):
    """The compiler, assembler or linker refused; `Job.say` has its output."""

    status = "rejected"


class Crashed(Ended):
    """The compiler or its child process crashed: by a signal, or without one by an internal error."""

    status = "crashed"

    def __init__(self, reason: str, *, signal: int | None, stage: str | None = None) -> None:
        super().__init__(reason, stage=stage)
        self.signal = signal


class Unsupported(Ended):
    """The combination is not supported: no such architecture, no such option."""

    status = "unsupported"


class Unavailable(Ended):
    """A requested part is missing or was replaced by another one."""

    status = "unavailable"


class Backend(Protocol):
    """One way to compile. A backend's module contains such an object, named ``backend``."""

    def prepare(self, setup: Setup) -> Ready:
        """Load everything in the process that forks cells.

        It never touches a CUDA driver and starts no thread.

        Returns
        -------
        Ready
            With ``observed``, the versions of loaded parts, and with ``architectures`` and ``architectures_of`` if the
            compiler or the library lists its architectures.

        Raises
        ------
        Unavailable, Unsupported
            If parts are missing or incompatible.
        """

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile one cell in its own process; a normal return means ``built``.

        Raises
        ------
        Ended
            If the cell ends with any other status.
        """

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile, load, launch and verify one cell on a real device, as users of the library do.

        ``CUDA_VISIBLE_DEVICES`` contains the one device. Stages ``load``, ``launch`` and ``verify`` follow those of
        `compile`; `harness.nvidia.launch` creates the arguments and checks the results.

        Raises
        ------
        Ended
            If the cell ends with any other status.
        """


@runtime_checkable
class Ahead(Protocol):
    """A backend that prepares shared work of several cells in the fork server."""

    def ahead(self, setup: Setup, job: Job, alike: int, pulse: Callable[[], None]) -> None:
        """Prepare shared work; called before each cell is forked, on a virtual device or none.

        It compiles nothing of the cell's program, ends all processes that it starts, and calls `pulse` twice a second.
        `alike` is the expected number of similar cells to come; if it is negative, nothing is to be prepared.
        """
