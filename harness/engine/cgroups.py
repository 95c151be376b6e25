"""Control groups for fork servers: where the kernel limits the memory of a cell's processes together, if this process may have it do that.

A group is made below the one that this process is in, and nowhere else: others belong to somebody (systemd's "single-writer rule",
https://systemd.io/CGROUP_DELEGATION/). It is held like a temporary folder, so that what a killed run leaves is found and removed.
"""

from __future__ import annotations

import atexit
import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.held import TEMPORARY, HeldFolder, sweep

_HOW = "`systemd-run --user --scope -p Delegate=yes cumatrix …` starts it in one that may"
_LIMITS = {1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), 2: ("memory.max",)}
"""Files that take the limit, by version; the second one of version 1 is there with swap accounting only."""
_lock = threading.Lock()
_found: list[Parent] = []


@dataclass(frozen=True)
class Parent:
    """The group of this process.

    Parameters
    ----------
    path : Path or None
        Where groups may be made.
    version : int
        Of cgroups; 0 without.
    problem : str
        Why none may be made; empty where they may.
    """

    path: Path | None = None
    version: int = 0
    problem: str = ""


def parent() -> Parent:
    """Where this process may make groups that limit memory; found out once."""
    with _lock:
        if not _found:
            _found.append(_look(Path("/proc/self")))
        return _found[0]


class HeldGroup(HeldFolder):
    """A group with a limit, of this process.

    Parameters
    ----------
    above : Parent
        With a path.
    memory : int
        What all processes in it may have together, in bytes.
    """

    def __init__(self, above: Parent, memory: int) -> None:
        assert above.path is not None
        super().__init__(above.path, TEMPORARY)
        for name in _LIMITS[above.version]:
            if (self.path / name).exists():
                (self.path / name).write_text(str(memory))
        if (self.path / "memory.swap.max").exists():
            (self.path / "memory.swap.max").write_text("0")

    def remove(self) -> None:
        """Remove it, once the last process in it has gone."""
        for _ in range(20):
            with suppress(OSError):
                self.path.rmdir()
                break
            time.sleep(0.05)
        self._release()


def group_for(memory: int) -> HeldGroup | None:
    """A new group with this limit; None where there is no limit, or none may be made."""
    above = parent()
    if not memory or not above.path:
        return None
    try:
        return HeldGroup(above, memory)
    except OSError:
        return None  # too many groups, or none any more: the limit of each process is there all the same


def _look(process: Path) -> Parent:
    """Where groups may be made below that of a process, given its folder in /proc."""
    groups = {}
    with suppress(OSError):
        for line in (process / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            groups[controllers] = path
    version, controllers = (2, "") if "memory" not in ",".join(groups) else (1, next(filter(_memory, groups)))
    above = _mounted(process, version, groups.get(controllers, "/.."))
    if above is None:
        return Parent(problem="no control groups are mounted here")
    if version == 2 and "memory" not in _read(above / "cgroup.controllers"):
        return Parent(problem=f"the control group {above} has no memory controller: {_HOW}")
    if not (os.access(above, os.W_OK) and os.access(above / "cgroup.procs", os.W_OK)):
        return Parent(problem=f"this user may make no control group in {above}: {_HOW}")
    try:
        if version == 2 and "memory" not in _read(above / "cgroup.subtree_control"):
            _hand_on(above)
        sweep(above, TEMPORARY)
        with HeldGroup(Parent(above, version), 1 << 40):
            return Parent(above, version)
    except OSError as error:
        return Parent(problem=f"no control group can be made in {above}: {error.strerror}")


def _memory(controllers: str) -> bool:
    return "memory" in controllers.split(",")


def _read(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _mounted(process: Path, version: int, path: str) -> Path | None:
    """Where a group of that path is mounted; None where it lies outside of what is."""
    for root, place, kind, options in _mounts(process):
        if kind == ("cgroup2" if version == 2 else "cgroup") and (version == 2 or _memory(options)):
            inside = path if root == "/" else path.removeprefix(root) if path.startswith(root) else "/.."
            if not inside.startswith("/.."):
                return Path(place + inside.rstrip("/"))
    return None


def _mounts(process: Path) -> Iterator[tuple[str, str, str, str]]:
    """Root, mount point, type and options of the file system of each mount (proc_pid_mountinfo(5))."""
    with suppress(OSError):
        for line in (process / "mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            root, place = before.split()[3:5]
            kind, _, options = after.split(" ", 2)
            yield root, place, kind, options


def _hand_on(above: Path) -> None:
    """Have groups below get the memory controller, for which no process may be in `above` itself: this one moves, if it is alone there."""
    try:
        (above / "cgroup.subtree_control").write_text("+memory")
        return
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
    others = [int(pid) for pid in _read(above / "cgroup.procs") if int(pid) != os.getpid()]
    if others:
        raise OSError(errno.EBUSY, f"other processes are in it ({', '.join(map(str, others[:3]))})")
    own = HeldFolder(above, TEMPORARY)
    try:
        (own.path / "cgroup.procs").write_text(str(os.getpid()))
        (above / "cgroup.subtree_control").write_text("+memory")
    finally:
        atexit.register(_move_back, above, own)


def _move_back(above: Path, own: HeldFolder) -> None:
    """Leave the group as it was found."""
    with suppress(OSError):
        (above / "cgroup.subtree_control").write_text("-memory")
        (above / "cgroup.procs").write_text(str(os.getpid()))
    own.remove()
