"""The CUDA releases that cumatrix knows, and how users name them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path

from harness.errors import PartUnavailable, UsageError, did_you_mean
from harness.model import ToolkitRef
from harness.model.cell import BUNDLED, ROCM
from harness.model.condition import Version
from harness.protocol import process_output
from harness.tables import read_table
from harness.toolkits.installed import Installed
from harness.toolkits.rocm import HIP_VERSION, parse_rocm, ref_of, rocm_in

_LIBRARIES = ("libnvrtc*", "libnvvm*", "libnvJitLink*", "libcudart*", "libcudadevrt*")


@dataclass(frozen=True)
class LocalToolkit(Installed):
    """A CUDA toolkit that cumatrix did not install."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the name, size and modification time of every file that a compilation may read.

        The contents are not hashed: the files have gigabytes, and no list of hashes comes with them.
        """
        digest = hashlib.sha256(f"{self.release}\0{self.home}".encode())
        for path in sorted(self._files()):
            stat = path.stat()
            digest.update(f"\0{path}\0{stat.st_size}\0{stat.st_mtime_ns}".encode())
        return digest.hexdigest()

    def _files(self) -> Iterator[Path]:
        for folder in ("bin", "nvvm", "include"):
            yield from (path for path in (self.home / folder).rglob("*") if path.is_file())
        for pattern in _LIBRARIES:
            yield from (path for path in (self.home / "lib64").glob(pattern) if path.is_file())


@dataclass(frozen=True)
class BundledTools(Installed):
    """CUDA tools in a library's own wheel; the home is an empty folder."""

    @cached_property
    def fingerprint(self) -> str:
        """The release alone identifies the tools: cells record the library's files that they read."""
        return f"{self.release}{BUNDLED}"


def local_toolkit(home: Path) -> LocalToolkit:
    """Return the toolkit in a folder, with the release that its ptxas reports.

    Raises
    ------
    UsageError
        If the folder contains no toolkit.
    PartUnavailable
        If its ptxas does not run, or reports no release.
    """
    home = home.resolve()
    tool = home / "bin" / "ptxas"
    if not tool.is_file() or not (home / "include" / "cuda_runtime.h").is_file():
        raise UsageError(f"{home} is no CUDA toolkit: it has no bin/ptxas or no include/cuda_runtime.h")
    try:
        output = process_output.run([str(tool), "--version"], seconds=60, errors=process_output.Errors.DROPPED).output
    except (OSError, subprocess.SubprocessError) as error:
        raise PartUnavailable(f"cannot run {tool}: {error}") from None
    found = re.search(r"release (\d+\.\d+)", output)
    if not found:
        raise PartUnavailable(f"{tool} does not report its release")
    return LocalToolkit(release=found[1], home=home, packages={})


def find_local() -> dict[str, Path]:
    """Return this machine's CUDA toolkits by release; the first one found wins if two have the same release.

    The search order is ``CUDA_HOME``, ``CUDA_PATH``, the nvcc on PATH, ``/usr/local/cuda``, ``/usr/local/cuda-*``.
    """
    nvcc = shutil.which("nvcc")
    places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    places += [str(Path(nvcc).resolve().parent.parent)] if nvcc else []
    places += ["/usr/local/cuda", *map(str, sorted(Path("/usr/local").glob("cuda-*"), reverse=True))]
    found: dict[str, Path] = {}
    for place in filter(None, places):
        try:
            toolkit = local_toolkit(Path(place))
        except (UsageError, PartUnavailable):
            continue  # /usr/local/cuda-12 may be a folder of samples
        found.setdefault(toolkit.release, toolkit.home)
    return found


@dataclass(frozen=True, kw_only=True)
class Release:
    """A CUDA release and its wheels.

    Parameters
    ----------
    name : str
        ``"12.4"``.
    packages : Mapping[str, str]
        Exact versions by the full name of the wheel on PyPI.
    borrowed : Mapping[str, str]
        Wheels borrowed from another CUDA release, because the release's own wheels lack files, and that release.
    day : date
        Upload date of its first NVRTC on PyPI.
    """

    name: str
    packages: Mapping[str, str]
    borrowed: Mapping[str, str] = field(default_factory=dict)
    day: date = date.min


