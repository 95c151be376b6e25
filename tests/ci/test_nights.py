"""Nights played through the steps of the workflow, one after another. A fake gh writes down its calls."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from record_builders import built, cell, plan, record, rejected

from .steps import ROOT, Run, program

pytestmark = pytest.mark.timeout(1800)  # a night consists of many processes

ADDRESS = "https://example.org/cumatrix"
TARGETS = ("sm_75", "sm_80", "sm_90", "sm_100")
HOSTILE = "``` @everyone\n# not a heading <img src=x>"

# A fake gh for one repository: it stores the open issue, and logs every call.
FAKE_GH = """
import json, os, pathlib, sys
argv = sys.argv[1:]
open(os.environ["ASKED"], "a").write(json.dumps(argv) + "\\n")
opened = pathlib.Path(os.environ["ASKED"] + ".open")
if argv[:2] == ["issue", "list"]:
    print(json.dumps([{"number": 7}] if opened.exists() else []))
if argv[:2] == ["issue", "create"]:
    opened.touch()
if argv[:2] == ["issue", "close"]:
    opened.unlink()
"""

Status = Mapping[str, str]
"""Return the status of cells by target."""


class Nights:
    """Player of consecutive nights; each night finds the files of the last."""

    def __init__(self, run: Run, work: Path, tmp_path: Path) -> None:
        self.run, self.work, self.tmp_path = run, work, tmp_path
        self.number = 0

    def play(
        self, environments: Mapping[str, Status | None], *, only: str = "", cells: str = "success"
    ) -> tuple[str, list[list[str]], str]:
        """Play a night with a tier's environments, each in its own shard; None is a shard that sends nothing.

        Return the state, the calls of gh, and the summary.
        """
        self._begin()
        jobs = json.dumps({"include": [
            {"tier": "cpu", "shard": number, "environments": name} for number, name in enumerate(environments, 1)
        ]})  # fmt: skip
        for number, (name, status) in enumerate(environments.items(), 1):
            if status is not None:
                self.send(self.work / "artifacts" / f"records-cpu-{number}", name, status)
        return self._end(jobs, only, cells)

    def share(self, name: str, *parts: Status | None) -> tuple[str, list[list[str]], str]:
        """Play a night of an environment in several shards; None is a shard that sends nothing."""
        self._begin()
        for number, status in enumerate(parts, 1):
            if status is not None:
                shard = {"number": number, "of": len(parts), "whole": "0123"}
                self.send(self.work / "artifacts" / f"records-cpu-{number}", name, status, shard=shard)
        jobs = [{"tier": "cpu", "shard": number, "environments": name} for number in range(1, len(parts) + 1)]
        return self._end(json.dumps({"include": jobs}), "", "success" if all(parts) else "failure")

    def _begin(self) -> None:
        self.number += 1
        for name in ("artifacts", "night", "site", "summary.md"):
            path = self.work / name
            path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
        (self.tmp_path / "asked").unlink(missing_ok=True)
        (self.work / "artifacts").mkdir()

    def _end(self, jobs: str, only: str, cells: str) -> tuple[str, list[list[str]], str]:
        needs: dict[str, Any] = {"cells": {"result": cells}, "matrix": {"result": "failure", "outputs": {}}}
        if self.run("collect", "artifacts", "--jobs", jobs).returncode == 0:
            done = self.run("judge", "--jobs", jobs, "--only", only, "--address", ADDRESS)
            assert done.returncode == 0, done.stdout + done.stderr
            state = (self.tmp_path / "output").read_text().splitlines()[-1].removeprefix("state=")
            needs["matrix"] = {"result": "success", "outputs": {"state": state}}
            # The files of a night that GitHub keeps for the next.
            shutil.rmtree(self.work / "before", ignore_errors=True)
            (self.work / "after").rename(self.work / "before")
        done = self.run("issue", "--needs", json.dumps(needs), "--link", "https://example.org/run")
        asked = [json.loads(line) for line in (self.tmp_path / "asked").read_text().splitlines()]
        state = needs["matrix"]["outputs"].get("state", "no results")
        assert done.returncode == int("incomplete" in state or state == "no results"), done.stderr
        return state, asked, (self.work / "summary.md").read_text()

    def send(self, folder: Path, name: str, status: Status, **more: Any) -> None:
        """Write records with the real model; ``absent`` is planned and never arrives."""
        folder.mkdir(parents=True)
        run = f"{name}-{self.number}-{folder.name}"
        found = {target: cell(target=target, environment=name) for target in status}
        outcomes = {"built": built, "rejected": lambda target: rejected(HOSTILE)}
        lines = [
            json.dumps(record(found[target], outcomes[word](target), run=run))
            for target, word in status.items()
            if word != "absent"
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        planned = json.dumps(plan(*found.values(), run=run, day=self.number, **more))
        (folder / f"{name}.plan.json").write_text(planned)


@pytest.fixture
def nights(run: Run, tools: Path, work: Path, tmp_path: Path) -> Nights:
    program(tools, "gh", FAKE_GH)
    return Nights(run, work, tmp_path)


def called(asked: list[list[str]]) -> list[str]:
    return [" ".join(argv[:2]) for argv in asked]


def every(word: str) -> dict[str, str]:
    return dict.fromkeys(TARGETS, word)


GOOD, BAD = every("built"), every("rejected")


@pytest.mark.slow
def test_a_regression_stays_until_it_is_mended(nights: Nights) -> None:
    assert nights.play({"cupy13": GOOD})[:2] == ("fine", [_LIST])
    state, asked, told = nights.play({"cupy13": BAD})
    assert state == "regression"
    assert called(asked) == ["issue list", "label create", "issue create"]
    assert "### New: 4 cells not as expected in cupy13 (cpu), against its last night 2026-01-01" in told
    assert "built → rejected at compile (fail)" in told
    body = asked[-1][-1]
    assert body.startswith("regression: https://example.org/run\n")
    assert told in body

    state, asked, told = nights.play({"cupy13": BAD})
    assert (state, called(asked)) == ("failing", ["issue list", "issue edit"])
    assert "### As before: 4 cells not as expected in cupy13 (cpu)" in told
    assert "New" not in told
    state, asked, told = nights.play({"cupy13": {**GOOD, "sm_90": "rejected"}})
    assert (state, called(asked)) == ("failing", ["issue list", "issue edit"])
    assert "fixed `wmma/fragments cupy-nvrtc@13.6.0 cuda12.4 sm_75`" in told

    state, asked, told = nights.play({"cupy13": GOOD})
    assert (state, called(asked)) == ("fine", ["issue list", "issue close"])
    assert "not as expected" not in told


_LIST = ["issue", "list", "--label", "nightly", "--state", "open", "--limit", "1", "--json", "number"]


@pytest.mark.slow
def test_a_shard_that_comes_back_is_held_against_its_last_night(nights: Nights) -> None:
    nights.play({"cupy13": {**GOOD, "sm_75": "rejected"}, "nvrtc": GOOD})
    state, asked, told = nights.play({"cupy13": None, "nvrtc": GOOD}, cells="failure")
    assert state == "incomplete, failing"
    assert called(asked) == ["issue list", "issue edit", "issue comment"]
    lines = [line for line in told.splitlines() if "cupy13" in line]
    assert lines == [
        "- **cupy13 (cpu)**: nothing came from shard 1; not as expected in its last night, 2026-01-01: 1 cell"
    ]
    assert "vanished" not in told

    state, asked, told = nights.play({"cupy13": BAD, "nvrtc": GOOD})
    assert state == "regression"
    assert "### New: 3 cells not as expected in cupy13 (cpu), against its last night 2026-01-01" in told
    assert "### As before: 1 cell not as expected in cupy13 (cpu)" in told


@pytest.mark.slow
def test_cells_of_a_part_that_never_came_are_as_they_were(nights: Nights, work: Path) -> None:
    first, second = dict.fromkeys(TARGETS[:2], "built"), dict.fromkeys(TARGETS[2:], "built")
    assert nights.share("cupy13", first, second)[0] == "fine"
    assert "Records of 1 of 1 environments.\n" in (work / "summary.md").read_text()

    state, _, told = nights.share("cupy13", {**first, TARGETS[0]: "rejected"}, None)
    assert state == "incomplete, regression"
    assert "Records of 1 of 1 environments, of which 1 part never came.\n" in told
    assert (
        "- **cupy13 (cpu)**: nothing came from shard 2 of 2; its cells are as in the last night, 2026-01-01\n" in told
    )
    assert "### New: 1 cell not as expected" in told
    kept = (work / "before/last/cpu/cupy13.jsonl").read_text().splitlines()
    assert {json.loads(line)["target"] for line in kept} == set(TARGETS)

    state, _, told = nights.share("cupy13", first, {**second, TARGETS[2]: "rejected"})
    assert state == "regression"
    assert "### New: 1 cell not as expected" in told and "fixed" in told
    assert nights.share("cupy13", None, None)[0] == "no results"


@pytest.mark.slow
def test_cells_that_never_arrived_are_one_line(nights: Nights) -> None:
    nights.play({"cupy13": GOOD})
    state, _, told = nights.play({"cupy13": {**every("absent"), "sm_75": "built"}})
    assert state == "incomplete, regression"
    assert "- 3 cells never arrived, `wmma/fragments cupy-nvrtc@13.6.0 cuda12.4 sm_80` among them" in told
    assert told.count("sm_") == 1
    state, _, told = nights.play({"cupy13": {**GOOD, "sm_80": "rejected"}})
    assert state == "regression"
    assert "missing → rejected at compile (fail)" in told


@pytest.mark.slow
def test_a_new_failure_beside_old_ones_and_in_a_new_environment(nights: Nights, work: Path) -> None:
    nights.play({"nvrtc": {**GOOD, "sm_75": "rejected"}})
    state, asked, told = nights.play({
        "nvrtc": {**GOOD, "sm_75": "rejected", "sm_80": "rejected"}, "cupy13": {**GOOD, "sm_90": "rejected"},
    })  # fmt: skip
    assert (state, called(asked)) == ("regression", ["issue list", "issue edit", "issue comment"])
    assert "### New: 1 cell not as expected in nvrtc (cpu), against its last night 2026-01-01" in told
    assert "### New: 1 cell not as expected in cupy13 (cpu), its first night" in told
    assert "### As before: 1 cell not as expected in nvrtc (cpu)" in told
    # Links lead to cells of the page.
    shutil.rmtree(work / "after", ignore_errors=True)
    shutil.copytree(ROOT / "cases" / "wmma" / "fragments", work / "cases" / "wmma" / "fragments")
    done = nights.run("extend")
    assert done.returncode == 0, done.stderr
    assert json.loads((work / "after/matrix/manifest.json").read_text())["cells"] == len(GOOD)
    done = nights.run("page", "--address", ADDRESS)
    assert done.returncode == 0, done.stderr
    assert (work / "site/index.html").is_file()
    assert len(list((work / "after/history").glob("run=*/*.parquet"))) == 2
    links = re.findall(r"\]\((.*?)\)", told)
    address = f"{ADDRESS}/matrix.html#cell=wmma/fragments;;cupy-nvrtc;13.6.0;12.4"
    assert links == [f"{address};{target}" for target in ("sm_80", "sm_90", "sm_75")]
    cells = json.loads((work / "site/matrix.json").read_text())["cells"]
    assert {item["target"] for item in cells if item["mark"] != "built"} <= {"sm_75", "sm_80", "sm_90"}
    # Compiler output contains no active markup.
    for line in told.splitlines():
        if "@everyone" in line:
            assert line.startswith("- [`wmma/fragments ")
            assert line.endswith(": ```` ``` @everyone # not a heading <img src=x> ````")


def test_an_empty_night_keeps_what_is_known(nights: Nights) -> None:
    nights.play({"cupy13": GOOD})
    state, asked, told = nights.play({"cupy13": None}, cells="failure")
    assert (state, told) == ("no results", "Records of 0 of 1 environments.\n")
    assert called(asked) == ["issue list", "label create", "issue create"]
    assert asked[-1][-1].startswith("no results: https://example.org/run")
    assert "against its last night 2026-01-01" in nights.play({"cupy13": BAD})[2]


@pytest.mark.slow
def test_a_night_of_some_environments_forgets_no_other(nights: Nights) -> None:
    nights.play({"cupy13": BAD, "nvrtc": GOOD})
    state, asked, told = nights.play({"nvrtc": GOOD}, only="^nvrtc")
    assert (state, called(asked)) == ("failing", ["issue list", "issue edit"])
    assert "- **cupy13 (cpu)**: was not asked for; not as expected in its last night, 2026-01-01: 4 cells" in told
    assert nights.play({"cupy13": BAD, "nvrtc": GOOD})[0] == "failing"
    state, _, told = nights.play({"nvrtc": GOOD})
    assert state == "fine"
    assert "No longer part of the night: cupy13 (cpu)" in told


@pytest.mark.parametrize(
    ("state", "cells", "expected"),
    [
        ("fine", "success", ""),
        ("fine", "failure", "incomplete"),
        ("regression", "cancelled", "incomplete, regression"),
        ("incomplete, failing", "failure", "incomplete, failing"),
    ],
)
def test_a_job_that_failed_is_no_fine_night(
    nights: Nights, run: Run, tmp_path: Path, state: str, cells: str, expected: str
) -> None:
    needs = {"cells": {"result": cells}, "matrix": {"result": "success", "outputs": {"state": state}}}
    done = run("issue", "--needs", json.dumps(needs))
    assert done.stdout == (f"::error::the night ended with: {expected}\n" if expected else "")
    assert done.returncode == bool(expected)


def test_a_long_summary_is_cut_at_a_line(nights: Nights, run: Run, work: Path, tmp_path: Path) -> None:
    (work / "summary.md").write_text("- ä wide line\n" * 10_000)
    needs = {"cells": {"result": "success"}, "matrix": {"result": "success", "outputs": {"state": "failing"}}}
    assert run("issue", "--needs", json.dumps(needs)).returncode == 0
    body = json.loads((tmp_path / "asked").read_text().splitlines()[-1])[-1]
    assert len(body.encode()) < 65_536
    assert set(body.splitlines()[2:-2]) == {"- ä wide line"}
