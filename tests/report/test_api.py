"""The JSON API: its documents validate against their schemas, and agree with the cells."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from record_builders import cell, plan, record, rejected

from harness.answers.cells import Known
from harness.answers.feature import feature_page
from harness.answers.store import read_packed
from harness.matrix.axes import version_key
from harness.records import RecordWriter
from harness.report.api import FOLDER, feature_document, feature_json, feature_schema, features_json, features_schema
from harness.report.build import build_report

DOCS = Path(__file__).parents[2] / "docs"
MATRIX = Path(__file__).parents[2] / "reports" / "matrix" / "answers.json.gz"
LARGEST = 4 << 20
"""Size of all documents of the published matrix in bytes."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    cells = [
        cell(backend="nvrtc", library="", toolkit=toolkit, target=target)
        for toolkit in ("12.4", "12.9", "13.0")
        for target in ("sm_80", "sm_90")
    ]
    with RecordWriter(folder / "r.jsonl", plan(*cells)) as writer:
        for of in cells[:-1]:
            outcome = rejected('cannot open source file "cuda/std/cstddef"') if " cuda12.4 " in of.id else None
            writer.append(record(of, outcome))
    build_report([folder / "r.jsonl"], folder / "html")
    return folder / "html" / FOLDER


@pytest.fixture(scope="module")
def known() -> Known:
    store = read_packed(MATRIX)
    return store.known(store.features)


@pytest.fixture(scope="module")
def published(known: Known) -> list[dict[str, Any]]:
    return [
        feature_document(feature, feature_page(known, case), known, (), f"{case.replace('/', '-')}.html")
        for case, feature in known.features.items()
    ]


def test_a_report_has_a_document_for_each_feature_and_one_for_all(report: Path) -> None:
    feature = json.loads((report / "features" / "wmma-fragments.json").read_text())
    jsonschema.validate(feature, feature_schema())
    every = json.loads((report / "all.json").read_text())
    jsonschema.validate(every, features_schema())
    assert every["features"] == [{key: value for key, value in feature.items() if key not in ("schema", "statements")}]
    assert every["newest"] == "2026-01-01"
    assert (report.parents[1] / feature["page"]).is_file()


def test_releases_are_newest_first_with_the_targets_that_were_tried(report: Path) -> None:
    (tool,) = json.loads((report / "features" / "wmma-fragments.json").read_text())["outcomes"]
    assert (tool["tool"], tool["backend"], tool["versions_of"], tool["variants"]) == ("NVRTC", "nvrtc", "", [""])
    assert tool["releases"] == [
        {"version": "", "cuda": ["13.0"], "built": ["sm_80"]},
        {"version": "", "cuda": ["12.9"], "built": ["sm_80", "sm_90"]},
        {"version": "", "cuda": ["12.4"], "rejected": ["sm_80", "sm_90"]},
    ]


def test_statements_name_cells_and_refusals_a_remedy(report: Path) -> None:
    feature = json.loads((report / "features" / "wmma-fragments.json").read_text())
    assert feature["sentence"].startswith("Yes. NVRTC: builds since CUDA 12.9")
    assert feature["summary"] == {"nvrtc": "builds since CUDA 12.9"}
    first = feature["statements"][0]
    assert first["answer"] == "builds since CUDA 12.9"
    assert first["changes"][0] == {
        "axis": "cuda",
        "before": "12.4",
        "after": "12.9",
        "builds": True,
        "cells": [f"wmma/fragments nvrtc cuda{release} sm_80" for release in ("12.4", "12.9")],
    }
    (cause,) = feature["causes"]
    assert cause["title"] == "A header of CCCL that NVRTC does not find"
    assert cause["remedy"].startswith("Add -I for CCCL's include directory")
    assert (cause["cells"], cause["count"]) == (["wmma/fragments nvrtc cuda12.4 sm_80"], 2)


def test_the_published_documents_follow_the_schemas(published: list[dict[str, Any]]) -> None:
    all_of_them = features_json(published, "2026-01-01")
    jsonschema.validate(json.loads(all_of_them), features_schema())
    jsonschema.validate(json.loads(feature_json(published[0])), feature_schema())
    assert len(all_of_them) + sum(len(feature_json(document)) for document in published) < LARGEST


def test_the_published_outcomes_are_those_of_the_cells(known: Known, published: list[dict[str, Any]]) -> None:
    said = {
        (document["case"], variant, tool["tool"], release["version"], cuda, target): name
        for document in published
        for tool in document["outcomes"]
        for release in tool["releases"]
        for name in ("built", "rejected")
        for target in release.get(name, ())
        for cuda in release["cuda"]
        for variant in tool["variants"]
    }
    # Letters of the published cells: + built; x, ! and F refused.
    letters = {row.cell: row.letter for row in known.rows}
    counts = {name: sum(value == name for value in said.values()) for name in ("built", "rejected")}
    rows = [row for row in known.rows if "+headers" not in row.toolkit]
    places = {(row.case, row.rest, row.tool, row.axis, row.version, row.toolkit, row.target): row for row in rows}
    groups = [_group(letters[row.cell]) for row in places.values()]
    assert counts == {name: groups.count(name) for name in ("built", "rejected")}
    assert counts["built"] > 10_000


def test_every_cell_that_a_statement_names_was_answered(known: Known, published: list[dict[str, Any]]) -> None:
    answered = {row.cell for row in known.rows if _group(row.letter)}
    statements = [statement for document in published for statement in document["statements"]]
    named = {name for statement in statements for name in statement["cells"]}
    named |= {name for statement in statements for change in statement["changes"] for name in change["cells"]}
    assert named <= answered
    assert all(statement["cells"] for statement in statements if statement["kind"] not in ("na", "untried"))


QUERIES = re.findall(r"api/v1/(\S+) \| jq -r (?:'(.*)'|(\S+))$", (DOCS / "json-api.md").read_text(), re.MULTILINE)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize(("file", "quoted", "plain"), QUERIES)
def test_a_query_of_the_documentation_answers(
    file: str, quoted: str, plain: str, published: list[dict[str, Any]]
) -> None:
    documents = {f"features/{item['case'].replace('/', '-')}.json": feature_json(item) for item in published}
    causes = [{"title": "A", "remedy": "B.", "cells": ["c"]}]
    documents["all.json"] = features_json([{**item, "causes": causes} for item in published], "2026-01-01")
    said = subprocess.run(["jq", "-r", quoted or plain], input=documents[file], capture_output=True, check=True)
    assert said.stdout.strip()
    assert b"null" not in said.stdout.splitlines()


def test_versions_descend(published: list[dict[str, Any]]) -> None:
    for tool in (tool for document in published for tool in document["outcomes"]):
        versions = [version_key(release["version"]) for release in tool["releases"]]
        assert versions == sorted(versions, reverse=True)
        for release in tool["releases"]:
            assert release["cuda"] == sorted(release["cuda"], key=version_key, reverse=True)


def _group(letter: str) -> str:
    from harness.matrix.marks import GROUPS

    (key,) = [name for name, group in GROUPS.items() if group.letter == letter]
    return {"works": "built", "not": "rejected", "fault": "rejected", "surprise": "rejected"}.get(key, "")
