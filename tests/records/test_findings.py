"""Unexpected cells, for CI systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from record_builders import built, cell, changed, record, rejected

from harness.model import Outcome, Status
from harness.records.failures import again_command, findings, not_repeatable
from harness.report.junit import DOCUMENTS, MOST, github


def test_equal_failures_are_one_with_all_their_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "cases" / "wmma" / "fragments"
    place.mkdir(parents=True)
    (place / "kernel.cu").write_text("")
    bad = [record(cell(target=target), rejected()) for target in ("sm_75", "sm_80")]
    (found,) = findings([*bad, record(cell(target="sm_90"), built("sm_90"))])
    assert (found.file, found.line, found.message) == (
        "cases/wmma/fragments/kernel.cu",
        12,
        "incomplete type is not allowed",
    )
    assert found.where == "cupy-nvrtc 13.6.0, CUDA 12.4, sm_75, sm_80"
    assert found.again == "cumatrix run wmma/fragments -b cupy-nvrtc -t 12.4 -a sm_75"
    assert len(found.cells) == 2
    (other,) = findings([bad[0]], cases=[tmp_path / "none"])
    assert other.file == ""
    assert len(findings([bad[0], record(cell(target="sm_80"), rejected("another"))])) == 2


def test_they_come_as_in_the_terminal_and_stay_the_same_as_cells_come_and_go() -> None:
    died = Outcome(status=Status.CRASHED, signal=11, reason="the compiler's process was ended by signal 11")
    absent = Outcome(status=Status.UNAVAILABLE, reason="CUDA 12.4 is not installed")
    bad = [record(cell(target=target), rejected(f"{target} is no target")) for target in ("sm_90", "sm_80")]
    many = [*(record(cell(case=f"topic/{name}"), absent) for name in "ba"), *bad, record(cell(target="sm_75"), died)]
    found = findings(many)
    assert [each.title for each in found] == [
        "wmma/fragments: crashed", "wmma/fragments: rejected at compile", "topic/a: unavailable", "topic/b: unavailable",
    ]  # fmt: skip
    assert findings(many[::-1]) == found
    (one,) = findings(bad[:1])
    assert (one.message, found[1].message) == ("sm_90 is no target", "sm_XX is no target")
    assert one.fingerprint == found[1].fingerprint


def test_no_path_leads_out_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.cu").write_text("")
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    for file in ("../secret.cu", str(tmp_path / "secret.cu")):
        bad = record(cell(), rejected())
        (found,) = findings([changed(bad, diagnostics=[{**bad["diagnostics"][0], "file": file}])])
        assert found.file == ""


def test_what_others_said_is_no_command_to_the_ci() -> None:
    bad = record(cell(case="a,b::c/x"), rejected("boom\n::set-output name=x::y %0A::error::z"))
    (said,) = github(findings([bad]))
    assert "\n" not in said
    assert said.startswith("::error title=a%2Cb%3A%3Ac/x%3A rejected at compile::")
    assert "%250A" in said


def test_every_form_has_every_finding() -> None:
    many = [record(cell(case=f"many/c{number}"), rejected()) for number in range(MOST + 3)]
    found = findings(many)
    assert len(github(found)) == MOST + 1
    assert "3 more failures" in github(found)[-1]
    assert len(DOCUMENTS["sarif"](found)["runs"][0]["results"]) == MOST + 3
    prints = {entry["fingerprint"] for entry in DOCUMENTS["gitlab"](found)}
    assert len(prints) == MOST + 3


def test_variants_whose_messages_differ_in_numbers_are_one_failure() -> None:
    sizes = [
        record(cell(variant={"bytes": str(size)}), rejected(f"uses too much shared data ({size:#x} bytes, 0xc000 max)"))
        for size in (49156, 49160, 65536)
    ]
    (found,) = findings(sizes)
    assert (len(found.cells), len(github([found]))) == (3, 1)
    assert found.message == "uses too much shared data (0xc004 bytes, 0xc000 max)"


def test_no_two_failures_of_a_report_have_one_fingerprint() -> None:
    """GitLab shows only one of several entries with equal fingerprints: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""
    bad = record(cell(), rejected())
    lines = [changed(bad, diagnostics=[{**bad["diagnostics"][0], "line": line}], cell=f"{line}") for line in (3, 12)]
    found = findings(lines)
    prints = [entry["fingerprint"] for entry in DOCUMENTS["gitlab"](found)]
    assert len(set(prints)) == len(prints) == 2
    assert findings(lines[:1])[0].fingerprint == prints[0]


def test_a_cell_is_compiled_again_by_a_command() -> None:
    of = record(cell(variant={"shape": "m16"}, environment="cupy-13.6.0-cuda12"), rejected())
    assert (
        again_command(of)
        == "cumatrix run wmma/fragments -b cupy-nvrtc -t 12.4 -a sm_80 --with cupy=13.6.0 --where 'variant == \"shape=m16\"'"
    )
    tried = changed(of, program="ab" * 6, case="src/a b.cu", variant="-DN=4 '-DT=a b'", environment="local")
    assert again_command(tried) == "cumatrix try 'src/a b.cu' -DN=4 '-DT=a b' -b cupy-nvrtc -t 12.4 -a sm_80"
    assert again_command(changed(tried, case="kernel.cu@3fa9c1")) == ""
    for words in ("-DN=4 -Iinc@7b5f9f", "--library=cccl=3.1.2+git.12.b3b876b"):
        assert again_command(changed(tried, variant=words)) == ""
    assert "--host-compiler gcc-13 --where" in again_command(changed(of, host_compiler="gcc-13"))
    assert again_command(changed(of, host_compiler="glibc-2.43")) == ""  # the record does not contain its location
    built = changed(of, variant="cutlass=3.6.0,form=reported")
    assert "--library=cutlass=3.6.0 --where" in again_command(built)


@pytest.mark.parametrize(
    ("library", "build", "words"),
    [
        ("0.15.0+python3.9", None, "--with numba-cuda=0.15.0 --python 3.9"),
        ("0.15.0+git.3f2a9c1", {"url": "https://example.org/n", "commit": "3f2a9c1d"}, "--with 'numba-cuda @ git+https://example.org/n@3f2a9c1d'"),
        ("0.15.0+build.42bf4c1", {"url": "file:///tmp/n-py3-none-any.whl", "digest": "42"}, "--with 'numba-cuda @ file:///tmp/n-py3-none-any.whl'"),
        ("0.15.0+git.3f2a9c1.dirty.65f0", {"url": "file:///tmp/a%20b", "commit": "3f2a+dirty", "editable": True}, "--with '-e /tmp/a b'"),
    ],
)  # fmt: skip
def test_a_library_is_named_as_it_was(library: str, build: dict[str, Any] | None, words: str) -> None:
    of = record(
        cell(backend="numba-cuda", library=library, environment=f"numba-cuda-{library.replace('+python', '-python')}"),
        rejected(observed={"builds": {"numba-cuda": build}} if build else {}),
    )
    assert again_command(of) == f"cumatrix run wmma/fragments -b numba-cuda -t 12.4 -a sm_80 {words}"
    assert not not_repeatable(of)
    # A path in an environment does not identify the environment.
    local = changed(of, library="0.15.0+local.8c1d4e", environment="numba-cuda-0.15.0+local.8c1d4e")
    local["toolchain"]["observed"]["builds"] = {"numba-cuda": {"path": "/tmp/n"}}
    assert again_command(local) == ""
    assert not_repeatable(local).startswith("is of numba-cuda on a path of Python")
