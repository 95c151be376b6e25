"""Device code of published wheels: packages' newest releases in a compact file, and the GPUs that run them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path, PurePath
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename

from harness.environments.index import Index
from harness.errors import CumatrixError, PartUnavailable, UsageError
from harness.model import Target
from harness.model.compatibility import Release, Way, best, newer
from harness.model.gpus import Gpu
from harness.toolkits.download import index_called
from harness.wheels.coverage import Coverage, coverage
from harness.wheels.entries import LINKED, RELOCATABLE, Entry, Kind, Library, Unit
from harness.wheels.fetch import Chosen, fetched, releases
from harness.wheels.sources import read_source

WHEELS = "wheels.json"
"""File name in the folder of a published matrix."""

SCHEMA = 1
_LARGEST = 64 << 20
_OTHER = "other"
_SECTIONS = ("", LINKED, RELOCATABLE, _OTHER)


@dataclass(frozen=True, kw_only=True)
class WheelRelease:
    """The device code of one release.

    Parameters
    ----------
    version : str
        The release.
    file, sha256 : str
        Its wheel for Linux on x86-64, and the wheel's hash.
    size : int
        Size of the wheel in bytes.
    uploaded : str
        Upload date; empty if the index does not provide it.
    libraries : tuple of Library
        Files with device code.
    """

    version: str
    file: str
    sha256: str
    size: int
    uploaded: str
    libraries: tuple[Library, ...]


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package with its newest releases.

    Parameters
    ----------
    name : str
        Name on the index: ``onnxruntime-gpu``.
    label : str
        What users call it: ``onnxruntime``.
    releases : tuple of WheelRelease
        Oldest first; empty if the index has no wheel for Linux.
    source : str
        The newest release with a source distribution and no wheel for Linux; empty if there is none.
    """

    name: str
    label: str
    releases: tuple[WheelRelease, ...] = ()
    source: str = ""

    @property
    def newest(self) -> WheelRelease | None:
        """The newest release; None if no release has a wheel."""
        return self.releases[-1] if self.releases else None


@dataclass(frozen=True, kw_only=True)
class Support:
    """A release's coverage of one GPU.

    Parameters
    ----------
    gpu : Gpu
        The GPU.
    relations : tuple of (str, Coverage)
        Each library with its coverage.
    """

    gpu: Gpu
    relations: tuple[tuple[str, Coverage], ...]

    @property
    def way(self) -> Way:
        """The way its libraries run: native only if all libraries that run are native."""
        ways = [each.way for _, each in self.relations]
        return Way.JIT if Way.JIT in ways else best(ways)

    @property
    def complete(self) -> bool:
        """Return whether all fatbins of all libraries run."""
        return all(each.complete for _, each in self.relations)

    @property
    def running(self) -> int:
        """Number of libraries that run fully or partly."""
        return sum(each.running > 0 for _, each in self.relations)

    @property
    def runs(self) -> bool:
        """Return whether at least one library runs."""
        return self.way in (Way.NATIVE, Way.JIT)

    @property
    def release(self) -> Release | None:
        """The first CUDA release whose driver compiles all PTX that needs compilation.

        None if no PTX needs compilation, or if a version is unknown.
        """
        found = [each.release for _, each in self.relations if each.way is Way.JIT]
        if not found or None in found:
            return None
        newest = found[0]
        for each in found:
            newest = newer(newest, each) if newest and each else newest
        return newest

    @property
    def lacking(self) -> dict[str, list[str]]:
        """Libraries by the reason why they, or some of their fatbins, do not run."""
        found: dict[str, list[str]] = {}
        for name, each in self.relations:
            if each.why:
                part = f"{each.total - each.running:,} of {each.total:,} fatbins: " if each.running else ""
                found.setdefault(f"{part}{each.why}", []).append(PurePath(name).name)
        return found


def support(release: WheelRelease, gpus: Sequence[Gpu]) -> list[Support]:
    """Return the support of a release for each GPU."""
    by_library = [(library.name, coverage(library, gpus)) for library in release.libraries]
    return [
        Support(gpu=gpu, relations=tuple((name, relations[place]) for name, relations in by_library))
        for place, gpu in enumerate(gpus)
    ]


def since(package: Package, gpu: Gpu) -> WheelRelease | None:
    """Return the first release of the newest unbroken run of releases with code for a GPU.

    Return None if the newest release has none.
    """
    first = None
    for release in reversed(package.releases):
        (found,) = support(release, [gpu])
        if not found.runs:
            break
        first = release
    return first


def update(
    packages: Mapping[str, Sequence[str]],
    most: int,
    known: Mapping[str, Package],
    index: Index,
    tell: Callable[[str], None],
    refuse: Callable[[str], None],
) -> Iterator[Package]:
    """Read the newest releases of packages, and reuse those in `known` with the same file and hash.

    Parameters
    ----------
    packages : Mapping
        Names on the index by label.
    most : int
        Maximum number of releases of each package.
    known : Mapping
        Earlier results by name on the index.
    index : Index
        The user's index.
    tell : callable
        Receives a sentence about each new release.
    refuse : callable
        Receives the reason for each package or release that cannot be read.

    Yields
    ------
    Package
        Each package; the known one if the index does not respond.
    """
    for label, names in packages.items():
        for name in names:
            before = known.get(name, Package(name=name, label=label))
            try:
                yield _updated(replace(before, label=label), most, index, tell, refuse)
            except PartUnavailable as error:
                refuse(f"{name}: {error}")
                yield replace(before, label=label)


