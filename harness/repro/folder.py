"""The folder of a reproduction, written atomically, with a README for bug reports."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.diagnostics import clean, one_line
from harness.errors import UsageError
from harness.libraries import LIBRARIES, label_of
from harness.matrix.axes import natural_key, target_key, version_key
from harness.matrix.ranges import consecutive
from harness.matrix.ranges import spell as spell_range
from harness.model import Target
from harness.model.cell import named_toolkit
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.records import Record, builds_of, failed_at
from harness.records.record_names import parameters_of
from harness.repro.script import SCRIPT, Script, script_of
from harness.repro.subject import ReproTarget, Wheels, headers_of, python_of, wheels_of

_NOTHING = ("unsupported", "unavailable", "harness_error")
_NEAR = 2


@dataclass(frozen=True)
class Condition:
    """The effect of one axis on an outcome, with all other axes fixed.

    Parameters
    ----------
    axis : str
        Its name.
    text : str
        Range of the outcome: ``CUDA 12.4 to 12.6``, ``sm_75 and below``; all tried values if none differs.
    same, tried : tuple of str
        The values with the same outcome, and all tried values, in order.
    """

    axis: str
    text: str
    same: tuple[str, ...]
    tried: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Return whether the outcome occurs for some tried values only."""
        return len(self.same) < len(self.tried)


@dataclass(frozen=True)
class Findings:
    """The neighbourhood of a cell in the records.

    Parameters
    ----------
    conditions : tuple of Condition
        The axes with several tried values.
    neighbours : tuple of Record
        The nearest cells that differ, on both sides of each axis.
    inside, inside_same : int
        Number of tried cells that satisfy all conditions, and how many of them have the same outcome.
    elsewhere : int
        Number of cells with the same outcome that violate a condition.
    """

    conditions: tuple[Condition, ...]
    neighbours: tuple[Record, ...]
    inside: int
    inside_same: int
    elsewhere: int


def outcome_of(record: Record) -> tuple[str, str | None, str]:
    """Return the key by which outcomes are equal: status, stage, and the fingerprint of the first message."""
    first = record["diagnostics"][0] if record["diagnostics"] and record["status"] != "built" else None
    # Linked and unlinked artifacts are equal outcomes.
    stage = None if record["status"] == "built" else record["stage"]
    return record["status"], stage, (first or {}).get("fingerprint", "") if first else ""


def find(record: Record, records: Iterable[Record]) -> Findings:
    """Find the effect of each axis among the cells of the same program.

    Parameters
    ----------
    record : Record
        The cell.
    records : iterable of Record
        All records; those without a compiler's answer are ignored.
    """
    key = (record["case"], record.get("program"))
    known = [each for each in records if (each["case"], each.get("program")) == key and each["status"] not in _NOTHING]
    axes = [_axes(each) for each in known]
    own, wanted = _axes(record), outcome_of(record)
    conditions, near = [], list[Record]()
    for axis in (name for name in own if name not in ("backend", "on")):
        line = {
            place[axis]: each
            for place, each in zip(axes, known, strict=True)
            if axis in place and {**place, axis: ""} == {**own, axis: ""}
        }
        tried = sorted(line, key=_order(axis))
        if len(tried) < 2:
            continue
        same = [value for value in tried if outcome_of(line[value]) == wanted]
        conditions.append(Condition(axis, spell(axis, same, tried), tuple(same), tuple(tried)))
        near += _nearest(own[axis], tried, same, line)
    near += _other_backends(own, axes, known, wanted)
    counting = [condition for condition in conditions if condition.counts]
    inside = [
        outcome_of(each) == wanted
        for place, each in zip(axes, known, strict=True)
        if place["backend"] == own["backend"] and place.keys() == own.keys() and _holds(counting, place)
    ]
    total = sum(
        outcome_of(each) == wanted
        for each, place in zip(known, axes, strict=True)
        if place["backend"] == own["backend"]
    )
    return Findings(tuple(conditions), tuple(near), len(inside), sum(inside), total - sum(inside))


