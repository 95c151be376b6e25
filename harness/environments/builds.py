"""Environments of development builds: what is built, with libraries of its version's time beside it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.environments.development import Development
from harness.environments.pythons import Python
from harness.environments.recipe import companions
from harness.environments.store import MANIFEST, EnvironmentStore, Made
from harness.errors import PartUnavailable
from harness.toolkits.leftovers import alone, work_folder
from harness.toolkits.uv_process import run_uv


def build(wanted: Development, python: Python, store: EnvironmentStore) -> Made:
    """Make the environment of a build unless it is there; complete or not at all.

    An editable install is made once, and again when its project's files change: what lies in its folder is imported from there.

    Raises
    ------
    PartUnavailable
        When it cannot be built, or a dependency is unavailable; the message has uv's words.
    """
    words = json.dumps([wanted.library, wanted.distribution, wanted.identity, python.path, python.version])
    key = f"{wanted.distribution}-build-python{python.minor}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
    store.ready()
    with alone(store.root, key, wanted.text, store.tell, store.wait):
        if found := store.read(key):
            return found
        if store.offline:
            raise PartUnavailable(f"{wanted.text} is not built, and --offline downloads nothing: run it once without")
        store.tell(f"building {wanted.text} for Python {python.minor}")
        with work_folder(store.root, key) as folder:
            home = folder / "home"
            run_uv(wanted.text, ["venv", "--relocatable", "--no-project", "--python", python.path, str(home)], folder)
            packages = _install(wanted, home, folder)
            manifest = {
                "library": wanted.library,
                "version": packages[wanted.distribution],
                "python": asdict(python),
                "packages": packages,
                "requirements": [wanted.requirement],
                "released": "",
            }
            (home / MANIFEST).write_text(json.dumps(manifest), "utf-8")
            os.replace(home, store.root / key)
    made = store.read(key)
    if made is None:
        raise PartUnavailable(f"{wanted.text}: {python.path} makes no environment that can be used")
    return made


def _install(wanted: Development, home: Path, folder: Path) -> dict[str, str]:
    """Build and install it, then what it needs; returns what is installed then."""
    from packaging.requirements import Requirement  # a tenth of all that a run imports

    def pip(*words: str) -> None:
        install = ["pip", "install", "--python", str(home / "bin" / "python")]
        run_uv(wanted.text, [*install, *words], folder, built=True)

    # By default, uv considers an earlier build of a folder to be current.
    new = ["--no-deps", "--reinstall-package", wanted.distribution]
    pip(*new, *(["-e"] if wanted.editable else []), wanted.requirement)
    found = next((each for each in _there(home) if canonicalize_name(each.name) == wanted.distribution), None)
    if found is None:
        names = ", ".join(sorted(each.name for each in _there(home))) or "nothing"
        raise PartUnavailable(f"{wanted.text} was to build {wanted.distribution}, and built {names}")
    beside = _beside(wanted.library, found.version)
    requirements = folder / "requirements.txt"
    # Keep existing packages, which are the requested ones.
    kept = folder / "constraints.txt"
    kept.write_text(f"{wanted.distribution}=={found.version}\n", "utf-8")
    for asked in (beside, [Requirement(text).name for text in beside]):
        requirements.write_text("".join(f"{text}\n" for text in [*(found.requires or []), *asked]), "utf-8")
        try:
            pip("-c", str(kept), "-r", str(requirements))
            break
        except PartUnavailable:
            # A build newer than the table of libraries may need newer dependencies.
            if asked != beside:
                raise
    return {canonicalize_name(each.name): each.version for each in _there(home)}


def _beside(library: str, version: str) -> list[str]:
    try:
        return list(companions(library, Version(version), dated=False))
    except InvalidVersion:
        return []


def _there(home: Path) -> list[Distribution]:
    (site,) = (home / "lib").glob("python3.*/site-packages")
    return list(distributions(path=[str(site)]))
