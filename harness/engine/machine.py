"""Devices and memory of this machine, and how cells share them.

Cells whose compilers need much memory run one after another where the machine has little.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.rules import options_for
from harness.engine.cache import ResultStore
from harness.engine.environment import ProbeFailed, ask
from harness.engine.fingerprints import Key
from harness.errors import PartUnavailable, UsageError
from harness.model import Cell, Outcome, Target
from harness.protocol.messages import Driver

# Where a driver lies that the dynamic loader does not know: containers of NVIDIA's, and WSL.
_FOLDERS = (
    "/usr/local/nvidia/lib64",
    "/usr/lib64-nvidia",
    "/usr/lib/wsl/lib",
    f"/usr/lib/{platform.machine()}-linux-gnu",
)
_SLOTS = 4  # cells that load and launch on one device at a time


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device.

    Parameters
    ----------
    token : str
        What ``CUDA_VISIBLE_DEVICES`` calls it.
    name, capability : str
        ``"NVIDIA H200"`` and ``"9.0"``.
    facts : Mapping
        What records say of it: name, compute capability, driver's version, CUDA that the driver is of, and more.
    """

    token: str
    name: str
    capability: str
    facts: Mapping[str, Any]

    def runs(self, target: Target) -> bool:
        """Return whether the target is this device's own: real, and of its compute capability."""
        return not target.virtual and target.suffix != "f" and target.capability == self.capability


@dataclass(frozen=True)
class Devices:
    """The chosen devices of this machine.

    Parameters
    ----------
    items : tuple of Device
        In the driver's order.
    folder : str
        Folder of the driver's library where the dynamic loader does not know it, or empty.
    problem : str
        Why there is none.
    """

    items: tuple[Device, ...] = ()
    folder: str = ""
    problem: str = ""

    def name_for(self, target: Target) -> str:
        """Name of the first device whose own target this is; empty where there is none."""
        return next((device.name for device in self.items if device.runs(target)), "")

    @property
    def variables(self) -> dict[str, str]:
        """Folders in which a worker finds the driver."""
        return {"LD_LIBRARY_PATH": self.folder} if self.folder else {}


class DevicePool:
    """Assigns devices to cells, to all evenly, and lets a few of them load and launch on each at a time."""

    def __init__(self, devices: Devices) -> None:
        self._slots = {device.token: threading.Semaphore(_SLOTS) for device in devices.items}
        self._cells = {device.token: 0 for device in devices.items}
        self._devices = devices.items
        self._lock = threading.Lock()

    @contextmanager
    def assigned(self, name: str) -> Iterator[Device]:
        """The device of that name with the fewest cells, for as long as the block lasts."""
        with self._lock:
            device = min(
                (each for each in self._devices if each.name == name), key=lambda each: self._cells[each.token]
            )
            self._cells[device.token] += 1
        try:
            yield device
        finally:
            with self._lock:
                self._cells[device.token] -= 1

    def slot(self, device: Device) -> AbstractContextManager[object]:
        """A slot of the device, in which a cell loads, launches and verifies; waits for one."""
        return self._slots[device.token]


def find_devices(choice: str = "auto") -> Devices:
    """Ask the driver, in a process of its own.

    Parameters
    ----------
    choice : str
        ``auto`` for all that are visible, ``none``, or numbers among them: ``0,2``.

    Raises
    ------
    UsageError
        When `choice` cannot be read.
    PartUnavailable
        When a device that was named is not there.
    """
    choice = choice.strip()
    if choice == "none":
        return Devices(problem="none was wanted")
    wanted = None if choice == "auto" else _numbers(choice)
    answer = _ask()
    count = len(answer.devices)
    visible = [item for item in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if item.strip()]
    common = {"virtual": False, "driver": answer.driver, "cuda": answer.cuda}
    found = [
        Device(
            token=visible[number].strip() if number < len(visible) else str(number),
            name=properties.name,
            capability=properties.compute_capability,
            facts={**common, **properties.to_json(), "ordinal": number},
        )
        for number, properties in enumerate(answer.devices)
    ]
    if wanted is None:
        return Devices(tuple(found), answer.folder, answer.problem)
    for number in wanted:
        if number >= count:
            there = f"{count} can be seen" if count else answer.problem or "there is none"
            raise PartUnavailable(f"there is no CUDA device {number}: {there}")
    return Devices(tuple(found[number] for number in wanted), answer.folder)


def find_sanitizer(homes: Sequence[Path]) -> str:
    """compute-sanitizer of this machine.

    Raises
    ------
    PartUnavailable
        When it is not installed.
    """
    places = [home / part / "compute-sanitizer" for home in homes for part in ("bin", "compute-sanitizer")]
    places += [
        Path("/usr/local/cuda/bin/compute-sanitizer"),
        Path("/usr/local/cuda/compute-sanitizer/compute-sanitizer"),
    ]
    tool = shutil.which("compute-sanitizer") or next((str(p) for p in places if os.access(p, os.X_OK)), None)
    if tool is None:
        raise PartUnavailable("compute-sanitizer is not installed: it comes with the CUDA toolkit's installer")
    return tool


