"""Hostile and innocent texts through NVRTC and nvcc: each hostile text is one cell, every innocent record is unchanged, and nothing is left.

The first tier has a few texts of each kind, and the slow tests have more. The other heavy texts, and all texts through nvcc, take too long
for tests: ``benchmarks/hostile.py`` runs them each night.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from cells import Place, lasting, make_case, run_all
from in_process import ACTING
from traces import processes

from harness.engine.collect import LOG_LIMIT
from harness.engine.context import RunContext, RunRequest
from harness.model import Cell
from harness.protocol.messages import Limits
from harness.toolkits import Installed

from .texts import BUILT, HEAVY, QUICK, TEXTS

pytestmark = pytest.mark.compilers

RELEASES = {"nvrtc": "12.9", "nvcc": "13.0"}
# Inputs of nvcc's own tools: the host's preprocessor and assembler, cicc and ptxas.
NVCC = (
    *("line-with-odd-names", "message-with-escapes", "includes-itself-by-level", "includes-memory", "includes-odd-names", "zeros", "utf-16", "one-long-line"),
    *("errors", "error-with-escapes", "a-template-without-end", "odd-assembly", "assembly-that-includes", "host-assembly-that-includes", "top-level-assembly", "attributes"),
)  # fmt: skip
# One or two of each kind that take less than a second.
FEW = {
    "nvrtc": (
        "message-with-escapes", "long-identifier", "assembly-of-entries", "includes-itself", "includes-memory", "includes-odd-names", "zeros",
        "utf-16", "error-with-escapes", "a-static-array", "odd-assembly", "odd-entry-names",
    ),
    "nvcc": ("message-with-escapes", "includes-odd-names", "error-with-escapes", "attributes"),
}  # fmt: skip
# One endless text of each kind, to test the deadline: in the preprocessor, in cicc or NVRTC, in ptxas.
LONG = ("includes-zeros", "a-macro-of-gigabytes")
INNOCENT = "__global__ void k(int *a) {{ *a = {}; }}\n"
SECONDS = {"nvrtc": 20, "nvcc": 60}
MEMORY = 4 << 30


class Texts:
    """Texts of a backend, run together with innocent texts."""

    def __init__(self, place: Place, backend: str, names: Iterable[str], root: Path) -> None:
        self.place, self.backend, self.root = place, backend, root
        neighbours = [self._cell(f"innocent-{number}", INNOCENT.format(number)) for number in range(4)]
        mixed = [self._cell(name, TEXTS[name]) for name in names]
        for number, each in enumerate(neighbours):
            mixed.insert(number * (len(mixed) // 4) + 1, each)
        patient = RunContext(
            place.environment, place.store, None, RunRequest(limits=Limits(seconds=600, memory=MEMORY))
        )
        limited = RunContext(
            place.environment, place.store, None, RunRequest(limits=Limits(seconds=SECONDS[backend], memory=MEMORY))
        )
        temporary = root / "temporary"
        temporary.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(temporary))
            self.alone = run_all(neighbours, patient)
            found = run_all(mixed, limited, jobs=2)
        self.records = {each.case.name: found[each.id] for each in mixed}
        self.beside = {each.id: found[each.id] for each in neighbours}
        self.left = [*map(str, temporary.iterdir()), *map(str, processes(str(temporary), "environ"))]

    def _cell(self, name: str, text: str | bytes) -> Cell:
        (self.root / name).mkdir()
        path = self.root / name / "kernel.cu"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.place.cell(make_case(path, name), self.backend, RELEASES[self.backend], "sm_80")


@pytest.fixture(
    scope="module",
    params=[pytest.param((backend, few), id=f"{backend}-{'few' if few else 'all'}", marks=() if few else pytest.mark.slow)
            for backend in RELEASES for few in (True, False)],
)  # fmt: skip
def texts(
    request: pytest.FixtureRequest,
    places: Callable[[str], Place],
    toolkit: Callable[[str], Installed],
    tmp_path_factory: pytest.TempPathFactory,
) -> Texts:
    backend, few = request.param
    toolkit(RELEASES[backend])
    every = (*NVCC, *LONG[:1]) if backend == "nvcc" else (*BUILT, *QUICK, *LONG)
    names = FEW[backend] if few else every
    return Texts(places(""), backend, names, tmp_path_factory.mktemp(backend))


def test_each_is_one_cell(texts: Texts) -> None:
    for name, record in texts.records.items():
        assert record["status"] in ("built", "rejected", "crashed", "timed_out"), (name, record["reason"])
        assert name not in BUILT or record["status"] == "built", (name, record["log"][-2000:])
        assert name not in HEAVY or record["status"] != "built", name
        assert record["reason"] or record["status"] in ("built", "rejected", "timed_out"), name


def test_the_innocent_do_not_notice(texts: Texts) -> None:
    assert {record["status"] for record in texts.alone.values()} == {"built"}
    for cell, record in texts.alone.items():
        assert lasting(texts.beside[cell]) == lasting(record)


def test_nothing_is_left(texts: Texts) -> None:
    assert texts.left == []


def test_what_is_kept_of_them_is_bounded_and_harmless(texts: Texts) -> None:
    def strings(value: Any) -> Iterable[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from strings(item)

    for name, record in texts.records.items():
        assert len(record["log"]) <= LOG_LIMIT, name
        for text in strings(record):
            assert ACTING.search(text) is None, (name, text[:200])
