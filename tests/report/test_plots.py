"""Pictures: the same for the same cells, with their numbers in words, and nothing in them that a page has to fear."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pandas as pd
import pytest
from record_builders import built, cell, record, rejected

from harness.analysis import make_frame
from harness.model import Status
from harness.report.plots import compile_times, outcomes_by_version, outcomes_over_time, pictures, resources_by_target

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


def test_outcomes_by_version(table: pd.DataFrame) -> None:
    svg = outcomes_by_version(table, title="CuPy")
    root = ET.fromstring(svg)
    assert text_of(root, f"{SVG}title") == root.get("aria-label") == "CuPy"
    assert text_of(root, f"{SVG}desc") == "9.0.0: 3 built, 1 rejected; 13.0.0: 3 built, 1 rejected; 13.1.0: 4 built"
    ticks = [item.text or "" for item in root.iter(f"{SVG}text")]
    assert [text for text in ticks if re.fullmatch(r"\d+\.\d\.0", text)] == ["9.0.0", "13.0.0", "13.1.0"]


def test_bars_are_of_the_same_cells() -> None:
    every = [cell(case=f"a/{n}", library=library) for n in range(4) for library in ("13.0.0", "13.1.0")]
    records = [record(item, rejected() if item.case.name == "a/3" else built()) for item in every]
    # One program that a release alone was tried with, and a release that was tried with little.
    records.append(record(cell(case="a/9", library="13.1.0"), built()))
    records.append(record(cell(case="a/8", library="9.0.0"), rejected()))
    told = text_of(ET.fromstring(outcomes_by_version(make_frame(records))), f"{SVG}desc")
    assert told == "13.0.0: 3 built, 1 rejected; 13.1.0: 3 built, 1 rejected"


def test_resources_by_target(table: pd.DataFrame) -> None:
    told = text_of(ET.fromstring(resources_by_target(table)), f"{SVG}desc")
    assert (
        told
        == "cupy-nvrtc 9.0.0, CUDA 12.4 and 1 more: 75 30, 90a 50; cupy-nvrtc 13.1.0, CUDA 12.4: 75 30, 80 40, 90a 50; cupy-nvrtc 13.1.0, CUDA 13.0: 80 40"
    )
    assert resources_by_target(table, "shared")
    assert resources_by_target(table[table["outcome"] != "built"]) == ""


def test_compile_times(table: pd.DataFrame) -> None:
    told = text_of(ET.fromstring(compile_times(table)), f"{SVG}desc")
    assert "cupy-nvrtc 13.1.0: 12.4 0.5, 13.0 2" in told


def test_compile_times_compare_the_same_programs() -> None:
    records = [
        record(cell(case="a/both", toolkit=toolkit), built(seconds=seconds))
        for toolkit, seconds in (("12.4", 1.0), ("13.0", 2.0))
    ]
    records += [record(cell(case=f"a/slow-{n}", toolkit="12.4"), built(seconds=100.0)) for n in range(3)]
    told = text_of(ET.fromstring(compile_times(make_frame(records))), f"{SVG}desc")
    assert told == "cupy-nvrtc 13.6.0: 12.4 1, 13.0 2"


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
    told = text_of(ET.fromstring(outcomes_over_time(runs)), f"{SVG}desc")
    assert (
        told
        == "all: 2026-01-01 3, b 3; built: 2026-01-01 3, b 2; not as expected: 2026-01-01 0, b 1; never arrived: 2026-01-01 0, b 0"
    )
    assert outcomes_over_time(runs.iloc[:1]) == ""


def test_the_same_cells_give_the_same_bytes(table: pd.DataFrame) -> None:
    again = table.copy()
    assert pictures(table) == pictures(again)
    assert pictures(table)


def test_nothing_gives_nothing() -> None:
    empty = make_frame([])
    assert pictures(empty) == {}
    assert resources_by_target(empty) == outcomes_by_version(empty) == ""


def test_one_point_is_no_picture(table: pd.DataFrame) -> None:
    one = table[(table["library"] == "13.1.0") & (table["toolkit"] == "12.4")]
    assert len(one) > 1
    assert outcomes_by_version(one) == compile_times(one) == ""
    assert resources_by_target(one)
    assert resources_by_target(one[one["target"] == "sm_80"]) == ""


def test_a_strict_policy_and_hostile_names() -> None:
    cells = [
        cell(case=HOSTILE, library=library, target=of) for library in ("1.0", HOSTILE) for of in ("sm_80", "sm_90")
    ]
    table = make_frame([record(of, built(str(of.target))) for of in cells])
    made = [*pictures(table).values(), resources_by_target(table), outcomes_by_version(table, title=HOSTILE)]
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
    # Each picture may stand in one page with the others.
    assert len(ids) == len(set(ids))
    assert "2026" not in "".join(made)


@pytest.mark.parametrize("bars", [2, 3])
def test_legends_are_not_cut_off(bars: int) -> None:
    other = [rejected(status=status) for status in (Status.REJECTED, Status.CRASHED, Status.UNSUPPORTED)]
    records = [
        record(cell(library=f"13.{minor}.0", target="sm_80", variant={"n": place}), outcome)
        for minor in range(bars)
        for place, outcome in enumerate((built(), *other))
    ]
    root = ET.fromstring(outcomes_by_version(make_frame(records)))
    words = {item.text: float(item.attrib["x"]) for item in root.iter(f"{SVG}text") if item.get("x")}
    # Letters are about six units wide, and what stands for a kind is left of its word.
    wide = float(root.attrib["viewBox"].split()[2])
    found = [words[word] for word in ("built", "rejected", "crashed or timed out", "unsupported")]
    assert min(found) > 20
    assert words["crashed or timed out"] + 6 * len("crashed or timed out") < wide