def spell(axis: str, chosen: Sequence[str], tried: Sequence[str]) -> str:
    """Spell values as ranges of tried values: ``CUDA 12.4 to 12.6``, ``sm_75 and below``, ``bytes 49156 and above``.

    A range never spans real and virtual architectures, or values of a parameter that are not numbers.
    """
    prefix = {"toolkit": "CUDA ", "target": "", "library": ""}.get(axis, f"{axis} = ")
    parts, kinds = [], dict[str, list[str]]()
    for value in tried:
        kinds.setdefault(_kind(axis)(value), []).append(value)
    for kind, axis_values in kinds.items():
        for names in consecutive(set(chosen), axis_values):
            if not kind or len(names) == len(axis_values):
                parts.append(spell_range(names, whole=2 if kind else len(names)))
            elif names[-1] == axis_values[-1]:
                parts.append(f"{names[0]} and {'later' if axis in ('toolkit', 'library') else 'above'}")
            elif names[0] == axis_values[0]:
                parts.append(f"{names[-1]} and {'earlier' if axis in ('toolkit', 'library') else 'below'}")
            else:
                parts.append(spell_range(names))
    return prefix + ", ".join(parts)


def describe(record: Record) -> str:
    """Describe an outcome in a few words: ``rejected at compile: incomplete type is not allowed``."""
    what = failed_at(record).replace("_", " ")
    if record["status"] == "built" or not record["diagnostics"]:
        return what
    return f"{what}: {record['diagnostics'][0]['message']}"


def _axes(record: Mapping[str, Any]) -> dict[str, str]:
    """Return a cell's value on each axis: its parameters, then toolkit, library, target and backend.

    A program without a case has its options as a parameter.
    """
    parameters = {name: str(value) for name, value in parameters_of(record).items()}
    if record.get("program"):
        parameters = {"options": record["variant"]}
    places = {name: str(record[name]) for name in ("library", "toolkit", "target", "backend")}
    device = record.get("device") or {}
    return {**parameters, **places, "on": str(device.get("name", "")) if device.get("virtual") is False else ""}


def _order(axis: str) -> Callable[[str], Any]:
    keys: dict[str, Callable[[str], Any]] = {"toolkit": _toolkit_key, "library": version_key, "target": target_key}
    return keys.get(axis, natural_key)


def _toolkit_key(text: str) -> Any:
    release, _, headers = text.partition("+headers")
    return (bool(headers), version_key(release), version_key(headers))


def _kind(axis: str) -> Callable[[str], str]:
    """Return the function that classifies an axis's values.

    A range spans values of one class. Values of the empty class have no order.
    """
    if axis == "target":
        return lambda value: "" if Target.parse(value).suffix else Target.parse(value).kind
    if axis == "toolkit":
        return lambda value: "" if "+" in value or "@" in value else "release"
    if axis == "library":
        return lambda value: "" if "+" in value else "version"
    return lambda value: "number" if value.lstrip("-").isdigit() else ""


def _nearest(own: str, tried: Sequence[str], same: Sequence[str], line: Mapping[str, Record]) -> list[Record]:
    place = tried.index(own) if own in tried else 0
    below = [value for value in reversed(tried[:place]) if value not in same][:1]
    above = [value for value in tried[place + 1 :] if value not in same][:1]
    return [line[value] for value in (*below, *above)]


def _other_backends(
    own: Mapping[str, str],
    axes: Sequence[Mapping[str, str]],
    known: Sequence[Record],
    wanted: tuple[str, str | None, str],
) -> list[Record]:
    """Return one cell per other backend that differs from this cell only in its backend, library and status."""
    plain = {**own, "backend": "", "library": ""}
    found: dict[str, Record] = {}
    for place, record in zip(axes, known, strict=True):
        if place["backend"] != own["backend"] and {**place, "backend": "", "library": ""} == plain:
            found[place["backend"]] = record
    return [record for record in found.values() if outcome_of(record)[0] != wanted[0]]


def _holds(conditions: Sequence[Condition], place: Mapping[str, str]) -> bool:
    return all(place[condition.axis] in condition.same for condition in conditions)


