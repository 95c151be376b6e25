"""Messages between the scheduler, a fork server and its children; the resource limits of a cell; answers of the probes.

The probes (`harness.worker.probe`, `harness.worker.devices`) import nothing of this: they run by path, with any Python, before every command,
and dataclasses would take as long to load as all that they do. The scheduler checks their line of JSON against these types.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from harness.protocol.codec import JsonValue, Message, Scalar

RLIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "data": resource.RLIMIT_DATA,
    "fsize": resource.RLIMIT_FSIZE,
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
}
"""Limits that users may set, by the names of ``ulimit`` and getrlimit(2)."""

EVERY_LIMIT = {**RLIMITS, "as": resource.RLIMIT_AS, "memlock": resource.RLIMIT_MEMLOCK, "rss": resource.RLIMIT_RSS}
"""Limits that a cell is given, or that reach it from the machine."""

_MAX_FILE = 4 << 30
# Soft limits that Linux gives to the first process; programs raise them up to the hard one if they need more.
_USUAL = {"stack": 8 << 20, "nofile": 1024}


def limits_of_cell(memory: int, wanted: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Soft and hard limits of a cell, by name.

    Parameters
    ----------
    memory : int
        Address space of each process in bytes; 0 for as much as the machine allows.
    wanted : Mapping[str, int]
        What the user asked for, by the names of `RLIMITS`: both limits become that.

    Returns
    -------
    dict
        Never above the hard limit that this process itself has.
    """
    merged = {"fsize": _MAX_FILE, **({"as": memory} if memory else {}), **wanted}
    limits = {}
    for name, which in EVERY_LIMIT.items():
        hard = resource.getrlimit(which)[1]
        if name in merged:
            hard = lower(merged[name], hard)
            limits[name] = (hard, hard)
        else:
            limits[name] = (lower(_USUAL[name], hard) if name in _USUAL else hard, hard)
    return limits


def lower(value: int, hard: int) -> int:
    """The lower of a value and a hard limit."""
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


class Options(TypedDict, total=False):
    """A case's options for one cell, as ``[[options]]`` has them (`harness.cases.schema.OPTIONS` says what each means)."""

    arch: str
    assembler: str
    compile_for: str
    linker: str
    std: str
    rdc: bool
    debug: bool
    lineinfo: bool
    fastmath: bool
    cache: bool
    depth: str
    declarations: str
    functions: list[str]
    enable_cooperative_groups: bool
    every_target: bool
    toolkit_first: bool
    toolkit_headers: bool
    flags: list[str]
    ptxas: list[str]
    num_warps: int
    num_stages: int


def header_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """A case's options as far as a precompiled header depends on them (`harness.nvidia.pch.for_header`): nothing of who names the architecture, or asks for relocatable code."""
    others = {key: value for key, value in options.items() if key not in ("arch", "rdc", "enable_cooperative_groups")}
    return {**others, "rdc": bool(options.get("rdc") or options.get("enable_cooperative_groups"))}


def made_for(options: Mapping[str, Any], target: str) -> str:
    """The architecture that a compiler targets: the cell's target, unless a case names another, or another toolkit's tools finish the code."""
    apart = options.keys() & {"assembler", "linker"}
    return options.get("compile_for") or (target.replace("sm_", "compute_") if apart else target)


@dataclass
class ArgumentSpec(Message):
    """One argument of a launch: an array of a shape, or a number (then there is no shape)."""

    name: str
    type: str
    shape: list[int] | None
    fill: str | float
    seed: int
    value: int | float | None


@dataclass
class CheckSpec(Message):
    """The check of results: a Python file with a function of the kernel's name, and tolerances."""

    reference: str
    rtol: float
    atol: float


@dataclass
class LaunchSpec(Message):
    """The launch of one kernel on a real device; grid and block in three dimensions, `shared` in bytes."""

    kernel: str
    grid: list[int]
    block: list[int]
    shared: int
    opt_in: bool
    cooperative: bool
    arguments: list[ArgumentSpec]
    verify: CheckSpec | None


@dataclass
class Tools(Message):
    """Another toolkit that provides one tool.

    Parameters
    ----------
    release : str
        The CUDA release.
    home : Path
        Its folder, laid out as a CUDA_HOME.
    """

    release: str
    home: Path


@dataclass
class CellJob(Message):
    """One cell, as a worker's child gets it; the same for every run of the cell.

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
    options : Options
        The case's options for this cell.
    include : list of str
        Include directories of the toolkit, then the requested ones.
    launches : list of LaunchSpec
        How the kernels are launched on a real device; empty without one.
    together : list of Path
        Further files of the same program, each a translation unit.
    assembler, linker : Tools or None
        Where ptxas and nvJitLink come from, if from another toolkit than the compiler.
    """

    cell: str
    source: Path
    entries: dict[str, str]
    definitions: dict[str, Scalar]
    target: str
    options: Options
    include: list[str]
    launches: list[LaunchSpec] = field(default_factory=list)
    together: list[Path] = field(default_factory=list)
    assembler: Tools | None = None
    linker: Tools | None = None


