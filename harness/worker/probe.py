"""Prints an interpreter's distributions (`harness.protocol.messages.Interpreter`) as a line of JSON, in any Python.

The arguments are names of distributions, ``numba-cuda``, optionally with a module of the distribution,
``numba-cuda:numba_cuda``. For each installed distribution and its requirements, the output has the version, and the
origin if that is not an index. If a module is imported from outside of its distribution's files, its own version
counts. A module without a distribution is reported under the last name with this module. Finding a module imports only
the finders that installers leave (``.pth`` files, ``__editable__`` hooks).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import site
import sys
import sysconfig
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

_HERE = os.path.dirname(os.path.realpath(__file__))
# Files of a source tree that define a library's version.
_VERSION_FILES = ("_version.py", "version.py", "__init__.py", "VERSION", "../VERSION")
_VERSION = re.compile(r"""^(?:__version__|version|VERSION)\s*(?::\s*str\s*)?=\s*['"]([^'"\n]+)['"]""", re.MULTILINE)
_PLAIN_VERSION = re.compile(r"\s*(\d[\w.+!-]*)\s*\Z")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def folder_of(module: str) -> str:
    """Return the folder of the package that ``import`` would find; empty if there is none."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, AttributeError, ValueError):
        return ""
    origin = getattr(spec, "origin", None)
    if not origin or not os.path.isabs(origin):
        return ""
    folder: str = os.path.dirname(os.path.abspath(origin))
    # An editable install may be a folder of links to the sources.
    return str(os.path.dirname(os.path.realpath(origin))) if is_outside(folder) else folder


def is_outside(folder: str) -> bool:
    """Return whether a package is outside of this interpreter's installation folders, with links resolved."""
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    real = os.path.realpath(folder) + os.sep
    return not any(real.startswith(os.path.realpath(place) + os.sep) for place in places if place)


def direct(dist: Distribution) -> dict[str, Any]:
    """Return `harness.protocol.messages.Distribution` fields from ``direct_url.json`` (PEP 610); empty for an index."""
    try:
        found = json.loads(dist.read_text("direct_url.json") or "{}")
        vcs, folder = (found.get(kind) or {} for kind in ("vcs_info", "dir_info"))
        if not found.get("url"):
            return {}
        origin: dict[str, Any] = {"url": str(found["url"]), "commit": str(vcs.get("commit_id") or "")}
        origin["editable"] = bool(folder.get("editable"))
    except (AttributeError, ValueError):
        return {}
    if not origin["commit"] and not origin["editable"]:
        origin["digest"] = _digest(dist)
    return origin


def _digest(dist: Distribution) -> str:
    """Hash the hashes of a distribution's files, which distinguishes wheels with the same version."""
    lines = [line for line in (dist.read_text("RECORD") or "").splitlines() if ".dist-info/" not in line]
    lines = [line for line in lines if "__pycache__" not in line]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def version_in(folder: str) -> str:
    """Return the version in a package's own files; empty if none has it."""
    for name in _VERSION_FILES:
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                text = file.read(1 << 20)
        except OSError:
            continue
        found = _VERSION.search(text) if name.endswith(".py") else _PLAIN_VERSION.match(text)
        if found:
            return found.group(1)
    return ""


def main() -> None:
    # The script's own folder must not shadow modules of the libraries under test.
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != _HERE]
    modules = {normal(name): module for name, _, module in (text.partition(":") for text in sys.argv[1:])}
    folders = {module: folder_of(module) for module in set(modules.values()) if module}
    found: dict[str, dict[str, Any]] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            dist = distribution(name)
        except PackageNotFoundError:
            continue
        needs = [normal(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in dist.requires or []]
        found[name] = {"version": dist.version, "requires": needs, "root": name in modules, **direct(dist)}
        if folder := folders.get(modules.get(name, "")):
            found[name].update(folder=folder, apart=is_outside(folder))
            if found[name]["apart"]:
                found[name]["version"] = version_in(folder) or dist.version
        waiting.extend(needs)
    found_modules = {modules.get(name) for name in found}
    for name, module in modules.items():  # the last name of a module is that of its sources
        if folders.get(module) and module not in found_modules:
            version = version_in(folders[module]) or "0+unknown"
            found[name] = {"version": version, "folder": folders[module], "apart": True}
            found = {other: of for other, of in found.items() if other == name or modules.get(other) != module}
    version = ".".join(map(str, sys.version_info[:3]))
    print(json.dumps({"python": version, "distributions": found}))


if __name__ == "__main__":
    main()
