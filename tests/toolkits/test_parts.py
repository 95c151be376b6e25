"""Parts of CUDA in addition to the compilers: real wheels, the smallest available."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command

from harness.errors import PartUnavailable, UsageError
from harness.toolkits import RELEASES, Release, ToolkitStore
from harness.toolkits.releases import PARTS, parse_parts, parts_among, wheels_of

# The smallest wheel of a release, which installs in seconds.
SMALL = Release(name="12.4", packages={"nvidia-cuda-cccl-cu12": "12.4.127.post1"})


def test_parts_by_name() -> None:
    assert parse_parts("cufft, curand,cufft", ["12.4", "13.0"]) == ["cufft", "curand"]
    assert wheels_of(["cufft", "cudnn"], "13.0") == {"nvidia-cufft": "12.0.0.61", "nvidia-cudnn-cu13": "9.28.0.42"}
    assert wheels_of(["cufft"], "12.4") == {"nvidia-cufft-cu12": "11.2.1.3"}
    assert "cufile" in parse_parts("all", ["13.0"])
    assert "cufile" not in parse_parts("all", ["11.8", "13.0"])


@pytest.mark.parametrize("text", ["cuffft", "", ",", "cufft,none", "all,cufft"])
def test_what_is_no_part(text: str) -> None:
    with pytest.raises(UsageError, match=r"unknown part|names no part"):
        parse_parts(text, ["12.4"])


def test_a_part_that_is_not_on_pypi_is_one_sentence() -> None:
    with pytest.raises(PartUnavailable, match=r"^cufile is not on PyPI for CUDA 11\.8; it is for 12\.6, .*13\.5$"):
        parse_parts("nvtx,cufile", ["13.0", "11.8"])


def test_every_release_has_parts_by_exact_version() -> None:
    for release in RELEASES:
        wheels = wheels_of(parse_parts("all", [release]), release)
        assert {"cublas", "cufft", "curand", "cusolver", "cusparse", "nvtx", "cupti"} <= set(
            parts_among(wheels, release)
        )
        major = int(release.split(".")[0])
        assert all(name.endswith((f"-cu{major}",) if major < 13 else ("-cu13", name)) for name in wheels)
        assert not set(wheels) & set(RELEASES[release].packages)
    assert [part.name for part in PARTS.values() if not part.headers] == ["nvdisasm"], "tools are asked for by name"


@pytest.mark.slow
@pytest.mark.compilers
def test_a_part_is_added_once_and_stays(tmp_path: Path) -> None:
    store = ToolkitStore(tmp_path / "toolkits")
    bare = store.install(SMALL)
    before = bare.fingerprint
    assert parts_among(bare.packages, "12.4") == []
    assert not (bare.home / "include" / "cuda_profiler_api.h").exists()
    more = store.install(SMALL, ["profiler-api"])
    assert (more.home / "include" / "cuda_profiler_api.h").is_file()
    assert more.fingerprint != before
    manifest = (more.home / "cumatrix-toolkit.json").stat().st_ino
    for parts in ([], ["profiler-api"]):
        again = store.install(SMALL, parts)
        assert parts_among(again.packages, "12.4") == ["profiler-api"]
        assert (again.home / "cumatrix-toolkit.json").stat().st_ino == manifest
    both = store.install(SMALL, ["nvtx"])
    assert parts_among(both.packages, "12.4") == ["profiler-api", "nvtx"]
    assert (both.home / "include" / "nvtx3" / "nvToolsExt.h").is_file()
    assert parts_among(store.install(SMALL, force=True).packages, "12.4") == ["profiler-api", "nvtx"]


@pytest.mark.compilers
def test_two_wheels_with_the_same_file(tmp_path: Path) -> None:
    """From CUDA 13 on, all wheels share one folder: cupti and sanitizer-api both have headers of that name."""
    release = Release(name="13.0", packages={"nvidia-cuda-profiler-api": "13.0.85"})
    found = ToolkitStore(tmp_path / "toolkits").install(release, ["cupti", "sanitizer-api"])
    assert (found.home / "include" / "generated_cudaGL_meta.h").is_file()
    files = json.loads((found.home / "cumatrix-toolkit.json").read_text())["files"]
    assert found.fingerprint
    assert all((found.home / name).is_file() for name in files)


@pytest.mark.slow
@pytest.mark.compilers
def test_programs_find_the_headers_of_a_part(cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(
        "#include <cuda_profiler_api.h>\n#include <nvtx3/nvToolsExt.h>\n__global__ void k() {}\n"
        "void host() { nvtxMark(__func__); cudaProfilerStart(); }\n"
    )
    home = {"CUMATRIX_HOME": str(tmp_path / "home")}
    common = ("try", "kernel.cu", "-b", "nvcc", "-t", "13.0", "-a", "sm_80")
    assert cumatrix("toolkits", "install", "13.0", env=home).returncode == 0
    (before,) = cumatrix.records(*common, env=home)
    assert before["status"] != "built"
    assert "cuda_profiler_api.h" in json.dumps(before["diagnostics"]) + (before["reason"] or "")
    done = cumatrix("toolkits", "install", "13.0", "--with", "profiler-api,nvtx", env=home)
    assert done.returncode == 0, done.stderr
    assert "CUDA 13.0 with profiler-api, nvtx: " in done.stderr
    (after,) = cumatrix.records(*common, env=home)  # not from the cache, because the toolkit differs
    assert after["status"] == "built", after["log"]
    (line,) = [text for text in cumatrix("toolkits", "list", env=home).stdout.splitlines() if text.startswith("13.0 ")]
    assert line.endswith("  with profiler-api, nvtx")
    assert "13.0 (with profiler-api, nvtx)" in cumatrix("doctor", "-t", "11.7", env=home).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("13.0", "--with", "cuffft"), 2, "unknown part 'cuffft' of CUDA (did you mean \"cufft\"?)"),
        (("11.8,13.0", "--with", "cufile"), 4, "cufile is not on PyPI for CUDA 11.8"),
        (("--with", "cufft"), 2, "nothing to install"),
        (("cutlass==3.5.1", "--with", "cufft"), 2, "--with needs a CUDA release"),
        (("cccl==3.1.0",), 2, "cccl has no version 3.1.0 that is in a wheel"),
        (("cccl==12.9.27", "13.0"), 2, "12.9.27 is the number of a wheel: the cccl in it is 2.8.2"),
    ],
)
def test_what_cannot_be_installed_installs_nothing(
    cumatrix: Command, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = cumatrix("toolkits", "install", *arguments, env={"CUMATRIX_HOME": str(tmp_path / "home")})
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "home").exists()
