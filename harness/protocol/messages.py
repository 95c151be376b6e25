"""Messages between the scheduler, a fork server and its children; the resource limits of a cell; results of the probes.

The probes (`harness.worker.probe`, `harness.worker.devices`) do not import this module. They run by path, with any
Python, before every command, and loading dataclasses would double their time. The scheduler checks their line of JSON
against these types.
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
"""Limits that users may set, by their names in ``ulimit`` and getrlimit(2)."""

EVERY_LIMIT = {**RLIMITS, "as": resource.RLIMIT_AS, "memlock": resource.RLIMIT_MEMLOCK, "rss": resource.RLIMIT_RSS}
"""All limits of a cell, set or inherited from the machine."""

_MAX_FILE = 4 << 30
# Default soft limits of Linux; programs raise them up to the hard limit if necessary.
_USUAL = {"stack": 8 << 20, "nofile": 1024}


def limits_of_cell(memory: int, wanted: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the soft and hard limits of a cell, by name.

    Parameters
    ----------
    memory : int
        Address space of each process in bytes; 0 for the machine's limit.
    wanted : Mapping[str, int]
        The user's limits, by the names of `RLIMITS`; each sets both the soft and the hard limit.

    Returns
    -------
    dict
        Limits, at most the hard limits of this process.
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
    """Return the lower one of a value and a hard limit."""
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


class Options(TypedDict, total=False):
    """A case's options for one cell, as in ``[[options]]`` (`harness.cases.schema.OPTIONS` describes each)."""

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
    """Return the options of a case that affect a precompiled header (`harness.nvidia.pch.for_header`).

    The origin of the architecture does not, and all requests for relocatable code are equal.
    """
    others = {key: value for key, value in options.items() if key not in ("arch", "rdc", "enable_cooperative_groups")}
    return {**others, "rdc": bool(options.get("rdc") or options.get("enable_cooperative_groups"))}


def made_for(options: Mapping[str, Any], target: str) -> str:
    """Return the architecture that a compiler targets.

    It is the cell's target, unless a case names another, or another toolkit's tools finish the code.
    """
    apart = options.keys() & {"assembler", "linker"}
    return options.get("compile_for") or (target.replace("sm_", "compute_") if apart else target)


@dataclass
class ArgumentSpec(Message):
    """One argument of a launch: an array with a shape, or a number without one."""

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
        Its folder, with the layout of a CUDA_HOME.
    """

    release: str
    home: Path


@dataclass
class CellJob(Message):
    """One cell, as a worker's child receives it; equal in every run of the cell.

    Parameters
    ----------
    cell : str
        Id of the cell.
    source : Path
        The program, ``kernel.cu`` or ``kernel.py``.
    entries : dict
        Kernel names and their signatures; empty accepts all kernels that the program defines.
    definitions : dict
        Macros, or module constants.
    target : str
        ``sm_80`` or ``compute_80``.
    options : Options
        The case's options for this cell.
    include : list of str
        Include directories: those of header libraries, of the toolkit, of the request and of the case.
    launches : list of LaunchSpec
        Launches of the kernels on a real device; empty without one.
    together : list of Path
        Further files of the same program, each a translation unit.
    assembler, linker : Tools or None
        Toolkits of ptxas and nvJitLink, if they differ from the compiler's.
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
        Time limit in elapsed seconds.
    memory : int
        Limit in bytes of the address space of each process, and of the memory of all processes together if a control
        group is available; 0 for no limit.
    output : int
        Kept size of the processes' output in bytes: half from the start, half from the end.
    rlimits : dict
        Further limits of each process, by the names of ``ulimit`` (`harness.protocol.messages.RLIMITS`); bytes or
        numbers.
    """

    seconds: float = 300.0
    memory: int = 16 << 30
    output: int = 256 << 10
    rlimits: dict[str, int] = field(default_factory=dict)


@dataclass
class Build(Message):
    """A library that is imported from outside of the installers' folders.

    Parameters
    ----------
    module, folder : str
        The package, and the folder in which the probe found it.
    version : str
        Version in its own files.
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
        The toolkit, with the layout of a CUDA_HOME.
    release, headers : str
        The CUDA releases of the compiler and of the headers.
    include : list of str
        Include directories of the headers, in order.
    tools : Path
        Folder of the helper libraries that cumatrix builds.
    wheels : bool
        Whether the library uses CUDA's headers from wheels in its environment instead of a toolkit.
    device : str
        Name of the real device that cells run on; empty for none.
    builds : dict
        Development builds by normalized names of their distributions; an import from another folder is an error.
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
        """Return the toolkit's ``lib64/<stem>.so*`` with the longest name; None if it has none."""
        found = [p for p in (self.home / "lib64").glob(f"{stem}.so*") if ".alt." not in p.name]
        return max(found, key=lambda path: len(path.name), default=None)