_LOG_LINES = 40
_LINK = re.compile(r"https?://[^\s<>]{1,400}")
_NEIGHBOURS = 12
_PARTS = {
    "nvrtc": "NVRTC", "nvcc": "nvcc", "clang": "clang", "ptxas": "ptxas", "nvvm": "NVVM", "ptx": "PTX ISA", "nvjitlink": "nvJitLink",
    "hip": "HIP", "hiprtc": "hipRTC", "comgr": "Comgr",
}  # fmt: skip
_SURROUNDINGS = {"torch_cuda": "PyTorch's CUDA", "ninja": "ninja", "host_compiler": "host compiler", "gcc_installation": "libstdc++", "cxx": "C++ compiler", "python": "Python"}  # fmt: skip


def readme(subject: ReproTarget, script: Script, wheels: Sequence[Wheels], findings: Findings) -> str:
    """Write the README."""
    record = subject.record
    parts = [
        f"# {_inline(_title(subject))}",
        _plain(record["title"]),
        "## To reproduce",
        _block("\n".join([*commands(subject, wheels), f".venv/bin/python {SCRIPT}"]), "sh"),
        f"If the program builds, `{SCRIPT}` prints `built` and exits with 0, otherwise with another exit code. It needs Linux on x86-64"
        + (" with a C++ compiler (`g++`)." if BACKENDS[subject.backend].reads_host else "."),
        script.device,
        _builds(subject),
        _copied_headers(subject),
        "## Expected",
        _expected(subject),
        "## Observed",
        _observed(subject),
        "## Versions",
        _versions(subject),
        "## When it happens",
        _conditions(findings, record["status"]),
        *_neighbours(findings),
        _links(subject),
        _made(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _builds(subject: ReproTarget) -> str:
    """Describe the wheels of development builds."""
    builds = builds_of(subject.record)
    lines = []
    for name, wheel in subject.builds.items():
        commit, _, dirty = str(builds[name].get("commit") or "").partition("+")
        where = f" of commit `{_code(commit)}`" if commit else ""
        changes = (
            ". The checkout had changes, and the wheel has its files as they were when this folder was made"
            if dirty
            else ""
        )
        lines.append(f"`{_code(wheel.name)}` is a build{where} from <{_code(str(builds[name].get('url')))}>{changes}.")
    return "\n\n".join(lines)


def _copied_headers(subject: ReproTarget) -> str:
    """Describe the copied headers of folders and commits."""
    lines = []
    origins = subject.observed.get("libraries")
    for place, name in zip(subject.job.include, _copied_names(subject), strict=False):
        origin = origins.get(name) if isinstance(origins, dict) else None
        known = {key: _code(str(value)) for key, value in origin.items()} if isinstance(origin, dict) else {}
        commit, _, dirty = known.get("commit", "").partition("+")
        where = f" at commit `{commit}`" if commit else ""
        origin_text = f"<{known['url']}>" if known.get("url") else "a folder"
        changes = " with changes" if dirty else ""
        lines.append(
            f"`{_code(place)}` has the headers of {name} that the program includes, from {origin_text}{where}{changes}."
        )
    return "\n\n".join(lines)


def _copied_names(subject: ReproTarget) -> list[str]:
    """Return the library of each copied include directory, in order."""
    return [name for name in subject.cell.variant.libraries for _ in headers_of(subject.cell, name)]


def commands(subject: ReproTarget, wheels: Sequence[Wheels]) -> list[str]:
    """Return the uv commands that install the script's requirements; pip has the same options."""
    toolkit = subject.cell.toolchain.toolkit
    variable = "ROCM_PATH" if toolkit.rocm else "CUDA_HOME"
    where = f"the folder of {named_toolkit(str(replace(toolkit, local=False)))}"
    lines = [f"export {variable}=…  # {where}"] if toolkit.local else []
    lines += [f"uv venv --python {python_of(subject)} .venv"]
    for each in wheels:
        target = f" --target {each.folder}" if each.folder else ""
        lines.append(f"uv pip install --python .venv --no-deps --require-hashes{target} -r {each.file}")
    return lines


def _title(subject: ReproTarget) -> str:
    record = subject.record
    who = f"{subject.backend} {subject.library}".strip()
    what = {
        "built": "builds",
        "rejected": "refuses",
        "crashed": "crashes on",
        "timed_out": "does not come to an end on",
    }
    first = record["diagnostics"][0]["message"] if record["status"] != "built" and record["diagnostics"] else ""
    where = f"{named_toolkit(record['toolkit'])}, {record['target']}"
    name, more = subject.job.source.name, len(subject.job.together)
    name += f" and {more} more file{'s' * (more > 1)}" if more else ""
    return one_line(f"{who} {what[record['status']]} {name} ({where}){': ' if first else ''}{first}", 200)


def _expected(subject: ReproTarget) -> str:
    record = subject.record
    expected = record["expected"]
    why = _plain(expected["reason"]) + (f" (<{expected['link']}>)" if _LINK.fullmatch(expected["link"]) else "")
    # An expected fault should not exist, so the README expects a build.
    if expected["xfail"] or expected["status"] == "built":
        text = "It builds."
        return f"{text} That it does not is known: {why}" if expected["xfail"] and why else f"{text} {why}".strip()
    at = f" at {expected['stage']}" if expected["stage"] else ""
    words = f", with a message that matches `{_code(expected['diagnostic'])}`" if expected["diagnostic"] else ""
    return f"It is {expected['status']}{at}{words}{': ' if why else '.'}{why}"


def _observed(subject: ReproTarget) -> str:
    record = subject.record
    what, kernels = describe(record), ""
    if record["artifact"]:
        artifact = record["artifact"]
        kernels = ", ".join(_code(kernel["name"]) for kernel in artifact["kernels"])
        what += f": {artifact['format']} for {artifact['target']}, {artifact['bytes']} bytes"
        kernels = f", with `{kernels}`" if kernels else ""
    parts = [_plain(what) + kernels]
    if record["reason"] and record["reason"] not in what:
        parts.append(_plain(record["reason"]))
    log = clean(record["log"]).strip("\n").splitlines()
    if log:
        left = len(log) - _LOG_LINES
        shown = log[:_LOG_LINES] + ([f"[... {left} more lines ...]"] if left > 0 else [])
        parts.append(_block("\n".join(line[:400] for line in shown)))
    if record["command"]:
        parts += ["What was called:", _block("\n".join(clean(line)[:2000] for line in record["command"]))]
    if notes := [note for note in record["notes"] if not note.startswith("remark: ")]:
        parts.append("\n".join(f"- {_plain(note)}" for note in notes))
    return "\n\n".join(parts)


def _versions(subject: ReproTarget) -> str:
    observed: dict[str, Any] = subject.observed
    name, _, release = named_toolkit(subject.record["toolkit"]).partition(" ")
    rows = [(name, release)]
    library = BACKENDS[subject.backend].library
    packages = [library, *LIBRARIES[library].companions] if library else []
    named = {name.replace("-", "_"): label_of(name) for name in packages}
    titles = {**_PARTS, **named, **_SURROUNDINGS}
    rows += [(title, str(observed[key])) for key, title in titles.items() if isinstance(observed.get(key), str)]
    rows += [(name, version) for name, version in subject.cell.variant.libraries.items()]
    headers = observed.get("headers")
    if isinstance(headers, dict):
        rows += [(f"headers: {name}", str(version)) for name, version in headers.items()]
    return "\n".join(["| part | version |", "| --- | --- |", *(f"| {_cell(a)} | {_cell(b)} |" for a, b in rows)])


def _conditions(findings: Findings, status: str) -> str:
    if not findings.conditions:
        return "No other cell of this program was tried, so nothing is known of when it happens."
    counting = [condition for condition in findings.conditions if condition.counts]
    lines = []
    if counting:
        lines.append(
            "Only with:\n\n" + "\n".join(f"- {_plain(c.text)} (tried: {_plain(_tried(c.tried))})" for c in counting)
        )
        share = "all" if findings.inside_same == findings.inside else f"{findings.inside_same}"
        same = "in this way" if status != "built" else "with a build"
        lines.append(
            f"Of {findings.inside} cells that were tried within these conditions, {share} ended {same}; {findings.elsewhere} did so outside of them."
        )
    rest = [condition for condition in findings.conditions if not condition.counts]
    if rest:
        texts = ", ".join(f"{c.axis} ({_tried(c.tried)})" for c in rest)
        lines.append(f"It makes no difference: {_plain(texts)}.")
    return "\n\n".join(lines)


def _tried(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= _NEIGHBOURS else f"{len(values)} values from {values[0]} to {values[-1]}"


def _neighbours(findings: Findings) -> list[str]:
    if not findings.neighbours:
        return []
    lines = [f"| {_cell(record['cell'])} | {_cell(describe(record))} |" for record in findings.neighbours[:_NEIGHBOURS]]
    return ["## Neighbours that differ", "\n".join(["| cell | outcome |", "| --- | --- |", *lines])]


def _links(subject: ReproTarget) -> str:
    links = [link for link in subject.record["links"] if _LINK.fullmatch(link)]
    found = ["\n".join(["See also:", "", *(f"- <{link}>" for link in links)])] if links else []
    tracker = BACKENDS[subject.backend].tracker
    return "\n\n".join([*found, *([f"Report it at <{tracker}>."] if tracker else [])])


def _made(record: Record) -> str:
    by, cell = _plain(record["cumatrix"]), _code(record["cell"])
    return f"Made by `cumatrix repro` (cumatrix {by}) of the cell `{cell}`; nothing here needs cumatrix. `record.json` is what was recorded of it."


def _inline(text: str) -> str:
    """Escape a text for Markdown."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def _plain(text: str) -> str:
    return _inline(one_line(text, 600))


def _code(text: str) -> str:
    """Make a text safe between backquotes."""
    return one_line(text, 300).replace("`", "'")


def _cell(text: str) -> str:
    return _inline(one_line(text, 200))


def _block(text: str, language: str = "") -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


RECORD = "record.json"
"""The file with the cell's record."""


def make_folder(subject: ReproTarget, records: Iterable[Record], out: Path) -> None:
    """Write the folder that reproduces a cell's outcome without cumatrix.

    Parameters
    ----------
    subject : ReproTarget
        The cell.
    records : iterable of Record
        Other records, for the conditions of the outcome.
    out : Path
        The folder to create; it may exist if it is empty.

    Raises
    ------
    UsageError
        If `out` is not empty, or cannot be written.
    PartUnavailable
        If versions must be looked up and no index responds.
    """
    check_free(out)
    wheels, script = wheels_of(subject), script_of(subject)
    contents = {
        **script.contents(),
        **{each.file: each.text.encode() for each in wheels},
        **{wheel.name: wheel.read_bytes() for wheel in subject.builds.values()},
        "README.md": readme(subject, script, wheels, find(subject.record, records)).encode(),
        RECORD: (json.dumps(subject.record, indent=1) + "\n").encode(),
    }
    taken = {place.split("/")[0] for place in subject.program.files} & {*contents, "cuda", "cuda-wheels", ".venv"}
    taken |= {SCRIPT[:-3]} & {place.split("/")[0] for place in subject.program.files}
    if taken:
        raise UsageError(
            f"the program has a file {min(taken)}, and so has the folder that shows it: rename the program's"
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with HeldFolder(out.parent, ".cumatrix-") as scratch:
            whole = Path(scratch, "repro")
            whole.mkdir()
            for place, path in subject.program.files.items():
                (whole / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, whole / place)
            for name, data in contents.items():
                (whole / name).write_bytes(data)
            os.replace(whole, out)  # replaces an empty folder
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror or error}") from None


def check_free(out: Path) -> None:
    """Raise `UsageError` if a path exists and is not an empty folder."""
    if os.path.lexists(out) and (out.is_symlink() or not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} already exists: name another folder with --out")


@contextmanager
def copied(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a copy of a folder without installed packages, and an empty home folder; remove both on exit."""
    with HeldFolder(temporary_folder(), TEMPORARY) as scratch:
        copy, home = Path(scratch, "repro"), Path(scratch, "home")
        made = shutil.ignore_patterns(".venv", "cuda", "cuda-headers", "*-wheels")
        shutil.copytree(
            folder, copy, symlinks=True,
            ignore=lambda place, names: made(place, names) if Path(place) == folder else (),  # a program may have a folder named cuda
        )  # fmt: skip
        home.mkdir()
        yield copy, home
