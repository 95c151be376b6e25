"""Real installations, damage, and the leftovers of a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import PartUnavailable, UsageError
from harness.toolkits import RELEASES, Installed, Release, ToolkitStore

pytestmark = pytest.mark.compilers

# The smallest wheel of a release: it lacks NVVM's header and library.
SMALL = Release(name="12.4", packages={"nvidia-cuda-cccl-cu12": "12.4.127.post1"})


@pytest.fixture
def small(tmp_path: Path) -> tuple[ToolkitStore, Installed]:
    store = ToolkitStore(tmp_path / "toolkits")
    return store, store.install(SMALL)


def left(store: ToolkitStore) -> list[str]:
    return sorted(path.name for path in store.root.iterdir() if not path.name.endswith(".lock"))


@pytest.mark.parametrize("release", ["11.8", "12.4", "13.0"])
def test_a_release_is_a_whole_cuda_home(toolkit: Callable[[str], Installed], release: str) -> None:
    found = toolkit(release)
    # Another test of the same store can have added parts, such as cuBLAS's headers.
    assert RELEASES[release].packages.items() <= found.packages.items()
    said = subprocess.run(
        [found.home / "bin" / "ptxas", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert f"release {release}, V{RELEASES[release].packages[next(p for p in found.packages if 'nvcc' in p)]}" in said
    for name in (
        "include/cuda_runtime.h",
        "include/crt/mma.h",
        "nvvm/libdevice/libdevice.10.bc",
        "nvvm/lib64/libnvvm.so.4",
    ):
        assert (found.home / name).is_file(), name
    assert any((folder / "nv" / "target").is_file() for folder in found.include)
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).nvrtcVersion)"
    (library,) = [p for p in (found.home / "lib64").glob("libnvrtc.so.*") if ".alt." not in p.name]
    subprocess.run([sys.executable, "-c", code, library], check=True, capture_output=True)


@pytest.mark.slow
def test_installing_again_changes_nothing(small: tuple[ToolkitStore, Installed]) -> None:
    store, toolkit = small
    before = (toolkit.home / "cumatrix-toolkit.json").stat()
    again = store.install(SMALL)
    assert (toolkit.home / "cumatrix-toolkit.json").stat().st_ino == before.st_ino
    assert again.fingerprint == toolkit.fingerprint
    forced = store.install(SMALL, force=True)
    assert (toolkit.home / "cumatrix-toolkit.json").stat().st_ino != before.st_ino
    assert forced.fingerprint == toolkit.fingerprint
    assert left(store) == ["12.4"]


def test_a_changed_file_changes_the_fingerprint(small: tuple[ToolkitStore, Installed]) -> None:
    store, toolkit = small
    header = next(toolkit.home.glob("include/**/target"))
    text = header.read_text()
    os.utime(header)
    fresh = store.find("12.4")
    assert fresh is not None
    assert fresh.fingerprint == toolkit.fingerprint  # touched, not changed
    header.write_text(text + "// changed")
    changed = store.find("12.4")
    assert changed is not None
    assert changed.fingerprint != toolkit.fingerprint
    header.write_text(text[:-1] + " ")
    same_size = store.find("12.4")
    assert same_size is not None
    assert same_size.fingerprint not in (toolkit.fingerprint, changed.fingerprint)


def test_a_missing_file_is_damage_with_a_remedy(small: tuple[ToolkitStore, Installed]) -> None:
    store, toolkit = small
    next(toolkit.home.glob("include/**/target")).unlink()
    damaged = store.find("12.4")
    assert damaged is not None
    with pytest.raises(PartUnavailable, match=r"CUDA 12\.4 is damaged .*toolkits install --force 12\.4"):
        _ = damaged.fingerprint
    assert store.install(SMALL, force=True).fingerprint


@pytest.mark.parametrize(
    "packages",
    [
        {"nvidia-cuda-cccl-cu12": "99.9.9"},
        {"nvidia-cuda-cccl-cu12": "12.4.127.post1", "nvidia-cuda-nvrtc-cu12": "0.0.0.1"},
    ],
)
def test_what_cannot_be_had_leaves_nothing(tmp_path: Path, packages: dict[str, str]) -> None:
    store = ToolkitStore(tmp_path / "toolkits")
    with pytest.raises(PartUnavailable, match=r"CUDA 12\.4 cannot be installed from .+: "):
        store.install(Release(name="12.4", packages=packages))
    assert store.find("12.4") is None
    assert left(store) == []


def test_a_failed_installation_leaves_the_earlier_one(small: tuple[ToolkitStore, Installed]) -> None:
    store, toolkit = small
    with pytest.raises(PartUnavailable):
        store.install(Release(name="12.4", packages={"nvidia-cuda-cccl-cu12": "99.9.9"}))
    assert store.find("12.4") == toolkit
    assert left(store) == ["12.4"]


def test_another_version_than_asked_for_is_unavailable(tmp_path: Path) -> None:
    """PyPI treats 12.4.127.post1 and 12.4.127.POST1 as equal; a manifest does not."""
    store = ToolkitStore(tmp_path / "toolkits")
    with pytest.raises(PartUnavailable, match=r"asked for .*, got "):
        store.install(Release(name="12.4", packages={"nvidia-cuda-cccl-cu12": "12.4.127.POST1"}))
    assert left(store) == []


def test_a_changed_list_of_wheels_is_installed_anew(small: tuple[ToolkitStore, Installed]) -> None:
    store, toolkit = small
    before = toolkit.fingerprint
    other = store.install(Release(name="12.4", packages={"nvidia-cuda-cccl-cu12": "12.5.39.post1"}))
    assert other.fingerprint != before
    assert left(store) == ["12.4"]


def test_removing(small: tuple[ToolkitStore, Installed]) -> None:
    store, _ = small
    assert store.remove("12.4")
    assert not store.remove("12.4")
    assert left(store) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="set CUMATRIX_HOME"):
        ToolkitStore(tmp_path / "file").install(SMALL)


@pytest.mark.parametrize("text", ["", "[", "{}", "[]", '{"release": "12.4"}', "null"])
def test_a_manifest_that_cannot_be_read_is_no_toolkit(tmp_path: Path, text: str) -> None:
    (tmp_path / "12.4").mkdir()
    (tmp_path / "12.4" / "cumatrix-toolkit.json").write_text(text)
    assert ToolkitStore(tmp_path).find("12.4") is None
