"""Remarks on what was built: code that is there for some targets, and compiled out for others.

A program may guard its body (``#if __CUDA_ARCH__ >= 900``), and is then built where nothing of it is left. The compiler does not say so; the
code of neighboring targets does. The compiler does not report it; the
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from harness.matrix.axes import PROGRAM, TOOLCHAIN, is_virtual, place_of
from harness.model import Cell, Target
from harness.records.merge import identity
from harness.records.record import Kernel, Record

REMARK = "remark: "
"""Beginning of notes about code that is compiled out."""
Key = tuple[str, str, str]
Remarks = Mapping[Key, Sequence[str]]
"""Remarks on cells, by what identifies them (`harness.records.merge.identity`) and their run."""

_RUNTIME = "_cuda_device_runtime_cu_"  # kernels of libcudadevrt's own


def remarks(records: Iterable[Record]) -> Remarks:
    """Find code that is compiled out of built cells, for each kernel once, in programs with several targets.

    Neighbours among the targets are compared. In a body that is compiled out whole kinds of instructions are missing; code that is
    only unrolled, or that an older architecture needs more instructions for, has the same kinds.
    """
    groups: dict[tuple[Any, ...], dict[str, Record]] = defaultdict(dict)
    for record in records:
        if record["status"] == "built" and any(map(_is_counted, _kernels(record))):
            groups[_group(record)][record["target"]] = record  # of several runs the last
    found: dict[Key, list[str]] = defaultdict(list)
    for targets in groups.values():
        group = [targets[name] for name in sorted(targets, key=lambda name: Target.parse(name).sort_key)]
        names = dict.fromkeys(kernel["name"] for record in group for kernel in _kernels(record))
        for name in names:
            if _RUNTIME not in name:
                for key, text in _compare(name, [(record, _kernel(record, name)) for record in group]).items():
                    found[key].append(text)
    return dict(found)


def _group(record: Record) -> tuple[Any, ...]:
    names = (*PROGRAM, *TOOLCHAIN, "environment", "program")
    return (*place_of(record, names), is_virtual(record["target"]))


def _key(record: Record) -> Key:
    return (*identity(record), record["run"])


def _kernel(record: Record, name: str) -> Kernel | None:
    """The kernel of that name, where its code was counted."""
    return next((kernel for kernel in _kernels(record) if kernel["name"] == name and _is_counted(kernel)), None)


def _is_counted(kernel: Kernel) -> bool:
    return None not in (kernel.get("instructions"), kernel.get("opcodes"))


def _kernels(record: Record) -> Sequence[Kernel]:
    return record["artifact"]["kernels"] if record["artifact"] else ()


def _compare(name: str, row: Sequence[tuple[Record, Any]]) -> dict[Key, str]:
    found: dict[Key, str] = {}
    there = [(record, kernel) for record, kernel in row if kernel]
    for place, ((older, less), (newer, more)) in enumerate(pairwise(there)):
        if _is_out(less, more, older=True):
            # So it is for all targets before that have no more.
            for record, kernel in reversed(there[: place + 1]):
                if kernel["instructions"] > 2 * less["instructions"] + 4:
                    break
                found.setdefault(_key(record), _remark(name, record, kernel, newer, more))
        elif _is_out(more, less, older=False):
            for record, kernel in there[place + 1 :]:
                if kernel["instructions"] > 2 * more["instructions"] + 4:
                    break
                found.setdefault(_key(record), _remark(name, record, kernel, older, less))
    return found


def _is_out(less: Mapping[str, int], more: Mapping[str, int], *, older: bool) -> bool:
    """Return whether `less` is a reduced form of `more`; `older` if it is for the older of the two targets."""
    if more["instructions"] < 8:
        return False
    if less["instructions"] <= 4:
        return more["instructions"] >= 3 * less["instructions"]
    if not older:
        return False  # a newer architecture may need a few instructions where an older one needs many
    size, kinds = less["instructions"] / more["instructions"], less["opcodes"] / max(more["opcodes"], 1)
    wide = more.get("num_regs") or 0
    narrow = wide >= 40 and (less.get("num_regs") or wide) <= 0.4 * wide
    return (
        (size <= 1 / 8 and kinds <= 0.6)
        or (size <= 1 / 3 and kinds <= 0.4)
        or (size <= 0.35 and kinds <= 0.7 and narrow)
    )


def _remark(name: str, record: Record, kernel: Any, other: Record, whole: Any) -> str:
    def size(item: Any) -> str:
        registers = f" and {item['num_regs']} registers" if item.get("num_regs") is not None else ""
        return f"{item['instructions']} instructions{registers}"

    return f"{REMARK}{name} looks compiled out for {record['target']}: {size(kernel)}, beside {size(whole)} for {other['target']}"


class Neighbours:
    """Holds records back until those of their other targets are there, so that remarks can be made.

    Parameters
    ----------
    cells : iterable of Cell
        What is to come.

    Attributes
    ----------
    found : dict
        All remarks on records that are complete.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._left = Counter(_of(cell.id, str(cell.target)) for cell in cells)
        self._held: dict[str, list[Record]] = defaultdict(list)
        self.found: dict[Key, Sequence[str]] = {}

    def add(self, record: Record) -> list[Record]:
        """Take a record; returns those that are complete now, with their remarks among their notes."""
        group = _of(record["cell"], record["target"])
        self._left[group] -= 1
        if record["status"] != "built" and self._left[group] > 0:
            return [record]  # no remark is possible
        self._held[group].append(record)
        return self._release(group) if self._left[group] <= 0 else []

    def rest(self) -> list[Record]:
        """Records that were held back and whose neighbors will not arrive."""
        return [record for group in list(self._held) for record in self._release(group)]

    def _release(self, group: str) -> list[Record]:
        held = self._held.pop(group, [])
        found = remarks(held)
        self.found.update(found)
        return [with_remark(record, found) for record in held]


def of_neighbours(note: str) -> bool:
    """Return whether a note is a remark made by comparison with other records, and not from this one's own code alone."""
    return note.startswith(REMARK) and " looks compiled out for " in note


def with_remark(record: Record, found: Remarks) -> Record:
    """The record with remarks among its notes, one for each kernel; as it is where there is nothing to add."""
    known = {note.split()[1] for note in record["notes"] if note.startswith(REMARK)}
    new = [remark for remark in found.get(_key(record), ()) if remark.split()[1] not in known]
    return {**record, "notes": [*record["notes"], *new]} if new else record


def amended(line: bytes, found: Remarks) -> bytes:
    """A line of a file of records, with the remarks on it."""
    record = json.loads(line)
    new = with_remark(record, found)
    if new is record:
        return line
    return json.dumps(new, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _of(cell: str, target: str) -> str:
    """The common part of a program's and toolchain's cells: their id without the target and the device."""
    return cell.partition(f" {target}")[0] + (" virtual" if is_virtual(target) else "")
