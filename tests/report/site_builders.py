"""A report for the tests in a browser: small, with every kind of cell, two runs, and hostile texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from record_builders import BUILT, built, cell, changed, plan, record, rejected

from harness.analysis.history import append
from harness.model import Cell, Diagnostic, Expectation, Outcome, Stage, Status
from harness.model.condition import Condition
from harness.records import Record, RecordWriter
from harness.report.build import build_report

TARGETS = ("sm_75", "sm_80", "sm_90", "sm_90a", "compute_80")
HOSTILE = "\x1b[31m</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"`${alert(3)}\u202e\u2028 {{ 7 * 7 }} __proto__"
SOURCE = (
    "".join(f"// line {number}\n" for number in range(1, 12)) + "__global__ void kernel() { <b>tile</b> }\n// end\n"
)

_XFAIL = Expectation(
    when=Condition.always(), status=Status.REJECTED, xfail=True, reason="told upstream", link="https://example.com/1"
)
_REJECTED = Expectation(when=Condition.always(), status=Status.REJECTED, reason="needs compute capability 8.0")
_CRASH = Outcome(status=Status.CRASHED, stage=Stage.COMPILE, stages=(Stage.COMPILE,), signal=11, log="boom\n")


def cells() -> list[Cell]:
    """Write three cases: one with variants, one without, and one with hostile names."""
    chains: list[dict[str, Any]] = [
        {"backend": "nvrtc", "library": "", "toolkit": "12.4"},
        {"backend": "nvrtc", "library": "", "toolkit": "13.0"},
        {"backend": "cupy-nvrtc", "library": "13.6.0", "toolkit": "12.4"},
        {"backend": "cupy-jitify", "library": "12.3.0", "toolkit": "12.4"},
        {"backend": "numba", "library": "0.59.0", "toolkit": "12.4"},
    ]
    found = [
        cell("wmma/fragments", {"shape": shape}, target=target, title="Fragments of every shape", **chain)
        for shape in ("m16n16k8", "m16n16k16")
        for chain in chains
        for target in TARGETS
    ]
    found += [
        cell("atomics/add", target=target, title="Adding up", **chain) for chain in chains[:3] for target in TARGETS
    ]
    hostile = cell(target="sm_80", title=HOSTILE, environment=HOSTILE)
    return [*found, replace(hostile, case=replace(hostile.case, name="zz/hostile", features=(HOSTILE,)))]


def outcome(of: Cell) -> tuple[Outcome, Expectation] | None:
    """Return the outcome of a cell; None if it never arrived."""
    backend, toolkit, target = of.toolchain.backend, of.toolchain.toolkit.release, str(of.target)
    if of.case.name == "zz/hostile":
        expected = Expectation(when=Condition.always(), status=Status.BUILT, reason=HOSTILE, link="javascript:alert(4)")
        said = Diagnostic(severity="error", message=HOSTILE, file="kernel.cu", line=12, code=HOSTILE)
        more: dict[str, Any] = {
            "notes": (HOSTILE,),
            "reason": HOSTILE,
            "observed": {HOSTILE: HOSTILE, "__proto__": {"x": HOSTILE}},
        }
        return rejected(log=HOSTILE * 9, command=("nvrtc", HOSTILE), diagnostics=(said,), **more), expected
    if of.case.name == "atomics/add":
        if target == "compute_80":
            return None
        if backend == "cupy-nvrtc":
            return Outcome(status=Status.UNAVAILABLE, reason="CuPy 13.6.0 is not installed"), BUILT
        return built(target, registers=24 if toolkit == "12.4" else 96), BUILT
    if toolkit == "13.0" and target == "sm_75":
        return Outcome(status=Status.UNSUPPORTED, reason="CUDA 13.0 knows no sm_75"), BUILT
    if backend == "cupy-jitify":
        return rejected("incomplete type is not allowed"), _XFAIL if target != "sm_90" else BUILT
    if backend == "numba":
        return (_CRASH if target == "sm_90a" else built(target)), BUILT
    if target == "sm_75":
        return rejected("name must be a namespace name"), _REJECTED
    if target == "sm_90a" and backend == "nvrtc":
        return built(target), _XFAIL
    return built(target, cores="HMMA" if target == "sm_90" else ""), BUILT


def records(run: str = "run-2") -> list[Record]:
    """Return everything that arrived."""
    found: list[Record] = []
    for of in cells():
        happened = outcome(of)
        if happened is not None:
            found.append({**record(of, *happened, run=run), "variant": of.variant.name})
    return [changed(found[0], novelty={"libraries": ["cutlass 3.5"]}), *found[1:]]


def build_site(folder: Path) -> Path:
    """Build the report; return its folder."""
    case = folder / "cases" / "zz" / "hostile"
    case.mkdir(parents=True)
    (case / "kernel.cu").write_text(SOURCE)
    fragments = folder / "cases" / "wmma" / "fragments"
    fragments.mkdir(parents=True)
    (fragments / "kernel.cu").write_text(SOURCE)
    # In the run before, Numba did not crash.
    before: list[Record] = [
        {**item, "status": "built", "verdict": "pass", "signal": None} if item["status"] == "crashed" else item
        for item in records("run-1")
    ]
    append(folder / "history", before, [plan(*cells(), run="run-1", day=1)])
    append(folder / "history", records(), [plan(*cells(), run="run-2", day=2)])
    with RecordWriter(folder / "r.jsonl", plan(*cells(), run="run-2", day=2)) as writer:
        for item in records():
            writer.append(item)
    build_report([folder / "r.jsonl"], folder / "html", folder / "cases", history=folder / "history")
    return folder / "html"
