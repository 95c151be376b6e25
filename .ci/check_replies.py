#!/usr/bin/env python3
"""Check the replies of the page about releases and architectures against the cells of the published matrix.

check_replies.py [MATRIX] --page DIR

It computes the replies again, from the Parquet file alone: the programs that break between two releases, the programs that only one
release or architecture builds, whether a release is broken, the first, last or only CUDA release for an architecture, and the
architectures of a release. A cell that was not linked makes no pair with a linker's refusal. Products, tensor cores and limits are
compared with `hardware.toml`. Exits with 1 if a reply is false.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from hardware_rules import capability, code, driver, dropped, first, hosts, limits, minimum, ptx, tensor
from statement_rules import ITSELF, Cell, Cells, order

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "reports/matrix/results.parquet"
ENOUGH = 10  # minimum number of programs that both releases build, for an unqualified "No"
_LINKER = re.compile("(?i)undefined reference|nvjitlink|nvlink|uses too much shared data")


def replies_of(page: Path) -> dict[str, str]:
    """Return the first sentences of ``data/replies.js``, by key."""
    return {key: sentence for key, (sentence, *_) in data_of(page, "replies")["replies"].items()}


def data_of(page: Path, name: str) -> Any:
    """Read a data file of the page: ``cumatrix.receive("NAME","…");`` with compressed JSON in base64."""
    text = (page / f"data/{name}.js").read_text("utf-8")
    found = re.fullmatch(r'cumatrix\.receive\("[^"]*","([^"]*)"\);\n', text)
    if found is None:
        raise SystemExit(f"check_replies.py: {page} has no {name}")
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def number(text: str) -> int:
    """Parse a number such as ``1,293``."""
    return int(text.replace(",", ""))


class Counts:
    """Cells of the matrix, by the values of an axis.

    Parameters
    ----------
    table : DataFrame
        The Parquet file.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.cells = Cells(table)
        notes = zip(table["cell"], table["notes_json"], table["message"], strict=True)
        # Replies are about real architectures; nvcc also has cells of virtual ones.
        self.targets = [target for target in self.cells.universe["target"] if target.startswith("sm_")]
        self.faults = {
            cell for cell, verdict in zip(table["cell"], table["verdict"], strict=True) if verdict == "xfail"
        }
        self.unlinked = {cell for cell, text, _ in notes if text and '"not linked' in text}
        self.linker = {cell for cell, text in zip(table["cell"], table["message"], strict=True) if text and _LINKER.search(text)}  # fmt: skip
        self.answered = [cell for cell in self.cells.by_id.values() if cell.outcome and "+headers" not in cell.cuda]
        # Cached: two thousand replies use the same few tables.
        self.by_release, self.by_target, self.builds = (
            cache(self._by_release),
            cache(self._by_target),
            cache(self._builds),
        )
        self.libraries = {"cupy-nvrtc": "cupy", "cupy-jitify": "cupy", "torch-nvcc": "torch", "cuda-core": "cuda-core"}

    def name(self, cell: Cell) -> str:
        """Return the name of the library or host compiler that a cell's version belongs to."""
        return (cell.of or self.libraries.get(cell.backend, cell.backend)) if cell.version else ""

    def _by_release(self, name: str) -> dict[str, dict[tuple[str, ...], Cell]]:
        """Return the cells by release of CUDA, a library, a header library or a host compiler."""
        found: dict[str, dict[tuple[str, ...], Cell]] = defaultdict(dict)
        for cell in self.answered:
            program = (cell.case, cell.variant, cell.tool.partition(" ")[0] if not cell.of else cell.tool, cell.of)
            if name == "cuda" and cell.cuda:
                found[cell.cuda][*program, cell.version, cell.target] = cell
            elif self.name(cell) == name:
                found[cell.version][*program, cell.cuda, cell.target] = cell
        return found

    def _by_target(self) -> dict[str, dict[tuple[str, ...], Cell]]:
        """Return the cells by architecture."""
        found: dict[str, dict[tuple[str, ...], Cell]] = defaultdict(dict)
        for cell in self.answered:
            found[cell.target][cell.case, cell.variant, cell.tool, cell.of, cell.version, cell.cuda] = cell
        return found

    def pairs(self, name: str, before: str, after: str) -> list[tuple[Cell, Cell]]:
        """Return the pairs of cells that differ only in the release."""
        by_release = self.by_release(name)
        one, other = by_release[before], by_release[after]
        found = [(one[key], other[key]) for key in one.keys() & other.keys()]
        return [pair for pair in found if not self._not_comparable(*pair)]

    def _not_comparable(self, before: Cell, after: Cell) -> bool:
        built, refused = (before, after) if before.holds else (after, before)
        return built.holds and not refused.holds and built.id in self.unlinked and refused.id in self.linker

    def _builds(self, target: str) -> dict[str, bool]:
        """Return, for each CUDA release, whether a compiler supports an architecture."""
        found: dict[str, bool] = {}
        for (case, _, _), variants in self.cells.by_entry.items():
            for cell in variants.get("", ()) if case == ITSELF else ():
                if cell.target == target and cell.cuda and "+headers" not in cell.cuda:
                    found[cell.cuda] = found.get(cell.cuda, False) or cell.holds
        return found


