"""A case and its results, for tests of bless."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from record_builders import built, plan, record, rejected

from harness.cases.load import load_case
from harness.model import Case, Cell, Outcome, Target, Toolchain, ToolkitRef
from harness.records import plan_path

HEAD = """#:schema ../../case.schema.json
title = "Adding up"  # in parts

[source]
cuda = "kernel.cu"

[parameters]
bytes = [48, 64]
"""

Told = Callable[[Cell], Outcome]


def write_case(root: Path, expectations: str = "", head: str = HEAD) -> Path:
    """Write ``demo/sum`` into a folder of cases."""
    path = root / "demo" / "sum" / "case.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "kernel.cu").write_text('extern "C" __global__ void sum() {}\n')
    path.write_bytes((head + expectations).encode())
    return path


def cells(
    case: Case, toolkits: Iterable[str] = ("12.4", "12.9", "13.0"), targets: Iterable[str] = ("sm_70", "sm_80", "sm_90")
) -> list[Cell]:
    """Return cells of NVRTC."""
    return [
        Cell(
            case=case,
            variant=variant,
            toolchain=Toolchain(backend="nvrtc", library="", toolkit=ToolkitRef(release=toolkit, headers=toolkit)),
            target=Target.parse(target),
        )
        for variant in case.variants
        for toolkit in toolkits
        for target in targets
    ]


def too_old(cell: Cell) -> Outcome:
    """Return an outcome: rejected below 8.0."""
    return rejected() if cell.target.cc < 80 else built(str(cell.target))


def write_results(path: Path, case_file: Path, told: Told, **axes: Iterable[str]) -> list[Cell]:
    """Write records of all cells, with their plan."""
    of = cells(load_case(case_file, case_file.parents[2]), **axes)
    path.write_text("".join(json.dumps(record(each, told(each))) + "\n" for each in of))
    plan_path(path).write_text(json.dumps(plan(*of)))
    return of
