"""The answer table of one architecture (features by tools), and the vocabulary of questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from harness.answers import vocabulary
from harness.answers.cells import UNLINKED, Entry, Feature, Known, Row, hosted, words_of_feature
from harness.answers.question import Vocabulary, words_of
from harness.answers.verdict import WORKS, Support, VersionGrid, verdict_of
from harness.answers.vocabulary import group_label
from harness.backends import BACKENDS, library_of
from harness.libraries import LIBRARIES, companions_of
from harness.libraries import label_of as library_label
from harness.matrix.axes import version_key
from harness.matrix.ranges import spell_tried
from harness.model import KNOWN_TARGETS, Target
from harness.model.condition import HOST_VERSIONS
from harness.model.gpus import ARCHITECTURES
from harness.model.target import NVIDIA, VENDORS
from harness.tables import read_table
from harness.toolkits import RELEASES
from harness.toolkits.header_libraries import LIBRARIES as HEADERS
from harness.toolkits.header_libraries import known_versions


@dataclass(frozen=True, kw_only=True)
class Field:
    """The finding for a program and a tool on one architecture.

    Parameters
    ----------
    entry : Entry
        The program and the tool.
    target : str
        The architecture.
    verdict : Support
        The verdict in a few words.
    where : str
        Architectures that work, if not all do: ``from sm_80``, ``on sm_90a; 0 of 9 others``, ``nowhere``.
    own : Support or None
        The verdict on own cells alone, in addition to published ones.
    """

    entry: Entry
    target: str
    verdict: Support
    where: str
    own: Support | None = None

    @property
    def grid(self) -> VersionGrid:
        """Versions, and the outcome of each."""
        return self.entry.grids[self.target]

    @property
    def visible(self) -> tuple[object, ...]:
        """The visible part. Programs with the same visible part for all tools share a row."""
        return (self.entry.tool, self.entry.axis, self.target, self.verdict, self.where, self.grid, self.own)


@dataclass(frozen=True, kw_only=True)
class FeatureRow:
    """A feature, and its variants with the same findings.

    Parameters
    ----------
    case : str
        The case.
    label : str
        The difference between the variants and the case's other rows: ``half, signed char``. Empty if the case has no
        other row.
    variants : tuple of str
        Their parameters.
    fields : tuple of Field
        One field for each tool and architecture.
    weight : int
        The weight of the row's words in the question (`harness.answers.question.score`).
    """

    case: str
    label: str
    variants: tuple[str, ...]
    fields: tuple[Field, ...]
    weight: int = 0

    @property
    def words(self) -> list[str]:
        """Words of its parameters."""
        return list(dict.fromkeys(word for variant in self.variants for word in words_of(variant)))


def lines_of(known: Known, targets: Sequence[str], case: str = "") -> list[FeatureRow]:
    """Return the rows of every feature, or of one, on these architectures. Untried features have no row."""
    found: dict[str, dict[str, list[Field]]] = {}
    for entry in known.entries_of(case) if case else known.entries:
        fields = [field_of(entry, target) for target in targets if target in entry.grids]
        if fields:
            found.setdefault(entry.case, {}).setdefault(entry.rest, []).extend(fields)
    lines = []
    for name, programs in found.items():
        groups: dict[tuple[object, ...], list[str]] = {}
        for rest, fields in programs.items():
            groups.setdefault(tuple(field.visible for field in fields), []).append(rest)
        for variants in groups.values():
            label = group_label(name, variants, list(programs)) if len(groups) > 1 else ""
            lines.append(
                FeatureRow(case=name, label=label, variants=tuple(variants), fields=tuple(programs[variants[0]]))
            )
    return lines


def field_of(entry: Entry, target: str) -> Field:
    """Return the finding for an entry on an architecture."""
    grid = entry.grids[target]
    library = entry.axis or library_of(entry.backend)
    verdict = _verdict(grid, library)
    if any(claim.axis == "library" for claim in verdict.claims) and (others := companions_of(library)):
        # Releases of this library do not pin the release of its companions: each environment has another one.
        also = f"each with its own {' and '.join(map(library_label, others))}"
        verdict = replace(verdict, note="; ".join(filter(None, (verdict.note, also))))
    if note := _unlinked_with(entry.unlinked.get(target, ())):
        verdict = replace(verdict, note="; ".join(filter(None, (verdict.note, note))))
    return Field(
        entry=entry,
        target=target,
        verdict=verdict,
        where=entry.where[Target.parse(target).kind],
        own=_verdict(entry.own[target], library) if target in entry.own else None,
    )


def unlinked(rows: Iterable[Row]) -> str:
    """Return ``not linked with CUDA 11.7, 11.8``: the releases with unlinked built cells, or an empty string without any."""
    return _unlinked_with({row.toolkit for row in rows if row.letter == WORKS and row.message.startswith(UNLINKED)})


def _unlinked_with(toolkits: Collection[str]) -> str:
    if not toolkits:
        return ""
    return f"{UNLINKED} with CUDA {spell_tried(toolkits, known_releases()['cuda'], version_key)}"


@cache
def _verdict(grid: VersionGrid, library: str) -> Support:
    known = {**known_releases(), library: releases_like(library, grid.libraries)}
    return verdict_of(grid, known, library)


@cache
def known_releases() -> Mapping[str, Sequence[str]]:
    """Return releases by name: of CUDA, libraries and header libraries, oldest first."""
    table = read_table("answers/releases.toml")
    headers = {name: tuple(known_versions(library)) for name, library in HEADERS.items()}
    wheels = {
        name: [release.version for release in library.releases if release.wheel] for name, library in LIBRARIES.items()
    }
    listed = {name: sorted((*found, *wheels.get(name, ())), key=version_key) for name, found in table.items()}
    return {**{name: tuple(found) for name, found in listed.items()}, **headers, "cuda": tuple(RELEASES)}


def releases_like(name: str, tried: Iterable[str]) -> Sequence[str]:
    """Return the known releases of a name, in the form of the tried ones.

    clang has major versions as a host compiler, and full versions as a backend.
    """
    known, dotted = known_releases().get(name, ()), any("." in version for version in tried)
    return [item for item in known if ("." in item) == dotted] if name in HOST_VERSIONS else known


def make_vocabulary(
    features: Iterable[Feature],
    variants: Iterable[str],
    versions: Mapping[str, Iterable[str]],
    targets: Iterable[str],
    in_messages: Iterable[str] = (),
) -> Vocabulary:
    """Return the vocabulary of questions.

    Parameters
    ----------
    features : iterable of Feature
        The cases.
    variants : iterable of str
        Parameters of the cases' variants.
    versions : Mapping[str, iterable of str]
        Tried versions by name of the library. ``cuda`` has the CUDA releases.
    targets : iterable of str
        Tried targets.
    in_messages : iterable of str
        Words of compiler messages.
    """
    found: dict[str, set[str]] = {name: set(known) for name, known in known_releases().items()}
    for name, tried in versions.items():
        found.setdefault(name, set()).update(tried)
    for tool, backends in vocabulary.tools().items():
        library = library_of(backends[0])
        if library:
            found[tool] = found.get(library, set())
    words: dict[str, None] = {}
    named: dict[str, None] = {}
    for feature in features:
        groups = words_of_feature(feature)
        named.update(dict.fromkeys(groups[0]))
        for group in groups:
            words.update(dict.fromkeys(group))
    for rest in variants:
        words.update(dict.fromkeys(word for word in words_of(rest) if word not in vocabulary.IGNORED))
    return Vocabulary(
        architectures=ARCHITECTURES,
        aliases=vocabulary.aliases(),
        tools=vocabulary.tools(),
        libraries={name: info.library for name, info in BACKENDS.items() if info.library and not info.machine},
        terms=vocabulary.TERMS,
        python=[info.name for info in BACKENDS.values() if not {"cuda", "hip", "ptx"}.intersection(info.languages)],
        builders={
            vendor.real: [info.name for info in BACKENDS.values() if name in info.vendors]
            for name, vendor in VENDORS.items()
            if vendor is not NVIDIA
        },
        hosts=HOST_VERSIONS,
        hosted=hosted(),
        versions={name: sorted(filter(None, known), key=version_key) for name, known in sorted(found.items())},
        targets=list({**{str(target): None for target in KNOWN_TARGETS}, **dict.fromkeys(targets)}),
        specific=[info.name for info in BACKENDS.values() if info.specific_from],
        ignored=sorted(vocabulary.IGNORED),
        synonyms=vocabulary.SYNONYMS,
        rivals=vocabulary.RIVALS,
        words=sorted(words),
        message_words=sorted(frozenset(in_messages) - vocabulary.IGNORED - words.keys()),
        parts=vocabulary.PARTS,
        named=sorted(named),
        phrases=vocabulary.PHRASES,
    )
