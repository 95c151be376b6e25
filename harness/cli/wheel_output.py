"""Output of ``cumatrix wheel``: the table, differences, JSON, SARIF and annotations."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.cli.terminal import console_for, printable, say, say_json, say_rows
from harness.diagnostics import one_line
from harness.matrix.marks import KINDS
from harness.model import Target
from harness.model.compatibility import Way
from harness.model.gpus import Gpu
from harness.protocol.text import counted
from harness.records.failures import ProgramFailure
from harness.report.junit import DOCUMENTS, github
from harness.wheels.coverage import Coverage, KernelGroup, coverage, kernel_groups
from harness.wheels.entries import RELOCATABLE, Kind, Library, Unit, counted_targets, newest_isa
from harness.wheels.gate import Difference, Missing, Requirement, differences
from harness.wheels.sources import Found

_MARKS = {Way.NATIVE: ("✓", "+"), Way.JIT: ("J", "J"), Way.UNKNOWN: ("?", "?"), Way.NONE: ("–", "-")}
_PART = ("◐", "%")
_SHOWN = 4
_GROUPS = 12


def show(found: Found, gpus: Sequence[Gpu], *, every_name: bool) -> None:
    """Print a source: its libraries with their GPUs, the reasons for missing code, and kernels for only some GPUs."""
    console = console_for(sys.stdout)
    say(found.name)
    if found.sha256:
        say(f"sha256 {found.sha256}")
    relations = {library.name: coverage(library, gpus) for library in found.libraries}
    names = _short(relations)
    rows = [["library", *(str(gpu.cc) for gpu in gpus)]]
    rows += [[names[name], *map(_mark, each)] for name, each in relations.items()]
    say_rows(rows)
    say(
        f"{_sign(Way.NATIVE)} native  J compiled by the driver (JIT)  {printable(*_PART)} in part  ? not known  {_sign(Way.NONE)} not at all"
    )
    contents: dict[str, list[str]] = defaultdict(list)
    for library in found.libraries:
        for line in _contents(library):
            contents[line].append(names[library.name])
    for line, libraries in contents.items():
        console.print(Text(f"  {line}: {_listed(libraries)}", "dim"), soft_wrap=True)
    for words, libraries in _reasons(relations).items():
        console.print(Text(f"{words}: {_listed([names[library] for library in libraries])}"), soft_wrap=True)
    for library in found.libraries:
        _show_kernels(console, names[library.name], library, gpus, every_name=every_name)
        for sentence in library.unread:
            console.print(Text(f"{names[library.name]}: {one_line(sentence)}"), soft_wrap=True)
    if found.without_code:
        words = "fatbins without kernels and variables, which need no code for any GPU"
        console.print(Text(f"{words}: {_listed(found.without_code)}", "dim"), soft_wrap=True)
    if found.profiler:
        console.print(Text(f"NVIDIA's profiler, not read: {_listed(found.profiler)}", "dim"), soft_wrap=True)
    if found.others:
        say(f"{counted(len(found.others), 'file')} for Windows not read: {_listed(found.others)}", err=True)
    for hint in found.hints:
        say(hint, err=True)


def _short(names: Iterable[str]) -> dict[str, str]:
    """Return file names without their folders, unless the folders distinguish them."""
    plain: dict[str, list[str]] = defaultdict(list)
    for name in names:
        plain[PurePath(name).name].append(name)
    return {name: one_line(short if len(all_of) == 1 else name) for short, all_of in plain.items() for name in all_of}


def _sign(way: Way) -> str:
    return printable(*_MARKS[way])


def _mark(relation: Coverage) -> str:
    return printable(*_PART) if relation.running and not relation.complete else _sign(relation.way)


def _contents(library: Library) -> list[str]:
    lines = [_code(library.loaded, counted(len(library.loaded), "fatbin"))]
    if library.relocatable:
        lines[0] += ", relocatable: a program has it once it is linked"
    again = library.of(RELOCATABLE)
    if again and any(unit.linked is not False for unit in library.loaded):
        lines.append(_code(again, f"{counted(len(again), 'relocatable fatbin')}, which a driver can link again"))
    further = library.further
    if further:
        sections = sorted({unit.section for unit in further})
        lines.append(
            _code(
                further,
                f"{counted(len(further), 'fatbin')} in {', '.join(map(one_line, sections))}, which it loads itself",
            )
        )
    return lines


def _code(units: Sequence[Unit], head: str) -> str:
    """Return a summary of code: ``3 fatbins: SASS 75 80 90a, PTX 90 (8.7)``."""
    sass, ptx, lto = (counted_targets(units, kind) for kind in (Kind.SASS, Kind.PTX, Kind.LTO))
    parts = []
    if sass:
        parts.append(f"SASS {' '.join(target.number for target in sass)}")
    if ptx:
        versions = {target: ".".join(map(str, newest_isa(units, target))) for target in ptx}
        parts.append("PTX " + " ".join(f"{target.number} ({version})" for target, version in versions.items()))
    if lto:
        parts.append(f"LTO IR {' '.join(target.number for target in lto)}")
    return f"{head}: {', '.join(parts) or 'no code'}"


def _reasons(relations: Mapping[str, Sequence[Coverage]]) -> dict[str, list[str]]:
    """Group libraries by sentence: GPUs with JIT and the driver for it, and GPUs without code and the reason."""
    by_library: dict[tuple[str, str], list[str]] = defaultdict(list)  # GPUs by library and sentence
    for name, each in relations.items():
        for relation in each:
            for words in _lines_of(relation):
                by_library[name, words].append(str(relation.gpu))
    found: dict[str, list[str]] = defaultdict(list)
    for (name, words), gpus in by_library.items():
        found[words.replace("{gpus}", ", ".join(gpus))].append(name)
    return found


def _lines_of(relation: Coverage) -> list[str]:
    lines = []
    if relation.units.get(Way.JIT):
        driver = f"from {relation.release} on" if relation.release else "by a driver that this cumatrix does not know"
        lines.append(f"J {{gpus}}: PTX is compiled {driver}")
    if relation.why:
        sign = _mark(relation)
        part = (
            f"{relation.total - relation.running} of {relation.total} fatbins lack code: " if relation.running else ""
        )
        lines.append(f"{sign} {{gpus}}: {part}{relation.why}")
    return lines


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _show_kernels(console: Console, name: str, library: Library, gpus: Sequence[Gpu], *, every_name: bool) -> None:
    groups = [group for group in kernel_groups(library, gpus) if every_name or group.missing]
    if not groups:
        return
    head = "" if every_name else " for some of these GPUs alone"
    console.print(Text(f"{name}: {counted(sum(len(group.names) for group in groups), 'kernel')}{head}"), soft_wrap=True)
    by_targets: dict[tuple[tuple[Target, ...], tuple[Gpu, ...]], list[KernelGroup]] = defaultdict(list)
    for group in groups:
        by_targets[group.targets, group.missing].append(group)
    for (targets, missing), same in by_targets.items():
        none = f", not {' '.join(str(gpu.cc) for gpu in missing)}" if missing else ""
        console.print(Text(f"  {' '.join(map(str, targets))}{none}", "bold"), soft_wrap=True)
        shown = same if every_name else sorted(same, key=lambda group: -len(group.names))[:_GROUPS]
        for group in shown:
            count = f" ×{len(group.names)}" if len(group.names) > 1 else ""
            console.print(Text(f"    {one_line(group.template, 150)}{count}"), soft_wrap=True)
        if len(same) > len(shown):
            console.print(Text(f"    and {len(same) - len(shown)} more: --kernels"), soft_wrap=True)


def show_missing(lacking: Sequence[Missing], required: Requirement) -> None:
    """Print the gaps of a gate."""
    if not required.gpus:
        return
    for each in lacking:
        say(f"missing: {each.source}: {each.library}: {each.gpu}: {each.why}", err=True)
    names = ", ".join(map(str, required.gpus))
    say(f"every library runs on {names}" if not lacking else f"{counted(len(lacking), 'gap')} for {names}", err=True)


def to_json(
    found: Sequence[Found], gpus: Sequence[Gpu], lacking: Sequence[Missing], required: Requirement
) -> dict[str, Any]:
    """Return the result as a JSON value."""
    return {
        "schema": 1,
        "sources": [
            {"name": each.name, "sha256": each.sha256, "libraries": [_library(library, gpus) for library in each.libraries], "without_code": list(each.without_code), "profiler": list(each.profiler), "not_read": list(each.others), "hints": list(each.hints)}
            for each in found
        ],
        "required": [_gpu(gpu) for gpu in required.gpus],
        "missing": [{"source": each.source, "library": each.library, "gpu": _gpu(each.gpu), "why": each.why} for each in lacking],
    }  # fmt: skip


def _gpu(gpu: Gpu) -> dict[str, Any]:
    return {"target": f"sm_{gpu.cc}", "name": gpu.name}


def _library(library: Library, gpus: Sequence[Gpu]) -> dict[str, Any]:
    further = library.further
    return {
        "name": library.name,
        "bytes": library.size,
        "relocatable": library.relocatable,
        **_units(library.loaded),
        "loaded_by_itself": _units(further) if further else None,
        "gpus": [_relation(relation) for relation in coverage(library, gpus)],
        "kernels": [
            {"template": group.template, "targets": list(map(str, group.targets)), "missing": [_gpu(gpu) for gpu in group.missing], "names": list(group.names)}
            for group in kernel_groups(library, gpus)
        ],
        "unread": list(library.unread),
    }  # fmt: skip


def _units(units: Sequence[Unit]) -> dict[str, Any]:
    found: dict[str, Any] = {"fatbins": len(units)}
    for kind in (Kind.SASS, Kind.PTX, Kind.LTO):
        found[kind.value] = {str(target): count for target, count in counted_targets(units, kind).items()}
    found["ptx_versions"] = {
        target: ".".join(map(str, newest_isa(units, Target.parse(target)))) for target in found["ptx"]
    }
    return found


def _relation(relation: Coverage) -> dict[str, Any]:
    release = relation.release
    return {
        **_gpu(relation.gpu), "way": relation.way.value, "complete": relation.complete,
        "fatbins": {way.value: count for way, count in relation.units.items() if count},
        "cuda": release.cuda if release else "", "driver": release.driver if release else "", "why": relation.why,
    }  # fmt: skip


def _failures(lacking: Sequence[Missing]) -> list[ProgramFailure]:
    by_library: dict[tuple[str, str], list[Missing]] = defaultdict(list)
    for each in lacking:
        by_library[each.source, each.library].append(each)
    return [
        ProgramFailure(
            file="", line=1, title=f"{one_line(library)}: not as required on {', '.join(str(each.gpu) for each in group)}",
            message=one_line("; ".join(dict.fromkeys(each.why for each in group))), always=library, where=one_line(source), again="",
            kind=KINDS["fail"], cells=tuple(f"{library} {each.gpu}" for each in group),
        )
        for (source, library), group in by_library.items()
    ]  # fmt: skip


def github_lines(lacking: Sequence[Missing]) -> list[str]:
    """Return GitHub's annotations, one per line."""
    return github(_failures(lacking))


