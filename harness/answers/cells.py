"""The cells that answers use: request, outcome and evidence."""

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
from harness.answers.vocabulary import IGNORED
from harness.backends import BACKENDS, library_of
from harness.libraries import LIBRARIES
from harness.matrix.axes import backend_key, natural_key, target_key, version_key
from harness.matrix.marks import letter_of
from harness.matrix.ranges import between, spell_tried
from harness.model import KNOWN_TARGETS, Target
from harness.model.cell import HostCompiler, compiler_version, cuda_of
from harness.model.condition import HOST_VERSIONS
from harness.model.outcome import main_message
from harness.records.make import NO_TENSOR_CORES, TENSOR_CORES
from harness.toolkits.header_libraries import LIBRARIES as HEADERS


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A case, in the reader's words.

    Parameters
    ----------
    case, title, topic : str
        The name, the title in plain words, and the topic.
    features, links : tuple of str
        Tags, and upstream reports.
    reasons : tuple of str
        Reasons for refusals, and known faults.
    faults : tuple of (str, str, tuple of str)
        Reason, link and places (`place_of_fault`) of each known fault.
    names : tuple of str
        Names of CUDA functions and PTX instructions in the programs (`names_in`).
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
    """Return whether the library behind a backend bundles CUDA's tools, as the libraries of kernel languages do."""
    library = LIBRARIES.get(library_of(backend))
    return bool(library and library.bundles)


def place_of_fault(backend: str, library: str, toolkit: str) -> str:
    """Return a backend with its versions in the form that known faults use: ``numba 0.63.0 12.4``."""
    return f"{backend} {library} {cuda_of(toolkit)}"


_NAME = re.compile(
    r"\b((?!cudaGet|cudaSuccess|cudaDevAttr|cudaError)(?:cuda|cu|nv)[A-Z][A-Za-z0-9]{3,})\b|\b__([a-z][a-z0-9]{4,})\b(?!_)|\"\s*([a-z][a-z0-9]{4,})(?=\.[a-z0-9_]+)"
)
_SHARED = 2
"""The maximum number of cases with a name for the name to be searchable."""


