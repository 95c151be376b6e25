"""Faults of a library are stated once, for every case below their folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.bless.evidence import Evidence, Observation
from harness.bless.propose import propose
from harness.cases.load import load_case
from harness.cases.toml import CaseError
from harness.cli.main import cumatrix
from harness.model import Case, Cell, Diagnostic, Outcome, Stage, Status, Target, Toolchain, ToolkitRef
from harness.model.judge import expectation_of

FAULT = """
[[expect]]
when = 'backend == "nvrtc" and toolkit == "{toolkit}"'
status = "rejected"
stage = "compile"
xfail = true
reason = "{reason}"
"""
FULL = FAULT.format(toolkit="12.4", reason="x")
CASE = 'title = "A case"\nsource.cuda = "kernel.cu"\nentry.cuda = ["f"]\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "cases"
    for name in ("topic/one", "other/two"):
        (root / name).mkdir(parents=True)
        (root / name / "case.toml").write_text(CASE.replace("A case", name))
        (root / name / "kernel.cu").write_text('extern "C" __global__ void f() {}\n')
    return root


def cell(case: Case, toolkit: str, target: str = "sm_80") -> Cell:
    ref = ToolkitRef(release=toolkit, headers=toolkit)
    toolchain = Toolchain(backend="nvrtc", library="", toolkit=ref)
    return Cell(case=case, variant=case.variants[0], toolchain=toolchain, target=Target.parse(target))


def reason(root: Path, name: str, toolkit: str) -> str:
    case = load_case(root / name / "case.toml", root)
    return expectation_of(cell(case, toolkit)).reason


def test_a_cases_own_expectations_come_first_then_the_topics(root: Path) -> None:
    (root / "faults.toml").write_text("".join(FAULT.format(toolkit=v, reason="root") for v in ("12.4", "12.9", "13.0")))
    (root / "topic/faults.toml").write_text("".join(FAULT.format(toolkit=v, reason="topic") for v in ("12.9", "13.0")))
    own = root / "topic/one/case.toml"
    own.write_text(own.read_text() + FAULT.format(toolkit="13.0", reason="own"))
    assert [reason(root, "topic/one", each) for each in ("12.0", "12.4", "12.9", "13.0")] == [
        "",
        "root",
        "topic",
        "own",
    ]
    assert [reason(root, "other/two", each) for each in ("12.0", "12.4", "12.9", "13.0")] == [
        "",
        "root",
        "root",
        "root",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[expect]]\nstatus = 'built'\n", "cases/faults.toml:1: expect: a fault is expected to fail"),
        (FULL.replace("xfail = true", ""), "a fault is expected to fail, and has a reason"),
        (FULL.replace("backend ==", "form =="), "unknown name 'form'"),
        ("title = 'x'", "unknown key"),
        ("[", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_told_once_with_its_place(root: Path, text: str, words: str) -> None:
    (root / "faults.toml").write_text(text)
    with pytest.raises(CaseError, match=words.replace("[", r"\\[")):
        load_case(root / "topic/one/case.toml", root)
    done = CliRunner().invoke(cumatrix, ["cases", "check", "--cases", str(root)], standalone_mode=False)
    assert done.return_value == 2
    assert done.stderr.count("faults.toml") == 1


def test_bless_leaves_faults_where_they_are(root: Path) -> None:
    (root / "faults.toml").write_text(FAULT.format(toolkit="12.4", reason="root"))
    case = load_case(root / "topic/one/case.toml", root)
    refused = Outcome(
        status=Status.REJECTED, stage=Stage.COMPILE, diagnostics=(Diagnostic(severity="error", message="no such type"),)
    )
    built = Outcome(status=Status.BUILT)
    seen = [
        Observation(cell(case, toolkit, target), refused if toolkit == "12.4" or target == "sm_70" else built, "run")
        for toolkit in ("12.4", "12.9", "13.0")
        for target in ("sm_70", "sm_80", "sm_90")
    ]
    nothing = propose(
        Evidence(case, tuple(s for s in seen if str(s.cell.target) != "sm_70"), (), 0, ()), {"run": "2026-01-01"}
    )
    assert (nothing.wrong, nothing.drafts) == (0, ())
    found = propose(Evidence(case, tuple(seen), (), 0, ()), {"run": "2026-01-01"})
    (draft,) = found.drafts
    assert draft.kept is None
    assert draft.changes is not None and draft.changes["status"] == "rejected"


def test_bless_puts_an_expectation_before_a_fault_that_does_not_hold(root: Path) -> None:
    (root / "faults.toml").write_text(FULL)
    case = load_case(root / "topic/one/case.toml", root)
    refused = Outcome(
        status=Status.REJECTED,
        stage=Stage.ASSEMBLE,
        diagnostics=(Diagnostic(severity="error", message="no such type"),),
    )
    seen = [
        Observation(cell(case, toolkit), refused if toolkit == "12.4" else Outcome(status=Status.BUILT), "run")
        for toolkit in ("12.4", "12.9")
    ]
    (draft,) = propose(Evidence(case, tuple(seen), (), 0, ()), {"run": "2026-01-01"}).drafts
    assert draft.changes is not None and draft.changes["stage"] == "assemble"
