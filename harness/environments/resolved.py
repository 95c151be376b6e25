"""The resolution of a recipe: exact versions, with the hash of every wheel."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from harness.environments.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A recipe with exact versions of all that it brings.

    Parameters
    ----------
    recipe : Recipe
        The request.
    lock : str
        The same with the hash of every wheel, as pylock.toml (https://packaging.python.org/en/latest/specifications/pylock-toml/).
    """

    recipe: Recipe
    lock: str

    @property
    def packages(self) -> dict[str, str]:
        """Versions by normalized name."""
        return {canonicalize_name(item["name"]): str(item.get("version", "")) for item in self._items}

    @property
    def key(self) -> str:
        """Name of its folder: the same for whatever resolves to the same wheels, for the same Python."""
        recipe = self.recipe
        facts = [[item["name"], item.get("version"), _sources(item)] for item in self._items]
        words = json.dumps([recipe.python.path, recipe.python.version, sorted(map(json.dumps, facts))])
        digest = hashlib.sha256(words.encode()).hexdigest()[:12]
        return f"{recipe.distribution}-{recipe.version}-python{recipe.python.minor}-{digest}"

    @property
    def _items(self) -> list[dict[str, Any]]:
        return list(tomllib.loads(self.lock).get("packages", ()))

    def wheels(self) -> dict[str, list[str]]:
        """Names of the candidate wheels, by the normalized name of their package."""
        return {
            canonicalize_name(item["name"]): [
                (wheel.get("url") or wheel.get("path") or "").rsplit("/", 1)[-1] for wheel in item.get("wheels", ())
            ]
            for item in self._items
        }


def _sources(item: Mapping[str, Any]) -> list[str]:
    """Identity of a package's content: hashes of its wheels; else its origin."""
    hashes = sorted(str(wheel.get("hashes", {}).get("sha256", "")) for wheel in item.get("wheels", ()))
    places = [
        json.dumps(item[name], sort_keys=True, default=str)
        for name in ("vcs", "directory", "archive", "sdist")
        if name in item
    ]
    return [*hashes, *places]


def checked_lock(lock: str) -> str:
    """A lock that can be read.

    Raises
    ------
    ValueError
        On any other text.
    """
    packages = tomllib.loads(lock).get("packages")
    if (
        not isinstance(packages, list)
        or not packages
        or not all("name" in item for item in packages if isinstance(item, dict))
    ):
        raise ValueError("a lock without packages")
    return lock
