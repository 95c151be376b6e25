"""Failures in records, each listed once, the most severe first, and kernels that are compiled out for some targets.

A program may guard its body (``#if __CUDA_ARCH__ >= 900``). For other targets, the program builds with an empty body.
The compiler does not report this, but the code of neighboring targets shows it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from harness.backends import BACKENDS
from harness.diagnostics import one_line, tells_most
from harness.diagnostics import place_of as place_in_log
from harness.matrix.axes import (
    PROGRAM,
    TOOLCHAIN,
    ToolchainColumn,
    fold_targets,
    is_virtual,
    place_of,
    target_key,
    toolchain_key,
)
from harness.matrix.marks import LEAST_EXPECTED, Mark, as_expected, kind_of
from harness.model import Cell, Status, Target
from harness.model.cell import HOST_COMPILER
from harness.model.outcome import main_message
from harness.records.merge import case_of, failed_at, identity
from harness.records.record import Kernel, Record
from harness.toolkits.header_libraries import LIBRARIES as HEADERS

Records = Sequence[Mapping[str, Any]]


def failures(records: Iterable[Mapping[str, Any]]) -> list[Records]:
    """Group unexpected cells by failure.

    Parameters
    ----------
    records : iterable of Mapping
        Records in any order. Records that are as expected are ignored.

    Returns
    -------
    list of sequences of Mapping
        The most severe failure first, then the one with the most cells, then the order of the matrix. Records within a
        group are also in the order of the matrix, independent of the order of the cells' ends.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in sorted((record for record in records if not as_expected(record)), key=_in_matrix):
        groups.setdefault(_what(record), []).append(record)
    return sorted(groups.values(), key=lambda group: (LEAST_EXPECTED.index(kind_of(group[0]).key), -len(group)))


def main_message_of(record: Mapping[str, Any]) -> str:
    """Return the text that explains a cell's status, from its record."""
    first = record["diagnostics"][0]["message"] if record["diagnostics"] else ""
    return main_message(record["status"], first, record["reason"] or "")


def grouped_message_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the main message of a record without its architecture, and the message's place in the source.

    For a cell without a compiler's answer the message is the reason, else the first diagnostic.
    """
    diagnostics = record["diagnostics"]
    if record["reason"] or not diagnostics:
        return _without_target(record, record["reason"] or "; ".join(record["notes"])), ""
    first = diagnostics[0]
    line = first.get("line")
    place = f"{first['file']}:{line}" if first.get("file") and line else first.get("file") or ""
    words = tells_most(first["message"], record["log"])
    if not place and words != first["message"] and (found := place_in_log(record["log"])):
        place = f"{found[0]}:{found[1]}"
    return _without_target(record, words), one_line(place)


def words_of(group: Records) -> str:
    """Return the main message of a group. It includes the architecture if the group has one cell."""
    words, _ = grouped_message_of(group[0])
    return Target.parse(group[0]["target"]).unmasked(words) if len(group) == 1 else words


def places_of(group: Records, among: Sequence[str]) -> list[str]:
    """Return the places of a group's cells: toolchains with their targets, folded as in `among`, in the order of targets."""
    by_toolchain: dict[ToolchainColumn, set[str]] = {}
    for record in group:
        by_toolchain.setdefault(ToolchainColumn.of(record), set()).add(record["target"])
    by_targets: dict[str, list[ToolchainColumn]] = {}
    for toolchain in sorted(by_toolchain, key=toolchain_key):
        folded = fold_targets(sorted(by_toolchain[toolchain], key=target_key), among)
        by_targets.setdefault(folded, []).append(toolchain)
    return [f"{_toolchains(toolchains)}, {targets}" for targets, toolchains in by_targets.items()]


