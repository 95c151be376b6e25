"""Plans: the cells of a run, written before the first of them, next to its records."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.matrix.axes import AXIS, PLACE
from harness.model import Cell
from harness.protocol import process_output
from harness.records.json_io import RecordError, read_json
from harness.records.schema import check_value
from harness.web.address import redact

PLAN_SCHEMA = 1
_MOST_SHARDS = 9999
_JSON = json.JSONEncoder().encode

Plan = dict[str, Any]

CELL_KEYS = ("cell", *(key for key in PLACE if not AXIS[key].optional), "environment", "title", "topic")
_CELL_KEYS = frozenset(CELL_KEYS)


def plan_path(path: Path) -> Path:
    """``x.plan.json`` for ``x.jsonl``."""
    return path.with_name(path.name.removesuffix(".jsonl") + ".plan.json")


def make_plan(
    cells: Iterable[Cell],
    *,
    run: str,
    environment: str,
    argv: Sequence[str] = (),
    started: datetime | None = None,
    machine: Mapping[str, Any] | None = None,
    commit: str = "",
    shard: Mapping[str, Any] | None = None,
) -> Plan:
    """Say what a run will do.

    Parameters
    ----------
    cells : iterable of Cell
        Every cell that should arrive.
    run : str
        Name of the run, the same as in its records.
    environment : str
        Name of the environment that it runs in.
    argv : sequence of str
        The command line; credentials in its addresses are dropped.
    started : datetime, optional
        Now, when left out. Later runs win over earlier ones when records are merged.
    machine : Mapping, optional
        `this_machine()` when left out.
    commit : str, optional
        Of what is tested, where it is known (`this_commit`).
    shard : Mapping, optional
        Where this is one part of several: its ``number``, ``of`` how many, and what tells the ``whole`` from others.
    """
    return {
        "schema": PLAN_SCHEMA,
        "run": run,
        "environment": environment,
        "started": (started or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="milliseconds"),
        "machine": dict(this_machine() if machine is None else machine),
        "argv": [redact(word) for word in argv],
        **({"commit": commit} if commit else {}),
        **({"shard": dict(shard)} if shard else {}),
        "cells": [_planned(cell) for cell in cells],
    }


def this_machine() -> dict[str, Any]:
    """Operating system, Python and processor; nothing that names the machine or its user."""
    return {
        "os": platform.platform(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": _processor(),
        "cpus": os.cpu_count() or 1,
    }


def this_commit() -> str:
    """Commit that CI is at work on, or the one that git has checked out here; empty where there is none."""
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA"):
        if re.fullmatch(r"[0-9a-f]{7,64}", os.environ.get(name, "")):
            return os.environ[name]
    try:
        done = process_output.run(["git", "rev-parse", "HEAD"], seconds=5, errors=process_output.Errors.DROPPED)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.said.strip() if done.code == 0 else ""


def read_plans(path: Path) -> list[Plan]:
    """Plans in one ``.plan.json``: one of a run, several of a merged file.

    Raises
    ------
    RecordError
        When the file cannot be read or is not a plan.
    """
    try:
        value = read_json(path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RecordError(f"{path}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RecordError(f"{path}: not a plan: must be a table")
    plans = value["plans"] if isinstance(value.get("plans"), list) else [value]
    try:
        for plan in plans:
            check_plan(plan)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None
    return plans


def plans_json(plans: Sequence[Plan]) -> bytes:
    """Content of a ``.plan.json``, with a line for each cell."""
    each = [_text_of(plan) for plan in plans]
    text = each[0] if len(each) == 1 else _table([f'"schema": {PLAN_SCHEMA}', f'"plans": {_list(each)}'])
    return (text + "\n").encode()


def _text_of(plan: Plan) -> str:
    # Python's own encoder, which indents, takes ten times as long.
    pairs = {key: _list(map(_JSON, value)) if key == "cells" else _JSON(value) for key, value in plan.items()}
    return _table(f"{_JSON(key)}: {text}" for key, text in pairs.items())


def _list(items: Iterable[str]) -> str:
    lines = ",\n".join(items)
    return f"[\n{lines}\n]" if lines else "[]"


def _table(pairs: Iterable[str]) -> str:
    return "{" + ",\n".join(pairs) + "}"


def started_at(plan: Plan) -> datetime:
    """When the run started; a time without a zone is taken for UTC."""
    time = datetime.fromisoformat(plan["started"])
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _planned(cell: Cell) -> dict[str, str]:
    return {
        "cell": cell.id,
        **{key: AXIS[key].value(cell) for key in PLACE},
        **({"program": cell.case.program} if cell.case.program else {}),
        **({"project": cell.case.project} if cell.case.project and not cell.case.program else {}),
        "environment": cell.toolchain.environment,
        "title": cell.case.title,
        "topic": cell.case.topic,
    }


def check_plan(plan: Any) -> None:
    """Raise `RecordError` where something is no plan; the message names the key."""
    problem = _problem(plan)
    if problem:
        raise RecordError(problem)
    for key in ("target", "toolkit", "backend", "case", "cell"):
        for value in {cell[key] for cell in plan["cells"]}:
            check_value(key, value)
    for cell in plan["cells"]:
        for key in cell.keys() - _CELL_KEYS if len(cell) > len(_CELL_KEYS) else ():
            check_value(key, cell[key])


def _problem(plan: Any) -> str:
    if not isinstance(plan, dict):
        return "not a plan: must be a table"
    schema = plan.get("schema")
    if type(schema) is not int:
        return "schema: must be a whole number"
    if schema > PLAN_SCHEMA:
        return (
            f"schema: the plan has version {schema} and this cumatrix reads versions up to {PLAN_SCHEMA}: "
            "update cumatrix"
        )
    kinds = {"run": str, "environment": str, "started": str, "machine": dict, "argv": list, "cells": list}
    for key, kind in kinds.items():
        if not isinstance(plan.get(key), kind):
            return f"{key}: missing, or not of the right type"
    if not isinstance(plan.get("commit", ""), str):
        return "commit: must be text"
    if "shard" in plan and not _is_shard(plan["shard"]):
        return "shard: must be a table of number, of (whole numbers) and whole (text)"
    try:
        started_at(plan).astimezone(UTC)
    except (ValueError, OverflowError):
        return f"started: {plan['started']!r} is not a time such as 2026-01-31T12:00:00+00:00"
    for place, cell in enumerate(plan["cells"]):
        if not isinstance(cell, dict) or not all(type(cell.get(key)) is str for key in CELL_KEYS):
            key = next(key for key in CELL_KEYS if not isinstance(cell, dict) or not isinstance(cell.get(key), str))
            return f"cells[{place}].{key}: missing, or not text"
    return ""


def _is_shard(value: Any) -> bool:
    kinds = {"number": int, "of": int, "whole": str}
    if not isinstance(value, dict) or any(type(value.get(key)) is not kind for key, kind in kinds.items()):
        return False
    return 1 <= int(value["number"]) <= int(value["of"]) <= _MOST_SHARDS


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def missing_shards(plans: Iterable[Plan]) -> list[str]:
    """A sentence for each sharded run with missing parts."""
    runs: dict[tuple[str, int, str], set[int]] = {}
    for plan in plans:
        if shard := plan.get("shard"):
            runs.setdefault((shard["whole"], shard["of"], plan["environment"]), set()).add(shard["number"])
    together = Counter((of, environment) for _, of, environment in runs)
    sentences = []
    for (_, of, environment), there in sorted(runs.items()):
        missing = [str(number) for number in range(1, of + 1) if number not in there]
        if missing:
            parts = f"part {missing[0]}" if len(missing) == 1 else f"parts {', '.join(missing)}"
            other = ""
            if together[of, environment] > 1:
                other = "; other parts were made of other cells, or with another --costs: every part has to be given the same"
            sentences.append(f"{parts} of {of} of the run in {environment} never arrived (--shard){other}")
    return sentences