def names_in(programs: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the rare names of CUDA functions and PTX instructions by case: ``cudagriddependencysynchronize``.

    A name is rare if at most `_SHARED` cases have it in their texts.
    """
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
            # The title includes the project's name if the case does: a case of another project may have the same title.
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
    """Return the words of a case's name, of its title, topic and features, and of its causes and links.

    Each word is in the first group that has it, because `harness.answers.question.WEIGHTS` falls from group to group. Words that questions
    ignore are in none.
    """
    name = words_of(feature.case)
    title = words_of(" ".join((feature.title, feature.topic, *feature.features)))
    causes = [word for word in words_of(" ".join(feature.reasons)) if word[0].isalpha() and len(word) > 2]
    numbers = [link.rstrip("/").rpartition("/")[2] for link in feature.links]
    repositories = [part for link in feature.links if "github.com" in link for part in words_of(link.split("/")[4])]
    found = (name, title, [*feature.names, *causes, *(number for number in numbers if number.isdigit()), *repositories])
    assert len(found) == len(WEIGHTS) - 1
    known = set(IGNORED)
    groups = []
    for words in found:
        groups.append([word for word in dict.fromkeys(words) if word not in known])
        known.update(groups[-1])
    return tuple(groups)  # type: ignore[return-value]


OTHER = "host compiler"
"""The axis of host compilers with no version in their name, such as a user's own names."""


@cache
def split_host(name: str) -> tuple[str, str]:
    """Split the name of a host compiler: ``gcc-13`` into ``gcc`` and ``13``, ``glibc-2.43`` into ``glibc`` and ``2.43``."""
    found = re.fullmatch(rf"({'|'.join(HOST_VERSIONS)})-(\d{{1,9}}(?:\.\d{{1,9}})*)", name)
    return (found[1], found[2]) if found else (OTHER, name) if name else ("", "")


def is_host(axis: str) -> bool:
    """Return whether the versions of an axis are versions of a host compiler."""
    return axis in HOST_VERSIONS or axis == OTHER


@cache
def hosted() -> tuple[str, ...]:
    """Return the backends that pass the host code of a program to a host compiler."""
    return tuple(info.name for info in BACKENDS.values() if info.nvcc)


def own_of(backend: str, name: str, toolchain: Mapping[str, Any]) -> str:
    """Return the machine's own host compiler with its version, for a cell with no requested one; else an empty string.

    Parameters
    ----------
    backend, name : str
        The backend, and the requested host compiler.
    toolchain : Mapping
        The toolchain of the record. Toolchains of early versions contain only the compiler's own output.
    """
    if name or backend not in hosted():
        return ""
    requested, observed = (toolchain[key].get("host_compiler") or "" for key in ("requested", "observed"))
    return str(requested) or compiler_version(str(observed))


def own_in(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the machines' own host compilers in records (`own_of`)."""
    return {own_of(record["backend"], record.get("host_compiler", ""), record["toolchain"]) for record in records} - {
        ""
    }


def are_own(own: Iterable[str], requested: Mapping[str, Sequence[str]]) -> bool:
    """Return whether every own host compiler of the machines matches the host compiler in the question.

    Cells without a requested host compiler use the machine's own one. The page's script does the same
    (`assets/answer.js`).

    Parameters
    ----------
    own : iterable of str
        Versions of the machines' own host compilers: ``gcc 12.2.0, glibc 2.36``.
    requested : Mapping[str, sequence of str]
        Versions by name (``gcc``, ``clang``, ``glibc``). No versions select all.
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
"""The start of the note on a built cell with unlinked relocatable code (`harness.records`)."""


OF_CODE = (UNLINKED, TENSOR_CORES, NO_TENSOR_CORES)
"""The starts of the notes on built cells that answers show."""


def releases_by_name(tried: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the tried releases by name, oldest first, from pairs of a name and a release.

    Foreign results may contain any text. A name or release with a space is skipped, and so is a toolkit with the
    headers of another release.
    """
    found: dict[str, set[str]] = {}
    for name, release in tried:
        if name and release and " " not in name + release and "+headers" not in release:
            found.setdefault(name, set()).add(release)
    return {name: tuple(sorted(releases, key=version_key)) for name, releases in sorted(found.items())}


def text_of_row(status: str, message: str, reason: str, notes: Iterable[str]) -> str:
    """Return the message of a row.

    For built code it is the note that the code is not linked, or the note on tensor cores. Otherwise it is the main
    message.
    """
    if status == "built":
        of_code = [note for note in notes if note.startswith(OF_CODE)]
        if note := next((note for start in OF_CODE for note in of_code if note.startswith(start)), ""):
            return note
    return main_message(status, message, reason)


class Row(NamedTuple):
    """A cell.

    ``version`` is the version of the header library if the case uses one (``axis``), else that of the requested host
    compiler, else that of the library behind the backend. ``rest`` contains the parameters that are not libraries.
    ``tool`` is the backend. If the versions are those of a header library or a host compiler, ``tool`` includes the
    backend's other versions. ``toolkit`` is empty if the library bundles CUDA. ``own`` marks the report author's own
    cells among published ones.
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
    """A program and a tool, with all tried versions, CUDA releases and architectures.

    Parameters
    ----------
    case, rest, tool, axis : str
        As in the rows.
    grids : Mapping[str, VersionGrid]
        The grids by target.
    proofs : Mapping[tuple of str, Row]
        The cell by version, toolkit and target.
    own : Mapping[str, VersionGrid]
        The grids of own cells among published ones, by target.
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
        """Cells with a compiler's answer, by target, oldest versions first."""
        found: dict[str, list[Row]] = {}
        for row in sorted(self.proofs.values(), key=lambda row: (version_key(row.version), version_key(row.toolkit))):
            if row.letter not in SILENT:
                found.setdefault(row.target, []).append(row)
        return found

    @cached_property
    def working(self) -> tuple[str, ...]:
        """Targets that work with at least one version, in order."""
        return tuple(target for target, grid in self.grids.items() if WORKS in grid.letters)

    def differ(self, refused: str, built: str) -> bool:
        """Return whether two cells that differ only in the architecture show a refusal and a build."""
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
        """Architectures that build with at least one version, by kind: ``from sm_80``.

        The text is empty if all of them build, or if no other architecture was tried.
        """
        return {kind: self._where_of(kind) for kind in {Target.parse(target).kind for target in self.grids}}

    def _where_of(self, kind: str) -> str:
        """Return the text of `where` for one kind.

        ``from`` requires two cells that differ only in the architecture. Architectures are compared with versions that
        build.
        """
        answered = [item for item in self.answered if item.startswith(kind)]
        working = [item for item in self.working if item.startswith(kind)]
        # An architecture proves nothing if it was tried only with versions that build for no architecture.
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
        """Targets with a compiler's answer, in order."""
        return tuple(target for target, grid in self.grids.items() if set(grid.letters) - SILENT)


@dataclass(frozen=True, kw_only=True)
class Known:
    """The input of all answers.

    Parameters
    ----------
    rows : sequence of Row
        The cells. If several cells have one place, a cell with a compiler's answer wins, then the last cell.
    features : Mapping[str, Feature]
        The features by case, in order.
    runs : Mapping[str, str]
        The start of each run, by the run's name.
    hosts : tuple of str
        Versions of the machines' own host compilers, for cells without a requested one
        (`harness.answers.cells.own_of`).
    """

    rows: Sequence[Row]
    features: Mapping[str, Feature]
    runs: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()

    @cached_property
    def entries(self) -> list[Entry]:
        """Entries by program and tool, in the order of the matrix."""
        found: dict[tuple[str, ...], dict[tuple[str, str, str], Row]] = {}
        for row in self.rows:
            # A toolkit paired with the headers of another release is in the matrix, but users do not have such a
            # version.
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
        """Return the entries of a case."""
        return self._by_case.get(case, [])

    @cached_property
    def targets(self) -> list[str]:
        """Every target with a compiler's answer, in order."""
        return sorted({row.target for row in self.rows if row.letter not in SILENT}, key=target_key)

    @cached_property
    def tools(self) -> list[str]:
        """Every tool, in order. The order places tools with a header library's version next to their backend."""
        return sorted({entry.tool for entry in self.entries}, key=_tool_key)

    @cached_property
    def message_words(self) -> dict[str, frozenset[str]]:
        """Words of the compilers' refusals, by case (`harness.answers.question.words_of_messages`)."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            if row.letter in REFUSED:
                found.setdefault(row.case, set()).add(row.message)
        return {case: words_of_messages(messages) for case, messages in found.items()}

    def words_of(self, case: str) -> tuple[list[str], list[str], list[str]]:
        """Return `words_of_feature` of a case."""
        return words_of_feature(self.features[case])


def split_variant(variant: str) -> tuple[str, str, str]:
    """Split a variant into the parameters that are not libraries, the header library, and its version: ``cutlass=3.5.1,form=a``."""
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
    """Return the row of a record's values, in the order of `COLUMNS`."""
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
        # Versions with another CUDA than the bundled one are a separate series.
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