def alone(own: dict[tuple[str, ...], Cell], newer: Iterable[dict[tuple[str, ...], Cell]]) -> tuple[set[str], int, int]:
    """Return the cases and the number of cells that no newer value builds, and the number of built cells tried with a newer value."""
    later: dict[tuple[str, ...], bool] = {}
    for cells in newer:
        for key in cells.keys() & own.keys():
            later[key] = later.get(key, False) or cells[key].holds
    built = [key for key, cell in own.items() if cell.holds and key in later]
    only = [key for key in built if not later[key]]
    return {own[key].case for key in only}, len(only), len(built)


def breaks(key: str, sentence: str, counts: Counts) -> Iterator[str]:
    """Yield the errors of a reply about two releases."""
    name, *releases = key.split(" ")
    after = releases[-1]
    known = sorted(counts.by_release(name), key=order)
    before = releases[0] if len(releases) > 1 else known[known.index(after) - 1]
    pairs = counts.pairs(name, before, after)
    broken = [pair for pair in pairs if pair[0].holds and not pair[1].holds]
    fixed = [pair for pair in pairs if not pair[0].holds and pair[1].holds]
    if found := re.match(
        r"(\d+) cases? that .+? builds do(?:es)? not build with .+? \(([\d,]+) of ([\d,]+) pairs", sentence
    ):
        said = (int(found[1]), number(found[2]), number(found[3]))
    elif found := re.match(r"Nothing that .+? builds fails with .+? \(0 of ([\d,]+) pairs", sentence):
        said = (0, 0, number(found[1]))
    else:
        yield "unreadable"
        return
    if said != (true := (len({one.case for one, _ in broken}), len(broken), len(pairs))):
        yield f"says {said}, the cells {true}"
    added = re.search(r"CUDA \S+ builds for ([^;]+); CUDA \S+ does not\.", sentence)
    true_added = {target for target in counts.targets if (of := counts.builds(target)).get(after) and of.get(before) is False}  # fmt: skip
    if name == "cuda" and set(_targets(added[1], counts) if added else ()) != true_added:
        yield f"starts to build for {', '.join(sorted(true_added, key=order))}"
    more = re.search(r"(\d+) cases? that [^.;]+? \S+ refuses builds? with", sentence)
    if (int(more[1]) if more else 0) != (cases := len({one.case for one, _ in fixed})):
        yield f"{cases} cases start to build"


def _with_release(key: str, counts: Counts) -> tuple[list[tuple[Cell, Cell]], set[str]]:
    """Return the pairs of a release with an earlier release that builds, and the ids of the cells that the release rejects.

    The earlier release is the one before, if programs are lost since. Otherwise it is the nearest earlier release that builds a program
    with a known fault.
    """
    _, name, own = f"release {key}".split(" ")
    known = sorted(counts.by_release(name), key=order)
    earlier = known[: known.index(own)]
    found = []
    for before in reversed(earlier):
        built = [pair for pair in counts.pairs(name, before, own) if pair[0].holds]
        lost = {pair[1].id for pair in built if not pair[1].holds}
        if (before == earlier[-1] and lost) or lost & counts.faults:
            return built, lost
        if before == earlier[-1]:
            found = built
    return found, set()


