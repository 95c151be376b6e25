"""ROCm installations recognized by their files, in a folder of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.toolkits import ToolkitStore, parse_toolkits
from harness.toolkits.rocm import find_rocm, own_rocm, rocm_in

HEADER = "#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 3\n#define HIP_VERSION_PATCH 42134\n"


def made(home: Path, header: str = HEADER) -> Path:
    (home / "include" / "hip").mkdir(parents=True)
    (home / "include" / "hip" / "hip_version.h").write_text(header)
    return home


def test_its_header_tells_the_release(tmp_path: Path) -> None:
    rocm = rocm_in(made(tmp_path))
    assert (rocm.release, rocm.what, rocm.include) == ("6.3", "ROCm 6.3", [])


@pytest.mark.parametrize("header", ["", "#define HIP_VERSION_MAJOR 6\n"])
def test_a_header_without_a_version(tmp_path: Path, header: str) -> None:
    with pytest.raises(UsageError, match="does not define its version"):
        rocm_in(made(tmp_path, header))


def test_a_folder_without_rocm(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is no ROCm: it has no include/hip/hip_version\.h"):
        rocm_in(tmp_path)


def test_it_is_found_by_its_variable_and_named_by_its_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(made(tmp_path)))
    assert find_rocm()["6.3"] == tmp_path
    assert (str(own_rocm()), own_rocm().home) == ("6.3@rocm", str(tmp_path))
    assert "6.3@rocm" in [str(ref) for ref in parse_toolkits("rocm")]
    (ref,) = parse_toolkits("6.3@rocm")
    assert (ref.home, ref.local, ref.rocm) == (str(tmp_path), True, True)


def test_it_is_named_by_its_path(tmp_path: Path) -> None:
    (ref,) = parse_toolkits(str(made(tmp_path)))
    assert (str(ref), ref.home) == ("6.3@rocm", str(tmp_path))


def test_one_that_the_machine_lacks_is_not_there(tmp_path: Path) -> None:
    (ref,) = parse_toolkits("1.9@rocm")
    assert (ref.home, ToolkitStore(tmp_path).of(ref)) == ("", (None, None))


def test_what_is_no_release() -> None:
    with pytest.raises(UsageError, match=r"'new' is not a ROCm release such as 5\.2"):
        parse_toolkits("new@rocm")


def test_a_change_in_it_changes_its_fingerprint(tmp_path: Path) -> None:
    before = rocm_in(made(tmp_path)).fingerprint
    assert rocm_in(tmp_path).fingerprint == before
    folder = tmp_path / "lib" / "x86_64-linux-gnu" / "amdgcn" / "bitcode"
    folder.mkdir(parents=True)
    (folder / "ockl.bc").write_bytes(b"BC")
    assert rocm_in(tmp_path).fingerprint != before
