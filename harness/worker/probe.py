"""Says what an interpreter's environment holds (`harness.protocol.probes.Interpreter`), as one line of JSON; run by path with any Python.

Takes the names of distributions on the command line, ``numba-cuda`` or with the module that is imported from it,
``numba-cuda:numba_cuda``; answers for each one that is there, and for all that it requires, the version, and where it comes from
if that is no index. A module imported from outside of its distribution's files counts as it is, and one
without a distribution is reported under the last name that has this module.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.realpath(__file__))


def load(name: str) -> ModuleType:
    """A module next to this script; `harness` cannot be imported here."""
    spec = spec_from_file_location(name, os.path.join(_HERE, f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    # The script's own folder must not shadow modules of the libraries under test.
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != _HERE]
    origin = load("origin")
    modules = {normal(name): module for name, _, module in (text.partition(":") for text in sys.argv[1:])}
    lying = {module: origin.folder_of(module) for module in set(modules.values()) if module}
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
        found[name] = {"version": dist.version, "requires": needs, "root": name in modules, **origin.direct(dist)}
        if folder := lying.get(modules.get(name, "")):
            found[name].update(folder=folder, apart=origin.lies_apart(folder))
            if found[name]["apart"]:
                found[name]["version"] = origin.version_in(folder) or dist.version
        waiting.extend(needs)
    told = {modules.get(name) for name in found}
    for name, module in modules.items():  # the last name of a module is that of its sources
        if lying.get(module) and module not in told:
            version = origin.version_in(lying[module]) or "0+unknown"
            found[name] = {"version": version, "folder": lying[module], "apart": True}
            found = {other: of for other, of in found.items() if other == name or modules.get(other) != module}
    version = ".".join(map(str, sys.version_info[:3]))
    print(json.dumps({"python": version, "distributions": found}))


if __name__ == "__main__":
    main()