def release(key: str, sentence: str, counts: Counts) -> Iterator[str]:
    """Yield the errors of a reply to the question whether a release is broken."""
    built, broken = _with_release(key, counts)
    lead = (
        ("No" if len(built) >= ENOUGH else "No fault is known")
        if not broken
        else "Yes"
        if len(broken) == len(built)
        else "In part"
    )
    if not sentence.startswith(f"{lead}. "):
        yield f"{len(broken)} of {len(built)} break: {lead}"
    yield from sound(key, sentence.partition(". ")[2], counts)


def sound(key: str, sentence: str, counts: Counts) -> Iterator[str]:
    """Yield the errors of a reply to the question whether a release is sound.

    The reply counts the programs that the earlier release builds and this release rejects, and the rejected programs that the next
    release tried with them builds.
    """
    _, name, own = f"release {key}".split(" ")
    known = sorted(counts.by_release(name), key=order)
    built, broken = _with_release(key, counts)
    said = re.search(r"does not build ([\d,]+) of", sentence)
    if 0 < len(broken) < len(built) and (said is None or number(said[1]) != len(broken)):
        yield f"{len(broken)} programs break"
    numbers = [number(item) for item in re.findall(r"(?:the|build) ([\d,]+) (?:of|programs)", sentence)]
    if len(built) not in numbers:
        yield f"{len(built)} programs build before"
    if not (more := re.search(r"; (?:[^;]+? (\S+) builds (all|none|[\d,]+) of (?:these|the ([\d,]+)[^.]*?)(?: again| either)?|no later release .+)\.", sentence)):  # fmt: skip
        if broken:
            yield "nothing about a later release"
        return
    after = {
        other: [pair for pair in counts.pairs(name, own, other) if pair[0].id in broken]
        for other in known[known.index(own) + 1 :]
    }
    later = next((other for other, pairs in after.items() if pairs), None)
    if later != more[1]:
        yield f"{later} is the next release that was tried with these"
    elif later is not None:
        fixed = sum(pair[1].holds for pair in after[later])
        counted = {"all": len(after[later]), "none": 0}.get(more[2])
        if fixed != (number(more[2]) if counted is None else counted):
            yield f"{later} builds {fixed}"
        if len(after[later]) != (number(more[3]) if more[3] else len(broken)):
            yield f"{later} was tried with {len(after[later])} of {len(broken)}"


def combination(key: str, sentence: str, counts: Counts) -> Iterator[str]:
    """Yield the errors of a reply about a library with a range of CUDA releases.

    The reply counts the programs that a library release rejects with these CUDA releases and builds with another.
    """
    name, release, *ends = key.split(" ")
    low, high = map(order, ends)
    own, elsewhere = [], set()
    for cell in counts.answered:
        program = (cell.case, cell.variant, cell.backend, cell.version, cell.target)
        if counts.name(cell) != name or cell.of or not cell.cuda:
            continue
        if not low <= order(cell.cuda) <= high:
            elsewhere |= {program} if cell.holds else set()
        elif release in ("*", cell.version):
            own.append((program, cell))
    if sentence.startswith("Not tried. "):
        if own:
            yield f"{len(own)} cells"
        return
    both = [cell for program, cell in own if program in elsewhere]
    lost = sum(not cell.holds for cell in both)
    if both:
        lead = "In part" if 0 < lost < len(both) else "No" if lost else "Yes"
        true = (lead, len(both), lost)
        found = re.match(
            r"(Yes|No|In part)\. .+? (?:(each|none) of|([\d,]+) of) the ([\d,]+) programs that it builds", sentence
        )
        said = found and (found[1], number(found[4]), {"each": 0, "none": number(found[4])}.get(found[2] or "", found[3] and number(found[3])))  # fmt: skip
    else:
        good = sum(cell.holds for _, cell in own)
        true = ("Yes" if good else "No", good, len(own))
        found = re.match(r"(Yes|No)\. .+? builds ([\d,]+) of the ([\d,]+) programs that were tried", sentence)
        said = found and (found[1], number(found[2]), number(found[3]))
    if said != true:
        yield f"says {said}, the cells {true}"
    oldest = re.search(r"(\S+) is the oldest release that (builds|was tried)", sentence)
    versions = {
        "was tried": [cell.version for _, cell in own],
        "builds": [cell.version for _, cell in own if cell.holds],
    }
    if oldest and oldest[1] != (least := min(versions[oldest[2]], key=order)):
        yield f"{least} is the oldest"