def document(form: str, lacking: Sequence[Missing]) -> Any:
    """Return a report in a CI system's format (`harness.report.junit.DOCUMENTS`)."""
    return DOCUMENTS[form](_failures(lacking))


def comparison(old: Found, new: Found, gpus: Sequence[Gpu], *, as_json: bool) -> int:
    """Print added and removed code, and return 1 if a GPU is lost."""
    found = differences(old, new, gpus)
    lost = any(difference.lost for difference in found)
    if as_json:
        say_json(
            {"schema": 1, "old": _named(old), "new": _named(new), "libraries": [_difference(each) for each in found]}
        )
        return 1 if lost else 0
    for each in (old, new):
        say(f"{each.name}  sha256 {each.sha256}")
    console = console_for(sys.stdout)
    for difference in found:
        for line in _changes(difference):
            console.print(Text(line), soft_wrap=True)
    same = len(new.libraries) - sum(difference.new for difference in found)
    say(f"{len(found)} of {len(found) + same} libraries differ")
    return 1 if lost else 0


def _named(found: Found) -> dict[str, str]:
    return {"name": found.name, "sha256": found.sha256}


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "library": each.library, "old": each.old, "new": each.new,
        "added": {kind.value: list(map(str, targets)) for kind, targets in each.added.items()},
        "removed": {kind.value: list(map(str, targets)) for kind, targets in each.removed.items()},
        "gpus": [{**_gpu(after.gpu), "old": before.way.value, "new": after.way.value, "why": after.why} for before, after in each.relations],
        "lost": [_gpu(gpu) for gpu in each.lost],
    }  # fmt: skip


def _changes(each: Difference) -> list[str]:
    name = one_line(each.library)
    if not (each.old and each.new):
        return [f"{'+' if each.new else '-'} {name}"]
    lines = [f"~ {name}"]
    for sign, targets in (("+", each.added), ("-", each.removed)):
        parts = [
            f"{kind.upper()} {' '.join(target.number for target in of_kind)}"
            for kind, of_kind in targets.items()
            if of_kind
        ]
        lines += [f"    {sign} {', '.join(parts)}"] if parts else []
    by_change: dict[str, list[str]] = defaultdict(list)
    for before, after in each.relations:
        why = f": {after.why}" if after.why else ""
        by_change[f"{_mark(before)} -> {_mark(after)}{{gpus}}{why}"].append(str(after.gpu))
    lines += [f"    {words.replace('{gpus}', ' on ' + ', '.join(gpus))}" for words, gpus in by_change.items()]
    return lines
