"""Environments are created once, are complete, and are shared by equal requirements."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from toolkits.local_index import LocalIndex

from harness.environments.index import Index
from harness.environments.releases import choose, parse_with, published
from harness.environments.requirements import Recipe, recipes
from harness.environments.store import MANIFEST, EnvironmentStore
from harness.errors import PartUnavailable


@pytest.fixture
def store(tmp_path: Path) -> EnvironmentStore:
    return EnvironmentStore(tmp_path / "environments")


def of(version: str, asked: Index) -> Recipe:
    (release,) = choose(parse_with(f"numba={version}"), published("numba", asked))
    (recipe,) = recipes(release, [])
    return recipe


def test_an_environment_has_what_was_resolved(store: EnvironmentStore, asked: Index) -> None:
    resolved = store.resolve(of("0.59", asked))
    # The index has no dates: NumPy's bound comes from the table.
    assert resolved.packages == {"numba": "0.59.1", "numpy": "1.26.4"}
    assert store.find(resolved) is None
    made = store.make(resolved)
    code = "import numba; print(numba.__version__, numba.__file__)"
    told = subprocess.run([made.python, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["0.59.1", str(next(made.home.glob("lib/*/site-packages/numba/__init__.py")))]
    assert (made.library, made.version, dict(made.packages)) == ("numba", "0.59.1", resolved.packages)
    assert made.size() > 0
    assert store.find(resolved) == made
    assert store.installed() == [made]


def test_what_resolves_to_the_same_is_one_environment(store: EnvironmentStore, asked: Index) -> None:
    recipe = of("0.59.1", asked)
    other = replace(recipe, name="other", requirements=("numba==0.59.*", "numpy<1.27"))
    assert recipe.key != other.key
    assert store.resolve(recipe).key == store.resolve(other).key
    newer = replace(recipe, requirements=("numba==0.59.1", "numpy"))
    assert store.resolve(newer).packages["numpy"] == "1.27.0"
    assert store.resolve(newer).key != store.resolve(recipe).key


def test_what_was_resolved_is_kept(
    store: EnvironmentStore, asked: Index, numbas: LocalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = of("0.59.0", asked)
    offline = EnvironmentStore(store.root, offline=True)
    with pytest.raises(PartUnavailable, match=r"numba 0\.59\.0 is not installed, and --offline queries no index"):
        offline.resolve(recipe)
    first = store.resolve(recipe)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "file:///nowhere")
    assert store.resolve(recipe) == offline.resolve(recipe) == first


def test_what_is_kept_and_is_no_lock_is_resolved_again(store: EnvironmentStore, asked: Index) -> None:
    recipe = of("0.59.0", asked)
    first = store.resolve(recipe)
    (kept,) = (store.root / ".resolved").iterdir()
    for text in ("", "packages = 1", "[[", "packages = []"):
        kept.write_text(text)
        assert store.resolve(recipe) == first


def test_what_cannot_be_resolved_is_said(store: EnvironmentStore, asked: Index) -> None:
    recipe = replace(of("0.59.0", asked), requirements=("numba==0.59.0", "numpy==7"))
    with pytest.raises(PartUnavailable, match=r"^numba 0\.59\.0 cannot be installed from .+: .*numpy"):
        store.resolve(recipe)


def test_a_wheel_that_has_changed_is_not_installed(store: EnvironmentStore, asked: Index, numbas: LocalIndex) -> None:
    resolved = store.resolve(of("0.58.1", asked))
    numbas.add("numba", "0.58.1", {"numba/__init__.py": "evil"}, metadata=True, more=True)
    with pytest.raises(PartUnavailable, match="has another SHA-256"):
        store.make(resolved)
    assert store.installed() == []


@pytest.mark.parametrize("damage", ["manifest", "python"])
def test_a_damaged_environment_is_made_again(store: EnvironmentStore, asked: Index, damage: str) -> None:
    resolved = store.resolve(of("0.58.1", asked))
    made = store.make(resolved)
    if damage == "manifest":
        (made.home / MANIFEST).write_text(json.dumps({"library": 1}))
    else:
        (made.home / "bin" / "python").unlink()
        (made.home / "bin" / "python").symlink_to("/nowhere/python")
    assert store.find(resolved) is None
    assert store.make(resolved) == made


def test_an_environment_is_removed(store: EnvironmentStore, asked: Index) -> None:
    made = store.make(store.resolve(of("0.58.1", asked)))
    assert store.remove(made) and not store.remove(made)
    assert store.installed() == []
    assert [
        path.name for path in store.root.iterdir() if path.name != ".resolved" and not path.name.endswith(".lock")
    ] == []
