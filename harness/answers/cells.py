"""Cells as answers need them: request, outcome and evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.answers.question import WEIGHTS, in_series, words_of, words_of_messages
from harness.answers.verdict import REFUSED, SILENT, UNAVAILABLE, UNTRIED, WORKS, VersionGrid
from harness.backends import BACKENDS, library_of
from harness.libraries import LIBRARIES
from harness.matrix.axes import backend_key, natural_key, target_key, version_key
from harness.matrix.marks import letter_of
from harness.matrix.ranges import between, spell_tried
from harness.model import KNOWN_TARGETS, Target
from harness.model.cell import HostCompiler, cuda_of, told_version
from harness.model.condition import HOST_VERSIONS
from harness.model.outcome import main_message
from harness.records.make import NO_TENSOR_CORES, TENSOR_CORES
from harness.toolkits.header_libraries import LIBRARIES as HEADERS


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A case, as readers know it.

    Parameters
    ----------
    case, title, topic : str
        Its name, its title in plain words, its topic.
    features, links : tuple of str
        Tags, and upstream reports.
    reasons : tuple of str
        Why it is refused somewhere, and known faults.
    faults : tuple of (str, str, tuple of str)
        Reason, link and places (`place_of_fault`) of each known fault.
    names : tuple of str
        Names of CUDA's functions and of PTX instructions in its programs (`names_in`).
    """

    case: str
    title: str
    topic: str
    features: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    faults: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    names: tuple[str, ...] = ()

    @property
    def known_faults(self) -> tuple[tuple[str, str], ...]:
        """Reason and link of each known fault."""
        return tuple((reason, link) for reason, link, _ in self.faults)


@cache
def brings_tools(backend: str) -> bool:
    """Return whether the library behind a backend brings CUDA's tools along, as those of kernel languages do."""
    library = LIBRARIES.get(library_of(backend))
    return bool(library and library.bundles)


def place_of_fault(backend: str, library: str, toolkit: str) -> str:
    """A backend with its versions, as known faults have it: ``numba 0.63.0 12.4``."""
    return f"{backend} {library} {cuda_of(toolkit)}"


_NAME = re.compile(
    r"\b((?!cudaGet|cudaSuccess|cudaDevAttr|cudaError)(?:cuda|cu|nv)[A-Z][A-Za-z0-9]{3,})\b|\b__([a-z][a-z0-9]{4,})\b(?!_)|\"\s*([a-z][a-z0-9]{4,})(?=\.[a-z0-9_]+)"
)
_SHARED = 2
"""The most cases that a name may occur in to be found by."""


