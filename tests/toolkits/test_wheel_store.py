"""Sets of wheels in a store, from an index in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.errors import PartUnavailable, UsageError
from harness.process_locks import lock_exclusively, lock_file, lock_path
from harness.toolkits.installed import Installed
from harness.toolkits.store import WheelStore, lay_out

from .local_index import LocalIndex

TEXT = {"nvidia/fake/include/a.h": "1"}


class Store:
    """A store that installs one wheel."""

    def __init__(self, root: Path, library: str = "") -> None:
        self.told: list[str] = []
        self.inside = WheelStore(root, library, tell=self.told.append)

    def put(self, version: str, *, force: bool = False) -> Installed:
        """Install `nvidia-fake` as 12.4, in exactly this version."""

        def right(got: Mapping[str, str], asked: Mapping[str, str]) -> bool:
            return dict(got) == dict(asked)

        return self.inside.put("12.4", lambda found: {"nvidia-fake": version}, lay_out, right, force=force)

    @property
    def left(self) -> list[str]:
        return sorted(path.name for path in self.inside.root.iterdir() if not path.name.endswith(".lock"))


@pytest.fixture
def store(tmp_path: Path, index: LocalIndex, no_settings: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    index.add("nvidia-fake", "1.0", TEXT)
    return Store(tmp_path / "home" / "toolkits")


def test_another_version_than_asked_for_is_not_kept(store: Store) -> None:
    """An index treats 1.0 as 1.0.0; a request for 1.0.0 accepts nothing else, and an existing installation stays."""
    with pytest.raises(
        PartUnavailable, match=r"CUDA 12\.4: asked for nvidia-fake==1\.0\.0, got \{'nvidia-fake': '1\.0'\}"
    ):
        store.put("1.0.0")
    with pytest.raises(PartUnavailable, match=r"^cutlass 12\.4: asked for"):
        Store(store.inside.root, "cutlass").put("1.0.0")
    assert store.left == []
    before = store.put("1.0")
    with pytest.raises(PartUnavailable, match="asked for"):
        store.put("1.0.0")
    assert store.inside.find("12.4") == before
    assert store.left == ["12.4"]


def test_what_is_there_is_installed_again_by_force_alone(store: Store, index: LocalIndex) -> None:
    toolkit = store.put("1.0")
    assert toolkit.packages == {"nvidia-fake": "1.0"}
    assert (toolkit.home / "include" / "a.h").read_text() == "1"
    (told,) = store.told
    assert "the wheel of nvidia-fake 1.0 is none that cumatrix knows" in told
    (toolkit.home / "include" / "mine.h").touch()
    assert store.put("1.0") == toolkit
    assert (toolkit.home / "include" / "mine.h").exists()
    store.put("1.0", force=True)
    assert not (toolkit.home / "include" / "mine.h").exists()
    index.add("nvidia-fake", "2.0", TEXT, more=True)
    assert store.put("2.0").packages == {"nvidia-fake": "2.0"}
    assert store.left == ["12.4"]


def test_the_manifest_says_what_was_installed(store: Store, index: LocalIndex) -> None:
    toolkit = store.put("1.0")
    manifest = json.loads((toolkit.home / "cumatrix-toolkit.json").read_text())
    header = toolkit.home / "include" / "a.h"
    assert (manifest["release"], manifest["packages"]) == ("12.4", {"nvidia-fake": "1.0"})
    assert toolkit.wheels == manifest["wheels"]
    assert set(manifest["wheels"]) == {"nvidia-fake"}
    assert manifest["files"]["include/a.h"][1:] == [1, header.stat().st_mtime_ns]
    assert toolkit.library == ""
    assert WheelStore(store.inside.root, "cutlass").folders() == [
        Installed(
            release="12.4", home=toolkit.home, packages=toolkit.packages, library="cutlass", wheels=toolkit.wheels
        )
    ]


def test_folders_and_removing(store: Store) -> None:
    assert store.inside.folders() == []
    store.put("1.0")
    root = store.inside.root
    (root / "13.0").mkdir()
    (root / "13.1").touch()
    (root / "mine").mkdir()
    assert [(each.release, dict(each.packages)) for each in store.inside.folders()] == [
        ("12.4", {"nvidia-fake": "1.0"}), ("13.0", {}),
    ]  # fmt: skip
    assert store.inside.remove("12.4") is True
    assert store.inside.remove("12.4") is False
    assert store.inside.find("12.4") is None
    assert store.left == ["13.0", "13.1", "mine"]
    (unread,) = WheelStore(root, "cutlass").folders()
    assert (unread.release, unread.library) == ("13.0", "cutlass")


def test_what_another_process_removes_meanwhile_is_not_removed_again(tmp_path: Path) -> None:
    (tmp_path / "12.4").mkdir()
    with ExitStack() as other:

        def end(_told: str) -> None:
            (tmp_path / "12.4").rmdir()
            other.close()

        assert lock_exclusively(other.enter_context(lock_file(lock_path(tmp_path, "12.4"))))
        assert WheelStore(tmp_path, tell=end).remove("12.4") is False


def test_a_folder_that_cannot_be_made_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="set CUMATRIX_HOME"):
        Store(tmp_path / "file").put("1.0")


def test_what_killed_installations_left_goes(store: Store) -> None:
    store.put("1.0")
    for call in (store.inside.sweep, lambda: store.put("1.0")):
        (store.inside.root / ".12.4-deadbeef").mkdir()
        call()
        assert store.left == ["12.4"]
