"""Downloads of a requirement's wheel from the user's index, verified by hash; nothing is installed or run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag, sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from harness.diagnostics import one_line
from harness.environments.index import File, Index
from harness.errors import PartUnavailable
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.toolkits.download import index_addresses, index_called, index_settings
from harness.web.address import Address, AddressError, public, read_address
from harness.wheels.sources import hash_of

_LARGEST = 16 << 30
_SECONDS = 3600.0


@dataclass(frozen=True)
class Chosen:
    """A wheel on the index.

    Parameters
    ----------
    version : Version
        Its release.
    file : File
        The file.
    """

    version: Version
    file: File


def requirement_of(text: str) -> Requirement | None:
    """Parse a package requirement such as ``bitsandbytes==0.50.2``; return None for any other text."""
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    return None if found.url or found.marker else found


def releases(requirement: Requirement, index: Index, tag: str = "") -> list[Chosen]:
    """Return the wheel of each release that satisfies a requirement, oldest first.

    Wheels for this machine are preferred to wheels for another Linux.

    Parameters
    ----------
    requirement : Requirement
        The requirement; extras are ignored.
    index : Index
        The user's index.
    tag : str
        Required part of the file name: ``aarch64``, ``cp312``.

    Raises
    ------
    PartUnavailable
        If the index has no such wheel.
    """
    ranks = {each: rank for rank, each in enumerate(sys_tags())}
    files = index.files(canonicalize_name(requirement.name))
    wheels = list(_wheels(files, tag))
    exact = any(each.operator in ("==", "===") for each in requirement.specifier)
    allowed = [
        (version, tags, file)
        for version, tags, file in wheels
        if requirement.specifier.contains(version, prereleases=True) and (exact or not file.yanked)
    ]
    wanted = [each for each in allowed if exact or not each[0].is_prerelease] or allowed
    if not wanted:
        raise PartUnavailable(_none(requirement, files, wheels, tag))
    found: dict[Version, tuple[int, list[int], File]] = {}
    for version, tags, file in wanted:
        place = (_rank(tags, ranks), _descending(file.name), file)
        found[version] = min(found.get(version, place), place, key=lambda each: each[:2])
    chosen = [Chosen(version, file) for version, (rank, _, file) in sorted(found.items()) if rank < _FOREIGN]
    if not chosen or chosen[-1].version != max(found):
        newest = max(found)
        name = one_line(found[newest][2].name)
        raise PartUnavailable(f"{requirement.name} {newest} has no wheel for Linux: {name} is not read")
    return chosen


def choose(requirement: Requirement, index: Index, tag: str = "") -> Chosen:
    """Return the wheel of the newest release that satisfies a requirement; raise as `releases`."""
    return releases(requirement, index, tag)[-1]


_OTHER, _FOREIGN = 1_000_000, 3_000_000


def _rank(tags: frozenset[Tag], ranks: dict[Tag, int]) -> int:
    """Rank a wheel by its tags.

    Wheels for this Python rank first, then those for any Linux on this processor, other processors, and other systems.
    """
    mine = min((ranks[tag] for tag in tags if tag in ranks), default=None)
    if mine is not None:
        return mine
    platforms = {tag.platform for tag in tags}
    if any("linux" in each and each.endswith("x86_64") for each in platforms) or "any" in platforms:
        return _OTHER
    return 2 * _OTHER if any("linux" in each for each in platforms) else _FOREIGN


def _descending(name: str) -> list[int]:
    return [-ord(letter) for letter in name]


def _wheels(files: Sequence[File], tag: str) -> Iterator[tuple[Version, frozenset[Tag], File]]:
    for file in files:
        try:
            _, version, _, tags = parse_wheel_filename(file.name)
        except InvalidWheelFilename:
            continue
        if tag in file.name:
            yield version, tags, file


def _none(requirement: Requirement, files: Sequence[File], wheels: Sequence[object], tag: str) -> str:
    if not files:
        return f"{index_called()} has no {requirement.name}"
    if not wheels:
        return f"{requirement.name} has no wheel{f' with {tag!r} in its name' if tag else ''} in {index_called()}"
    versions = sorted({version for version, _, _ in _wheels(files, tag)})
    return f"{index_called()} has no wheel of {requirement}: the newest is {versions[-1]}"


@contextmanager
def fetched(chosen: Chosen, tell: Callable[[str], None]) -> Iterator[Path]:
    """Download a wheel into a temporary folder and verify its hash.

    Parameters
    ----------
    chosen : Chosen
        The wheel.
    tell : callable
        Receives a sentence about the download.

    Raises
    ------
    PartUnavailable
        If the wheel cannot be downloaded, or its hash differs from the index's.
    """
    file = chosen.file
    if not file.address:
        raise PartUnavailable(f"{index_called()} provides no address of {one_line(file.name)}")
    with HeldFolder(temporary_folder(), TEMPORARY) as folder:
        path = folder / Path(file.name).name
        place = _local(file.address)
        if place:
            try:
                shutil.copyfile(place, path)
            except OSError as error:
                raise PartUnavailable(f"{place} cannot be read: {error.strerror}") from None
        else:
            size = f" ({file.size / 1e6:.0f} MB)" if file.size else ""
            tell(f"downloading {one_line(file.name)}{size} from {urlsplit(file.address).hostname or 'the index'}")
            _download(file, path)
        found = hash_of(path)
        if file.sha256 and found != file.sha256:
            raise PartUnavailable(
                f"{one_line(file.name)} has the SHA-256 {found}, and the index says {file.sha256}: find out who changed it"
            )
        yield path


def _local(address: str) -> Path | None:
    if "://" not in address:
        return Path(address)
    parts = urlsplit(address)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _download(file: File, path: Path) -> None:
    from harness.web.download import DownloadError, download  # imports ssl and more, which few commands need

    try:
        address = _with_rights(read_address(file.address))
        with path.open("wb") as opened:
            response = download(
                address, opened, largest=file.size or _LARGEST, seconds=_SECONDS,
                certificates=index_settings()[0].get("SSL_CERT_FILE"),
            )  # fmt: skip
    except (AddressError, DownloadError) as error:
        raise PartUnavailable(f"{public(file.address)} is not downloaded: {error}") from None
    if response.status != 200:
        raise PartUnavailable(f"{public(file.address)} is not downloaded: {response.reason}")


def _with_rights(address: Address) -> Address:
    """Return the address with the credentials that the user's index has for the same origin."""
    for index in index_addresses()[0]:
        try:
            known = read_address(index)
        except AddressError:
            continue
        if known.origin == address.origin and known.authorization and not address.authorization:
            return Address(address.url, known.authorization)
    return address
