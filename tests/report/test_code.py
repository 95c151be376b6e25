"""PTX and SASS of cells with kept artifacts, on the page, and in a real browser."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from record_builders import built, cell, plan, record

from harness.model import Artifact, Outcome
from harness.records import Record, RecordWriter
from harness.records.files import ArtifactFolder
from harness.report import code
from harness.report.build import build_report
from harness.report.code import NONE, Code, NotDisassembled, sass

from .browsing import Visit
from .site_builders import HOSTILE

PLACE = "matrix.html#cell=wmma/fragments;;cupy-nvrtc;13.6.0;{};compute_80"


def ptx(version: str, *more: str) -> bytes:
    body = "".join(f"    add.s32 %r{number}, %r{number}, 1;\n" for number in range(40))
    return f".version {version}\n.target sm_80\n// {HOSTILE}\n{body}{''.join(more)}    ret;\n".encode()


KEPT = {"12.4": ptx("8.4"), "12.9": ptx("8.8", "    bar.sync 0;\n"), "13.0": ptx("8.8", "    bar.sync 0;\n")}


def made(data: bytes, kind: str = "ptx", target: str = "compute_80") -> Outcome:
    sha256 = hashlib.sha256(data).hexdigest()
    return built(target, artifact=Artifact(format=kind, target=target, bytes=len(data), sha256=sha256))


def kept_in(folder: Path) -> tuple[ArtifactFolder, list[Record]]:
    """Write a folder with the artifacts of the records, except the last."""
    artifacts, records = ArtifactFolder(folder / "built"), []
    artifacts.open()
    for toolkit, data in KEPT.items():
        outcome = made(data)
        assert outcome.artifact
        artifacts.keep("ptx", outcome.artifact.sha256, data)
        records.append(record(cell(toolkit=toolkit, target="compute_80"), outcome))
    return artifacts, [*records, record(cell(toolkit="12.2", target="compute_80"), made(b"gone"))]


def test_cells_with_the_same_text_share_it(tmp_path: Path) -> None:
    artifacts, records = kept_in(tmp_path)
    found = Code.of(
        artifacts, ["missing", *(item["cell"] for item in records)], {item["cell"]: item for item in records}
    )
    index, texts = found.index("wmma/fragments"), dict(found.texts())
    assert [kind for _, kind in index["texts"]] == ["PTX", "PTX"]
    assert set(texts) == {name for name, _ in index["texts"]}
    assert index["cells"] == [[1, 0], [2, 1], [3, 1]]
    assert found.index("none") == {"texts": [], "cells": []}


def test_texts_have_limits_and_what_was_changed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifacts, records = kept_in(tmp_path)
    by_cell = {item["cell"]: item for item in records}
    monkeypatch.setattr(code, "LONGEST", 500)
    long = dict(Code.of(artifacts, list(by_cell), by_cell).texts())
    assert all(len(each["text"]) == 500 and "characters left out" in each["text"] for each in long.values())
    monkeypatch.setattr(code, "TOTAL", 0)
    assert [set(each) for each in dict(Code.of(artifacts, list(by_cell), by_cell).texts()).values()] == [
        {"problem"}
    ] * 2
    monkeypatch.undo()
    path = next(artifacts.path.iterdir())
    path.write_bytes(b"x" * path.stat().st_size)
    problems = [each["problem"] for _, each in Code.of(artifacts, list(by_cell), by_cell).texts() if "problem" in each]
    assert len(problems) == 1 and "not what its name says" in problems[0]


def test_without_nvdisasm_it_is_said_how_to_get_one() -> None:
    with pytest.raises(NotDisassembled) as caught:
        sass(b"\x7fELF", [], 100)
    assert str(caught.value) == NONE and "toolkits install 13.5 --with nvdisasm" in NONE


def test_a_cell_is_shown_beside_another(visit: Visit, tmp_path: Path) -> None:
    artifacts, records = kept_in(tmp_path)
    cells = [cell(toolkit=item["toolkit"], target="compute_80") for item in records]
    with RecordWriter(tmp_path / "r.jsonl", plan(*cells)) as writer:
        for item in records:
            writer.append(item)
    build_report([tmp_path / "r.jsonl"], tmp_path / "html", artifacts=artifacts.path)
    page = visit(PLACE.format("12.4"), folder=tmp_path / "html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_selector("details.code")
    page.click("details.code summary")
    page.wait_for_selector("details.code pre")
    assert [url.rpartition("/")[2][:8] for url in asked] == [
        "code-of-",
        f"code-{hashlib.sha256(KEPT['12.4']).hexdigest()[:3]}",
    ]
    shown = page.inner_text("details.code pre")
    assert ".version 8.4" in shown and "</script><script>alert(1)</script><img src=x onerror=alert(2)>" in shown
    assert page.locator("#cell img, #cell script").count() == 0
    offered = page.locator("details.code option").all_inner_texts()
    assert offered == ["nothing", *(f"cupy-nvrtc 13.6.0 · CUDA {toolkit} · compute_80" for toolkit in ("12.9", "13.0"))]
    page.select_option("details.code select", label=offered[1])
    page.wait_for_selector("details.code pre.diff")
    assert page.inner_text("details.code [role=status]") == "1 line of this cell alone (−), 2 of the other (+)."
    lines = page.locator("pre.diff .gone, pre.diff .new").all_inner_texts()
    assert [line.strip() for line in lines] == ["− .version 8.4", "+ .version 8.8", "+     bar.sync 0;"]
    assert "… 36 lines that are the same" in page.inner_text("pre.diff")
    assert page.locator("#cell img, #cell script").count() == 0
    page.select_option("details.code select", label="nothing")
    page.wait_for_selector("details.code pre.diff", state="detached")
    page.goto(f"{page.url.partition('#')[0]}#{PLACE.format('12.2').partition('#')[2]}")
    page.click("details.code summary")
    page.wait_for_selector("details.code p:has-text('was not kept')")