@dataclass
class Ready(Message):
    """A fork server's report after its backend has loaded or failed to load.

    Parameters
    ----------
    status, reason, log : str
        If no cell can run: a status of records, the reason as a sentence, and the output. Otherwise empty.
    observed : dict
        Versions of loaded parts, by name; those of the headers are a separate table.
    architectures : list of int or None
        Architectures (``[50, 52, …]``) that the compiler or the library lists; None if it lists none.
    architectures_of : str
        The source of that list.
    targets : list of str
        Targets that the toolkit's ptxas supports (``sm_80``, ``compute_80``).
    libraries : list of str
        Files of NVIDIA's libraries that the process has loaded.
    threads : int
        Threads of the process; only the forking thread continues in a child.
    reads : list of str or None
        Records of the files read so far (`harness.protocol.reads`); None if they are unknown.
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
    """The order to run one cell.

    Parameters
    ----------
    job : CellJob
        The cell.
    scratch : Path
        The cell's own folder, empty at first and removed with the cell.
    limits : Limits
        Limits of its resources.
    path : str
        Value of ``PATH``; empty for the worker's own.
    visible : str
        Value of ``CUDA_VISIBLE_DEVICES``; empty without a device.
    device : dict
        The scheduler's description of the real device; empty without one.
    sanitizer : str
        Path of the compute-sanitizer that checks the launch; empty for none.
    steps : str
        Folder of compile steps that the cells of one program share (`harness.nvidia.nvcc`); empty if they share none.
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
    """The end of a cell's process, as reported by the fork server.

    Parameters
    ----------
    exit, signal : int or None
        Exit code, or the signal that ended it.
    timed_out : bool
        Whether it was ended at the deadline.
    wall : float
        Elapsed seconds from the fork to the end.
    leftovers : int
        Number of remaining processes that were killed.
    output, output_total : str, int
        Output of its processes, without the middle if it is long, and its full size in bytes.
    peak_bytes : int
        Peak resident memory of its processes together, in bytes.
    reads : list of str or None
        Records of the files that the cell read (`harness.protocol.reads`); None if they are incomplete.
    no_memory, machine_full : bool
        Whether the kernel killed one of its processes because its control group exceeded the limit, or because the
        machine was out of memory.
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
    """A file that a compiler produced.

    Parameters
    ----------
    path : str
        Path in the cell's folder.
    format : str
        ``ptx``, ``cubin``, ``object``, ``ltoir`` or ``hsaco``.
    parts : list of Product
        All products, if each kernel is a separate program.
    by_driver : bool
        Whether the driver's own linker may have made it: it builds for the device, suffix or not.
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
        A status of records, and the reason as a sentence if there is one.
    signal : int or None
        The signal that ended the compiler, if the compiler is a separate process.
    stage : str or None
        The stage in which it ended, if it is not the last one that began.
    seconds : float
        Elapsed seconds of compilation and all following stages.
    stages, command, notes : list of str
        Stages that began, commands or calls, remarks.
    shared_steps : list of str
        Tools whose work was reused from another cell of the run.
    observed, device : dict
        Versions that are known only in the cell; the device that it ran on.
    artifact : Product or None
        The product.
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
    """One cell to run again in a new process, for a tool that starts the process it checks (`harness.worker.child`)."""

    setup: Setup
    order: Order


REPLY = "reply.json"
"""Name of the file with a `Reply` in the cell's folder."""

CLAIMED_LANDLOCK = "CUMATRIX_TEST_ONLY_LANDLOCK"
"""For tests only: a variable of workers with the version of an older kernel's Landlock to simulate."""


@dataclass(frozen=True)
class Distribution(Message):
    """An installed distribution.

    Parameters
    ----------
    version : str
        Its version, as its metadata spells it.
    requires : list of str
        Normalized names of the distributions that it requires, installed or not.
    root : bool
        Whether the probe was run for it, rather than for a distribution that requires it.
    folder : str
        Folder of its package, if the probe was run with a package.
    apart : bool
        Whether the folder is outside of the installers' folders: an editable install, a ``.pth`` file.
    url, commit, digest : str
        Origin outside of an index (PEP 610): the address, and the commit of a repository or else a hash of the
        installed files.
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
        The named distributions and all that they require, by normalized name.
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
        Memory of the device, and the maximum shared memory of a block after opt-in, in bytes.
    multiprocessors : int
        Number of multiprocessors.
    cooperative : bool
        Whether it supports cooperative launches.
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
        Visible devices in the driver's order.
    problem : str
        Reason why the devices are unknown; empty if the driver replied, even without devices.
    folder : str
        Folder of its library, if it is outside of the dynamic loader's search path.
    driver, cuda : str
        Version of the driver, and the driver's CUDA version; empty if unknown.
    """

    devices: list[DeviceProperties] = field(default_factory=list)
    problem: str = ""
    folder: str = ""
    driver: str = ""
    cuda: str = ""
