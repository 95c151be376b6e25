"""The ROCm installations of this machine: AMD's packages below ``/opt/rocm``, or Debian's below ``/usr``."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from harness.errors import UsageError
from harness.model import ToolkitRef
from harness.toolkits.installed import Installed

DEFAULT: Final = "5.2"
"""Debian 12's release, for cells on a machine without ROCm."""

PACKAGES: Final = "libamdhip64-dev libhiprtc-builtins5 rocm-device-libs clang-15 lld-15"
"""The packages of Debian 12 that contain it."""

HIP_VERSION: Final = "include/hip/hip_version.h"
"""HIP's version header, relative to a ROCm's folder."""

# The files that compilers read: HIP's headers and libraries, Comgr, and AMD's device libraries.
_FILES = (
    "include/hip/**/*",
    *(f"{lib}/lib{name}.so*" for lib in ("lib", "lib/*") for name in ("amdhip64", "hiprtc*", "amd_comgr")),
    *(f"{lib}amdgcn/bitcode/*.bc" for lib in ("", "lib/*/", "lib/llvm*/lib/clang/*/lib/", "lib/llvm*/lib/clang/*/")),
)


@dataclass(frozen=True)
class Rocm(Installed):
    """A ROCm that cumatrix did not install."""

    @property
    def what(self) -> str:
        """``ROCm 5.2``."""
        return f"ROCm {self.release}"

    @property
    def include(self) -> list[Path]:
        """No directories: HIP's compilers find its headers by the installation's path."""
        return []

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the name, size and modification time of every file that a compilation may read."""
        digest = hashlib.sha256(f"rocm\0{self.release}\0{self.home}".encode())
        for path in sorted(set(self._files())):
            stat = path.stat()
            digest.update(f"\0{path}\0{stat.st_size}\0{stat.st_mtime_ns}".encode())
        return digest.hexdigest()

    def _files(self) -> Iterator[Path]:
        for pattern in _FILES:
            yield from (path for path in self.home.glob(pattern) if path.is_file())


def rocm_in(home: Path) -> Rocm:
    """Return the ROCm in a folder, with the release that HIP's header defines.

    Raises
    ------
    UsageError
        If the folder contains no ROCm.
    """
    home = home.resolve()
    try:
        text = (home / HIP_VERSION).read_text("utf-8", "replace")
    except OSError:
        raise UsageError(f"{home} is no ROCm: it has no {HIP_VERSION}") from None
    numbers = [re.search(rf"#define HIP_VERSION_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
    release = ".".join(number[1] for number in numbers if number)
    if "." not in release:
        raise UsageError(f"{home} is no ROCm: {HIP_VERSION} does not define its version")
    return Rocm(release=release, home=home, packages={})


def find_rocm() -> dict[str, Path]:
    """Return this machine's ROCm installations by release; the first one found wins if two have the same release.

    The search order is ``ROCM_PATH``, ``/opt/rocm``, ``/opt/rocm-*`` and ``/usr``.
    """
    places = [os.environ.get("ROCM_PATH"), "/opt/rocm"]
    places += [*map(str, sorted(Path("/opt").glob("rocm-*"), reverse=True)), "/usr"]
    found: dict[str, Path] = {}
    for place in filter(None, places):
        try:
            rocm = rocm_in(Path(place))
        except UsageError:
            continue
        found.setdefault(rocm.release, rocm.home)
    return found


def ref_of(release: str, home: Path | str) -> ToolkitRef:
    """Return the reference to a ROCm in cells; without `home`, the ROCm is not installed."""
    return ToolkitRef(release=release, headers=release, home=str(home), local=True, rocm=True)


def own_rocm() -> ToolkitRef:
    """Return the first ROCm on this machine, or else `DEFAULT`, which is not installed."""
    return next((ref_of(release, home) for release, home in find_rocm().items()), ref_of(DEFAULT, ""))


def not_installed(release: str) -> str:
    """Return the sentence about a missing ROCm."""
    return f"this machine has no ROCm {release}: `apt-get install {PACKAGES}` installs that of Debian 12 ({DEFAULT}), and ROCM_PATH or -t names the folder of another"


def parse_rocm(text: str) -> list[ToolkitRef]:
    """Read ``rocm`` for every ROCm on this machine, or ``5.2@rocm`` for one release, which may be missing.

    Raises
    ------
    UsageError
        If the text is not a release.
    """
    homes, wanted = find_rocm(), text.removesuffix("rocm").removesuffix("@")
    if not wanted:
        return [ref_of(name, home) for name, home in homes.items()] or [ref_of(DEFAULT, "")]
    if not re.fullmatch(r"\d{1,3}\.\d{1,3}", wanted):
        raise UsageError(f"{wanted!r} is not a ROCm release such as {DEFAULT}")
    return [ref_of(wanted, homes.get(wanted, ""))]
