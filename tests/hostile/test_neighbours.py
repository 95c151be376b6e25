"""Hostile programs beside innocent ones, on the same workers: every record of an innocent one is as without them, and nothing is left."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cells import Place, lasting, make_case, run_all
from traces import processes

import harness
from harness.engine.context import RunContext
from harness.model import Cell
from harness.protocol.wire import Limits
from harness.toolkits import Installed
from harness.toolkits.store import data_folder
from harness.worker.confine import kept_from

from .programs import BEGIN, FILES, PROGRAMS

OPEN = ", ".join(kept_from()[1])
pytestmark = [
    pytest.mark.compilers,
    # They do what they try to do where nothing keeps them from it.
    pytest.mark.skipif(bool(OPEN), reason=f"this kernel does not keep cells from {OPEN}"),
]

RELEASE = "12.9"
KERNEL = """
from numba import cuda

@cuda.jit
def scale(a):
    i = cuda.grid(1)
    if i < a.size - {}:
        a[i] *= 2
"""
ENTRIES = {"scale": "void(float32[:])"}
# A program that has done its worst has nothing more to say; one without a kernel is refused.
END = "\nraise SystemExit(3)\n"
ODD = dict.fromkeys(("leaves-huge-files", "leaves-no-files", "ends-silently"), "crashed")
if os.geteuid():
    ODD["shuts-folders"] = "crashed"  # root may write there all the same


@dataclass(frozen=True)
class Aftermath:
    """What is left of a run: records by name of the program, those of the innocent without the others, and traces."""

    records: dict[str, dict[str, Any]]
    alone: dict[str, dict[str, Any]]
    left: list[str]


@pytest.fixture(scope="module")
def place(places: Callable[[str], Place], toolkit: Callable[[str], Installed]) -> Place:
    toolkit(RELEASE)
    return places("numba==0.59.1")


@pytest.fixture(scope="module")
def aftermath(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    root = tmp_path_factory.mktemp("programs")
    mark = f"hostile-{os.getpid()}-{uuid4().hex}"
    words = {"cache": os.environ["CUMATRIX_CACHE"], "data": str(data_folder()), "mark": mark, "here": str(root)}

    def cell(name: str, text: str) -> Cell:
        (root / name).mkdir()
        (root / name / "kernel.py").write_text(text)
        return place.cell(make_case(root / name / "kernel.py", name, entries=ENTRIES), "numba", RELEASE, "sm_80")

    def hostile(name: str) -> Cell:
        text = BEGIN + PROGRAMS[name]
        for word, value in words.items():
            text = text.replace("{" + word + "!r}", repr(value))
        return cell(name, text + END)

    neighbours = [cell(f"innocent-{number}", KERNEL.format(number)) for number in range(len(PROGRAMS) // 5)]
    mixed = [hostile(name) for name in PROGRAMS]
    for number, neighbour in enumerate(neighbours):
        mixed.insert(6 * number + 5, neighbour)
    context = RunContext(place.environment, place.store, None, Limits(seconds=300))
    temporary, before = tmp_path_factory.mktemp("temporary"), _objects()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        alone = run_all(neighbours, context)
        records = run_all(mixed, context, jobs=2)
    left = [*map(str, temporary.iterdir()), *map(str, processes(mark)), *sorted(_objects() - before)]
    package = Path(harness.__file__).parent
    suspects = [package, *map(Path, words.values()), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/root")]
    left += [
        str(folder / name)
        for folder in suspects
        for name in ("intruder", "intruder.py")
        if os.path.lexists(folder / name)
    ]
    by_name: dict[str, dict[str, Any]] = {each.case.name: dict(records[each.id]) for each in mixed}
    return Aftermath(by_name, {each.case.name: dict(alone[each.id]) for each in neighbours}, left)


def _objects() -> set[str]:
    """System V's objects under the key of the programs."""
    key = str(0x5EED)
    return {
        f"{kind} {key}"
        for kind in ("shm", "sem", "msg")
        for line in Path("/proc/sysvipc", kind).read_text().splitlines()
        if line.split()[0] == key
    }


def test_the_innocent_do_not_notice(aftermath: Aftermath) -> None:
    assert {record["status"] for record in aftermath.alone.values()} == {"built"}
    for name, record in aftermath.alone.items():
        assert lasting(aftermath.records[name]) == lasting(record)


def test_nothing_is_left(aftermath: Aftermath) -> None:
    assert aftermath.left == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_reached(aftermath: Aftermath, name: str) -> None:
    record = aftermath.records[name]
    assert record["status"] == ODD.get(name, "rejected"), (record["reason"], record["log"])
    assert "reached" not in record["log"]
    assert name in ODD or "Traceback" not in record["log"]


def test_every_program_that_reaches_for_files_was_refused_some(aftermath: Aftermath) -> None:
    """Else they would not show anything: of those that have something to be refused."""
    for name in set(FILES) - {"asks-for-ever", "leaves-huge-files", "leaves-no-files", "mounts"}:
        assert "refused" in aftermath.records[name]["log"], name