@dataclass(frozen=True)
class Limits(Message):
    """Limits of one cell.

    Parameters
    ----------
    seconds : float
        Deadline, as time on the wall.
    memory : int
        Address space of each process of the cell, and memory of all of them where a control group can limit that, in bytes; 0 for no limit.
    output : int
        How much of what the cell's processes print is kept, in bytes: half from the start, half from the end.
    rlimits : dict
        Further limits of each process, by the names of ``ulimit`` (`harness.protocol.messages.RLIMITS`); bytes or numbers.
    """

    seconds: float = 300.0
    memory: int = 16 << 30
    output: int = 256 << 10
    rlimits: dict[str, int] = field(default_factory=dict)


@dataclass
class Build(Message):
    """A library that is imported from elsewhere than where installers put it.

    Parameters
    ----------
    module, folder : str
        The package, and the folder that it was seen in.
    version : str
        What it says itself.
    """

    module: str
    folder: str
    version: str


@dataclass
class Setup(Message):
    """The setup of a worker: one backend with one toolkit.

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
    wheels : bool
        Whether the library takes CUDA's headers from wheels in its environment, and knows of no toolkit.
    device : str
        Name of the real device that cells run on; empty for a worker that never sees one.
    builds : dict
        Development builds by normalized name of their distributions; an import from elsewhere is an error.
    module, place : str
        The module of the backend (`harness.backends.BackendInfo`); an empty `module` is named after the backend.
    cgroup : str
        Folder of the control group that limits the memory of the worker and its cells; empty without one.
    bundled : bool
        Whether the library's own CUDA tools are used, and `home` is empty.
    rocm : bool
        Whether `home` is a ROCm, and `release` its release.
    """

    home: Path
    release: str
    headers: str
    include: list[str]
    tools: Path
    wheels: bool = False
    device: str = ""
    builds: dict[str, Build] = field(default_factory=dict)
    module: str = ""
    place: str = ""
    cgroup: str = ""
    bundled: bool = False
    rocm: bool = False

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
class Ready(Message):
    """A fork server's report once its backend is loaded, or could not be.

    Parameters
    ----------
    status, reason, log : str
        Why no cell can run: a status of records, a sentence, and what was printed. All empty where cells can.
    observed : dict
        Versions asked of what was loaded, by name; those of the headers are a table of their own.
    architectures : list of int or None
        Numbers (``[50, 52, …]``) that the compiler or the library says it knows; None where nothing says.
    architectures_of : str
        Who says so.
    targets : list of str
        Targets that the toolkit's ptxas knows (``sm_80``, ``compute_80``).
    libraries : list of str
        Files of NVIDIA's libraries that the process has loaded.
    threads : int
        Threads of the process; only the one that forks lives on in a child.
    reads : list of str or None
        Records of what was read until then (`harness.protocol.reads`); None where that was not followed.
    """

    status: str = ""
    reason: str = ""
    log: str = ""
    observed: dict[str, JsonValue] = field(default_factory=dict)
    architectures: list[int] | None = None
    architectures_of: str = ""
    targets: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    threads: int = 1
    reads: list[str] | None = None


@dataclass
class Order(Message):
    """Run one cell now.

    Parameters
    ----------
    job : CellJob
        The cell.
    scratch : Path
        A folder of the cell's own, which starts empty and goes with the cell.
    limits : Limits
        What it may use.
    path : str
        Value of ``PATH``; empty for the worker's own.
    visible : str
        Value of ``CUDA_VISIBLE_DEVICES``; empty without a device.
    device : dict
        The real device as the scheduler found it; empty without one.
    sanitizer : str
        Path of compute-sanitizer, which goes over the launch; empty for none.
    steps : str
        Folder of steps that the cells of one program share (`harness.nvidia.nvcc`); empty where they share none.
    alike : int
        Number of cells to come that can share this one's preparation (`harness.protocol.backend.Ahead`).
    """

    job: CellJob
    scratch: Path
    limits: Limits
    path: str = ""
    visible: str = ""
    device: dict[str, JsonValue] = field(default_factory=dict)
    sanitizer: str = ""
    steps: str = ""
    alike: int = 0


SLOT = b"slot\n"
"""The fork server sends this when a cell is about to load, and the scheduler when the cell has a slot of its device."""


@dataclass
class Exit(Message):
    """The end of a cell's process, as the fork server saw it.

    Parameters
    ----------
    exit, signal : int or None
        Exit code, or the signal that ended it.
    timed_out : bool
        Whether it was ended at the deadline.
    wall : float
        Seconds from the fork to the end.
    leftovers : int
        Processes that it left behind and that were ended.
    output, output_total : str, int
        What its processes printed, with the middle left out where it was much, and how much it was, in bytes.
    peak_bytes : int
        The most resident memory that its processes had together.
    reads : list of str or None
        Records of what the cell read (`harness.protocol.reads`); None where they are not all there.
    no_memory, machine_full : bool
        Whether the kernel ended one of its processes: since all in their control group together wanted more memory than they may have, or since the whole machine had none left.
    """

    exit: int | None
    signal: int | None
    timed_out: bool
    wall: float
    leftovers: int
    output: str
    output_total: int
    peak_bytes: int
    reads: list[str] | None
    no_memory: bool = False
    machine_full: bool = False


