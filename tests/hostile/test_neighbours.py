"""Hostile and innocent programs on the same workers: every innocent record is unchanged, and nothing is left."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from cells import Place

from harness.toolkits import Installed
from harness.worker.sandbox import sandbox_restrictions

from .programs import FILES, PROGRAMS
from .runs import RELEASE, Aftermath, run_programs

OPEN = ", ".join(sandbox_restrictions()[1])
pytestmark = [
    pytest.mark.compilers,
    # Without isolation, the programs succeed.
    pytest.mark.skipif(bool(OPEN), reason=f"this kernel does not keep cells from {OPEN}"),
]

ODD = dict.fromkeys(("leaves-huge-files", "leaves-no-files", "ends-silently", "opens-without-end"), "crashed")
ODD.update(dict.fromkeys(("numba-assembly-of-blank-lines", "numba-assembly-of-entries"), "built"))
if os.geteuid():
    ODD["shuts-folders"] = "crashed"  # root can write there anyway
# One or two of each kind for the first tier: each program is a Numba process.
QUICK = (
    "forges-an-answer", "forges-records-of-reads", "kills-its-parent", "kills-the-keeper", "traces-its-parent", "writes-to-siblings",
    "writes-to-the-engine", "leaves-a-daemon", "ends-silently", "changes-the-machine", "records-of-reads-by-many",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(places: Callable[[str], Place], toolkit: Callable[[str], Installed]) -> Place:
    toolkit(RELEASE)
    return places("numba==0.59.1")


@pytest.fixture(
    scope="module", params=[QUICK, pytest.param(tuple(PROGRAMS), marks=pytest.mark.slow)], ids=["few", "all"]
)
def aftermath(request: pytest.FixtureRequest, place: Place, tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    return run_programs(place, {name: PROGRAMS[name] for name in request.param}, tmp_path_factory)


def test_the_innocent_do_not_notice(aftermath: Aftermath) -> None:
    aftermath.check_innocent()


def test_nothing_is_left(aftermath: Aftermath) -> None:
    assert aftermath.left == []


def test_nothing_is_reached(aftermath: Aftermath) -> None:
    assert len(aftermath.hostile) >= len(QUICK)
    for name, record in aftermath.hostile.items():
        assert record["status"] == ODD.get(name, "rejected"), (name, record["reason"], record["log"])
        assert "reached" not in record["log"], (name, record["log"])
        assert name in ODD or "Traceback" not in record["log"], (name, record["log"])


def test_every_program_that_reaches_for_files_was_refused_some(aftermath: Aftermath) -> None:
    """Otherwise the tests would prove nothing."""
    some = aftermath.hostile.keys() & (set(FILES) - {"asks-for-ever", "leaves-huge-files", "leaves-no-files", "mounts"})
    assert some
    for name in some:
        assert "refused" in aftermath.hostile[name]["log"], name
