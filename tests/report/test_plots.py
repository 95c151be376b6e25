"""Pictures: deterministic, with their numbers in words, and without markup from texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pandas as pd
import pytest
from record_builders import built, cell, record, rejected

from harness.analysis import make_frame
from harness.model import Outcome, Status
from harness.report.plots import outcomes_by_version, outcomes_over_time, pictures, resources_by_target

from .markup import text_of

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</desc><script>alert(1)</script>&\x1b[31m\x00$\\wrong{$"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    records = []
    for library in ("13.0.0", "13.1.0", "9.0.0"):
        for target, registers in (("sm_75", 30), ("sm_80", 40), ("sm_90a", 50), ("compute_80", 0)):
            bad = library != "13.1.0" and target == "sm_80"
            outcome = rejected() if bad else built(target, registers=registers, seconds=0.5)
            records.append(record(cell(library=library, target=target, toolkit="12.4"), outcome))
    records.append(record(cell(library="13.1.0", toolkit="13.0"), built(seconds=2.0)))
    return make_frame(records)


def told_by(svg: str) -> tuple[str, str]:
    root = ET.fromstring(svg)
    assert text_of(root, f"{SVG}title") == root.get("aria-label")
    return text_of(root, f"{SVG}title"), text_of(root, f"{SVG}desc")


def test_outcomes_by_version_and_the_greatest_change(table: pd.DataFrame) -> None:
    svg = outcomes_by_version(table, name="CuPy")
    title, told = told_by(svg)
    assert title == "CuPy: 4 of 4 cells build with 13.1.0, 3 with 13.0.0"
    assert told == "9.0.0: 3 built, 1 rejected; 13.0.0: 3 built, 1 rejected; 13.1.0: 4 built"
    ticks = [item.text or "" for item in ET.fromstring(svg).iter(f"{SVG}text")]
    # The last lines belong to the title.
    assert [text for text in ticks if re.fullmatch(r"\d+\.\d\.0", text)][:3] == ["9.0.0", "13.0.0", "13.1.0"]


def test_a_picture_without_a_finding_is_not_drawn(table: pd.DataFrame) -> None:
    assert outcomes_by_version(table[table["library"] != "13.1.0"], name="CuPy") == ""
    assert resources_by_target(table[table["target"] != "sm_90a"].assign(registers=8.0)) == ""


def test_bars_are_of_the_same_cells() -> None:
    every = [cell(case=f"a/{n}", library=library) for n in range(4) for library in ("13.0.0", "13.1.0")]
    bad = ("a/3[] cupy-nvrtc@13.0.0", "a/3 cupy-nvrtc@13.0.0")
    records = [record(item, rejected() if item.id.startswith(bad) else built()) for item in every]
    # A program that only one release was tried with, a release with few cells, and a release that was not installed.
    records.append(record(cell(case="a/9", library="13.1.0"), built()))
    records.append(record(cell(case="a/8", library="9.0.0"), rejected()))
    records += [
        record(cell(case=f"a/{n}", library="14.0.0"), Outcome(status=Status.UNAVAILABLE, reason="no wheel"))
        for n in range(4)
    ]
    title, told = told_by(outcomes_by_version(make_frame(records), name="CuPy"))
    assert title == "CuPy: 4 of 4 cells build with 13.1.0, 3 with 13.0.0"
    assert told == "13.0.0: 3 built, 1 rejected; 13.1.0: 4 built"


def test_resources_of_the_same_architectures(table: pd.DataFrame) -> None:
    title, told = told_by(resources_by_target(table))
    assert (
        title == "wmma/fragments: 50 registers a thread on sm_90a, 30 on sm_75 (cupy-nvrtc 9.0.0, CUDA 12.4 and 2 more)"
    )
    # The cells of 13.1.0 with CUDA 13.0 have only sm_80, which the others lack.
    assert told == "cupy-nvrtc 9.0.0, CUDA 12.4 and 2 more: 75 30, 90a 50"
    assert resources_by_target(table, "shared") == ""
    assert resources_by_target(table[table["outcome"] != "built"]) == ""


def test_pictures_can_have_one_scale(table: pd.DataFrame) -> None:
    ticks = [item.text for item in ET.fromstring(resources_by_target(table, top=255)).iter(f"{SVG}text")]
    assert {"0", "250"} <= set(ticks)
    assert "250" not in [item.text for item in ET.fromstring(resources_by_target(table)).iter(f"{SVG}text")]


def test_over_time() -> None:
    runs = pd.DataFrame(
        {
            "run": ["a", "b"],
            "started": ["2026-01-01T12:00:00+00:00", ""],
            "cells": [3, 3],
            "built": [3, 2],
            "bad": [0, 1],
            "missing": [0, 0],
        }
    )
    title, told = told_by(outcomes_over_time(runs))
    assert title == "b: 2 built instead of 3, 1 not as expected instead of 0"
    assert (
        told
        == "all: 2026-01-01 3, b 3; built: 2026-01-01 3, b 2; not as expected: 2026-01-01 0, b 1; never arrived: 2026-01-01 0, b 0"
    )
    assert outcomes_over_time(runs.iloc[:1]) == ""
    assert outcomes_over_time(runs.iloc[[0, 0]]) == ""


def test_the_same_cells_give_the_same_bytes(table: pd.DataFrame) -> None:
    again = table.copy()
    assert pictures(table) == pictures(again)
    assert pictures(table)


def test_nothing_gives_nothing() -> None:
    empty = make_frame([])
    assert pictures(empty) == {}
    assert resources_by_target(empty) == outcomes_by_version(empty, name="") == ""


def test_one_point_is_no_picture(table: pd.DataFrame) -> None:
    one = table[(table["library"] == "13.1.0") & (table["toolkit"] == "12.4")]
    assert len(one) > 1
    assert outcomes_by_version(one, name="CuPy") == ""
    assert resources_by_target(one)
    assert resources_by_target(one[one["target"] == "sm_80"]) == ""


def test_a_strict_policy_and_hostile_names() -> None:
    cells = [
        cell(case=HOSTILE, library=library, target=of) for library in ("1.0", HOSTILE) for of in ("sm_80", "sm_90")
    ]
    outcomes = [rejected(), *(built(str(of.target), registers=place) for place, of in enumerate(cells[1:], 1))]
    table = make_frame([record(of, outcome) for of, outcome in zip(cells, outcomes, strict=True)])
    made = [*pictures(table).values(), resources_by_target(table), outcomes_by_version(table, name=HOSTILE)]
    assert all(made)
    ids: list[str] = []
    for svg in made:
        root = ET.fromstring(svg)
        for item in root.iter():
            assert item.tag.removeprefix(SVG) in {
                "svg",
                "title",
                "desc",
                "defs",
                "g",
                "path",
                "text",
                "use",
                "clipPath",
                "rect",
                "pattern",
            }
            assert not {name for name in item.attrib if name in ("style", "class") or name.startswith("on")}
            references = [value for name, value in item.attrib.items() if name.endswith("href")]
            references += re.findall(r"url\(([^)]*)\)", " ".join(item.attrib.values()))
            assert all(reference.startswith("#") for reference in references)
        known = {item.attrib["id"] for item in root.iter() if item.get("id")}
        used = set(re.findall(r'(?:url\(#|href="#)([\w-]+)', svg))
        assert known == used
        ids += known
    # Pictures have distinct ids, which lets a page contain several.
    assert len(ids) == len(set(ids))
    assert "2026" not in "".join(made)


@pytest.mark.parametrize("bars", [2, 3])
def test_legends_are_not_cut_off(bars: int) -> None:
    other = [rejected(status=status) for status in (Status.REJECTED, Status.CRASHED, Status.UNSUPPORTED)]
    records = [
        record(cell(library=f"13.{minor}.0", target="sm_80", variant={"n": place}), outcome)
        for minor in range(bars)
        for place, outcome in enumerate((built(), *other, built() if minor else rejected()))
    ]
    root = ET.fromstring(outcomes_by_version(make_frame(records), name="CuPy"))
    words = {item.text: float(item.attrib["x"]) for item in root.iter(f"{SVG}text") if item.get("x")}
    # Letters are about six units wide, and the mark of a kind is to the left of its word.
    wide = float(root.attrib["viewBox"].split()[2])
    found = [words[word] for word in ("built", "rejected", "crashed or timed out", "unsupported")]
    assert min(found) > 20
    assert words["crashed or timed out"] + 6 * len("crashed or timed out") < wide
