"""Wheels that are accepted, and their sources: a real uv, and an index that is a folder."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from command import Command
from peaks import peak_of

from harness.errors import PartUnavailable
from harness.toolkits import LIBRARIES, Installed, LibraryStore, Release, ToolkitStore
from harness.toolkits.download import pinned
from harness.toolkits.store import not_pinned, problems

from .local_index import HEADER, LocalIndex

pytestmark = pytest.mark.called
CUTLASS = LIBRARIES["cutlass"]


@pytest.fixture
def own_index(index: LocalIndex, no_settings: Path, monkeypatch: pytest.MonkeyPatch) -> LocalIndex:
    """Return the only index that the user has configured."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    return index


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.endswith(".lock"))


def test_a_wheel_that_differs_from_the_pinned_one_is_refused(own_index: LocalIndex, tmp_path: Path) -> None:
    sha256 = own_index.add("nvidia-cutlass", "3.5.1", {HEADER: "// changed"})
    with pytest.raises(PartUnavailable, match="not the one that cumatrix knows") as caught:
        LibraryStore(tmp_path).install(CUTLASS, "3.5.1")
    (known,) = pinned("nvidia-cutlass", "3.5.1") or [""]
    assert f"Its SHA-256 is {sha256}, and should be {known}" in str(caught.value)
    assert left(tmp_path / "cutlass") == []


def test_a_wheel_that_the_index_lies_about_is_refused(own_index: LocalIndex, tmp_path: Path) -> None:
    (known,) = pinned("nvidia-cutlass", "3.5.1") or [""]
    own_index.add("nvidia-cutlass", "3.5.1", {HEADER: "// changed"}, told=known)
    with pytest.raises(PartUnavailable, match=r"^cutlass 3\.5\.1 is not installed: .* another SHA-256"):
        LibraryStore(tmp_path).install(CUTLASS, "3.5.1")
    assert left(tmp_path / "cutlass") == []


def test_a_wheel_of_a_release_that_differs_leaves_the_earlier_one(own_index: LocalIndex, tmp_path: Path) -> None:
    store = ToolkitStore(tmp_path / "toolkits", tell=lambda text: None)
    own_index.add("nvidia-fake", "1.0", {"nvidia/fake/include/a.h": "1"})
    before = store.install(Release(name="12.4", packages={"nvidia-fake": "1.0"}))
    own_index.add("nvidia-nvtx-cu12", "12.4.127", {"nvidia/nvtx/include/b.h": "2"})
    with pytest.raises(PartUnavailable, match=r"nvidia-nvtx-cu12 12\.4\.127 .* is not the one that cumatrix knows"):
        store.install(Release(name="12.4", packages={"nvidia-fake": "1.0"}), ["nvtx"])
    assert store.find("12.4") == before
    assert left(store.root) == ["12.4"]


def test_a_wheel_that_is_not_pinned_is_told_and_recorded(own_index: LocalIndex, tmp_path: Path) -> None:
    sha256 = own_index.add("nvidia-cutlass", "99.0", {HEADER: "// new"})
    said: list[str] = []
    found = LibraryStore(tmp_path, tell=said.append).install(CUTLASS, "99.0")
    assert [sha256 in text and "nvidia-cutlass 99.0 is none that cumatrix knows" in text for text in said] == [True]
    assert found.wheels == {"nvidia-cutlass": sha256}
    assert problems(found) == []
    assert not_pinned(found) == ["nvidia-cutlass 99.0"]
    said.clear()
    LibraryStore(tmp_path, tell=said.append).install(CUTLASS, "99.0")
    assert said == []


@pytest.mark.parametrize("within", [False, True], ids=["", "data folder within"])
@pytest.mark.parametrize("name", ["uv.toml", "pyproject.toml"])
def test_settings_of_the_folder_count_for_nothing(
    cumatrix: Command, index: LocalIndex, no_settings: Path, tmp_path: Path, name: str, within: bool
) -> None:
    """Settings of a stranger's project for uv do not affect installations, even if the project contains the data folder; settings of the user do."""
    good = index.add("nvidia-cutlass", "99.0", {HEADER: "// the user's"})
    other = LocalIndex(tmp_path / "other")
    other.add("nvidia-cutlass", "99.0", {HEADER: "// somebody's"})
    (no_settings / "uv").mkdir()
    (no_settings / "uv" / "uv.toml").write_text(f'index-url = "{index.url}"\n')
    table = '[project]\nname = "x"\nversion = "1"\n[tool.uv]\n' if name == "pyproject.toml" else ""
    (cumatrix.folder / name).write_text(f'{table}index-url = "{other.url}"\n')
    home = (cumatrix.folder if within else tmp_path) / "home"
    done = cumatrix("toolkits", "install", "cutlass==99.0", env={"CUMATRIX_HOME": str(home)})
    assert done.returncode == 0, done.stderr
    assert "none that cumatrix knows" in done.stderr
    manifest = home / "libraries" / "cutlass" / "99.0" / "cumatrix-toolkit.json"
    assert json.loads(manifest.read_text())["wheels"] == {"nvidia-cutlass": good}


