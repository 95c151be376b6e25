"""Environments of development builds that cannot be created; tests/engine/test_development.py tests the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.environments.dev_builds import build, split_with
from harness.environments.releases import OWN
from harness.environments.store import EnvironmentStore
from harness.errors import PartUnavailable


@pytest.fixture
def store(tmp_path: Path) -> EnvironmentStore:
    """Return a store of the test, without messages."""
    return EnvironmentStore(tmp_path / "environments", tell=lambda _text: None)


def test_a_build_that_fails_says_why_first_and_leaves_nothing(tmp_path: Path, store: EnvironmentStore) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n[project]\nname = "numba-cuda"\nversion = "1"\n'
    )
    (tmp_path / "own.py").write_text("raise RuntimeError('no build today')\n")
    _, (wanted,) = split_with(["-e ."], tmp_path)
    with pytest.raises(PartUnavailable, match=r"-e \. cannot be built or installed: RuntimeError: no build today"):
        build(wanted, OWN, store)
    assert not [path for path in store.root.iterdir() if path.is_dir()]


def test_offline_nothing_is_built(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "numba-cuda"\n')
    _, (wanted,) = split_with(["numba-cuda @ ."], tmp_path)
    with pytest.raises(PartUnavailable, match="is not built, and --offline downloads nothing"):
        build(wanted, OWN, EnvironmentStore(tmp_path / "environments", offline=True))
