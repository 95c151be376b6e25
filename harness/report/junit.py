"""Findings in CI formats: JUnit XML, GitHub annotations, SARIF 2.1.0 and GitLab code quality."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from harness import __version__
from harness.matrix.axes import ROWS, TOOLCHAIN, ToolchainColumn, place_key, place_of, program_of
from harness.matrix.marks import KINDS, Mark, kind_of
from harness.model import Status
from harness.protocol.text import clean, one_line
from harness.records import Merged, Record, at_stage, spell_other_result
from harness.records.failures import ProgramFailure, main_message_of

MOST = 50
"""Annotations that GitHub shows per run. The rest is counted."""


def github(found: Sequence[ProgramFailure]) -> list[str]:
    """Return `workflow commands <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>`_, one per line."""
    lines = []
    for each in found[:MOST]:
        place = f"file={_property(each.file)},line={each.line}," if each.file else ""
        text = "\n".join(filter(None, (each.message, each.where, f"again: {each.again}" if each.again else "")))
        level = "warning" if each.kind.key == "xpass" else "error"
        lines.append(f"::{level} {place}title={_property(each.title)}::{_data(text)}")
    if len(found) > MOST:
        lines.append(f"::error title=cumatrix::{len(found) - MOST} more failures are not shown here")
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif(found: Sequence[ProgramFailure]) -> dict[str, Any]:
    """Return `SARIF 2.1.0 <https://docs.oasis-open.org/sarif/sarif/v2.1.0/>`_, as code scanning reads it."""
    kinds = {each.kind.key: each.kind for each in found}
    results = [
        {
            "ruleId": each.kind.key,
            "level": "warning" if each.kind.key == "xpass" else "error",
            "message": {"text": "\n".join(filter(None, (f"{each.title}: {each.message}", each.where, f"again: {each.again}" if each.again else "")))},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": each.file, "uriBaseId": "%SRCROOT%"}, "region": {"startLine": each.line}}}
            ] if each.file else [],
            "partialFingerprints": {"cumatrix/v1": each.fingerprint},
            "properties": {"cells": list(each.cells)},
        }
        for each in found
    ]  # fmt: skip
    driver = {
        "name": "cumatrix", "version": __version__, "informationUri": "https://pypi.org/p/cumatrix",
        "rules": [{"id": key, "name": kind.word, "shortDescription": {"text": kind.meaning}} for key, kind in kinds.items()],
    }  # fmt: skip
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "utf16CodeUnits"}
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def gitlab(found: Sequence[ProgramFailure]) -> list[dict[str, Any]]:
    """Return GitLab's `code quality report <https://docs.gitlab.com/ci/testing/code_quality/>`_.

    A finding without a file is at the root of the project.
    """
    return [
        {
            "description": f"{each.title}: {each.message} ({each.where})",
            "check_name": f"cumatrix {each.kind.word}",
            "fingerprint": each.fingerprint,
            "severity": each.kind.severity,
            "location": {"path": each.file or ".", "lines": {"begin": each.line}},
        }
        for each in found
    ]


DOCUMENTS: Mapping[str, Callable[[Sequence[ProgramFailure]], Any]] = {"sarif": sarif, "gitlab": gitlab}
"""The formats that are JSON documents, by name."""


# XML 1.0 has no other characters, not even as references.
_NOT_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def xml_text(text: str) -> str:
    """Return clean text without characters that XML cannot contain. The writer escapes it."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))


_LOG = 8_000


def junit_xml(merged: Merged) -> bytes:
    """Return ``junit.xml``.

    Unexpected cells are failures, unsupported cells and known failures are skipped, and planned cells without a record
    are errors.

    Parameters
    ----------
    merged : Merged
        Records and missing cells. Only unexpected cells include their logs.
    """
    root = ET.Element("testsuites", name="cumatrix")
    root.text = "\n"
    suites: dict[tuple[str, ...], list[ET.Element]] = {}
    for cell in _sorted((*merged.records, *merged.missing)):
        suites.setdefault((cell["environment"], *place_of(cell, TOOLCHAIN)), []).append(_test(cell))
    totals = _Totals()
    for (environment, *toolchain), tests in suites.items():
        suite = _line("testsuite", name=xml_text(f"{environment}: {ToolchainColumn(tuple(toolchain)).label}"))
        suite.text = "\n"
        root.append(suite)
        suite.extend(tests)
        counts = _Totals()
        for test in tests:
            counts.add(test)
        counts.write(suite)
        totals.include(counts)
    totals.write(root)
    text: bytes = ET.tostring(root, "utf-8", xml_declaration=True)
    return text + b"\n"