def test_the_index_that_is_configured_for_pip(
    index: LocalIndex, no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = index.add("nvidia-cutlass", "99.0", {HEADER: "//"})
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    found = LibraryStore(tmp_path / "libraries", tell=lambda text: None).install(CUTLASS, "99.0")
    assert found.wheels == {"nvidia-cutlass": sha256}


@pytest.fixture
def installed(own_index: LocalIndex, tmp_path: Path) -> Installed:
    own_index.add("nvidia-cutlass", "99.0", {HEADER: "// new", HEADER.replace("version", "other"): "//"})
    return LibraryStore(tmp_path, tell=lambda text: None).install(CUTLASS, "99.0")


class TestVerify:
    """The message names the files that differ from the wheels."""

    def test_files(self, installed: Installed) -> None:
        folder = installed.home / "include" / "cutlass"
        stat = (folder / "version.h").stat()
        (folder / "version.h").write_text("// NEW")  # with equal size and time
        os.utime(folder / "version.h", ns=(stat.st_atime_ns, stat.st_mtime_ns))
        (folder / "other.h").unlink()
        (folder / "more.h").touch()
        (folder / "passwd.h").symlink_to("/etc/passwd")
        assert problems(installed) == [
            "missing: include/cutlass/other.h",
            "changed: include/cutlass/version.h",
            "not of any wheel: include/cutlass/more.h",
            "linked to another place: include/cutlass/passwd.h",
        ]

    def test_wheels(self, installed: Installed) -> None:
        (known,) = pinned("nvidia-cutlass", "3.5.1") or [""]
        other = replace(installed, packages={"nvidia-cutlass": "3.5.1"})
        (problem,) = problems(other)
        assert problem.startswith("the wheel of nvidia-cutlass 3.5.1 had the SHA-256 ")
        assert problem.endswith(known)
        cuda = replace(other, library="", release="12.9", packages={"nvidia-cuda-nvrtc-cu12": "12.9.99"})
        (problem,) = problems(replace(cuda, wheels={"nvidia-cuda-nvrtc-cu12": known}))
        assert problem == "cumatrix-toolkit.json says nvidia-cuda-nvrtc-cu12 12.9.99, where CUDA 12.9 has 12.9.86"
        (problem,) = problems(replace(installed, wheels={}))
        assert problem.startswith("the hashes of its wheels are not known")

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', '{"files": {"a": 3}}', '{"files": {"a": []}}'])
    def test_a_manifest_that_cannot_be_read(self, installed: Installed, text: str) -> None:
        (installed.home / "cumatrix-toolkit.json").write_text(text)
        assert problems(installed)


def test_doctor_says_what_differs_and_what_to_do(cumatrix: Command, own_index: LocalIndex, tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = {"CUMATRIX_HOME": str(home)}
    assert cumatrix("doctor", "--verify", env=env).returncode == 3
    own_index.add("nvidia-cutlass", "99.0", {HEADER: "// new"})
    assert cumatrix("toolkits", "install", "cutlass==99.0", env=env).returncode == 0
    done = cumatrix("doctor", "--verify", env=env)
    assert (done.returncode, done.stdout.splitlines()) == (
        0, ["cutlass 99.0: as its wheels have it; cumatrix does not know nvidia-cutlass 99.0, which came as the index had it"],
    )  # fmt: skip
    header = home / "libraries" / "cutlass" / "99.0" / "include" / "cutlass" / "version.h"
    header.write_text("// mine")
    done = cumatrix("doctor", "--verify", env=env)
    assert (done.returncode, done.stdout.splitlines()) == (
        4,
        [
            "cutlass 99.0: changed: include/cutlass/version.h",
            "cutlass 99.0: run `cumatrix toolkits install --force cutlass==99.0`",
        ],
    )
    (header.parents[2] / "cumatrix-toolkit.json").write_text("{")
    done = cumatrix("doctor", "--verify", env=env)
    assert done.returncode == 4
    assert "cutlass 99.0: cumatrix-toolkit.json cannot be read" in done.stdout
    assert cumatrix("toolkits", "install", "--force", "cutlass==99.0", env=env).returncode == 0
    assert cumatrix("doctor", "--verify", env=env).returncode == 0
    done = cumatrix("doctor", "--verify", "-t", "12.4", env=env)
    assert done.returncode == 4
    assert "CUDA 12.4 is not installed: run `cumatrix toolkits install 12.4`" in done.stderr


def test_a_flood_of_words_from_uv_is_not_kept(
    own_index: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake uv, which fails with output that no real uv prints."""
    much = 100 << 20
    fake = tmp_path / "uv"
    fake.write_text(
        f"#!/bin/sh\nhead -c {much} /dev/zero | tr '\\0' x\nhead -c {much} /dev/zero >&2\necho the end >&2\nexit 2\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(fake))
    own_index.add("nvidia-cutlass", "3.5.1", {HEADER: ""})

    def install() -> None:
        with pytest.raises(PartUnavailable, match=r"the end$") as caught:
            LibraryStore(tmp_path).install(CUTLASS, "3.5.1")
        assert len(str(caught.value)) < 1000

    assert peak_of(install) < much // 5