@dataclass
class Product(Message):
    """A file that came out.

    Parameters
    ----------
    path : str
        Where it lies, in the cell's folder.
    format : str
        ``ptx``, ``cubin``, ``object`` or ``ltoir``.
    parts : list of Product
        All of them, where one program a kernel came out.
    by_driver : bool
        Whether the driver's own linker may have made it: that builds for the device, suffix or not.
    names : dict
        A function's name in it, if the kernel was requested under another.
    """

    path: str
    format: str
    parts: list[Product] = field(default_factory=list)
    by_driver: bool = False
    names: dict[str, str] = field(default_factory=dict)


@dataclass
class Reply(Message):
    """The claim of a cell's process, in ``reply.json``; the scheduler checks it against the files.

    Parameters
    ----------
    status, reason : str
        A status of records, and a sentence where there is one to say.
    signal : int or None
        The signal that ended a compiler which ran as a process of its own.
    stage : str or None
        The stage in which it ended, if that is another than the last that began.
    seconds : float
        Time on the wall, of compiling and whatever followed.
    stages, command, notes : list of str
        Stages that began, commands or calls, remarks.
    shared_steps : list of str
        Tools whose work was taken from another cell of the run.
    observed, device : dict
        Versions that only the cell could ask for; the device that it ran on.
    artifact : Product or None
        What came out.
    libraries : list of str
        Files of NVIDIA's libraries that the process had loaded.
    """

    status: str
    reason: str = ""
    signal: int | None = None
    stage: str | None = None
    seconds: float = 0.0
    stages: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shared_steps: list[str] = field(default_factory=list)
    observed: dict[str, JsonValue] = field(default_factory=dict)
    device: dict[str, JsonValue] = field(default_factory=dict)
    artifact: Product | None = None
    libraries: list[str] = field(default_factory=list)


@dataclass
class Rehearsal(Message):
    """One cell once more in a process of its own, for a tool that has to start the process it watches (`harness.worker.child`)."""

    setup: Setup
    order: Order


REPLY = "reply.json"
"""Name of the file with a `Reply`, in the cell's folder."""

CLAIMED_LANDLOCK = "CUMATRIX_TEST_ONLY_LANDLOCK"
"""For tests alone: a variable of workers that names the version of an earlier kernel's Landlock, to be taken for this one's."""


@dataclass(frozen=True)
class Distribution(Message):
    """A distribution that is installed.

    Parameters
    ----------
    version : str
        Its version, as its metadata spells it.
    requires : list of str
        Normalized names of the distributions that it requires, installed or not.
    root : bool
        Whether it was asked after by name, and is not only required by another one.
    folder : str
        Folder of the package that is imported from it, where it was asked after with one.
    apart : bool
        Whether that is elsewhere than where installers put the distribution's files: an editable install, a ``.pth`` file.
    url, commit, digest : str
        Where it was installed from if not from an index (PEP 610): the address, the commit of a repository, and else a hash
        of the files that were installed.
    editable : bool
        Whether it was installed in editable mode.
    """

    version: str
    requires: list[str] = field(default_factory=list)
    root: bool = True
    folder: str = ""
    apart: bool = False
    url: str = ""
    commit: str = ""
    digest: str = ""
    editable: bool = False


@dataclass(frozen=True)
class Interpreter(Message):
    """The content of an interpreter's environment.

    Parameters
    ----------
    python : str
        Its version: ``"3.11.7"``.
    distributions : dict
        By normalized name, those that were asked after and all that they require.
    """

    python: str
    distributions: dict[str, Distribution] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceProperties(Message):
    """The driver's description of a device; records have the same names.

    Parameters
    ----------
    name, compute_capability : str
        ``"NVIDIA H200"`` and ``"9.0"``.
    memory, shared_opt_in : int
        Memory of the device, and shared memory that a block may ask for, in bytes.
    multiprocessors : int
        How many it has.
    cooperative : bool
        Whether it runs cooperative launches.
    """

    name: str
    compute_capability: str
    memory: int
    multiprocessors: int
    shared_opt_in: int
    cooperative: bool


@dataclass(frozen=True)
class Driver(Message):
    """The driver of this machine and its devices.

    Parameters
    ----------
    devices : list of DeviceProperties
        Those that can be seen, in the driver's order.
    problem : str
        Why there is none; empty where the driver was asked, even if it has none.
    folder : str
        Where its library lies, if the dynamic loader does not know it.
    driver, cuda : str
        Its version, and that of CUDA which it is of; empty where they are not known.
    """

    devices: list[DeviceProperties] = field(default_factory=list)
    problem: str = ""
    folder: str = ""
    driver: str = ""
    cuda: str = ""