class _Totals:
    def __init__(self) -> None:
        self.tests = self.failures = self.errors = self.skipped = 0
        self.time = 0.0

    def add(self, test: ET.Element) -> None:
        self.tests += 1
        self.failures += test.find("failure") is not None
        self.errors += test.find("error") is not None
        self.skipped += test.find("skipped") is not None
        self.time += float(test.get("time", "0"))

    def include(self, other: _Totals) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def write(self, element: ET.Element) -> None:
        for name in ("tests", "failures", "errors", "skipped"):
            element.set(name, str(getattr(self, name)))
        element.set("time", f"{self.time:.3f}")


def _line(tag: str, **attributes: str) -> ET.Element:
    """Return an element followed by a newline. `ET.indent` takes as long as everything else together."""
    element = ET.Element(tag, attributes)
    element.tail = "\n"
    return element


def _sorted(cells: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the cells by environment and toolchain, then in the order of the matrix.

    Places are looked up and not compared, as in `harness.matrix.axes.ranks`.
    """
    keys = (TOOLCHAIN, ROWS, ("target",))
    places = [tuple(place_of(cell, names) for names in keys) for cell in cells]
    orders = [_order(names, {place[number] for place in places}) for number, names in enumerate(keys)]
    at = [
        (cell["environment"], *(order[value] for order, value in zip(orders, place, strict=True)))
        for cell, place in zip(cells, places, strict=True)
    ]
    return [cells[number] for number in sorted(range(len(cells)), key=at.__getitem__)]


def _order(names: tuple[str, ...], values: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """Return the position of each value among the distinct ones. Equal versions share a position."""
    keys = {value: place_key(names, value) for value in values}
    places = {key: place for place, key in enumerate(sorted(set(keys.values())))}
    return {value: places[key] for value, key in keys.items()}


def _test(cell: Mapping[str, Any]) -> ET.Element:
    name = f"{program_of(cell)[1]} {cell['target']}".strip()
    test = _line("testcase", classname=_short(cell["case"].replace("/", ".")), name=_short(name))
    if "status" not in cell:
        test.set("time", "0")
        ET.SubElement(test, "error", type="missing", message=KINDS["missing"].meaning).text = xml_text(cell["cell"])
        return test
    test.set("time", f"{cell['seconds']:.3f}")
    if cell.get("others"):
        other = ET.SubElement(ET.SubElement(test, "properties"), "property", name="other runs")
        other.set("value", xml_text(one_line("; ".join(map(spell_other_result, cell["others"])), 2000)))
    kind = kind_of(cell)
    if kind.key in ("unsupported", "xfail"):
        why = cell["reason"] if kind.key == "unsupported" else cell["expected"]["reason"] or _first_message(cell)
        ET.SubElement(test, "skipped", type=kind.key, message=xml_text(one_line(why)))
    elif not kind.as_expected:
        _fail(test, cell, kind)
    return test


def _fail(test: ET.Element, record: Record | Mapping[str, Any], kind: Mark) -> None:
    tag = "failure" if Status(record["status"]).answered else "error"
    expected = at_stage(record["expected"]["status"], record["expected"]["stage"])
    got = at_stage(record["status"], record["stage"])
    lines = [record["cell"], f"expected: {expected}", f"got: {got}"]
    lines += [f"{item['severity']}: {one_line(item['message'])}" for item in record["diagnostics"][:5]]
    element = ET.SubElement(test, tag, type=kind.key, message=xml_text(f"{kind.meaning}: {_first_message(record)}"))
    element.text = xml_text("\n".join(lines))
    log = record["log"]
    if log:
        cut = log if len(log) <= _LOG else f"{log[: _LOG // 2]}\n…\n{log[-_LOG // 2 :]}"
        ET.SubElement(test, "system-out").text = xml_text(cut)


# Names repeat often.
_short = lru_cache(maxsize=4096)(xml_text)


def _first_message(record: Mapping[str, Any]) -> str:
    return one_line(main_message_of(record), 200)
