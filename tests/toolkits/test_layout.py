"""From unpacked wheels to a CUDA_HOME, with handmade wheels."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import PartUnavailable
from harness.toolkits.store import lay_out

Wheel = Callable[..., None]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def wheel(site: Path) -> Wheel:
    def wheel(name: str, version: str, **files: str) -> None:
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [f"{info.name}/METADATA,,"]
        for path, text in files.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(text)}")
        (info / "RECORD").write_text("\n".join(lines) + "\n")

    return wheel


def below(home: Path) -> set[str]:
    return {path.relative_to(home).as_posix() for path in home.rglob("*") if not path.is_dir() or path.is_symlink()}


def test_a_release_up_to_cuda_12(site: Path, wheel: Wheel, tmp_path: Path) -> None:
    wheel("nvidia-cuda-nvrtc-cu12", "12.4.127", **{
        "nvidia/__init__.py": "", "nvidia/cuda_nvrtc/__init__.py": "", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12": "nvrtc",
        "nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12": "alt", "nvidia/cuda_nvrtc/lib/__init__.py": "", "nvidia/cuda_nvrtc/include/nvrtc.h": "h",
    })  # fmt: skip
    wheel("nvidia-cuda-nvcc-cu12", "12.4.131", **{
        "nvidia/cuda_nvcc/bin/ptxas": "#!/bin/sh", "nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so": "nvvm", "nvidia/cuda_nvcc/nvvm/bin/cicc": "cicc",
        "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc": "bc", "nvidia/cuda_nvcc/include/crt/mma.h": "mma",
    })  # fmt: skip
    home = tmp_path / "home"
    packages, hashes = lay_out(site, home)
    assert packages == {"nvidia-cuda-nvrtc-cu12": "12.4.127", "nvidia-cuda-nvcc-cu12": "12.4.131"}
    real = {"lib64/libnvrtc.so.12", "lib64/libnvrtc.alt.so.12", "include/nvrtc.h", "bin/ptxas", "nvvm/lib64/libnvvm.so", "nvvm/bin/cicc",
            "nvvm/libdevice/libdevice.10.bc", "include/crt/mma.h"}  # fmt: skip
    assert set(hashes) == real
    assert below(home) == real | {"lib", "lib64/libnvrtc.so", "nvvm/lib64/libnvvm.so.4"}
    assert hashes["include/crt/mma.h"] == hashlib.sha256(b"mma").hexdigest()
    assert os.access(home / "bin" / "ptxas", os.X_OK)
    assert os.access(home / "nvvm" / "bin" / "cicc", os.X_OK)
    assert (home / "nvvm" / "lib64" / "libnvvm.so.4").read_text() == "nvvm"
    assert (home / "lib" / "libnvrtc.so").read_text() == "nvrtc"


def test_cuda_13_keeps_nvvm_with_the_libraries(site: Path, wheel: Wheel, tmp_path: Path) -> None:
    wheel(
        "nvidia-nvvm",
        "13.0.88",
        **{"nvidia/cu13/lib/libnvvm.so.4": "nvvm", "nvidia/cu13/nvvm/libdevice/libdevice.10.bc": "bc"},
    )
    wheel("nvidia-cuda-cccl", "13.0.85", **{"nvidia/cu13/include/cccl/nv/target": "t"})
    home = tmp_path / "home"
    lay_out(site, home)
    assert (
        (home / "nvvm" / "lib64" / "libnvvm.so.4").read_text()
        == (home / "nvvm" / "lib64" / "libnvvm.so").read_text()
        == "nvvm"
    )
    assert (home / "include" / "cccl" / "nv" / "target").is_file()


def test_what_is_not_nvidias_stays_out(site: Path, wheel: Wheel, tmp_path: Path) -> None:
    wheel(
        "nvidia-odd",
        "1",
        **{"other/cuda/lib/x.so": "x", "nvidia/odd/share/doc.txt": "d", "nvidia/odd/include/odd.h": "h"},
    )
    home = tmp_path / "home"
    assert set(lay_out(site, home)[1]) == {"include/odd.h"}


def test_no_link_leads_out_of_the_home(site: Path, wheel: Wheel, tmp_path: Path) -> None:
    wheel("nvidia-cuda-runtime-cu12", "12.4.127", **{"nvidia/cuda_runtime/lib/libcudart.so.12": "rt"})
    home = tmp_path / "home"
    lay_out(site, home)
    for path in home.rglob("*"):
        assert path.resolve().is_relative_to(home.resolve())


@pytest.mark.parametrize("name", ["nvidia/evil/include/../../../../mine", "nvidia/evil/include/../../a.h"])
def test_a_wheel_that_names_files_outside_of_itself_moves_none(
    site: Path, wheel: Wheel, tmp_path: Path, name: str
) -> None:
    (tmp_path / "mine").write_text("mine")
    wheel("nvidia-evil", "1.0", **{name: "mine"})
    with pytest.raises(PartUnavailable, match=r"nvidia_evil-1\.0 names a file outside of itself"):
        lay_out(site, tmp_path / "home")
    assert (tmp_path / "mine").read_text() == "mine"