def _read() -> dict[str, Release]:
    table = read_table("toolkits/releases.toml")
    releases = {}
    for name in sorted(table, key=Version):
        major = name.split(".")[0]
        suffix = f"-cu{major}" if int(major) < 13 else ""
        borrowed = table[name].pop("borrowed", {})
        day = table[name].pop("date")
        releases[name] = Release(
            name=name,
            packages={f"nvidia-{wheel}{suffix}": version for wheel, version in table[name].items()},
            borrowed={f"nvidia-{wheel}{suffix}": release for wheel, release in borrowed.items()},
            day=day,
        )
    return releases


RELEASES: Mapping[str, Release] = _read()
"""Every release by name, oldest first."""


def parse_toolkits(text: str) -> list[ToolkitRef]:
    """Read ``11.8,12.4..13.0``, ``all``, or ``13.5+headers13.0`` for headers of another release.

    A major version selects its newest release (``13``), and at the end of a range all its releases (``12.4..13``).
    ``local`` selects every CUDA toolkit on this machine (`harness.toolkits.releases.find_local`), ``12.4@local`` one of
    them, and a path the toolkit in that folder. ``rocm`` and ``5.2@rocm`` select ROCm installations in the same way.
    ``12.8@bundled`` selects the tools of that release in the wheels of libraries such as Triton.

    Raises
    ------
    UsageError
        If a release is unknown, or a range is empty; a range may span unknown releases.
    """
    found: dict[ToolkitRef, None] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        release, _, headers = part.partition("+headers")
        refs = _refs(release)
        if headers:
            refs = [replace(ref, headers=_known(headers)) for ref in refs]
        found.update(dict.fromkeys(refs))
    if not found:
        raise UsageError(f"{text!r} names no CUDA release; known are {', '.join(RELEASES)}")
    return list(found)


def release_of(day: date, majors: Iterable[int], newest: str) -> str:
    """Return the newest CUDA release of some majors on a day, up to `newest`; the first one if none was out.

    Parameters
    ----------
    day : date
        The day.
    majors : iterable of int
        Major releases to select from; empty for all.
    newest : str
        The newest release to return.
    """
    wanted = {str(major) for major in majors}
    fitting = [name for name in RELEASES if not wanted or name.split(".")[0] in wanted]
    out = [name for name in fitting if RELEASES[name].day <= day and Version(name) <= Version(newest)]
    return (out or fitting)[-1 if out else 0]


def _refs(part: str) -> list[ToolkitRef]:
    if part == "rocm" or part.endswith(ROCM):
        return parse_rocm(part)
    if part == "local" or part.endswith("@local") or os.sep in part:
        return _local(part)
    if part.endswith(BUNDLED):
        name = _known(part.removesuffix(BUNDLED))
        return [ToolkitRef(release=name, headers=name, bundled=True)]
    if part == "all":
        names = list(RELEASES)
    elif ".." in part:
        low, _, high = part.partition("..")
        first, last = _number(low), _number(high)
        names = [
            name
            for name in RELEASES
            if first <= Version(name) <= last or (name in _major(high) and first <= Version(name))
        ]
        if not names:
            raise UsageError(f"no CUDA release is in {part}; known are {', '.join(RELEASES)}")
    else:
        names = [_known(part)]
    return [ToolkitRef(release=name, headers=name) for name in names]