def names_in(programs: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """By case, names of CUDA's functions and of PTX instructions in its texts that hardly another case has: ``cudagriddependencysynchronize``."""
    found = {
        case: {(match[1] or match[2] or match[3]).lower() for text in texts for match in _NAME.finditer(text)}
        for case, texts in programs.items()
    }
    counts = Counter(name for names in found.values() for name in names)
    return {case: tuple(sorted(name for name in names if counts[name] <= _SHARED)) for case, names in found.items()}


def features_of(
    facts: Iterable[tuple[str, str, str, Sequence[str], Sequence[str], Any, str]],
    names: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> dict[str, Feature]:
    """Collect the features of records, the most general ones first.

    An answer leads with the first of the cases that match a question equally well: "wmma on a T4" is about ``wmma/fragments`` rather than
    about an issue's fragment. A case is more general if it has fewer tags, then if more backends ran it. Cases of kernel languages are last.

    Parameters
    ----------
    facts : iterable of tuple
        ``(case, title, topic, features, links, expected, place)`` of each record.
    names : Mapping[str, tuple of str]
        Names in the programs (`names_in`).
    """
    first: dict[str, tuple[str, str, Sequence[str], Sequence[str]]] = {}
    reasons: dict[str, dict[str, None]] = {}
    faults: dict[str, dict[tuple[str, str], dict[str, None]]] = {}
    tools: dict[str, set[str]] = {}
    for case, title, topic, features, links, expected, place in facts:
        first.setdefault(case, (title, topic, features, links))
        tools.setdefault(case, set()).update(filter(None, (place.partition(" ")[0],)))
        if expected and expected["reason"]:
            reasons.setdefault(case, {})[expected["reason"]] = None
            if expected["xfail"]:
                found = faults.setdefault(case, {}).setdefault((expected["reason"], expected["link"]), {})
                found[place] = None
    of_one = {case for case, backends in tools.items() if backends and all(map(brings_tools, backends))}
    ordered = sorted(
        first,
        key=lambda case: (case in of_one, len(first[case][2]), -len(tools[case]), natural_key(first[case][1]), natural_key(case)),
    )  # fmt: skip
    return {
        case: Feature(
            case=case,
            # With the project's name where the case has it: another project's case may have the same title.
            title=first[case][0] + "".join(f" ({whose})" for whose in case.split("@")[1:]),
            topic=first[case][1],
            features=tuple(first[case][2]),
            links=tuple(first[case][3]),
            reasons=tuple(reasons.get(case, ())),
            faults=tuple((*key, tuple(sorted(places))) for key, places in faults.get(case, {}).items()),
            names=names.get(case, ()),
        )
        for case in ordered
    }


@cache
def words_of_feature(feature: Feature) -> tuple[list[str], list[str], list[str]]:
    """Words of a case: of its name, of title, topic and features, of causes and links (`harness.answers.question.WEIGHTS`)."""
    name = words_of(feature.case)
    title = words_of(" ".join((feature.title, feature.topic, *feature.features)))
    causes = [word for word in words_of(" ".join(feature.reasons)) if word[0].isalpha() and len(word) > 2]
    numbers = [link.rstrip("/").rpartition("/")[2] for link in feature.links]
    repositories = [part for link in feature.links if "github.com" in link for part in words_of(link.split("/")[4])]
    found = (name, title, [*feature.names, *causes, *(number for number in numbers if number.isdigit()), *repositories])
    assert len(found) == len(WEIGHTS) - 1
    return tuple(list(dict.fromkeys(words)) for words in found)  # type: ignore[return-value]


OTHER = "host compiler"
"""The axis of host compilers whose names tell no version, such as those that a user has named."""


@cache
def split_host(name: str) -> tuple[str, str]:
    """Split the name of a host compiler: ``gcc-13`` is ``gcc`` and ``13``, ``glibc-2.43`` is ``glibc`` and ``2.43``."""
    found = re.fullmatch(rf"({'|'.join(HOST_VERSIONS)})-(\d{{1,9}}(?:\.\d{{1,9}})*)", name)
    return (found[1], found[2]) if found else (OTHER, name) if name else ("", "")


def is_host(axis: str) -> bool:
    """Return whether versions on this axis are those of a host compiler."""
    return axis in HOST_VERSIONS or axis == OTHER


@cache
def hosted() -> tuple[str, ...]:
    """Backends that hand the host's half of a program to a host compiler."""
    return tuple(info.name for info in BACKENDS.values() if info.nvcc)


def own_of(backend: str, name: str, toolchain: Mapping[str, Any]) -> str:
    """The machine's own host compiler, with its version, of a cell without a requested one; empty if there is none.

    Parameters
    ----------
    backend, name : str
        The backend, and the requested host compiler.
    toolchain : Mapping
        As in the record; those of early versions tell only what the compiler said.
    """
    if name or backend not in hosted():
        return ""
    requested, observed = (toolchain[key].get("host_compiler") or "" for key in ("requested", "observed"))
    return str(requested) or told_version(str(observed))


def own_in(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """The machines' own host compilers of records: `own_of` of each."""
    return {own_of(record["backend"], record.get("host_compiler", ""), record["toolchain"]) for record in records} - {
        ""
    }


def are_own(own: Iterable[str], requested: Mapping[str, Sequence[str]]) -> bool:
    """Return whether cells without a requested host compiler were all compiled with the one a question names. The page's script does the same (`assets/answer.js`).

    Parameters
    ----------
    own : iterable of str
        Versions of the machines' own ones: ``gcc 12.2.0, glibc 2.36``.
    requested : Mapping[str, sequence of str]
        Versions by name: of ``gcc``, ``clang``, ``glibc``; none of them for all.
    """
    own_versions = [HostCompiler(version=version).versions for version in own]
    return bool(own_versions) and all(
        versions[name] and (not wanted or any(in_series(versions[name], each) for each in wanted))
        for versions in own_versions
        for name, wanted in requested.items()
    )


COLUMNS = (
    *("cell", "case", "variant", "backend", "library", "toolkit", "host_compiler", "target"),
    *("mark", "status", "message"),
)
"""The keys of a record that a row needs."""


UNLINKED = "not linked"
"""Beginning of the note of a built cell whose relocatable code was not linked (`harness.records`)."""


OF_CODE = (UNLINKED, TENSOR_CORES, NO_TENSOR_CORES)
"""Beginnings of the notes of a built cell that answers show."""


def releases_by_name(tried: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Tried releases by name, oldest first, from pairs of a name and a release.

    Results of strangers have any text; a name with a space is left out, and so is a toolkit with headers of another release.
    """
    found: dict[str, set[str]] = {}
    for name, release in tried:
        if name and release and " " not in name + release and "+headers" not in release:
            found.setdefault(name, set()).add(release)
    return {name: tuple(sorted(releases, key=version_key)) for name, releases in sorted(found.items())}


def text_of_row(status: str, message: str, reason: str, notes: Iterable[str]) -> str:
    """The message of a row: of built code that it was not linked or which tensor cores it uses, else its main message."""
    if status == "built":
        of_code = [note for note in notes if note.startswith(OF_CODE)]
        if note := next((note for start in OF_CODE for note in of_code if note.startswith(start)), ""):
            return note
    return main_message(status, message, reason)


class Row(NamedTuple):
    """A cell.

    ``version`` is the header library's if the case uses one (``axis``), else the requested host compiler's, else that of the library behind the
    backend; ``rest`` are the parameters that are no library; ``tool`` is the backend, with what else tells it from others where the axis of versions is
    another one; ``toolkit`` is empty where the library brings CUDA along; ``own`` marks a cell of the report's author among published ones.
    """

    cell: str
    case: str
    rest: str
    tool: str
    axis: str
    version: str
    toolkit: str
    target: str
    letter: str
    message: str
    own: bool = False


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A program and a tool: every version, CUDA release and architecture that it was tried with.

    Parameters
    ----------
    case, rest, tool, axis : str
        As of its rows.
    grids : Mapping[str, VersionGrid]
        By target.
    proofs : Mapping[tuple of str, Row]
        The cell by version, toolkit and target.
    own : Mapping[str, VersionGrid]
        By target, for own cells among published ones.
    """

    case: str
    rest: str
    tool: str
    axis: str
    grids: Mapping[str, VersionGrid]
    proofs: Mapping[tuple[str, str, str], Row]
    own: Mapping[str, VersionGrid] = field(default_factory=dict)

    @property
    def backend(self) -> str:
        """The backend, without a version."""
        return self.tool.partition(" ")[0]

    @cached_property
    def answers(self) -> dict[str, list[Row]]:
        """Cells that a compiler answered, by target, oldest versions first."""
        found: dict[str, list[Row]] = {}
        for row in sorted(self.proofs.values(), key=lambda row: (version_key(row.version), version_key(row.toolkit))):
            if row.letter not in SILENT:
                found.setdefault(row.target, []).append(row)
        return found

    @cached_property
    def working(self) -> tuple[str, ...]:
        """Targets that work with some version, in order."""
        return tuple(target for target, grid in self.grids.items() if WORKS in grid.letters)

    def differ(self, refused: str, built: str) -> bool:
        """Return whether two cells that differ in the architecture alone show one that is refused and one that is built."""
        one, other = self.grids[refused].letters, self.grids[built].letters
        return any(a in REFUSED and b == WORKS for a, b in zip(one, other, strict=True))

    @cached_property
    def unlinked(self) -> dict[str, set[str]]:
        """CUDA releases whose built cells were not linked, by target."""
        found: dict[str, set[str]] = {}
        for row in self.proofs.values():
            if row.letter == WORKS and row.message.startswith(UNLINKED):
                found.setdefault(row.target, set()).add(row.toolkit)
        return found

    @cached_property
    def where(self) -> dict[str, str]:
        """By kind of architectures, those that build with some version: ``from sm_80``; empty if all do, or if no other one was tried."""
        return {kind: self._where_of(kind) for kind in {Target.parse(target).kind for target in self.grids}}

    def _where_of(self, kind: str) -> str:
        """The words of `where`.

        ``from`` needs two cells that differ in the architecture alone. Architectures are compared where something builds.
        """
        answered = [item for item in self.answered if item.startswith(kind)]
        working = [item for item in self.working if item.startswith(kind)]
        # An architecture that only versions were tried with that build for none tells nothing.
        refused = [
            item for item in answered if item not in working and any(self.differ(item, other) for other in working)
        ]
        if not working:
            return "nowhere" if len(answered) > 1 else ""
        if not refused:
            return ""
        first, last = working[0], refused[-1]
        ordered = [item for item in answered if natural_key(item) >= natural_key(first)] == working
        if ordered and first[-1].isdigit() and last[-1].isdigit() and self.differ(last, first):
            known = [str(each) for each in KNOWN_TARGETS if str(each).startswith(kind) and not each.suffix]
            gap = [item for item in between(last, first, known, natural_key) if item not in self.answered]
            return f"from {first}{f'; {spell_tried(gap, known, natural_key)} untried' if gap else ''}"
        others = f"; 0 of {len(refused)} others" if len(refused) > 1 else f"; not on {refused[0]}"
        return f"on {', '.join(working)}{others}"

    @cached_property
    def answered(self) -> tuple[str, ...]:
        """Targets that a compiler answered, in order."""
        return tuple(target for target, grid in self.grids.items() if set(grid.letters) - SILENT)


@dataclass(frozen=True, kw_only=True)
class Known:
    """Everything that answers are made from.

    Parameters
    ----------
    rows : sequence of Row
        The cells; of several for one place the one that a compiler answered, then the last.
    features : Mapping[str, Feature]
        By case, in order.
    runs : Mapping[str, str]
        When each run started, by its name.
    hosts : tuple of str
        Versions of the machines' own host compilers, of cells without a requested one (`harness.answers.cells.own_of`).
    """

    rows: Sequence[Row]
    features: Mapping[str, Feature]
    runs: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()

    @cached_property
    def entries(self) -> list[Entry]:
        """By program and tool, in the order of the matrix."""
        found: dict[tuple[str, ...], dict[tuple[str, str, str], Row]] = {}
        for row in self.rows:
            # What was paired with the headers of another release is in the matrix; it is no version that people have.
            if "+headers" not in row.toolkit:
                place = (row.version, row.toolkit, row.target)
                of = found.setdefault((row.case, row.rest, row.tool, row.axis), {})
                if place not in of or row.letter not in (UNTRIED, UNAVAILABLE):
                    of[place] = row
        order = {case: number for number, case in enumerate(self.features)}
        return [
            Entry(case=key[0], rest=key[1], tool=key[2], axis=key[3], grids=_grids(of), proofs=of, own=_grids({place: row for place, row in of.items() if row.own}))
            for key, of in sorted(found.items(), key=lambda item: (order[item[0][0]], natural_key(item[0][1]), _tool_key(item[0][2])))
        ]  # fmt: skip

    @cached_property
    def _by_case(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.case, []).append(entry)
        return found

    def entries_of(self, case: str) -> list[Entry]:
        """Those of a case."""
        return self._by_case.get(case, [])

    @cached_property
    def targets(self) -> list[str]:
        """Every target that a compiler said something of, in order."""
        return sorted({row.target for row in self.rows if row.letter not in SILENT}, key=target_key)

    @cached_property
    def tools(self) -> list[str]:
        """Every tool, in order; those of header libraries with a version are where their backend is."""
        return sorted({entry.tool for entry in self.entries}, key=_tool_key)

    @cached_property
    def message_words(self) -> dict[str, frozenset[str]]:
        """By case, words of what compilers said against it (`harness.answers.question.words_of_messages`)."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            if row.letter in REFUSED:
                found.setdefault(row.case, set()).add(row.message)
        return {case: words_of_messages(messages) for case, messages in found.items()}

    def words_of(self, case: str) -> tuple[list[str], list[str], list[str]]:
        """`words_of_feature` of a case."""
        return words_of_feature(self.features[case])


def split_variant(variant: str) -> tuple[str, str, str]:
    """Parameters that are no library, and the header library with its version, of a variant: ``cutlass=3.5.1,form=a``."""
    rest, name, version = [], "", ""
    for part in filter(None, variant.split(",")):
        key, equals, value = part.partition("=")
        if equals and key in HEADERS and not name:
            name, version = key, value
        else:
            rest.append(part)
    return ",".join(rest), name, version


_split = lru_cache(maxsize=None)(split_variant)


def make_row(*values: str, own: bool = False) -> Row:
    """A row of a record's values, one for each of `COLUMNS`."""
    cell, case, variant, backend, library, toolkit, host, target, mark, status, message = values
    rest, header, version = _split(variant)
    axis, tool = header, backend
    if header:
        tool = " ".join(filter(None, (backend, library, host)))
    elif host:
        axis, version = split_host(host)
        tool = " ".join(filter(None, (backend, library)))
    else:
        version = library
    if not header and cuda_of(toolkit) and brings_tools(backend):
        # Its versions with another CUDA than theirs are a series of their own.
        tool = f"{tool} cuda{toolkit}"
    return Row(
        cell,
        case,
        rest,
        tool,
        axis,
        version,
        cuda_of(toolkit),
        target,
        letter_of(mark, status),
        message or status.replace("_", " "),
        own,
    )


def _tool_key(tool: str) -> tuple[Any, ...]:
    backend, *more = tool.split(" ")
    return (*backend_key(backend), *map(version_key, more))


def _grids(of: Mapping[tuple[str, str, str], Row]) -> dict[str, VersionGrid]:
    versions = tuple(sorted({place[0] for place in of}, key=version_key))
    toolkits = tuple(sorted({place[1] for place in of}, key=version_key))
    found = {}
    for target in sorted({place[2] for place in of}, key=target_key):
        letters = "".join(
            row.letter if (row := of.get((version, toolkit, target))) else UNTRIED
            for version in versions
            for toolkit in toolkits
        )
        found[target] = VersionGrid(versions, toolkits, letters)
    return found
