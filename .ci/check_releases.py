"""Checks of the lines about new releases, on index.html and in the feed, against the cells."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from check_support import number, plain, ranges_in
from statement_rules import HOSTS, ITSELF, Cell, Cells, differ_alone, inside, order

LIBRARIES = {
    "cupy-nvrtc": "CuPy", "cupy-jitify": "CuPy", "numba": "Numba", "numba-cuda": "numba-cuda", "torch-nvcc": "PyTorch", "cuda-core": "cuda-core",
    "numba-cuda-mlir": "numba-cuda-mlir", "triton": "Triton", "cute-dsl": "CuTe DSL", "cutile": "cuTile", "warp": "Warp",
}  # fmt: skip
"""Name of the library that a cell's version belongs to, by backend."""

_LINE = re.compile(
    r"(?P<name>.+) (?P<version>\S+) (?:breaks (?:(?P<features>[\d,]+) features?|nothing that was tried)|cannot be compared: .*)"
)
_BASIS = re.compile(
    r"(?:(?P<failed>[\d,]+) of )?(?P<pairs>[\d,]+) pairs? that builds? with (?P<before>[^\s,;]+)"
    r"(?P<own>, each with its own [^;]+)?(?:; no longer builds for (?P<dropped>.+))?"
)


@dataclass
class Release:
    """The newest tried release of a library or of CUDA, with its cells and those of the release before."""

    version: str
    before: str
    built: list[tuple[Cell, Cell]] = field(default_factory=list)
    """Pairs of cells that differ only in the release; the first cell builds."""
    dropped: set[str] = field(default_factory=set)

    @property
    def failed(self) -> list[tuple[Cell, Cell]]:
        return [pair for pair in self.built if not pair[1].holds]

    @property
    def unsure(self) -> int:
        """Number of failures that may come from the linker, because the cell of the release before was not linked."""
        return sum(one.unlinked for one, _ in self.failed)

    @property
    def cases(self) -> dict[str, list[Cell]]:
        found: dict[str, list[Cell]] = defaultdict(list)
        for _, cell in self.failed:
            found[cell.case].append(cell)
        return found


def releases(cells: Cells) -> Mapping[str, Release]:
    """Return the newest release of each name."""
    groups: dict[tuple[str, ...], dict[str, Cell]] = defaultdict(dict)
    versions: dict[str, set[str]] = defaultdict(set)
    for cell in cells.by_id.values():
        if "+headers" in cell.cuda or not cell.outcome:
            continue
        library = cell.of or LIBRARIES.get(cell.backend, "")
        for name, axis in (("CUDA", "cuda"), (library, "version")):
            if name and name not in HOSTS and (value := getattr(cell, axis)):
                groups[name, axis, cell.case, cell.variant, cell.tool, cell.of, *cell.others(axis)][value] = cell
                versions[name].add(value)
    newest = {name: sorted(found, key=order)[-2:][::-1] for name, found in versions.items() if len(found) > 1}
    found = {name: Release(version=pair[0], before=pair[1]) for name, pair in newest.items()}
    for (name, axis, *_), group in groups.items():
        of = found.get(name)
        one, other = (group.get(of.before), group.get(of.version)) if of else (None, None)
        if of and one and other and one.holds and differ_alone(one, other, axis, named=("numba",)):
            of.built.append((one, other))
    if cuda := found.get("CUDA"):
        knows: dict[tuple[str, str], bool] = defaultdict(bool)
        for (case, *_), entries in cells.by_entry.items():
            for cell in chain.from_iterable(entries.values()) if case == ITSELF else ():
                knows[cell.target, cell.cuda] |= cell.holds
        for target in {target for target, _ in knows}:
            if knows.get((target, cuda.before)) and knows.get((target, cuda.version)) is False:
                cuda.dropped.add(target)
    return found


def check_releases(page: str, feed: str, cells: Cells) -> Iterator[tuple[str, str]]:
    """Yield each false line about new releases on index.html and in its feed with the reason."""
    known = releases(cells)
    names: set[str] = set()
    for markup in re.findall(r'<ul class="lines releases">(.*?)</ul>', page, re.DOTALL):
        for line in re.findall(r"<li>(.*?)</li>", markup, re.DOTALL):
            head, basis = re.fullmatch(r"(.*?)(?: <a class=\"soft\" href=\"#ask=[^\"]*\">\((.*)\)</a>)?", line.strip(), re.DOTALL).groups()  # type: ignore[union-attr]  # fmt: skip
            said, _, features = head.partition(": <a ") if "</a>" in head else (head, "", "")
            where = f"index.html, new releases: {plain(line)}"
            for name, why in _check_line(plain(said), plain(basis or ""), known):
                names.add(name)
                if why:
                    yield where, why
            name = plain(said).partition(" breaks ")[0].rpartition(" ")[0]
            if features and name in known:
                yield from ((where, why) for why in _check_features(f"<a {features}", known[name]))
    for name in known.keys() - names:
        yield "index.html, new releases", f"no line for {name} {known[name].version}"
    yield from _check_feed(feed, known)


