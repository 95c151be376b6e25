"""Devices and memory of this machine, and how cells share them.

Cells that need much memory run one after another if the machine has little.
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

# Folders of drivers outside of the dynamic loader's search path: NVIDIA's containers, and WSL.
_FOLDERS = (
    "/usr/local/nvidia/lib64",
    "/usr/lib64-nvidia",
    "/usr/lib/wsl/lib",
    f"/usr/lib/{platform.machine()}-linux-gnu",
)
_SLOTS = 4  # concurrent cells that load and launch on one device


@dataclass(frozen=True, kw_only=True)
class Device:
    """One CUDA device.

    Parameters
    ----------
    token : str
        Its name in ``CUDA_VISIBLE_DEVICES``.
    name, capability : str
        ``"NVIDIA H200"`` and ``"9.0"``.
    facts : Mapping
        Its entry in records: name, compute capability, version of the driver, CUDA version of the driver, and more.
    """

    token: str
    name: str
    capability: str
    facts: Mapping[str, Any]

    def runs(self, target: Target) -> bool:
        """Return whether a target is real and has this device's compute capability."""
        return not target.virtual and target.suffix != "f" and target.capability == self.capability


@dataclass(frozen=True)
class Devices:
    """The selected devices of this machine.

    Parameters
    ----------
    items : tuple of Device
        Devices in the driver's order.
    folder : str
        Folder of the driver's library if it is outside of the dynamic loader's search path; otherwise empty.
    problem : str
        Reason why there is no device.
    """

    items: tuple[Device, ...] = ()
    folder: str = ""
    problem: str = ""

    def name_for(self, target: Target) -> str:
        """Return the name of the first device that runs a target; empty if there is none."""
        return next((device.name for device in self.items if device.runs(target)), "")

    @property
    def variables(self) -> dict[str, str]:
        """Variables that lead a worker to the driver."""
        return {"LD_LIBRARY_PATH": self.folder} if self.folder else {}


class DevicePool:
    """Distributes cells evenly over devices; a few cells at a time may load and launch on each."""

    def __init__(self, devices: Devices) -> None:
        self._slots = {device.token: threading.Semaphore(_SLOTS) for device in devices.items}
        self._cells = {device.token: 0 for device in devices.items}
        self._devices = devices.items
        self._lock = threading.Lock()

    @contextmanager
    def assigned(self, name: str) -> Iterator[Device]:
        """Yield the device of a name with the fewest cells, and count the cell until the block ends."""
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
        """Return the slots of a device; a cell loads, launches and verifies within one, and waits for a free one."""
        return self._slots[device.token]


def find_devices(choice: str = "auto") -> Devices:
    """Read the devices from the driver, in a separate process.

    Parameters
    ----------
    choice : str
        ``auto`` for all visible devices, ``none``, or their numbers: ``0,2``.

    Raises
    ------
    UsageError
        If `choice` is invalid.
    PartUnavailable
        If a named device does not exist.
    """
    choice = choice.strip()
    if choice == "none":
        return Devices(problem="--device none")
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
            there = f"{count} are visible" if count else answer.problem or "there is none"
            raise PartUnavailable(f"there is no CUDA device {number}: {there}")
    return Devices(tuple(found[number] for number in wanted), answer.folder)


def find_sanitizer(homes: Sequence[Path]) -> str:
    """Return the path of compute-sanitizer on this machine.

    Raises
    ------
    PartUnavailable
        If it is not installed.
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
        return Driver(problem=f"the driver cannot be queried: {error}")


_CGROUP = Path("/sys/fs/cgroup")
_KEPT_FREE = 0.1


def available(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = _CGROUP) -> int:
    """Return the memory in bytes that this machine or container has available, minus a tenth for other processes.

    Parameters
    ----------
    meminfo : Path
        The kernel's table (proc_meminfo(5)); the function reads ``MemAvailable``.
    cgroup : Path
        Folder with ``memory.max`` and ``memory.current`` (cgroups(7), version 2), if it exists.
    """
    lines = meminfo.read_text("ascii", "replace").splitlines()
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    try:
        found.append(int((cgroup / "memory.max").read_text()) - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # no limit: the file is missing, or contains "max"
    return int(min(found, default=8 << 30) * (1 - _KEPT_FREE))


class Memory:
    """Memory that concurrent cells share.

    Parameters
    ----------
    total : int
        Total in bytes.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._used = 0
        self._free = threading.Condition()

    @contextmanager
    def taken(self, needed: int) -> Iterator[None]:
        """Wait until `needed` bytes are free, and hold them; a single cell always fits."""
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
    """Return the number of cores available to this process, as sched_getaffinity(2) reports it.

    taskset, a container (``--cpuset-cpus``) or a batch system may reduce it.
    """
    return len(os.sched_getaffinity(0)) or 1


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str) -> int:
    """Parse a size in case files, such as ``3G``, into bytes."""
    return int(text[:-1]) * _UNITS[text[-1]]


@dataclass(frozen=True)
class Need:
    """Memory and time of a cell.

    Parameters
    ----------
    memory : int
        Peak memory of its processes, in bytes.
    seconds : float
        Elapsed time in seconds; 0 if unknown.
    """

    memory: int
    seconds: float = 0.0


_PATIENCE, _BUSIEST = 10.0, 10.0


def deadline(seconds: float, need: Need, load: float, cores: int) -> float:
    """Return the default time limit of a cell in seconds; longer after a long earlier run, and on a busy machine.

    Parameters
    ----------
    seconds : float
        The limit on an idle machine.
    need : Need
        The cell's earlier need, with any architecture.
    load : float
        Number of running and runnable processes (`os.getloadavg`).
    cores : int
        Number of the machine's cores.
    """
    return max(seconds, _PATIENCE * need.seconds) * min(_BUSIEST, max(1.0, load / cores))


class Needs:
    """Memory and time estimates for cells, by variant and toolchain.

    Parameters
    ----------
    cache : ResultStore or None
        Measurements of earlier runs.
    """

    def __init__(self, cache: ResultStore | None) -> None:
        self._cache = cache
        self._known: dict[str, Need] = {}
        self._means: dict[str, tuple[float, int]] = {}

    def of(self, cell: Cell) -> Need:
        """Return the need of a cell: measured on other architectures, declared by the case, or guessed for its backend."""
        key = self._key(cell)
        if key not in self._known:
            kept = self._cache.fact(key) if self._cache else None
            declared = options_for(cell).get("memory")
            default = size(declared) if declared else BACKENDS[cell.toolchain.backend].memory
            self._known[key] = _read(kept, default) if kept else Need(default)
        return self._known[key]

    def seconds(self, cell: Cell) -> float:
        """Return the time estimate of a cell in seconds.

        It is measured on its other architectures, the mean of its folder's programs, or guessed for its backend.
        """
        if known := self.of(cell).seconds:
            return known
        kept = self._cache.fact(self._key(cell, of_folder=True)) if self._cache else None
        mean = _read(kept, 0).seconds if kept else 0.0
        return mean or BACKENDS[cell.toolchain.backend].seconds

    def learn(self, cell: Cell, outcome: Outcome) -> None:
        """Remember what a cell needed, for other cells of its variant and folder and for later runs."""
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
