"""Facts for conditions from stored cells: records, planned cells, rows of a history."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.backends import BACKENDS
from harness.matrix import parameters
from harness.model import Target
from harness.model.facts import condition_facts
from harness.model.host import named
from harness.model.predicate import Spelled
from harness.records.programs import case_of

_TEXTS = ("cell", "topic", "variant", "environment", "backend", "target")
_OUTCOME = ("status", "stage", "verdict")


def facts_of(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the names that conditions may use (`harness.model.selection.RESULTS`), as `harness.model.Cell.facts` has them.

    Unknown facts are missing: the outcome of a planned cell, versions other than the library's in a row of a history.

    Parameters
    ----------
    cell : Mapping
        A record; or a cell as plans and histories have it, with the same keys, but for what is within others.
    """
    target, library = Target.parse(cell["target"]), cell.get("library") or ""
    release, _, headers = cell["toolkit"].partition("+headers")
    requested = (cell.get("toolchain") or {}).get("requested") or {}
    info = BACKENDS.get(cell["backend"])
    own = info.library.replace("-", "_") if info else ""
    packages = requested.get("packages") or ({own: library.partition("+")[0]} if own else {})
    if isinstance(packages, Mapping):  # the table may hold anything
        packages = {name: version for name, version in packages.items() if isinstance(version, str)}
    else:
        packages = {}
    diagnostics = cell.get("diagnostics")
    message = diagnostics[0]["message"] if diagnostics and not isinstance(diagnostics, str) else cell.get("message")
    release = release.removesuffix("@local")
    return {
        **parameters_of(cell),
        **condition_facts(
            backend=cell["backend"],
            library=library,
            release=release,
            headers=headers or release,
            target=target,
            device=_on_device(cell),
            packages=packages,
            libraries={},  # they stand among the parameters
            host=named(cell.get("host_compiler") or "", _text(requested.get("host_compiler"))),
            lenient=True,
        ),
        **{name: cell[name] for name in _TEXTS if name in cell},
        **({"case": case_of(cell)} if "case" in cell else {}),
        "project": cell.get("project") or "",
        **{name: cell[name] for name in _OUTCOME if cell.get(name)},
        "message": message or cell.get("reason") or "",
    }


def parameters_of(cell: Mapping[str, Any]) -> dict[str, Spelled]:
    """The case's parameters, out of the variant's name; none for a program without a case, whose variant are its options."""
    if cell.get("program"):
        return {}
    return {name: Spelled(value) for name, value in parameters.parameters_of(cell.get("variant") or "").items()}


def _on_device(cell: Mapping[str, Any]) -> bool:
    device = cell.get("device")
    if isinstance(device, Mapping):
        return device.get("virtual") is False
    return re.search(rf" {re.escape(cell['target'])}( with \S+)? on ", cell.get("cell", "")) is not None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
