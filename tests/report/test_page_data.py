"""The data of the page's script: small, complete, and never code."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_plus

import pytest
from page_scripts import handed_over
from record_builders import cell, changed, plan, record, rejected

from harness.analysis import cells_frame
from harness.matrix.axes import cell_link, matrix_link
from harness.records import merge
from harness.report import page_data
from harness.report.case import page_names
from harness.report.page_data import chunks, compact, matrix_data, more_data, script

HOSTILE = "\x1b[31m'\\');alert(1)//</script>\u2028\u202e__proto__"


@pytest.mark.parametrize("value", [HOSTILE, {HOSTILE: [HOSTILE]}, ['\n\t"', 1.5, None, True], "ä€𝄞"])
def test_scripts_hand_over_what_was_put_in(value: Any) -> None:
    assert handed_over(script("x-1", compact(value))) == ("x-1", value)


def test_matrix_has_every_cell_in_its_place() -> None:
    planned = [cell(case, {"n": n}, target=t) for case in ("a/x", "b/y") for n in (9, 10) for t in ("sm_80", "sm_100")]
    merged = merge([record(item) for item in planned[:-1]], [plan(*planned)])
    table = cells_frame(merged)
    data = matrix_data(table, {}, page_names(table["case"]))
    names, columns, rows = data["names"], data["columns"], data["rows"]
    found, at = [], 0
    for case, variant, pattern in zip(rows["case"], rows["variant"], rows["pattern"], strict=True):
        for column in data["patterns"][pattern]:
            mark = data["outcomes"]["mark"][data["cells"][at]]
            target = names["target"][columns["target"][column]]
            found.append((names["case"][case], names["variant"][variant], target, names["mark"][mark]))
            at += 1
    assert found == list(table[["case", "variant", "target", "mark"]].itertuples(index=False, name=None))
    assert names["variant"] == ["n=9", "n=10"]
    assert names["target"] == ["sm_80", "sm_100"]
    assert len(data["patterns"]) == 1
    more = more_data(table, {item["cell"]: item for item in merged.records})
    assert more["numbers"]["registers"] == [40] * 7 + [None]
    assert len(more["message"]) == 8


def test_details_have_each_value_once_and_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_data, "CELLS", 100)
    planned = [cell(variant={"n": n}) for n in range(102)]
    records = [record(item, rejected(log=HOSTILE * (n == 3))) for n, item in enumerate(planned[:-1])]
    records[0] = changed(records[0], **{"new key": {"deep": [HOSTILE]}})
    table = cells_frame(merge(records, [plan(*planned)]))
    texts = list(chunks(table, {item["cell"]: item for item in records}, lambda item: {"remedy": ["r"]}))
    first, second = map(json.loads, texts)
    assert (first["start"], second["start"]) == (0, 100)

    def value(chunk: dict[str, Any], key: str, place: int) -> Any:
        column = chunk["columns"][key]
        return column["values"][column["of"][place]]

    assert value(first, "new key", 0) == {"deep": ["'\\');alert(1)//</script>\ufffd\ufffd__proto__"]}
    assert value(first, "diagnostics", 3) == records[3]["diagnostics"]
    assert "\x1b" not in value(first, "log", 3)
    assert value(first, "remedy", 9) == ["r"]
    assert second["columns"]["status"]["of"] == [1, 0]
    assert not {"case", "cell"} & first["columns"].keys()
    assert len(texts[0]) < 20_000


def test_details_have_what_an_id_adds_to_its_place() -> None:
    device = changed(record(cell()), cell=f"{cell().id} on NVIDIA H200")
    other = changed(record(cell(target="sm_90")), cell="made by hand")
    (text,) = chunks(cells_frame(merge([device, other], [])), {}, lambda item: {})
    assert json.loads(text)["columns"]["cell"]["values"] == [None, " on NVIDIA H200", "made by hand"]


def test_links_into_the_matrix_are_quoted() -> None:
    link = matrix_link(case='a"b', variant="", target=("sm_80", "sm_90"), across="bytes")
    assert unquote_plus(link) == r'matrix.html#q=case == "a\"b" and target in ("sm_80", "sm_90")&across=bytes'
    assert not set(' "&') & set(link.removesuffix("&across=bytes"))
    of = {
        "case": "a/b",
        "variant": "x; y=50%&+",
        "backend": "nvrtc",
        "library": "",
        "toolkit": "12.4",
        "target": "sm_80",
    }
    assert cell_link(of) == "matrix.html#cell=a/b;x%253B+y=50%2525%26%2B;nvrtc;;12.4;sm_80"
