"""``cumatrix ask``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command
from record_builders import cell, plan, record, rejected

from harness.records import RecordWriter

from .test_errors import sentence

pytestmark = pytest.mark.called

CELLS = Path(__file__).parents[1] / "answers" / "cells.parquet"


def test_an_answer_has_proof(cumatrix: Command) -> None:
    done = cumatrix("ask", "does wgmma work on sm_120?", "--results", CELLS)
    assert (done.returncode, done.stderr) == (0, "")
    assert "instructions/wgmma" in done.stdout
    assert "NVRTC  sm_120  never (0 of 3) (builds on sm_90a; 0 of 7 others)  tried CUDA 12.9, 13.0, 13.5" in done.stdout
    assert "instructions/wgmma nvrtc cuda13.5 sm_120: Instruction 'wgmma.fence' not supported" in done.stdout
    assert "answered cells" in done.stdout


def test_what_nobody_tried_exits_with_3_and_a_command(cumatrix: Command) -> None:
    done = cumatrix("ask", "wmma", "half", "cuda", "12.1", "Orin", "--results", CELLS)
    assert done.returncode == 3
    assert "cumatrix try kernel.cu -t 12.1 -a sm_87" in done.stdout


def test_where_nobody_tried_an_architecture_the_others_are_told(cumatrix: Command) -> None:
    done = cumatrix("ask", "atomicAdd half Maxwell", "--results", CELLS)
    assert done.returncode == 3
    assert done.stdout.startswith("Not tried on sm_5")
    assert "For other architectures:\n" in done.stdout
    assert "atomics/half" in done.stdout
    assert "\nTo try it:\n  cumatrix try kernel.cu -a sm_5" in done.stdout


def test_where_nobody_tried_a_tool_the_others_are_told(cumatrix: Command) -> None:
    done = cumatrix("ask", "wgmma numba 0.59.0 sm_90", "--results", CELLS)
    assert done.returncode == 3
    assert done.stdout.startswith("Not tried with numba 0.59.0 on sm_90. For other tools:\nwgmma: ")
    assert "NVRTC  sm_90  never" in done.stdout
    assert "\nTo try it:\n  cumatrix try kernel.py --with numba=0.59.0 -a sm_90" in done.stdout
    # Neither with another tool on this architecture, nor with this tool on another.
    done = cumatrix("ask", "wgmma numba Orin", "--results", CELLS)
    assert done.stdout.startswith("Not tried with numba on sm_87. For other tools and architectures:\nwgmma: ")


def test_what_nvcc_says_of_an_architecture_has_its_cause_and_the_release_that_knows_it(cumatrix: Command) -> None:
    done = cumatrix("ask", "nvcc fatal   : Unsupported gpu architecture 'compute_120'", "--results", CELLS)
    assert done.stdout.startswith("An architecture that this release does not know.\n")
    assert "CUDA 12.9" in done.stdout.partition("builds for sm_120")[0]
    # Other cases say nothing about an untried one.
    done = cumatrix("ask", "nvcc sm_53", "--results", CELLS)
    assert (done.returncode, done.stdout.partition("\n")[0]) == (3, "Not tried.")


def test_ranges_are_of_what_was_asked_for(cumatrix: Command) -> None:
    done = cumatrix("ask", "cached grid sync numba 0.59.0", "--results", CELLS)
    assert "tried 0.59.0, CUDA 12." in done.stdout
    done = cumatrix("ask", "grid sync nvrtc", "--results", CELLS)
    assert ", not all on each" in done.stdout


def test_what_a_compiler_said_finds_what_is_refused_with_it(cumatrix: Command) -> None:
    done = cumatrix("ask", "incomplete type", "--results", CELLS)
    assert done.returncode == 0
    assert "incomplete type" in done.stdout.partition("wmma/")[2].partition("\n\n")[0]
    assert "cumatrix explain" in done.stdout
    assert "cumatrix explain" not in cumatrix("ask", "wmma", "--results", CELLS).stdout


def test_json_has_chips_findings_and_cells(cumatrix: Command) -> None:
    done = cumatrix("ask", "cached grid sync numba 0.59.0", "--results", CELLS, "--json")
    said = json.loads(done.stdout)
    assert [chip["kind"] for chip in said["chips"]] == ["word", "word", "word", "tool"]
    found = {(item["case"], item["variants"]): item["tools"] for item in said["findings"]}
    (one,) = found["cooperative/numba-9432", "with cache=True"]
    assert (one["kind"], one["answer"]) == ("fault", "does not build, 0 of 1: a known fault")
    assert all("numba@0.59.0" in cell for cell in one["cells"])


def test_what_is_not_known_is_told_with_the_nearest(cumatrix: Command, tmp_path: Path) -> None:
    for question, *words in (
        ("wmma sm_95", "sm_95", "sm_90 and sm_100"),
        ("wmma cuda 13.9", "cuda 13.9", "13.5"),
        ("does it work", "names no feature"),
    ):
        sentence(cumatrix("ask", question, "--results", CELLS), 2, *words)
    unknown = cumatrix("ask", "frobnicate wmma", "--results", CELLS)
    assert (unknown.returncode, unknown.stdout.partition("\n")[0]) == (3, "Not known: no case has frobnicate.")
    # The answer names cases with the other words, without a statement about them.
    assert "wmma/fragments" in unknown.stdout
    assert not set("✓✗◐!") & set(unknown.stdout)
    misspelt = cumatrix("ask", "tesxture references sm_80", "--results", CELLS)
    assert misspelt.returncode == 3
    assert "Did you mean texture or textures?" in misspelt.stdout
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    sentence(cumatrix("ask", "wmma", "--results", tmp_path / "bad.parquet"), 2, "bad.parquet")


def test_the_published_matrix_answers_and_own_results_are_apart(cumatrix: Command) -> None:
    alone = cumatrix("ask", "bf16 wmma sm_75")
    assert alone.returncode == 0, alone.stderr
    assert "From the published matrix: " in alone.stdout
    assert "your own results" not in alone.stdout
    of = cell("wmma/fragments", {"fragment": "bf16"}, backend="nvrtc", library="", toolkit="12.4", target="sm_75")
    with RecordWriter(cumatrix.folder / "reports" / "local.jsonl", plan(of)) as writer:
        writer.append(record(of, rejected()))
    both = cumatrix("ask", "bf16 wmma sm_75")
    published, _, own = both.stdout.partition("From your own results in reports\n")
    assert published.startswith("From the published matrix\n")
    assert "wmma/fragments[fragment=bf16] nvrtc cuda12.4 sm_75" in own
    said = json.loads(cumatrix("ask", "bf16 wmma sm_75", "--json").stdout)
    assert (said["from"], said["own"]["from"], said["own"]["answered"]) == ("published", "own", 1)
    assert said["findings"] and not any(finding["stale"] for finding in said["own"]["findings"])
