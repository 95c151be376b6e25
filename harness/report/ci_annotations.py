"""Findings as CI systems take them: GitHub's commands, SARIF 2.1.0, GitLab's code quality."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness import __version__
from harness.records.failures import ProgramFailure

MOST = 50
"""Annotations that GitHub shows of a run; the rest is counted."""


def github(found: Sequence[ProgramFailure]) -> list[str]:
    """`Workflow commands <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>`_, a line each."""
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
    """`SARIF 2.1.0 <https://docs.oasis-open.org/sarif/sarif/v2.1.0/>`_, as code scanning takes it."""
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
    """GitLab's `code quality report <https://docs.gitlab.com/ci/testing/code_quality/>`_; what has no file is shown at the root of the project."""
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
"""Every form that is a JSON document, by name."""