def drop(key: str, sentence: str, counts: Counts, targets: Callable[[str], list[str]]) -> Iterator[str]:
    """Yield the errors of a reply about programs that only one release or architecture builds."""
    name, _, value = key.rpartition(" ")
    by_release = counts.by_release(name) if name else {}
    if value in by_release:
        newer = [cells for item, cells in by_release.items() if order(item) > order(value)]
        cases, _, every = alone(by_release[value], newer)
    else:
        by_target = counts.by_target()
        cases, every = set(), 0
        for target in targets(key):
            newer = [cells for item, cells in by_target.items() if item.startswith("sm_") and _above(item, target)]
            some, _, count = alone(by_target[target], newer)
            cases, every = cases | some, every + count
    yield from _alone_said(sentence, "newer", (len(cases), every))


def requires(sentence: str, counts: Counts, targets: list[str]) -> Iterator[str]:
    """Yield the errors of a reply about programs that build for an architecture and for no older one."""
    by_target = counts.by_target()
    cases: set[str] = set()
    every = 0
    for target in targets:
        older = [cells for item, cells in by_target.items() if item.startswith("sm_") and _above(target, item)]
        some, _, count = alone(by_target[target], older)
        cases, every = cases | some, every + count
    yield from _alone_said(sentence, "older", (len(cases), every))


def _alone_said(sentence: str, others: str, true: tuple[int, int]) -> Iterator[str]:
    found = re.search(rf"(\d+) cases? builds? (?:for|with) .+? and (?:for|with) no {others} .*?\((?:[\d,]+ )?of ([\d,]+) cells\)", sentence)  # fmt: skip
    said = (int(found[1]), number(found[2])) if found else None
    if said is None and (found := re.search(rf"Each of the ([\d,]+) cells .+ {others} ", sentence)):
        said = (0, number(found[1]))
    if said != true:
        yield f"says {said}, the cells {true}"


def _above(one: str, other: str) -> bool:
    def place(target: str) -> tuple[int, str]:
        digits = re.sub(r"\D", "", target)
        return int(digits), target.removeprefix(f"sm_{digits}")

    return place(one) > place(other)


def borders(intent: str, sentence: str, counts: Counts) -> Iterator[str]:
    """Yield the errors of a reply about the first or last CUDA release of architectures."""
    for found in re.finditer(r"CUDA (\d[\d.]+)[^:.]*?builds for ([^:.]+?)(?:: CUDA (\d[\d.]+) does not|\.)", sentence):
        toolkit, names, other = found[1], found[2], found[3]
        for target in _targets(names, counts):
            builds = counts.builds(target)
            if not builds.get(toolkit):
                yield f"CUDA {toolkit} does not build for {target}"
            beyond = [item for item, holds in builds.items() if holds and (order(item) < order(toolkit) if intent == "first" else order(item) > order(toolkit))]  # fmt: skip
            if beyond:
                yield f"{target} builds with {beyond} as well"
            if other and builds.get(other, False):
                yield f"CUDA {other} builds for {target}"


def supported(toolkit: str, sentence: str, counts: Counts) -> Iterator[str]:
    """Yield the errors of a reply about the architectures of a CUDA release."""
    found = re.fullmatch(r"CUDA \S+ builds for ([^;]+?)(?:; not for (.+))?\.", sentence)
    if found is None:
        yield "unreadable"
        return
    known = {target: counts.builds(target).get(toolkit) for target in counts.targets}
    for text, expected in ((found[1], True), (found[2] or "", False)):
        said = set(_targets(text, counts)) if text else set()
        if said != (true := {target for target, builds in known.items() if builds is expected}):
            yield f"{'builds' if expected else 'refuses'} {', '.join(sorted(true ^ said, key=order))}"


