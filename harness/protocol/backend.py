"""The interface between a worker and a backend.

These modules run in the interpreter of the environment under test, which may be another one than
cumatrix's own: they import the standard library only, and the backend's library inside functions.
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
)  # characters; a tool's output is cut before (harness.protocol.process_output.KEPT)

__all__ = ["Backend", "Crashed", "Ended", "Job", "Rejected", "Setup", "Unavailable", "Unsupported"]


@dataclass
class Job(CellJob):
    """One cell in progress in a child: the request, and the results so far.

    Parameters
    ----------
    scratch : Path
        A folder of the cell's own, which starts empty and goes with the cell.
    steps : str
        Folder of steps that the cells of its program share; empty where they share none.
    device : dict
        The real device as the scheduler found it; empty without one.
    modules : tuple of str
        What is imported of the library under test, for programs in Python: an exception that passed through one of them is a refusal.
    stages, command, logs, notes : list of str
        Stages that began, commands or calls, what tools printed, remarks.
    shared_steps : list of str
        Tools whose work was taken from another cell of the run.
    observed : dict
        Versions that only the cell could ask for.
    artifact : Product or None
        What came out last.
    parts : list of Product
        What came out before it, where one program a kernel does.
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
        """The job of an order."""
        values = {each.name: getattr(order.job, each.name) for each in fields(CellJob)}
        return cls(**values, scratch=order.scratch, steps=order.steps, device=dict(order.device))

    @property
    def virtual(self) -> bool:
        """Return whether the target is a virtual architecture."""
        return self.target.startswith("compute_")

    @property
    def made_for(self) -> str:
        """The architecture that the compiler targets: the cell's target, unless the case has another tool finish the code."""
        return made_for(self.options, self.target)

    @property
    def lto(self) -> bool:
        """Return whether the user's flags request link-time code generation (LTO)."""
        return not {"-dlto", "--dlink-time-opt", "-lto", "--lto"}.isdisjoint(self.options.get("flags", ()))

    @property
    def one_of_several(self) -> bool:
        """Return whether the user's flags say that this file is linked with others later."""
        return not {"-dc", "--device-c"}.isdisjoint(self.options.get("flags", ()))

    @property
    def arch(self) -> str:
        """The target without its kind: ``"80"``, ``"90a"``, ``"942"`` of ``gfx942``."""
        return re.sub(r"^[a-z]+_?", "", self.target)

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of an NVIDIA target as two numbers: ``(8, 0)``."""
        number = int(self.arch.rstrip("af"))
        return number // 10, number % 10

    @property
    def compute_capability(self) -> str:
        """Compute capability as people write it: ``"8.0"``."""
        return ".".join(map(str, self.capability))

    @property
    def sources(self) -> list[Path]:
        """Every file of the program, in order."""
        return [self.source, *self.together]

    def include_next_to_source(self, setup: Setup) -> list[str]:
        """The requested include directories, without the toolkit's; a requested one of the toolkit's is kept."""
        folders = list(self.include)
        for folder in setup.include:
            if folder in folders:
                folders.remove(folder)
        return folders

    def toolkit_include(self, setup: Setup) -> list[str]:
        """Include directories of the toolkit; none where the case wants a compiler without them."""
        return setup.include if self.options.get("toolkit_headers", True) else []

    @property
    def toolkit_first(self) -> bool:
        """Return whether the toolkit's include directories come before the requested ones."""
        return bool(self.options.get("toolkit_first", False))

    def every_include(self, setup: Setup) -> list[str]:
        """Include directories in search order, for a compiler without defaults."""
        next_to_source, toolkit = self.include_next_to_source(setup), self.toolkit_include(setup)
        return [*toolkit, *next_to_source] if self.toolkit_first else [*next_to_source, *toolkit]

    def enter(self, stage: str) -> None:
        """Say that `stage` begins; this is known even when the process dies in it."""
        if self.stages[-1:] == [stage]:
            return
        if stage == "load" and self.take_slot:
            self.take_slot()
            self.take_slot = None
        self.stages.append(stage)
        with open(self.scratch / "stages", "a") as file:
            file.write(stage + "\n")

    def say(self, text: str | bytes) -> None:
        """Keep a tool's output: of very long output, the start and the end."""
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        text = cut(text.rstrip("\0\n "), _MOST_AT_ONCE)
        before = sum(map(len, self.logs))
        if before > _MOST_OUTPUT:
            return
        if before + len(text) > _MOST_OUTPUT:
            text += "\n[... what was said after this is left out ...]"
        if text:
            self.logs.append(text)
            with open(self.scratch / "log", "a", errors="replace") as file:
                file.write(text + "\n")

    def keep(self, data: bytes, kind: str) -> Path:
        """Keep what came out (``ptx``, ``cubin``, ``object``, ``ltoir``, ``hsaco``); the last one counts."""
        if kind == "cubin" and data[16:18] == b"\x01\x00":  # ELF's ET_REL, whatever options asked for it
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
        """Set what was kept aside: the next program that comes out is another one, and the artifact is all of them."""
        assert self.artifact is not None
        path = Path(self.artifact.path)
        aside = path.with_name(f"part-{len(self.parts) + 1}{path.suffix}")
        path.replace(aside)
        self.parts.append(replace(self.artifact, path=str(aside)))
        self.artifact = replace(self.parts[0], parts=self.parts)

    def leave_to_driver(self) -> None:
        """Say that the driver's own linker may have made what was kept: that builds for the device, suffix or not."""
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
    """The compiler, assembler or linker said no; what it said was given to `Job.say`."""

    status = "rejected"


class Crashed(Ended):
    """The compiler, or a child of it, died: by a signal, or by stopping with an internal error (no signal then)."""

    status = "crashed"

    def __init__(self, reason: str, *, signal: int | None, stage: str | None = None) -> None:
        super().__init__(reason, stage=stage)
        self.signal = signal


class Unsupported(Ended):
    """The combination is not applicable: no such architecture, no such option."""

    status = "unsupported"


class Unavailable(Ended):
    """A requested part is missing, or another one replaced it."""

    status = "unavailable"


class Backend(Protocol):
    """One way to compile. A backend's module has one such object, named ``backend``."""

    def prepare(self, setup: Setup) -> Ready:
        """Load everything in the process that cells are forked from.

        Never touches a CUDA driver and starts no thread.

        Returns
        -------
        Ready
            With what was ``observed``: versions asked of what was loaded; and ``architectures`` with
            ``architectures_of`` where the compiler or the library says which it knows.

        Raises
        ------
        Unavailable, Unsupported
            When the parts are not there or do not fit each other.
        """

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile one cell in a process of its own; returning means that it was built.

        Raises
        ------
        Ended
            With any other status.
        """

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile, load, launch and verify one cell on a real device, as users of the library do.

        ``CUDA_VISIBLE_DEVICES`` names the one device. Stages ``load``, ``launch`` and ``verify`` come after those of
        `compile`; `harness.nvidia.launch` makes the arguments and checks the results.

        Raises
        ------
        Ended
            With any other status.
        """


@runtime_checkable
class Ahead(Protocol):
    """A backend that does in the fork server what several cells have in common."""

    def ahead(self, setup: Setup, job: Job, alike: int, pulse: Callable[[], None]) -> None:
        """Called before each cell is forked, on a virtual device or none; `alike` similar cells are to come, as far as is known; below 0 nothing is to be prepared.

        It compiles nothing of the cell's program, ends by itself whatever it starts, and calls `pulse` twice a second meanwhile.
        """