def _numbers(choice: str) -> list[int]:
    try:
        numbers = [int(item) for item in choice.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0:
        raise UsageError(f"{choice!r} names no devices: write auto, none, or numbers such as 0,1")
    return list(dict.fromkeys(numbers))


def _ask() -> Driver:
    folders = [folder for folder in _FOLDERS if os.path.isdir(folder)]
    try:
        return ask(sys.executable, "devices.py", folders, Driver, without="LD_LIBRARY_PATH")
    except ProbeFailed as error:
        return Driver(problem=f"the driver cannot be asked: {error}")


_CGROUP = Path("/sys/fs/cgroup")
_KEPT_FREE = 0.1


def available(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = _CGROUP) -> int:
    """Bytes that this machine, or the container around this process, has to give; a tenth is left to others.

    Parameters
    ----------
    meminfo : Path
        The kernel's table (proc_meminfo(5)); ``MemAvailable`` counts.
    cgroup : Path
        Folder with ``memory.max`` and ``memory.current`` (cgroups(7), version 2), if there is one.
    """
    lines = meminfo.read_text("ascii", "replace").splitlines()
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    try:
        found.append(int((cgroup / "memory.max").read_text()) - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # no limit: the file is not there, or says "max"
    return int(min(found, default=8 << 30) * (1 - _KEPT_FREE))


class Memory:
    """Memory that concurrent cells may use together.

    Parameters
    ----------
    total : int
        In bytes.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._used = 0
        self._free = threading.Condition()

    @contextmanager
    def taken(self, needed: int) -> Iterator[None]:
        """Wait until `needed` bytes fit with the other cells, and hold them; a lone cell always fits."""
        with self._free:
            self._free.wait_for(lambda: self._used == 0 or self._used + needed <= self.total)
            self._used += needed
        try:
            yield
        finally:
            with self._free:
                self._used -= needed
                self._free.notify_all()


def usable_cores() -> int:
    """Cores that this process may run on: of a machine's, those that taskset, a container (``--cpuset-cpus``) or a batch system left it; see sched_getaffinity(2)."""
    return len(os.sched_getaffinity(0)) or 1


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str) -> int:
    """Bytes of a size as case files write it: ``3G``."""
    return int(text[:-1]) * _UNITS[text[-1]]


@dataclass(frozen=True)
class Need:
    """Memory and time of a cell.

    Parameters
    ----------
    memory : int
        Bytes that its processes have at a time.
    seconds : float
        Time on the wall; 0 where it was never seen.
    """

    memory: int
    seconds: float = 0.0


_PATIENCE, _BUSIEST = 10.0, 10.0


def deadline(seconds: float, need: Need, load: float, cores: int) -> float:
    """Default time limit of a cell, in seconds: longer for one that took longer before, and on a busy machine.

    Parameters
    ----------
    seconds : float
        The limit on an idle machine.
    need : Need
        What the cell took before, with any architecture.
    load : float
        Processes that run or wait for a processor (`os.getloadavg`).
    cores : int
        Processors of the machine.
    """
    return max(seconds, _PATIENCE * need.seconds) * min(_BUSIEST, max(1.0, load / cores))


class Needs:
    """Memory and time estimates for cells, by variant and toolchain.

    Parameters
    ----------
    cache : ResultStore or None
        What earlier runs saw.
    """

    def __init__(self, cache: ResultStore | None) -> None:
        self._cache = cache
        self._known: dict[str, Need] = {}
        self._means: dict[str, tuple[float, int]] = {}

    def of(self, cell: Cell) -> Need:
        """Memory estimate of a cell: measured on its other architectures, declared by the case, or guessed for its backend."""
        key = self._key(cell)
        if key not in self._known:
            kept = self._cache.fact(key) if self._cache else None
            declared = options_for(cell).get("memory")
            default = size(declared) if declared else BACKENDS[cell.toolchain.backend].memory
            self._known[key] = _read(kept, default) if kept else Need(default)
        return self._known[key]

    def seconds(self, cell: Cell) -> float:
        """Time estimate of a cell: measured on its other architectures, the mean of its folder's programs, or guessed for its backend."""
        if known := self.of(cell).seconds:
            return known
        kept = self._cache.fact(self._key(cell, of_folder=True)) if self._cache else None
        mean = _read(kept, 0).seconds if kept else 0.0
        return mean or BACKENDS[cell.toolchain.backend].seconds

    def learn(self, cell: Cell, outcome: Outcome) -> None:
        """Remember what a cell needed, for the others of its variant and folder and for later runs."""
        if outcome.peak_bytes:
            key = self._key(cell)
            self._known[key] = Need(outcome.peak_bytes, outcome.seconds or 0.0)
            if self._cache:
                self._cache.keep_fact(key, {"bytes": outcome.peak_bytes, "seconds": outcome.seconds or 0.0})
                self._learn_of_folder(cell, outcome.seconds or 0.0)

    def _learn_of_folder(self, cell: Cell, seconds: float) -> None:
        key = self._key(cell, of_folder=True)
        mean, count = self._means.get(key, (0.0, 0))
        mean, count = (mean * count + seconds) / (count + 1), count + 1
        self._means[key] = mean, count
        if count & (count - 1) == 0 and self._cache:  # after 1, 2, 4, … cells
            self._cache.keep_fact(key, {"seconds": mean})

    @staticmethod
    def _key(cell: Cell, *, of_folder: bool = False) -> str:
        if of_folder:
            key = Key("needs of a folder").add("backend", cell.toolchain.backend)
            return key.add("folder", str(cell.case.path.parent)).hex()
        key = Key("needs").add("toolchain", cell.toolchain.name)
        return key.add("variant", [cell.case.name, cell.variant.name]).hex()


def _read(kept: dict[str, object], default: int) -> Need:
    memory, seconds = kept.get("bytes"), kept.get("seconds")
    return Need(
        memory if isinstance(memory, int) else default, float(seconds) if isinstance(seconds, int | float) else 0.0
    )
