#!/usr/bin/env python3
"""Pin the SHA-256 of every wheel in the tables of CUDA releases, parts and header libraries.

`.ci/pin_wheels.py` writes harness/toolkits/wheels.toml. It fetches the hashes of wheels that are not pinned yet, and of new versions of
header libraries, from PyPI. `--all` fetches every hash again. A file on PyPI never changes: if a hash differs from the pinned hash, the
script writes nothing and exits with 1. `--index` names another index with PyPI's JSON interface (PEP 691).
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.toolkits.header_libraries import LIBRARIES  # noqa: E402
from harness.toolkits.releases import PARTS, RELEASES  # noqa: E402
from harness.web.address import public, read_address  # noqa: E402
from harness.web.download import download  # noqa: E402

PINS = ROOT / "harness" / "toolkits" / "wheels.toml"
PYPI = "https://pypi.org/simple"
HEAD = """\
# SHA-256 of every wheel that cumatrix installs, by name, version and the machine that it is for (Linux). Written by .ci/pin_wheels.py.
"""
MACHINES = ("aarch64", "x86_64")

Pins = dict[str, dict[str, dict[str, list[str]]]]


def wanted() -> dict[str, set[str] | None]:
    """Return the versions in the tables, by name of the wheel. None selects every version, as for header libraries."""
    found: dict[str, set[str] | None] = {}
    tables = [release.packages for release in RELEASES.values()]
    tables += [dict([wheel]) for part in PARTS.values() for wheel in part.wheels.values()]
    for packages in tables:
        for name, version in packages.items():
            found.setdefault(name, set()).add(version)  # type: ignore[union-attr]
    for library in LIBRARIES.values():
        found.update(dict.fromkeys(library.packages.values()))
    return found


def ask(index: str, name: str) -> list[dict[str, object]]:
    """Fetch the files of a project from an index (https://peps.python.org/pep-0691/)."""
    headers = {"Accept": "application/vnd.pypi.simple.v1+json"}
    text = io.BytesIO()
    response = download(read_address(f"{index}/{name}/"), text, largest=64 << 20, seconds=60, headers=headers)
    if response.status != 200:
        raise SystemExit(f"pin_wheels.py: {public(index)} answers {response.reason} for {name}")
    files: list[dict[str, object]] = json.loads(text.getvalue())["files"]
    return files


def machine(filename: str) -> tuple[str, str]:
    """Return version and machine of a wheel: ``x86_64``, ``aarch64`` or ``any``. Both are empty if cumatrix cannot install the file."""
    try:
        _, version, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return "", ""  # a source distribution
    platforms = {tag.platform for tag in tags}
    if platforms == {"any"}:
        return str(version), "any"
    linux = {
        name
        for name in MACHINES
        for platform in platforms
        if platform.startswith(("manylinux", "linux")) and platform.endswith(name)
    }
    return (str(version), linux.pop()) if len(linux) == 1 else ("", "")


def hashes(files: Iterable[Mapping[str, object]], versions: Iterable[str] | None) -> dict[str, dict[str, list[str]]]:
    """Return the SHA-256 of these or all versions, by version and machine. Some versions have two wheels for a machine."""
    chosen = None if versions is None else {Version(version) for version in versions}
    found: dict[str, dict[str, list[str]]] = {}
    for file in files:
        version, kind = machine(str(file["filename"]))
        if kind and (chosen is None or Version(version) in chosen):
            found.setdefault(version, {}).setdefault(kind, []).append(file["hashes"]["sha256"])  # type: ignore[index]
    return {version: {kind: sorted(of) for kind, of in wheels.items()} for version, wheels in found.items()}


def pins(before: Pins, index: str, *, every: bool, fetch: Callable[[str, str], list[dict[str, object]]] = ask) -> Pins:
    """Return the pins that the tables require, including existing pins.

    Raises
    ------
    SystemExit
        If the index has no wheel of a version, or lacks a pinned hash.
    """
    after: Pins = {}
    for name, versions in sorted(wanted().items()):
        kept = {
            version: wheels
            for version, wheels in before.get(name, {}).items()
            if versions is None or version in versions
        }
        if every or versions is None or versions - kept.keys():
            found = hashes(fetch(index, name), versions)
            for version, wheels in kept.items():
                for kind, pinned in wheels.items():
                    if gone := set(pinned) - set(found.get(version, {}).get(kind, [])):
                        raise SystemExit(
                            f"pin_wheels.py: {name} {version} for {kind} is pinned as {', '.join(sorted(gone))}, which {index} "
                            f"does not have: find out why before anybody installs it"
                        )
            kept |= found
        for version in sorted((versions or set()) - kept.keys()):
            raise SystemExit(f"pin_wheels.py: {index} has no wheel of {name} {version}")
        after[name] = kept
    return after


def written(found: Pins) -> str:
    """Return the text of wheels.toml, sorted by name and version."""
    lines = [HEAD]
    for name, versions in sorted(found.items()):
        lines.append(f"\n[{name}]\n")
        for version in sorted(versions, key=Version):
            wheels = ", ".join(f"{kind} = {json.dumps(of)}" for kind, of in sorted(versions[version].items()))
            lines.append(f'"{version}" = {{ {wheels} }}\n')
    return "".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="ask for every wheel again")
    parser.add_argument("--index", default=PYPI, help=f"another index than {PYPI}")
    options = parser.parse_args()
    before = tomllib.loads(PINS.read_text("utf-8")) if PINS.is_file() else {}
    PINS.write_text(written(pins(before, options.index.rstrip("/"), every=options.all)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
