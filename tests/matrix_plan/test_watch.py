"""New releases on a fake index: a folder with wheels of real names and versions that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolkits.conftest import index, no_settings
from toolkits.local_index import LocalIndex

from harness.answers.table import known_releases
from harness.environments.index import Index
from harness.matrix_plan.coverage import PLAN
from harness.matrix_plan.proposals import New, compare, new_releases

__all__ = ["index", "no_settings"]

ROOT = Path(__file__).parents[2]
NEW = "99.1.0"


@pytest.fixture
def fake(index: LocalIndex, no_settings: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Index:
    """Return a fake index with one new release of Numba, a pre-release, a yanked one, all old ones, and a new CUDA."""
    for version in (known_releases()["numba"][-1], NEW, "99.2.0rc1"):
        index.add("numba", version, {}, more=True)
    index.add("numba", "99.3.0", {}, more=True, attributes='data-yanked=""')
    index.add("nvidia-cuda-nvrtc", "99.4.55", {}, more=True)
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return Index(tmp_path / "answers")


def test_only_final_releases_newer_than_all_known_ones_are_new(fake: Index) -> None:
    found = new_releases(fake)
    assert found == [New(name="numba", version=NEW), New(name="cuda", version="99.4")]
    assert list(map(str, found)) == [
        "new on the index: Numba 99.1.0",
        "new on the index: CUDA 99.4; .ci/pin_wheels.py pins its wheels",
    ]
    assert [each.pinned for each in found] == [False, True]


def test_a_new_release_is_a_column_of_the_open_parts_and_comes_first(tmp_path: Path) -> None:
    plan = tmp_path / PLAN
    text = '[[part]]\nname = "{}"\nwhy = "w"\nbackends = "numba"\ncases = ["numba/float16"]\nwith = ["numba={}"]\ntoolkits = "12.4"\ntargets = "sm_80"\n'
    plan.write_text(text.format("all", "0.66.0..") + text.format("chosen", "0.61.2"))
    new = {"numba": [NEW]}
    whole = compare(plan, ROOT / "cases", [], new)
    assert [NEW in each.values("library") for each in whole.coverages] == [True, False]
    assert [NEW in each.values("library") for each in compare(plan, ROOT / "cases", []).coverages] == [False, False]
    # In the middle of the releases, two commands separate more of them.
    first, second = whole.next(2)
    assert f"numba={NEW}" in first.argv and f"numba={NEW}" not in second.argv
