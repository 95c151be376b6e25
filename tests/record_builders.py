"""Cells, records and plans for tests, built with the real model."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from harness.model import (
    Artifact,
    Case,
    Cell,
    Diagnostic,
    Expectation,
    KernelResources,
    Outcome,
    Stage,
    Status,
    Target,
    Toolchain,
    ToolkitRef,
    Variant,
)
from harness.model.condition import Condition
from harness.model.judge import judge
from harness.records import Record, make_plan, make_record
from harness.records.plan import Plan
from harness.records.record import Artifact as ArtifactJson

BUILT = Expectation(when=Condition.always(), status=Status.BUILT)


def cell(
    case: str = "wmma/fragments",
    variant: dict[str, Any] | None = None,
    *,
    backend: str = "cupy-nvrtc",
    library: str = "13.6.0",
    toolkit: str = "12.4",
    headers: str = "",
    target: str = "sm_80",
    environment: str = "cupy13",
    title: str = "Fragments of every shape",
) -> Cell:
    """Return a cell."""
    labels = variant or {}
    return Cell(
        case=Case(
            name=case,
            path=Path("cases") / case / "case.toml",
            title=title,
            features=("wmma",),
            links=("https://github.com/cupy/cupy/issues/8000",),
        ),
        variant=Variant(labels=labels, definitions=labels),
        toolchain=Toolchain(
            backend=backend,
            library=library,
            toolkit=ToolkitRef(release=toolkit, headers=headers or toolkit),
            environment=environment,
            packages={"cupy": library} if library else {},
        ),
        target=Target.parse(target),
    )


def built(target: str = "sm_80", *, registers: int = 40, cores: str | None = None, **fields: Any) -> Outcome:
    """Return an outcome without problems."""
    return Outcome(
        **{
            "status": Status.BUILT,
            "stage": Stage.ASSEMBLE,
            "stages": (Stage.PREPROCESS, Stage.COMPILE, Stage.ASSEMBLE),
            "artifact": Artifact(
                format="cubin",
                target=target,
                bytes=4312,
                sha256="ab" * 32,
                kernels=(
                    KernelResources(
                        name="kernel", num_regs=registers, shared_bytes=1024, spill_bytes=0, tensor_cores=cores
                    ),
                ),
            ),
            "seconds": 0.12,
            "command": ("nvrtc", f"--gpu-architecture={target}"),
            "observed": {"nvrtc": "12.4.127", "python": "3.11.9"},
            **fields,
        }
    )


def rejected(message: str = "incomplete type is not allowed", **fields: Any) -> Outcome:
    """Return an outcome that the compiler rejected."""
    return Outcome(
        **{
            "status": Status.REJECTED,
            "stage": Stage.COMPILE,
            "stages": (Stage.PREPROCESS, Stage.COMPILE),
            "diagnostics": (
                Diagnostic(
                    severity="error",
                    code="70",
                    message=message,
                    file="kernel.cu",
                    line=12,
                    fingerprint=message[:8],
                ),
            ),
            "seconds": 0.08,
            "log": f"kernel.cu(12): error: {message}\n",
            "observed": {"nvrtc": "12.4.127", "python": "3.11.9"},
            **fields,
        }
    )


def record(
    of: Cell | None = None,
    outcome: Outcome | None = None,
    expected: Expectation = BUILT,
    *,
    run: str = "run-1",
    cached: bool = False,
) -> Record:
    """Return a record, judged as cumatrix judges."""
    of = of or cell()
    outcome = outcome or built(str(of.target))
    return make_record(of, outcome, expected, judge(expected, outcome), run=run, cached=cached, fingerprint="f" * 16)


def artifact_of(made: Record) -> ArtifactJson:
    """Return the outcome that a record states."""
    assert made["artifact"] is not None
    return made["artifact"]


def changed(made: Record, **values: Any) -> Record:
    """Return the record with other values, which need not be consistent."""
    return cast("Record", {**made, **values})


def plan(*cells: Cell, run: str = "run-1", day: int = 1, **fields: Any) -> Plan:
    """Return a plan of a day in January."""
    return {
        **make_plan(
            cells,
            run=run,
            environment="cupy13",
            argv=("cumatrix", "run"),
            started=datetime(2026, 1, day, 12, tzinfo=UTC),
            machine={"os": "Linux", "python": "3.11.9", "machine": "x86_64", "cpu": "A CPU", "cpus": 4},
        ),
        **fields,
    }