def _updated(
    before: Package, most: int, index: Index, tell: Callable[[str], None], refuse: Callable[[str], None]
) -> Package:
    files = index.files(canonicalize_name(before.name))
    if not files:
        raise PartUnavailable(f"{index_called()} has no {before.name}")
    sources = sorted(version for file in files if not file.yanked and (version := _source(file.name)))
    try:
        chosen = [each for each in releases(Requirement(before.name), index) if not each.version.local][-most:]
    except PartUnavailable:
        if not sources:
            raise
        chosen = []
    source = str(sources[-1]) if sources and (not chosen or chosen[-1].version < sources[-1]) else ""
    there = {each.file: each for each in before.releases}
    found = []
    for each in chosen:
        known = there.get(each.file.name)
        same = known is not None and each.file.sha256 in ("", known.sha256)
        if release := known if same else _read(before.name, each, tell, refuse):
            found.append(release)
    return replace(before, releases=tuple(found), source=source)


def _source(name: str) -> Any:
    try:
        version = parse_sdist_filename(name)[1]
    except InvalidSdistFilename:
        return None
    return None if version.is_prerelease else version


def _read(name: str, chosen: Chosen, tell: Callable[[str], None], refuse: Callable[[str], None]) -> WheelRelease | None:
    tell(f"new on the index: {name} {chosen.version}")
    try:
        with fetched(chosen, lambda _: None) as path:
            found = read_source(path, chosen.file.name)
            size = path.stat().st_size
    except CumatrixError as error:
        refuse(f"{name} {chosen.version}: {error}")
        return None
    uploaded = chosen.file.date.date().isoformat() if chosen.file.date else ""
    return WheelRelease(
        version=str(chosen.version), file=chosen.file.name, sha256=found.sha256, size=size, uploaded=uploaded,
        libraries=found.libraries,
    )  # fmt: skip


def packed(packages: Sequence[Package]) -> bytes:
    """Serialize packages as ``wheels.json``, one line per package.

    Fatbins with the same code, and code with the same target, are stored once.
    """
    lines = [json.dumps(_packed(each), ensure_ascii=True, separators=(",", ":")) for each in packages]
    return "".join((f'{{"schema":{SCHEMA},"packages":[\n', ",\n".join(lines), "\n]}\n")).encode()


def _packed(package: Package) -> dict[str, Any]:
    codes: dict[str, int] = {}
    kinds: dict[tuple[Any, ...], int] = {}

    def kind_of(unit: Unit, rank: str) -> int:
        names = sorted({_code(entry) for entry in unit.entries})
        linked = None if unit.linked is None else int(unit.linked)
        key = (_SECTIONS.index(_section(unit)), linked, rank, *(codes.setdefault(name, len(codes)) for name in names))
        return kinds.setdefault(key, len(kinds))

    of_releases = []
    for release in package.releases:
        libraries = []
        for library in release.libraries:
            # For a member of an archive, only the fatbins that are loaded decide.
            own = {unit.member: _section(unit) for unit in library.loaded if unit.member}
            counts = Counter(kind_of(unit, own.get(unit.member, "")) for unit in library.with_code)
            libraries.append([library.name, library.size, [each for pair in counts.items() for each in pair]])
        of_releases.append([release.version, release.file, release.sha256, release.size, release.uploaded, libraries])
    return {
        "name": package.name, "label": package.label, "source": package.source,
        "codes": list(codes), "kinds": [list(key) for key in kinds], "releases": of_releases,
    }  # fmt: skip


def _section(unit: Unit) -> str:
    return unit.section if unit.section in _SECTIONS else _OTHER


def _code(entry: Entry) -> str:
    isa = ".".join(map(str, entry.isa)) if entry.kind is Kind.PTX else ""
    return " ".join(filter(None, (entry.kind.value, str(entry.target), isa)))


def read_wheels(path: Path) -> list[Package]:
    """Read the content that `packed` wrote.

    Raises
    ------
    UsageError
        If the file is not a ``wheels.json``.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} has more than {_LARGEST >> 20} MiB, and is not read")
        value = json.loads(path.read_bytes())
        if value["schema"] > SCHEMA:
            raise UsageError(f"{path}: made by a newer cumatrix: update cumatrix")
        return [_unpacked(each) for each in value["packages"]]
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        why = (str(error).splitlines() or ["damaged"])[0]
        raise UsageError(f"{path}: this is no file of published wheels: {why}") from None


def _unpacked(value: Mapping[str, Any]) -> Package:
    entries = [_entry(text) for text in value["codes"]]
    units = [
        Unit(tuple(entries[code] for code in codes), _SECTIONS[section], rank, 0, None if linked is None else bool(linked))
        for section, linked, rank, *codes in value["kinds"]
    ]  # fmt: skip
    found = []
    for version, file, sha256, size, uploaded, libraries in value["releases"]:
        date.fromisoformat(uploaded or "2000-01-01")
        of = []
        for name, length, counts in libraries:
            pairs = list(zip(counts[::2], counts[1::2], strict=True))
            if sum(count for _, count in pairs) > 1_000_000:
                raise ValueError(f"{name} has more fatbins than a file of published wheels")
            of.append(
                Library(str(name), int(length), tuple(units[kind] for kind, count in pairs for _ in range(count)))
            )
        found.append(
            WheelRelease(version=str(version), file=str(file), sha256=str(sha256), size=int(size), uploaded=str(uploaded), libraries=tuple(of))
        )  # fmt: skip
    return Package(
        name=str(value["name"]), label=str(value["label"]), source=str(value["source"]), releases=tuple(found)
    )


def _entry(text: str) -> Entry:
    kind, target, *isa = text.split(" ")
    major, minor = map(int, isa[0].split(".")) if isa else (0, 0)
    return Entry(Kind(kind), Target.parse(target), (major, minor), 0, 0)
