"""What a worker and a backend say to each other.

These modules run in the interpreter of the environment under test, which may be another one than
cumatrix's own: they import the standard library only, and the backend's library inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass
class Setup:
    """What a worker is started for: one backend with one toolkit.

    Parameters
    ----------
    home : Path
        The toolkit, laid out as a CUDA_HOME.
    release, headers : str
        The CUDA releases of the compiler and of the headers.
    include : list of str
        Include directories of the headers, in order.
    tools : Path
        Folder of small libraries that cumatrix builds for itself.
    options : dict
        Settings of the backend.
    device : str
        Name of the real device that cells run on; empty for a worker that never sees one.
    """

    home: Path
    release: str
    headers: str
    include: list[str]
    tools: Path
    options: dict[str, Any] = field(default_factory=dict)
    device: str = ""

    @property
    def version(self) -> tuple[int, int]:
        """The compiler's CUDA release as numbers: ``(12, 4)``."""
        major, minor = self.release.split(".")
        return int(major), int(minor)

    def library(self, stem: str) -> Path | None:
        """The toolkit's ``lib64/<stem>.so*`` with the longest name, or None where it has none."""
        found = [p for p in (self.home / "lib64").glob(f"{stem}.so*") if ".alt." not in p.name]
        return max(found, key=lambda path: len(path.name), default=None)


@dataclass
class Job:
    """One cell, as a worker's child gets it.

    Parameters
    ----------
    cell : str
        Id of the cell.
    source : Path
        The program, ``kernel.cu`` or ``kernel.py``.
    entries : dict
        Kernel names and their signatures; empty accepts whatever the program defines.
    definitions : dict
        Macros, or module constants.
    target : str
        ``sm_80`` or ``compute_80``.
    options : dict
        The case's options for this cell: see `harness.cases.options`.
    include : list of str
        Include directories of the toolkit, then those that were asked for.
    scratch : Path
        A folder of the cell's own, which starts empty and goes with the cell.
    launches : list of dict
        How the kernels are launched on a real device: see `harness.cases.launch.launches_for`.
    device : dict
        The real device as the scheduler found it; empty without one.
    """

    cell: str
    source: Path
    entries: dict[str, str]
    definitions: dict[str, Any]
    target: str
    options: dict[str, Any]
    include: list[str]
    scratch: Path
    launches: list[dict[str, Any]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    observed: dict[str, Any] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    artifact: dict[str, Any] | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def virtual(self) -> bool:
        """Whether the target is a virtual architecture."""
        return self.target.startswith("compute_")

    @property
    def lto(self) -> bool:
        """Whether the user's flags ask for code that is made when it is linked (LTO)."""
        return not {"-dlto", "--dlink-time-opt", "-lto", "--lto"}.isdisjoint(self.options.get("flags", ()))

    @property
    def one_of_several(self) -> bool:
        """Whether the user's flags say that this file is to be linked with others, later."""
        return not {"-dc", "--device-c"}.isdisjoint(self.options.get("flags", ()))

    @property
    def arch(self) -> str:
        """The target without its kind: ``"80"``, ``"90a"``."""
        return self.target.split("_")[1]

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability as two numbers: ``(8, 0)``."""
        number = int(self.arch.rstrip("af"))
        return number // 10, number % 10

    def include_beside(self, setup: Setup) -> list[str]:
        """Include directories that were asked for, without the toolkit's; one of the toolkit's that was asked for is kept."""
        folders = list(self.include)
        for folder in setup.include:
            if folder in folders:
                folders.remove(folder)
        return folders

    def enter(self, stage: str) -> None:
        """Say that `stage` begins; this is known even when the process dies in it."""
        if self.stages[-1:] == [stage]:
            return
        self.stages.append(stage)
        with open(self.scratch / "stages", "a") as file:
            file.write(stage + "\n")

    def say(self, text: str | bytes) -> None:
        """Keep what a tool printed."""
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        text = text.rstrip("\0\n ")
        if text:
            self.logs.append(text)
            with open(self.scratch / "log", "a", errors="replace") as file:
                file.write(text + "\n")

    def keep(self, data: bytes, kind: str) -> Path:
        """Keep what came out (``ptx``, ``cubin``, ``object``, ``ltoir``); the last one counts."""
        if kind == "cubin" and data[16:18] == b"\x01\x00":  # ELF's ET_REL, whatever options asked for it
            kind = "object"
        path = self.scratch / f"artifact.{kind}"
        path.write_bytes(data)
        self.artifact = {"path": str(path), "format": kind}
        return path

    @property
    def relocatable(self) -> bool:
        """Whether what was kept has still to be linked."""
        return self.artifact is not None and self.artifact["format"] in ("object", "ltoir")

    def complete(self) -> None:
        """Set what was kept aside: the next program that comes out is another one, and the artifact is all of them."""
        assert self.artifact is not None
        path = Path(self.artifact["path"])
        aside = path.with_name(f"part-{len(self.parts) + 1}{path.suffix}")
        path.replace(aside)
        self.parts.append({**self.artifact, "path": str(aside)})
        self.artifact = {**self.parts[0], "parts": self.parts}

    def leave_to_driver(self) -> None:
        """Say that the driver's own linker may have made what was kept: that builds for the device, suffix or not."""
        assert self.artifact is not None
        self.artifact["by_driver"] = True


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
    """The combination means nothing."""

    status = "unsupported"


class Unavailable(Ended):
    """A part that was asked for is not there, or another one came instead."""

    status = "unavailable"


class Backend(Protocol):
    """One way to compile. A backend's module has one such object, named ``backend``."""

    def prepare(self, setup: Setup) -> dict[str, Any]:
        """Load everything in the process that cells are forked from.

        Never touches a CUDA driver and starts no thread.

        Returns
        -------
        dict
            ``observed``: versions asked of what was loaded. ``architectures``: numbers that the
            compiler or library says it knows (``[50, 52, …]``), or absent where nothing says;
            ``architectures_of``: who says so.

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
        `compile`; `harness.nvidia.verify` makes the arguments and checks the results.

        Raises
        ------
        Ended
            With any other status.
        """
