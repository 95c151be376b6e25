"""The result cache: what it keeps, what it does not, and what it does with what it cannot read."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.engine.cache import ResultCache, lasting
from harness.errors import UsageError
from harness.hints import hint
from harness.model import Artifact, Diagnostic, KernelResources, Outcome, Stage, Status

FULL = Outcome(
    status=Status.REJECTED, stage=Stage.ASSEMBLE, stages=(Stage.COMPILE, Stage.ASSEMBLE), seconds=1.5, command=("a", "b"), log="l\ng",
    diagnostics=(Diagnostic(severity="error", message="größer", file="kernel.cu", line=7),), observed={"nvrtc": "12.4"}, notes=("n",),
    artifact=Artifact(format="cubin", target="sm_80", bytes=1, sha256="0", kernels=(KernelResources(name="k", num_regs=8),)),
)  # fmt: skip


def test_an_outcome_comes_back_as_it_was(tmp_path: Path) -> None:
    ResultCache(tmp_path).keep_outcome("key", FULL)
    assert ResultCache(tmp_path).outcome("key") == FULL
    assert ResultCache(tmp_path).outcome("other") is None


def refused(log: str = "kernel.cu(1): error: no", fingerprint: str = "e20") -> Outcome:
    """A compiler's refusal."""
    said = Diagnostic(severity="error", message="no", fingerprint=fingerprint)
    return Outcome(status=Status.REJECTED, diagnostics=(said,), log=log)


@pytest.mark.parametrize("status", set(Status) - {Status.REJECTED})
def test_what_another_try_could_change_is_not_kept(status: Status) -> None:
    assert lasting(Outcome(status=status)) is (status in (Status.BUILT, Status.UNSUPPORTED))


def test_a_refusal_is_kept_where_the_compiler_says_why() -> None:
    assert lasting(refused())
    assert not lasting(Outcome(status=Status.REJECTED))
    assert not lasting(refused(fingerprint="plain"))  # its last words, which nobody could read
    assert not lasting(refused(fingerprint="crash"))


@pytest.mark.parametrize(
    "words",
    [
        "k.cu(1): error: x\ncc1plus: fatal error: error writing to /tmp/x.s: No space left on device",
        "OSError: [Errno 24] Too many open files",
        "cc1plus: out of memory allocating 65536 bytes",
        "fatal error: cannot create temporary file",
        "ptxas fatal   : Memory allocation failure",
        "vfork: Resource temporarily unavailable",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
    ],
)
def test_a_refusal_in_which_the_machine_had_a_say_is_not_kept(words: str) -> None:
    assert not lasting(refused(words))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"status": "new"},
        {"status": "built", "color": 1},
        {"status": "built", "stage": 3},
        {"status": "built", "artifact": {"x": 1}},
    ],
)
def test_an_entry_of_another_version_counts_as_missing(tmp_path: Path, value: dict[str, Any]) -> None:
    cache = ResultCache(tmp_path)
    cache.keep_fact("key", value)
    assert cache.outcome("key") is None


def test_a_file_that_is_no_database_counts_as_missing_or_is_named(tmp_path: Path) -> None:
    ResultCache(tmp_path).keep_outcome("key", FULL)
    (tmp_path / "cache.db").write_bytes(b"nothing of SQLite's" * 1000)
    try:
        found = ResultCache(tmp_path).outcome("key")
    except UsageError as error:
        found = None if "--no-cache" in str(error) else FULL
    assert found is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot use the cache in .*file.*--no-cache"):
        ResultCache(tmp_path / "file" / "results")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk that is full")
@pytest.mark.parametrize("used", [True, False])
def test_a_full_disk_is_no_reason_not_to_run(tmp_path: Path, used: bool, capsys: pytest.CaptureFixture[str]) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine's root may not mount")
    try:
        if used:
            ResultCache(disk).close()
        with contextlib.suppress(OSError), open(disk / "rest", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CUMATRIX_CACHE", str(disk))
            hint.cache_clear()
            cache = ResultCache.if_there_is_room()
        if cache:
            cache.keep_outcome("key", FULL)
            assert cache.outcome("key") in (None, FULL)
            cache.close()
        else:
            assert "everything is compiled" in capsys.readouterr().err
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
