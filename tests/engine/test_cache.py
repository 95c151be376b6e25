"""The result cache: what it keeps, what it does not, and what it does with what it cannot read."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harness.engine.cache import ResultCache
from harness.errors import UsageError
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


@pytest.mark.parametrize("status", Status)
def test_what_another_try_could_change_is_not_kept(tmp_path: Path, status: Status) -> None:
    cache = ResultCache(tmp_path)
    cache.keep_outcome("key", Outcome(status=status))
    kept = status in (Status.BUILT, Status.REJECTED, Status.CRASHED, Status.UNSUPPORTED)
    assert (cache.outcome("key") is not None) is kept


def test_a_kill_may_have_been_the_machines(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    cache.keep_outcome("killed", Outcome(status=Status.CRASHED, signal=signal.SIGKILL))
    cache.keep_outcome("crashed", Outcome(status=Status.CRASHED, signal=signal.SIGSEGV))
    assert cache.outcome("killed") is None
    assert cache.outcome("crashed") is not None


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
def test_an_entry_of_another_version_counts_as_missing(tmp_path: Path, value: dict) -> None:
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