def lowest(toolkit: str, sentence: str, counts: Counts) -> Iterator[str]:
    """Yield the errors of a reply about the lowest compute capability of a CUDA release."""
    yield from minimum(toolkit, sentence)
    builds = sorted((target for target in counts.targets if counts.builds(target).get(toolkit)), key=order)
    if f"({builds[0]})" not in sentence:
        yield f"{builds[0]} is the lowest"


def _targets(text: str, counts: Counts) -> list[str]:
    """Expand a text such as ``sm_75–sm_86, sm_90a`` to the tried architectures in its ranges."""
    found, known = [], sorted(counts.targets, key=order)
    for item in text.split(", "):
        low, _, high = item.partition("–")
        plain = [target for target in known if re.fullmatch(r"sm_\d+", target)]
        found += [target for target in plain if order(low) <= order(target) <= order(high)] if high else [item]
    return found


def check(replies: dict[str, str], counts: Counts, names: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Yield the key of each false reply with the reason."""

    def targets(name: str) -> list[str]:
        known = counts.targets
        return [target for target in names.get(name, [name]) if target in known and counts.builds(target)]

    for whole, sentence in replies.items():
        intent, _, key = whole.partition(" ")
        found: Iterable[str]
        if intent == "breaks":
            found = breaks(key, sentence, counts)
        elif intent == "release":
            found = release(key, sentence, counts)
        elif intent == "capability":
            found = (*capability(key, sentence), *borders("first", sentence, counts), *first(sentence))
        elif intent in ("tensor", "limits"):
            found = (tensor if intent == "tensor" else limits)(key, sentence)
        elif intent == "minimum":
            found = lowest(key.removeprefix("cuda "), sentence, counts)
        elif intent == "driver":
            found = driver(key.removeprefix("cuda "), sentence)
        elif intent == "supported":
            found = supported(key.removeprefix("cuda "), sentence, counts)
        elif intent == "drop":
            found = drop(key, sentence, counts, targets)
        elif intent == "requires":
            found = requires(sentence, counts, targets(key))
        elif intent == "code":
            found = code(key, sentence)
        elif intent in ("host", "hosts"):
            found = hosts(key, sentence)
        elif intent == "with":
            found = combination(key, sentence, counts)
        elif intent == "vendor":
            # The matrix has no cells of these architectures.
            backend, start = key.split(" ")
            cells = [cell for cell in counts.answered if cell.backend == backend and cell.target.startswith(start)]
            found = ("there are cells",) if cells else ()
        elif intent == "ptx":
            found = ptx(key.removeprefix("cuda "), sentence)
        elif intent == "last" and "release notes" in sentence:
            found = dropped(key, sentence)
        elif intent in ("first", "last"):
            found = (*borders(intent, sentence, counts), *first(sentence))
        else:
            found = ("no rule reads it",)
        yield from ((whole, why) for why in found)


def check_page(page: Path, table: pd.DataFrame) -> int:
    """Print the false replies of a page; return their number."""
    names = data_of(page, "answers")["vocabulary"]["architectures"]
    replies = replies_of(page)
    found: dict[str, str] = {}
    for key, why in check(replies, Counts(table), names):
        found.setdefault(key, why)
    for key, why in list(found.items())[:20]:
        print(f"    - {key}: {replies[key]!r}\n      {why}")
    print(f"{len(replies)} replies, {len(found)} of them false")
    return len(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="check_replies.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=PUBLISHED)
    parser.add_argument("--page", type=Path, required=True, metavar="DIR", help="a built page")
    args = parser.parse_args()
    table = pd.read_parquet(args.results).astype(object).where(lambda frame: frame.notna(), None)
    return int(check_page(args.page, table) > 0)


if __name__ == "__main__":
    sys.exit(main())
