"""Packages to install for a reproduction: wheels by exact version, each with its hashes, and their destinations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.backends import BACKENDS
from harness.errors import UsageError
from harness.libraries import LIBRARIES
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.repro.subject import CUDA, HEADERS, ReproTarget
from harness.toolkits import RELEASES
from harness.toolkits.download import lock, pinned


@dataclass(frozen=True)
class Wheels:
    """One file of requirements.

    Parameters
    ----------
    file : str
        Its name.
    folder : str
        The folder that they are unpacked into (``--target``); empty for the virtual environment.
    text : str
        What it holds.
    """

    file: str
    folder: str
    text: str


def wheels_of(subject: ReproTarget) -> list[Wheels]:
    """The library under test goes into the virtual environment; all of CUDA's wheels go elsewhere, where no library looks for them.

    Without a library, the toolkit goes into the virtual environment.

    Raises
    ------
    UsageError
        When the record names no versions.
    PartUnavailable
        When an index is needed for hashes, and does not answer.
    """
    groups = []
    info, toolkit = BACKENDS[subject.backend], subject.cell.toolchain.toolkit
    if info.library:
        groups.append(Wheels("requirements.txt", "", _resolved(subject)))
    if not toolkit.local:
        file, folder = ("requirements-cuda.txt", f"{CUDA}-wheels") if groups else ("requirements.txt", "")
        groups.append(Wheels(file, folder, _pinned(f"CUDA {toolkit.release}", _toolkit(subject, "wheels"))))
    if toolkit.headers != toolkit.release:
        text = _pinned(f"CUDA {toolkit.headers}", _toolkit(subject, "headers_wheels"))
        groups.append(Wheels("requirements-headers.txt", f"{HEADERS}-wheels", text))
    for name, version in subject.cell.variant.libraries.items():
        distribution, number = subject.cell.case.libraries[name].wheel(version)
        wheel = {distribution: number}
        groups.append(Wheels(f"requirements-{name}.txt", f"{name}-wheels", _pinned(f"{name} {version}", wheel)))
    return groups


def _toolkit(subject: ReproTarget, key: str) -> dict[str, str]:
    """Wheels of a toolkit by the record, which knows parts such as cuFFT too; by cumatrix's own table where it is silent."""
    toolkit = subject.cell.toolchain.toolkit
    release = toolkit.release if key == "wheels" else toolkit.headers
    found = subject.observed.get(key)
    if not isinstance(found, Mapping) or not found:
        if release not in RELEASES:
            raise UsageError(f"the record does not name the wheels of CUDA {release}")
        found = RELEASES[release].packages
    return {str(name): str(version) for name, version in found.items()}


def _pinned(what: str, wanted: Mapping[str, str]) -> str:
    """Lines with known hashes; an index provides those of other versions."""
    known, unknown = [], {}
    for name, version in _checked(wanted).items():
        hashes = pinned(name, version)
        if hashes:
            known.append(_line(name, version, sorted(hashes)))
        else:
            unknown[name] = version
    if unknown:
        known.append(_lock(what, [f"{name}=={version}" for name, version in unknown.items()], deps=False))
    return "".join(known)


def _resolved(subject: ReproTarget) -> str:
    """The library, the packages of the record, and their dependencies: those are not in the record, and are resolved now."""
    library = BACKENDS[subject.backend].library
    table = LIBRARIES[library]
    requested = subject.record["toolchain"]["requested"]["packages"]
    told = {**{name.replace("_", "-"): version for name, version in subject.observed.items()}, **requested}
    names = [*table.distributions, *table.beside, *LIBRARIES["numpy"].distributions]
    names += LIBRARIES["nvidia-cuda-runtime"].distributions if subject.setup.wheels else ()
    # The first distribution that the environment had counts: conditions call all of them by one name.
    own = next((name for name in table.distributions if name in requested), None)
    wanted = {name: told[name] for name in names if isinstance(told.get(name), str) and told[name]}
    wanted = {name: version for name, version in wanted.items() if name not in table.distributions or name == own}
    if own is None:
        raise UsageError(f"the record of {subject.record['cell']} does not name the version of its {library}")
    lines = [f"{name}=={version}" for name, version in _checked(wanted).items()]
    # What a release needs and does not ask for itself: ninja and setuptools for PyTorch's extensions.
    more = {re.split(r"[=<>!~]", item)[0] for release in table.releases for item in release.beside}
    lines += sorted(more - set(wanted) - set(table.beside))
    return _lock(f"{own} {wanted[own]}", lines, deps=True, python=python_of(subject))


def python_of(subject: ReproTarget) -> str:
    """The Python that the record tells of: ``"3.11"``."""
    told = str(subject.observed.get("python") or subject.record["toolchain"]["requested"]["packages"].get("python", ""))
    found = re.match(r"3\.\d{1,2}", told)
    return found[0] if found else "3.11"


def _lock(what: str, lines: list[str], *, deps: bool, python: str = "") -> str:
    with HeldFolder(temporary_folder(), TEMPORARY) as folder:
        return lock(what, lines, folder, deps=deps, python=python)


def _checked(wanted: Mapping[str, str]) -> dict[str, str]:
    """The same; a record may come from a stranger, and an installer reads these lines."""
    for name, version in wanted.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or not _is_version(version):
            raise UsageError(f"the record names {name!r} {version!r}, which is no version of a wheel")
    return {canonicalize_name(name): version for name, version in wanted.items()}


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return text.isprintable() and text == text.strip()


def _line(name: str, version: str, hashes: list[str]) -> str:
    return " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{each}" for each in hashes)]) + "\n"
