"""``--keep-artifacts``: real compilers, from the run to the page."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from command import Command

from harness.toolkits import Release, ToolkitStore

pytestmark = pytest.mark.called

KERNEL = 'extern "C" __global__ void axpy(float a, float *x, float *y) { y[threadIdx.x] += a * x[threadIdx.x]; }\n'
# The smallest wheel of that release, which takes seconds.
SMALL = Release(name="13.5", packages={"nvidia-cuda-profiler-api": "13.5.25"})


def texts(page: Path) -> list[dict[str, Any]]:
    """Return the texts of artifacts in a page's data: JSON, compressed by zlib, as base64."""
    found = sorted(path for path in (page / "data").glob("code-*.js") if "code-of-" not in path.name)
    packed = [path.read_text().partition(',"')[2].removesuffix('");\n') for path in found]
    return [json.loads(zlib.decompress(base64.b64decode(each))) for each in packed]


@pytest.mark.slow
@pytest.mark.compilers
def test_what_was_built_is_kept_and_shown(cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    env = {"CUMATRIX_CACHE_DIR": str(tmp_path / "cache")}
    words = ("try", "kernel.cu", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80,compute_80", "--out", "r.jsonl")
    before = cumatrix.records(*words, env=env)
    # An answer of an earlier run has no artifact: what is not in the folder is compiled again, once.
    for expected in (False, True):
        kept = cumatrix.records(*words, "--keep-artifacts", "built", env=env)
        assert [record["cached"] for record in kept] == [expected, expected]
        assert [record["artifact"] for record in kept] == [record["artifact"] for record in before]
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "built").iterdir()}
    assert files == {f"{record['artifact']['sha256']}.{record['artifact']['format']}": record["artifact"]["sha256"] for record in kept}  # fmt: skip
    next((tmp_path / "built").glob("*.cubin")).unlink()
    again = cumatrix.records(*words, "--keep-artifacts", "built", env=env)
    assert {record["target"]: record["cached"] for record in again} == {"sm_80": False, "compute_80": True}

    tools = ToolkitStore(tmp_path / "toolkits").install(SMALL, ["nvdisasm"]).home / "bin"
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", **env}
    report = ("report", "r.jsonl", "--no-published", "--out", "page")
    done = cumatrix(*report, "--artifacts", "built", env=path)
    assert done.returncode == 0, done.stderr
    shown = texts(tmp_path / "page")
    (ptx,) = [each for each in shown if not each["by"]]
    (sass,) = [each for each in shown if each["by"].startswith("nvdisasm 13.")]
    assert ".target sm_80" in ptx["text"] and ".entry axpy" in ptx["text"]
    assert "STG.E" in sass["text"] and "EXIT" in sass["text"] and "/*0000*/" not in sass["text"]
    for more in ((), ("--artifacts", str(tmp_path))):
        done = cumatrix(*report, *more, env=env)
        assert done.returncode == 0, done.stderr
        assert not list((tmp_path / "page" / "data").glob("code-*"))
        assert ("has no artifact of these cells" in done.stderr) is bool(more)


@pytest.mark.compilers
def test_a_full_disk_costs_no_record(cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "built").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=2", "none", tmp_path / "built"])
    if mounted.returncode:
        pytest.skip("a disk that is full cannot be made here")
    try:
        (tmp_path / "built" / "file").write_bytes(b"x")
        done = cumatrix("try", "kernel.cu", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "--keep-artifacts", "built", "--json")  # fmt: skip
    finally:
        subprocess.run(["umount", "-l", tmp_path / "built"], check=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "built"
    assert "not kept in built (1 artifacts): No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("try", "kernel.cu", "-b", "nvrtc", "--keep-artifacts", "kernel.cu"), "cannot keep artifacts in kernel.cu: File exists"),
        (("report", "kernel.cu", "--artifacts", "none"), "there is no folder none: cumatrix run --keep-artifacts none makes it"),
    ],
)  # fmt: skip
def test_what_is_no_folder_is_one_sentence(
    cumatrix: Command, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    done = cumatrix(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