def _check_line(said: str, basis: str, known: Mapping[str, Release]) -> Iterator[tuple[str, str]]:
    """Yield the name of a line with an empty reason, then the name with the reason of each error."""
    line = _LINE.fullmatch(said)
    if line is None or (of := known.get(line["name"])) is None:
        yield "", "no such release"
        return
    name = line["name"]
    yield name, ""
    if line["version"] != of.version:
        yield name, f"the newest release is {of.version}"
    if "cannot be compared" in said or not basis:
        if of.built or basis:
            yield name, f"{len(of.built)} pairs with {of.before}, such as {_shown(of.built[-1])}"
        return
    found = _BASIS.fullmatch(basis)
    if found is None:
        yield name, "no rule reads its basis"
        return
    if found["before"] != of.before:
        yield name, f"the release before is {of.before}"
    failed, features = number(found["failed"] or "0"), number(line["features"] or "0")
    for what, count, most in (
        ("pairs", number(found["pairs"]), len(of.built)),
        ("failures", failed, len(of.failed)),
    ):
        if not most - of.unsure <= count <= most:
            yield name, f"{most} {what}, not {count}"
    if features != len(of.cases) and not of.unsure:
        yield (
            name,
            f"{len(of.cases)} features, not {features}, such as {_shown(of.failed[-1]) if of.failed else 'none'}",
        )
    moved = any(one.parts.get("numba") != other.parts.get("numba") for one, other in of.built if one.backend != "numba")
    if name == "numba-cuda" and moved and "Numba" not in (found["own"] or ""):
        yield name, "Numba has changed too"
    if not _covers(found["dropped"] or "", of.dropped):
        yield name, f"no longer builds for {', '.join(sorted(of.dropped, key=order)) or 'none'}"


def _check_features(markup: str, of: Release) -> Iterator[str]:
    """Yield the errors in the features of a line. Each listed tool and target must have a failure, and none may be missing."""
    by_page = {case.replace("/", "-"): case for case in of.cases}
    for page, tools in re.findall(r'<a href="cases/([\w.-]+)\.html">.*?<span class="soft">(.*?)</span>', markup, re.DOTALL):  # fmt: skip
        if page not in by_page:
            yield f"{page}: nothing fails"
            continue
        left = {(cell.backend, cell.of, cell.target) for cell in of.cases[by_page[page]]}
        for part in plain(tools).split("; "):
            tool, targets = re.fullmatch(r"(.+?) on (.+)", part).groups()  # type: ignore[union-attr]
            named, _, header = tool.partition(" with ")
            own = {item for item in left if _is_tool(named, item[0]) and item[1] == header}
            if not own or not _covers(targets, {target for *_, target in own}):
                yield f"{page}: {tool} fails on {', '.join(sorted((item[2] for item in own), key=order)) or 'nothing'}"
            left -= own
        if left:
            yield f"{page}: {left} are left out"


def _check_feed(feed: str, known: Mapping[str, Release]) -> Iterator[tuple[str, str]]:
    atom = "{http://www.w3.org/2005/Atom}"
    names: set[str] = set()
    for entry in ET.fromstring(feed).iter(f"{atom}entry") if feed else ():
        title, content = entry.findtext(f"{atom}title", ""), entry.findtext(f"{atom}content", "")
        if not _LINE.fullmatch(title):
            continue
        where = f"regressions.atom: {title}"
        first = re.search(r"<p>(.*?) \((.*)\)\.</p>", content)
        if first is None or plain(first[1]) != title:
            yield where, "its text says something else"
            continue
        for name, why in _check_line(title, plain(first[2]), known):
            names.add(name)
            if why:
                yield where, why
            elif name:
                listed = len(re.findall("<li>", content))
                if listed != len(known[name].cases) and not known[name].unsure and listed < 100:
                    yield where, f"{len(known[name].cases)} features, not {listed}"
    if feed:
        for name in {name for name, of in known.items() if of.built} - names:
            yield "regressions.atom", f"no entry for {name} {known[name].version}"


def _is_tool(label: str, backend: str) -> bool:
    labels = {"nvrtc": "NVRTC", "nvcc": "nvcc", "cupy-jitify": "CuPy, Jitify", "cuda-core": "cuda.core"}
    return re.fullmatch(rf"{re.escape(labels.get(backend) or LIBRARIES[backend])}(?: \d\S*)?", label) is not None


def _covers(text: str, targets: Iterable[str]) -> bool:
    """Return whether a text such as ``sm_75–sm_86, sm_90a`` names exactly these targets. ``7 of sm_52 to sm_120`` names only their number."""
    named = set(targets)
    if counted := re.fullmatch(r"(\d+) of (\S+) to (\S+)", text):
        return int(counted[1]) == len(named) and all(inside(target, ((counted[2], counted[3]),)) for target in named)
    ranges = ranges_in(text) if text else ()
    ends = set(filter(None, chain.from_iterable(ranges)))
    return ends <= named and all(inside(target, ranges) for target in named)


def _shown(pair: tuple[Cell, Cell]) -> str:
    return " and ".join(cell.id for cell in pair)
