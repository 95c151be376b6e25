"""A second source for the reads of cells: every file that strace sees opened or run is among the recorded inputs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import Command

from harness.toolkits import Installed

pytestmark = [
    pytest.mark.compilers,
    pytest.mark.skipif(not shutil.which("strace"), reason="needs strace"),
]

KERNEL = '#include <cuda_fp16.h>\n#include "own.h"\n__global__ void k(half *x) { *x = OWN; }\n'
_CALL = re.compile(r'(\d+) (?:open|openat|execve)\((?:AT_FDCWD, )?"((?:[^"\\]|\\.)*)"(.*)')
_CHDIR = re.compile(r'(\d+) chdir\("([^"]*)"')
_FORK = re.compile(r"(\d+) (?:(?:fork|vfork|clone3?)\(|<\.\.\. (?:fork|vfork|clone3?) resumed>).*= (\d+)$")
_RESUMED = re.compile(r"(\d+) <\.\.\. (?:open|openat|execve) resumed>.*= (\S+)")
# Not inputs: the kernel's own files, and files that the C library reads before any program: the loader's cache, locales, character sets, time zone.
_APART = re.compile(
    r"/(?:proc|sys|dev)/|/etc/(?:ld\.so\.|localtime)|/usr/(?:lib|share)/(?:locale|x86_64-linux-gnu/gconv)"
)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "release"), [("nvrtc", "12.4"), ("nvcc", "13.0")])
def test_every_file_that_is_opened_is_recorded(
    backend: str, release: str, cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit(release)
    cumatrix.folder.joinpath("kernel.cu").write_text(KERNEL)
    cumatrix.folder.joinpath("own.h").write_text("#define OWN 1\n")
    log, cache = tmp_path / "strace.log", tmp_path / "cache"
    calls = "trace=execve,open,openat,fork,vfork,clone,clone3,chdir"
    words = cumatrix.argv("try", "kernel.cu", "-b", backend, "-t", release, "-a", "sm_80", "--out", "out.jsonl")
    done = subprocess.run(
        ["strace", "-f", "-qq", "-s", "4096", "-e", calls, "-o", log, *words], cwd=cumatrix.folder, capture_output=True,
        text=True, timeout=600, stdin=subprocess.DEVNULL, env={**os.environ, "CUMATRIX_CACHE": str(cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = [json.loads(line) for line in (cumatrix.folder / "out.jsonl").read_text().splitlines()]
    assert record["status"] == "built" and record["fingerprint"]
    inputs = json.loads((cumatrix.folder / "out.inputs.json").read_text())
    names = {re.sub(r"^\$\w+", "", str(name)) for name in _texts(inputs["files"])}
    opened = set(_opened(log.read_text("utf-8", "replace"), cumatrix.folder))
    scratch = [path for path in opened if "cumatrix-run-" in path or path.endswith(".pyc")]
    missing = sorted(
        path
        for path in opened - set(scratch)
        if not _APART.match(path) and not any(path.endswith(name) for name in names)
    )
    assert len(opened) > 30
    assert missing == []


def _texts(values: object) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, list):
        for value in values:
            yield from _texts(value)


def _opened(log: str, folder: Path) -> Iterator[str]:
    """Yield the files that workers and their descendants opened or ran."""
    workers: set[str] = set()
    places: dict[str, str] = {}
    waiting: dict[str, str] = {}
    for line in log.splitlines():
        if found := _FORK.match(line):
            places[found[2]] = places.get(found[1], str(folder))
            if found[1] in workers:
                workers.add(found[2])
        elif found := _CHDIR.match(line):
            places[found[1]] = os.path.normpath(os.path.join(places.get(found[1], str(folder)), found[2]))
        elif found := _RESUMED.match(line):
            path = waiting.pop(found[1], "")
            if path and not found[2].startswith("-"):
                yield path
        elif found := _CALL.match(line):
            if "worker/boot.py" in line:
                workers.add(found[1])
            if found[1] not in workers:
                continue
            path = os.path.normpath(os.path.join(places.get(found[1], str(folder)), found[2]))
            if "<unfinished" in line:
                waiting[found[1]] = path
            elif " = -1 " not in line:
                yield path