def _in_matrix(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return record["case"], record["variant"], toolchain_key(ToolchainColumn.of(record)), target_key(record["target"])


_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


def _what(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key of a failure.

    It ignores an architecture and numbers in a message, because variants differ in sizes.
    """
    words, place = grouped_message_of(record)
    if record["status"] == "unavailable":  # independent of the program and of the expectation
        return ("unavailable", words, place)
    expected = record["expected"]
    return (
        record["case"], record["status"], record["stage"], record["signal"], _NUMBER.sub("N", words), place,
        *(expected[key] for key in ("status", "stage", "diagnostic")), kind_of(record).key,
    )  # fmt: skip


def _without_target(record: Mapping[str, Any], text: str) -> str:
    return one_line(Target.parse(record["target"]).masked(text), 300)


def _toolchains(toolchains: Sequence[ToolchainColumn]) -> str:
    """Return toolchains in words: ``nvrtc, CUDA 12.4, CUDA 13.0``."""
    by_tool: dict[str, list[str]] = {}
    for each in toolchains:
        by_tool.setdefault(each.tool, []).append(each.releases)
    return "; ".join(f"{tool}, {', '.join(releases)}" for tool, releases in by_tool.items())


_ON_DEVICE = ("load", "launch", "verify")
_BUILD = re.compile(r"\+(?:git|build|local)\.")


def not_repeatable(record: Record) -> str:
    """Return the reason why a record cannot be reproduced, as the rest of a sentence about its cell, else an empty string."""
    status = record["status"]
    if not Status(status).answered:
        reason = "no compiler was asked" if status == "unsupported" else "no compiler answered"
        return f"is {status.replace('_', ' ')}: {reason}, so there is nothing to show ({record['reason']})"
    # A virtual device only looks up a kernel in the compiled code, as the driver does.
    if status != "built" and record["stage"] in _ON_DEVICE and not record["device"].get("virtual"):
        return f"failed at {record['stage']}, on a real device: repro shows what compilers say, up to link"
    info = BACKENDS.get(record["backend"])
    if info is None or not info.repro:
        return f"is of the backend {record['backend']}, for which repro has no script"
    for name, build in builds_of(record).items():
        if not build.get("url") or (build.get("path") and not build.get("editable")):
            return f"is of {name} on a path of Python, and not of an installation: install it (pip install, with -e or without), and run it again"
    return ""


def builds_of(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the development builds of a record by distribution, as the record describes them."""
    builds = record["toolchain"]["observed"].get("builds")
    if not isinstance(builds, dict):
        return {}
    return {str(name): build for name, build in builds.items() if isinstance(build, dict)}


def repro_command(record: Record, results: Iterable[str] = ()) -> str:
    """Return ``cumatrix repro 'CELL' --out DIR``, with files of records if given, or an empty string for an irreproducible record."""
    if not_repeatable(record):
        return ""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", record["case"].rpartition("/")[2]).strip("-.") or "cell"
    files = [word for file in results for word in ("--results", file)]
    return shlex.join(["cumatrix", "repro", record["cell"], *files, "--out", f"repro-{name}"])


def again_command(
    record: Mapping[str, Any], options: Sequence[str] = (), places: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the command that compiles a cell again: ``cumatrix run CASE -b nvrtc -t 12.9 -a sm_75``.

    Parameters
    ----------
    record : Mapping
        The record of the cell.
    options : sequence of str
        Further options of the run that the record lacks: ``--python PATH``.
    places : Mapping
        Paths of programs, and options with include directories, by their names in records: ``../kernel.cu`` for
        ``kernel.cu@3fa9c1``.

    Returns
    -------
    str
        The command. Empty if `places` lacks a program or an include directory outside of the current folder, or if the
        record does not contain the name of a library.
    """
    axes = ["-b", record["backend"], "-t", record["toolkit"], "-a", record["target"], *options]
    named = _library_of(record)
    if named is None:
        return ""
    axes += named
    if host := record.get("host_compiler"):
        # The record lacks the path of a host compiler that the user named by path.
        if not re.fullmatch(HOST_COMPILER, host):
            return ""
        axes += ["--host-compiler", host]
    if not record.get("program"):
        # A case lists some releases of its header libraries, but the record may have another release.
        parts = [part.partition("=") for part in record["variant"].split(",")]
        axes += [f"--library={name}={value}" for name, _, value in parts if name in HEADERS and "+" not in value]
        variant = ["--where", f'variant == "{record["variant"]}"'] if record["variant"] else []
        return shlex.join(["cumatrix", "run", case_of(record), *axes, *variant])
    try:
        words = shlex.split(record["variant"])
    except ValueError:
        return ""
    # A program or an include directory outside of the folder has a digest instead of its path, and so has a line that
    # was too long. Headers without a release have a number instead of their location.
    words = [places.get(word, word) for word in words]
    away = any(re.match(r"-I.*@[0-9a-f]+$|--library=.*\+(?:git|local)\.", word) for word in words)
    file, colon, text = record["case"].partition(":")
    if (file not in places and "@" in file) or "#" in record["variant"] or away:
        return ""
    return shlex.join(["cumatrix", "try", f"{places.get(file, file)}{colon}{text}", *words, *axes])


def _library_of(record: Mapping[str, Any]) -> list[str] | None:
    """Return the options that name a cell's library: a release or a build.

    The list is empty for an installed library. None means that the library is unknown.
    """
    info, (version, _, local) = BACKENDS.get(record["backend"]), (record.get("library") or "").partition("+")
    if not info or not version or not str(record["environment"]).startswith(f"{info.library}-{version}"):
        return []
    python = re.search(r"(?:^|\.)python(3\.\d+)", local)
    more = ["--python", python[1]] if python else []
    if not _BUILD.match(f"+{local}"):
        return ["--with", f"{info.library}={version}", *more]
    found = next(iter(builds_of(record).values()), {})
    url, commit = str(found.get("url") or ""), str(found.get("commit") or "")
    if not url:
        return None  # the library was on a path of an existing environment
    if found.get("editable"):
        return ["--with", f"-e {unquote(url.removeprefix('file://'))}", *more]
    return ["--with", f"{info.library} @ {f'git+{url}@{commit}' if commit else url}", *more]


@dataclass(frozen=True, kw_only=True)
class ProgramFailure:
    """One failure of one program, for any number of cells.

    Parameters
    ----------
    file : str
        The file with the failure, relative to the current folder; empty if no file exists.
    line : int
        The line, from 1; 1 if it is unknown.
    title : str
        Case and failure: ``wmma/fragments: rejected at compile``.
    message : str
        The message, on one line.
    always : str
        The message without its architecture, for any cells.
    where : str
        The cells: toolchains with their targets.
    again : str
        A command that compiles the first cell again; may be empty.
    kind : Mark
        The kind of the cells.
    cells : tuple of str
        Ids of the cells.
    number : int
        The number of preceding failures with the same file, title and message.
    """

    file: str
    line: int
    title: str
    message: str
    always: str
    where: str
    again: str
    kind: Mark
    cells: tuple[str, ...]
    number: int = 0

    @property
    def fingerprint(self) -> str:
        """The identity of the failure, independent of its line and its cells. It is unique within a report."""
        number = f"\n{self.number}" if self.number else ""
        return hashlib.sha256(f"{self.file}\n{self.title}\n{self.always}{number}".encode()).hexdigest()[:32]


def findings(records: Iterable[Mapping[str, Any]], cases: Sequence[Path] = (Path("cases"),)) -> list[ProgramFailure]:
    """List each failure of each program once, in the terminal's order (`harness.records.failures.failures`).

    Parameters
    ----------
    records : iterable of Mapping
        All records. Records that are as expected are ignored.
    cases : sequence of Path
        Folders of cases to search for the files of a case.
    """
    records = list(records)
    targets = sorted({record["target"] for record in records}, key=target_key)
    found = []
    for group in failures(records):
        programs: dict[str, list[Mapping[str, Any]]] = {}
        for record in group:
            programs.setdefault(record["case"], []).append(record)
        found += [_finding(each, targets, cases) for each in programs.values()]
    counts: Counter[tuple[str, str, str]] = Counter()
    for place, each in enumerate(found):
        same = (each.file, each.title, each.always)
        found[place] = replace(each, number=counts[same])
        counts[same] += 1
    return found


def _finding(group: Records, targets: Sequence[str], cases: Sequence[Path]) -> ProgramFailure:
    first: Any = group[0]
    diagnostic = first["diagnostics"][0] if first["diagnostics"] else {}
    return ProgramFailure(
        file=_place(first, diagnostic.get("file") or "", cases), line=diagnostic.get("line") or 1,
        title=one_line(f"{first['case']}: {failed_at(first).replace('_', ' ')}", 200),
        message=one_line(words_of(group), 500) or kind_of(first).meaning, always=grouped_message_of(first)[0],
        where=one_line("; ".join(places_of(group, targets)), 500), again=again_command(first), kind=kind_of(first),
        cells=tuple(record["cell"] for record in group),
    )  # fmt: skip


def _place(record: Mapping[str, Any], named: str, cases: Sequence[Path]) -> str:
    """Return a file below the current folder: the named one, else the program or its case."""
    case = PurePosixPath(record["case"].partition("@")[0])
    folders = [folder / case for folder in cases]
    places = [*(folder / named for folder in folders), Path(case.parent) / named, Path(named)] if named else []
    for place in [*places, Path(case), *(folder / "case.toml" for folder in folders)]:
        if not place.is_absolute() and ".." not in place.parts and place.is_file():
            return place.as_posix()
    return ""


REMARK = "remark: "
"""The start of notes about code that is compiled out."""
Key = tuple[str, str, str]
Remarks = Mapping[Key, Sequence[str]]
"""Remarks on cells, by the cell's identity (`harness.records.merge.identity`) and run."""

_RUNTIME = "_cuda_device_runtime_cu_"  # kernels of libcudadevrt's own


def remarks(records: Iterable[Record]) -> Remarks:
    """Find code that is compiled out of built cells, once per kernel, in programs with several targets.

    Each target is compared with its neighbours. A compiled-out body lacks whole kinds of instructions. Code with less
    unrolling, or code that an older architecture implements with more instructions, has the same kinds.
    """
    groups: dict[tuple[Any, ...], dict[str, Record]] = defaultdict(dict)
    for record in records:
        if record["status"] == "built" and any(map(_is_counted, _kernels(record))):
            groups[_group(record)][record["target"]] = record  # the last of several runs counts
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
    """Return the kernel with a name, if its code was counted, else None."""
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
            # The remark also applies to all earlier targets with no more instructions.
            for record, kernel in reversed(there[: place + 1]):
                if kernel["instructions"] > 2 * less["instructions"] + 4:
                    break
                found.setdefault(_key(record), _remark(name, record, kernel, newer, more))
        elif _is_out(more, less, older=False):
            for record, kernel in there[place + 1 :]:
                if kernel["instructions"] > 2 * more["instructions"] + 4:
                    break
                found.setdefault(_key(record), _remark(name, record, kernel, older, less))
    return _without_tensor_cores(name, there) | found


def _without_tensor_cores(name: str, row: Sequence[tuple[Record, Any]]) -> dict[Key, str]:
    """Return remarks for the targets for which a kernel uses no tensor cores, if it uses them for other targets."""
    using = [(kernel["tensor_cores"], record["target"]) for record, kernel in row if kernel.get("tensor_cores")]
    without = [record for record, kernel in row if using and kernel.get("tensor_cores") == ""]
    return {
        _key(record): f"{REMARK}{name} uses no tensor cores for {record['target']}: {using[0][0]} for {using[0][1]}"
        for record in without
    }


def _is_out(less: Mapping[str, int], more: Mapping[str, int], *, older: bool) -> bool:
    """Return whether `less` is a reduced form of `more`.

    `older` is True if `less` is for the older of the two targets.
    """
    if more["instructions"] < 8:
        return False
    if less["instructions"] <= 4:
        return more["instructions"] >= 3 * less["instructions"]
    if not older:
        return False  # a newer architecture may need fewer instructions
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

    return f"{REMARK}{name} looks compiled out for {record['target']}: {size(kernel)}, compared with {size(whole)} for {other['target']}"


class Neighbours:
    """Holds records back until the records of their other targets arrive, to add remarks.

    Parameters
    ----------
    cells : iterable of Cell
        The expected cells.

    Attributes
    ----------
    found : dict
        All remarks on complete records.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._left = Counter(_of(cell.id, str(cell.target)) for cell in cells)
        self._held: dict[str, list[Record]] = defaultdict(list)
        self.found: dict[Key, Sequence[str]] = {}

    def add(self, record: Record) -> list[Record]:
        """Take a record, and return the records that are complete with it, with their remarks among their notes."""
        group = _of(record["cell"], record["target"])
        self._left[group] -= 1
        if record["status"] != "built" and self._left[group] > 0:
            return [record]  # no remark is possible
        self._held[group].append(record)
        return self._release(group) if self._left[group] <= 0 else []

    def rest(self) -> list[Record]:
        """Return the held records whose neighbors will not arrive."""
        return [record for group in list(self._held) for record in self._release(group)]

    def _release(self, group: str) -> list[Record]:
        held = self._held.pop(group, [])
        found = remarks(held)
        self.found.update(found)
        return [with_remark(record, found) for record in held]


def of_neighbours(note: str) -> bool:
    """Return whether a note is a remark from the comparison with other records, and not from the record's own code alone."""
    return note.startswith(REMARK) and " looks compiled out for " in note


def with_remark(record: Record, found: Remarks) -> Record:
    """Return the record with remarks among its notes, one per kernel, or the same record if there are none to add."""
    known = {note.split()[1] for note in record["notes"] if note.startswith(REMARK)}
    new = [remark for remark in found.get(_key(record), ()) if remark.split()[1] not in known]
    return {**record, "notes": [*record["notes"], *new]} if new else record


def amended(line: bytes, found: Remarks) -> bytes:
    """Return a line of a file of records, with the remarks on it."""
    record = json.loads(line)
    new = with_remark(record, found)
    if new is record:
        return line
    return json.dumps(new, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _of(cell: str, target: str) -> str:
    """Return the common part of the ids of a program's and toolchain's cells: the id without the target and the device."""
    return cell.partition(f" {target}")[0] + (" virtual" if is_virtual(target) else "")