def _local(part: str) -> list[ToolkitRef]:
    if os.sep in part:
        home = Path(part).expanduser()
        if not (home / "bin" / "ptxas").is_file() and (home / HIP_VERSION).is_file():
            return [ref_of(rocm_in(home).release, home.resolve())]
        toolkit = local_toolkit(home)
        homes = {toolkit.release: toolkit.home}
    else:
        homes = find_local()
        wanted = part.removesuffix("@local") if part != "local" else ""
        if wanted and wanted not in homes:
            raise UsageError(f"this machine has no CUDA {wanted}; it has {', '.join(homes) or 'none'}")
        homes = {wanted: homes[wanted]} if wanted else homes
    if not homes:
        raise UsageError("this machine has no CUDA toolkit: set CUDA_HOME, or name its folder")
    return [ToolkitRef(release=name, headers=name, home=str(home), local=True) for name, home in homes.items()]


def _known(name: str) -> str:
    if name in RELEASES:
        return name
    if _major(name):
        return _major(name)[-1]
    raise UsageError(f"unknown CUDA release {name!r}{did_you_mean(name, RELEASES)}")


def _major(text: str) -> list[str]:
    """Return the releases of a major version, oldest first; empty if the text is not a major version."""
    return [name for name in RELEASES if name.split(".")[0] == text]


def _number(text: str) -> Version:
    try:
        return Version(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a CUDA release such as 12.4") from None


@dataclass(frozen=True, kw_only=True)
class Component:
    """A library or an interface of CUDA that has a wheel of its own.

    Parameters
    ----------
    name : str
        What users call it: ``cufft``.
    headers : tuple of str
        Headers, or patterns of headers, that programs include to use the part; empty for a tool.
    wheels : Mapping[str, tuple of str]
        Full name of the wheel on PyPI and its exact version, by CUDA release; some releases have none.
    """

    name: str
    headers: tuple[str, ...]
    wheels: Mapping[str, tuple[str, str]]


PARTS_OF_TORCH = ("cublas", "cusparse", "cusolver", "curand", "cufft")
"""The parts whose headers PyTorch's CUDA headers include."""


def _read_parts() -> dict[str, Component]:
    table = read_table("toolkits/parts.toml")["part"]
    versions = read_table("toolkits/part_versions.toml")
    releases = [name for name in versions if "." in name]
    parts = {}
    for name, item in table.items():
        wheels = {}
        for release in releases:
            major = release.split(".")[0]
            apart = item.get("apart", False)
            version = versions[major if apart else release].get(name)
            if version:
                suffix = f"-cu{major}" if apart or int(major) < 13 else ""
                wheels[release] = (f"nvidia-{item['wheel']}{suffix}", version)
        parts[name] = Component(name=name, headers=tuple(item["headers"]), wheels=wheels)
    return parts


PARTS: Mapping[str, Component] = _read_parts()
"""Every part by name."""


def parse_parts(text: str, releases: Iterable[str]) -> list[str]:
    """Read ``cufft,curand``, or ``all`` for the parts of all the releases.

    Raises
    ------
    UsageError
        If a part is unknown.
    PartUnavailable
        If PyPI has no wheel of a part for one of the releases.
    """
    names = list(dict.fromkeys(filter(None, (item.strip() for item in text.split(",")))))
    if not names:
        raise UsageError(f"--with names no part; known are {', '.join(PARTS)}, and all")
    if names == ["all"]:
        return [name for name, part in PARTS.items() if all(release in part.wheels for release in releases)]
    for name in names:
        if name not in PARTS:
            raise UsageError(f"unknown part {name!r} of CUDA{did_you_mean(name, [*PARTS, 'all'])}")
        for release in releases:
            if release not in PARTS[name].wheels:
                raise PartUnavailable(
                    f"{name} is not on PyPI for CUDA {release}; it is for {', '.join(PARTS[name].wheels)}"
                )
    return names


def wheels_of(parts: Iterable[str], release: str) -> dict[str, str]:
    """Return the exact versions of the parts' wheels by full name."""
    return dict(PARTS[name].wheels[release] for name in parts)


def parts_among(packages: Mapping[str, str], release: str) -> list[str]:
    """Return the parts whose wheels are among a toolkit's wheels."""
    return [name for name, part in PARTS.items() if part.wheels.get(release, ("",))[0] in packages]
