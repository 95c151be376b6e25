"""A tool's finding as JSON, for ``cumatrix ask --json`` and a feature's document."""

from __future__ import annotations

from typing import Any

from harness.answers.answer import ToolFinding
from harness.answers.hosts import is_host


def said_json(said: ToolFinding) -> dict[str, Any]:
    """The keys that both have."""
    return {
        "backend": said.entry.backend,
        "library": "" if is_host(said.entry.axis) else said.entry.axis,
        "host_compiler": said.entry.axis if is_host(said.entry.axis) else "",
        "targets": list(said.targets),
        "kind": said.verdict.kind,
        "answer": said.verdict.text,
        "note": "; ".join(filter(None, (said.verdict.note, said.overall))),
        "cells": [row.cell for row in said.proof],
    }
