"""Hostile Python programs that run together with innocent ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cells import Place, lasting, make_case, run_all
from traces import processes

import harness
from harness.engine.context import RunContext, RunRequest
from harness.model import Cell
from harness.protocol.messages import Limits
from harness.toolkits.store import data_folder

from .programs import ENTRIES, KERNEL, intruders, text_of

RELEASE = "12.9"


@dataclass(frozen=True)
class Aftermath:
    """Results of a run: records by name of the program, the innocent records of a run without hostile programs, and traces."""

    records: dict[str, dict[str, Any]]
    alone: dict[str, dict[str, Any]]
    left: list[str]

    @property
    def hostile(self) -> dict[str, dict[str, Any]]:
        """Records of the hostile programs."""
        return {name: record for name, record in self.records.items() if name not in self.alone}

    def check_innocent(self) -> None:
        """Check that the innocent records are as without the hostile programs."""
        assert {record["status"] for record in self.alone.values()} == {"built"}
        for name, record in self.alone.items():
            assert lasting(self.records[name]) == lasting(record)


def run_programs(place: Place, programs: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """Run hostile and innocent programs together, and the innocent programs alone."""
    root = tmp_path_factory.mktemp("programs")
    mark = f"hostile-{os.getpid()}-{uuid4().hex}"
    words = {"cache": os.environ["CUMATRIX_CACHE"], "data": str(data_folder()), "mark": mark, "here": str(root)}

    def cell(name: str, text: str) -> Cell:
        (root / name).mkdir()
        (root / name / "kernel.py").write_text(text)
        return place.cell(make_case(root / name / "kernel.py", name, entries=ENTRIES), "numba", RELEASE, "sm_80")

    def hostile(name: str) -> Cell:
        return cell(name, text_of(programs[name], words))

    neighbours = [cell(f"innocent-{number}", KERNEL.format(number)) for number in range(len(programs) // 5)]
    mixed = [hostile(name) for name in programs]
    for number, neighbour in enumerate(neighbours):
        mixed.insert(6 * number + 5, neighbour)
    context = RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=300)))
    temporary, before = tmp_path_factory.mktemp("temporary"), _objects()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        alone = run_all(neighbours, context)
        records = run_all(mixed, context, jobs=2)
    left = [*map(str, temporary.iterdir()), *map(str, processes(mark)), *sorted(_objects() - before)]
    left += intruders([Path(harness.__file__).parent, *map(Path, words.values())])
    by_name: dict[str, dict[str, Any]] = {each.case.name: dict(records[each.id]) for each in mixed}
    return Aftermath(by_name, {each.case.name: dict(alone[each.id]) for each in neighbours}, left)


def _objects() -> set[str]:
    """Return System V objects under the key of the programs."""
    key = str(0x5EED)
    return {
        f"{kind} {key}"
        for kind in ("shm", "sem", "msg")
        for line in Path("/proc/sysvipc", kind).read_text().splitlines()
        if line.split()[0] == key
    }
