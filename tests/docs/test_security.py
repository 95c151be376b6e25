"""Tests that every claim of SECURITY.md has a test: a new bullet without one fails, and so does a missing test."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
REACHED = "tests/hostile/test_neighbours.py::test_nothing_is_reached"
EARLIER = "tests/hostile/test_earlier_kernels.py::test_nothing_is_reached"

SHOWN: Mapping[str, Sequence[str]] = {
    "A cell writes only into its own folder": [REACHED],
    "A cell inherits no descriptor": [REACHED],
    "A cell cannot signal, stop, trace": [REACHED, EARLIER],
    "A cell leaves no System V": [REACHED],
    "A cell cannot lease files": [REACHED, EARLIER],
    "A cell cannot change modes": [REACHED],
    "As root, a cell keeps only": [REACHED],
    "All processes of a cell together": ["tests/hostile/test_memory_together.py::test_all_of_a_cell_together"],
    "If a worker process is lost": [
        "tests/hostile/test_worker_lost.py::test_a_lost_worker_costs_one_cell",
        "tests/hostile/test_neighbours.py::test_nothing_is_left",
    ],
    "A separate process with limits": [
        "tests/engine/test_reader.py::test_what_exceeds_a_limit_costs_its_cell",
        "tests/hostile/test_output.py::test_it_costs_one_cell",
    ],
    "The terminal and CI logs": ["tests/hostile/test_texts.py::test_what_is_kept_of_them_is_bounded_and_harmless"],
    "The page escapes all text": ["tests/report/test_pages.py::test_hostile_texts_are_shown_and_do_nothing", "tests/report/test_browser_cell.py::test_hostile_texts_are_shown_and_do_nothing"],
    "Records, plans and histories": ["tests/engine/test_cache.py::test_a_planted_pickle_is_not_run"],
    "`report`, `merge`, `diff`": ["tests/cli/test_trust.py::test_what_runs_nothing_needs_no_trust"],
    "`cumatrix wheel` installs and executes nothing": [
        "tests/wheels/test_hostile.py::test_mutated_files",
        "tests/wheels/test_hostile.py::test_what_is_said",
        "tests/wheels/test_wheel_command.py::test_the_table_and_its_reasons",
    ],
    "Lists of files in results": ["tests/engine/test_fingerprints.py::test_a_set_with_a_file_of_the_kernel_counts_as_missing"],
    "A download has one time limit": [
        "tests/web/test_download.py::test_a_server_that_never_ends_costs_the_limit_and_no_more",
    ],
    "Credentials go only to the origin": [
        "tests/web/test_download.py::test_no_other_origin_is_sent_credentials",
        "tests/web/test_download.py::test_tls_is_checked_and_never_left",
    ],
    "cumatrix refuses a `git+` or wheel address": [
        "tests/toolkits/test_header_sources.py::test_what_is_neither",
        "tests/environments/test_dev_builds.py::test_what_cannot_be_is_told",
        "tests/web/test_download.py::test_a_plan_holds_no_credentials_of_its_command_line",
    ],
    "The SHA-256 of each known wheel": [
        "tests/toolkits/test_download.py::test_a_wheel_that_differs_from_the_pinned_one_is_refused",
    ],
    "An unknown wheel": ["tests/toolkits/test_download.py::test_a_wheel_that_is_not_pinned_is_told_and_recorded"],
    "The index is the one you configured": [
        "tests/toolkits/test_download.py::test_settings_of_the_folder_count_for_nothing",
    ],
    "Repositories in `[libraries]`": [
        "tests/toolkits/test_checked_out.py::test_no_hook_runs_and_no_submodule_is_fetched",
    ],
    "`cumatrix doctor --verify` compares": [
        "tests/toolkits/test_download.py::test_doctor_says_what_differs_and_what_to_do",
    ],
    "The GitHub action verifies": [
        "tests/ci/test_gate.py::test_a_damaged_toolkit_of_the_cache_is_installed_again",
        "tests/ci/test_gate.py::test_nothing_of_the_checkout_runs_before_cumatrix",
        "tests/ci/test_workflows.py::test_tools_of_ci_are_installed_by_hash",
        "tests/ci/test_workflows.py::test_a_release_waits_for_the_tests_of_its_commit",
    ],
}  # fmt: skip
"""Tests by the beginning of a claim."""

NAMED = "tests/cli/test_trust.py::test_a_program_that_a_key_names_is_run_once_it_is_trusted"
TYPED = "tests/cli/test_trust.py::test_what_the_user_names_needs_no_trust_and_is_all_that_runs"
FOUND = "tests/cli/test_trust.py::test_every_value_that_runs_fetches_or_writes_elsewhere_is_found"
NOTHING = "tests/cli/test_trust.py::test_what_runs_nothing_needs_no_trust"

EXECUTED: Mapping[str, Sequence[str]] = {
    "compilers and libraries": [REACHED],
    "Python cases": [REACHED, "tests/gpu/test_isolation.py::test_every_way_to_fail_has_its_own_cell"],
    "`python`, `host-compiler`": [NAMED, TYPED],
    "the same programs": [NAMED, TYPED],
    "compiler options": [FOUND, "tests/cli/test_trust.py::test_run_and_bisect_stop_at_options_that_start_programs"],
    "build scripts": [FOUND],
    "`git` for": [FOUND],
    "the compiler of the record": ["tests/cli/test_trust.py::test_repro_stops_at_options_that_start_programs"],
    "`conftest.py`": ["tests/cli/test_trust.py::test_pytest_stops_too"],
    "nothing of a configuration": [NOTHING],
    "your interpreter": [NOTHING],
}
"""Tests by the beginning of the column "executes" in "Who runs what"."""


def _rows() -> list[str]:
    """Return the second column of "Who runs what"."""
    return re.findall(r"^\| (?!command|---)[^|]+ \| ([^|]+) \| (?:cell|cumatrix|pytest) \|", TEXT, re.MULTILINE)


def test_every_row_has_a_test() -> None:
    rows = _rows()
    assert len(rows) == len(EXECUTED)
    assert [row for row in rows if sum(map(row.startswith, EXECUTED)) != 1] == []


def _claims() -> list[str]:
    """Return the bullets, except those that list what a cell can still do."""
    sections = re.split(r"^A cell can still:$", TEXT, flags=re.MULTILINE)
    kept = sections[0] + sections[1][sections[1].index("## Untrusted text") :]
    return re.findall(r"^- (.+)$", kept, re.MULTILINE)


def test_every_claim_has_a_test() -> None:
    claims = _claims()
    assert len(claims) > 20
    assert [claim for claim in claims if sum(map(claim.startswith, SHOWN)) != 1] == []
    assert [start for start in SHOWN if not any(claim.startswith(start) for claim in claims)] == []


@pytest.mark.parametrize("test", sorted({test for tests in (*SHOWN.values(), *EXECUTED.values()) for test in tests}))
def test_the_test_is_there(test: str) -> None:
    path, name = test.split("::")
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
