"""Plans (the cells of a run, written before the first result) and input manifests, both stored next to the records.

A record's fingerprint is a hash over the request and all files read. To compare the fingerprint with other files, a
reader needs the files' names. The input manifest ``x.inputs.json`` next to ``x.jsonl`` lists them. With it, another
machine can check whether its outcomes would be the same.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.matrix.axes import AXIS, PLACE
from harness.model import Cell
from harness.protocol import process_output
from harness.records.record import RecordError, read_json
from harness.records.schema import check_value
from harness.web.address import redact

PLAN_SCHEMA = 1
_MOST_SHARDS = 9999
_JSON = json.JSONEncoder().encode

Plan = dict[str, Any]

CELL_KEYS = ("cell", *(key for key in PLACE if not AXIS[key].optional), "environment", "title", "topic")
_CELL_KEYS = frozenset(CELL_KEYS)


def plan_path(path: Path) -> Path:
    """Return ``x.plan.json`` for ``x.jsonl``."""
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
    """Return the plan of a run.

    Parameters
    ----------
    cells : iterable of Cell
        Every cell that should arrive.
    run : str
        Name of the run, the same as in its records.
    environment : str
        Name of the run's environment.
    argv : sequence of str
        The command line. Credentials in its addresses are dropped.
    started : datetime, optional
        The start, by default the current time. Later runs win over earlier ones when records are merged.
    machine : Mapping, optional
        The machine, by default `this_machine()`.
    commit : str, optional
        The tested commit, if known (`this_commit`).
    shard : Mapping, optional
        For one of several parts of a run: its ``number``, ``of`` (their count), and the id of the ``whole``.
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
    """Return operating system, Python and processor, without any name of the machine or its user."""
    return {
        "os": platform.platform(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": _processor(),
        "cpus": os.cpu_count() or 1,
    }


def this_commit() -> str:
    """Return the commit that CI tests or that git has checked out here, or an empty string without any."""
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA"):
        if re.fullmatch(r"[0-9a-f]{7,64}", os.environ.get(name, "")):
            return os.environ[name]
    try:
        done = process_output.run(["git", "rev-parse", "HEAD"], seconds=5, errors=process_output.Errors.DROPPED)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.output.strip() if done.code == 0 else ""


def read_plans(path: Path) -> list[Plan]:
    """Read the plans in a ``.plan.json``: one for a run, several for a merged file.

    Raises
    ------
    RecordError
        If the file cannot be read or is not a plan.
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
    """Return the content of a ``.plan.json``, with a line for each cell."""
    each = [_text_of(plan) for plan in plans]
    text = each[0] if len(each) == 1 else _table([f'"schema": {PLAN_SCHEMA}', f'"plans": {_list(each)}'])
    return (text + "\n").encode()


def _text_of(plan: Plan) -> str:
    # Python's own encoder takes ten times as long with indentation.
    pairs = {key: _list(map(_JSON, value)) if key == "cells" else _JSON(value) for key, value in plan.items()}
    return _table(f"{_JSON(key)}: {text}" for key, text in pairs.items())


def _list(items: Iterable[str]) -> str:
    lines = ",\n".join(items)
    return f"[\n{lines}\n]" if lines else "[]"


def _table(pairs: Iterable[str]) -> str:
    return "{" + ",\n".join(pairs) + "}"


def started_at(plan: Plan) -> datetime:
    """Return the start of the run. A time without a zone is UTC."""
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
    """Raise `RecordError` if a value is not a plan. The message names the key."""
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
    """Return a sentence for each sharded run with missing parts."""
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


SCHEMA = 1
_LARGEST = 512 << 20  # bytes of JSON
_HASH = re.compile(r"[0-9a-f]{64}")

FileSet = tuple[tuple[str, bool], ...]
"""Names of paths, and whether each is a folder with listed names."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of some records.

    Parameters
    ----------
    sets : Mapping[str, FileSet]
        Files that were read together, by a hash of their names.
    states : Mapping[str, str]
        The state of each path, from `harness.engine.file_states`. The path of a listed folder ends with ``/``.
    workers : Mapping[str, tuple]
        Question, set, and the worker's description of itself, by key of the files that the worker process read on
        loading.
    answers : Mapping[str, tuple]
        Question, set, and key of the worker, by fingerprint.
    """

    sets: Mapping[str, FileSet] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    workers: Mapping[str, tuple[str, str, Mapping[str, Any]]] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)

    def __or__(self, other: Inputs) -> Inputs:
        return Inputs(
            {**self.sets, **other.sets},
            {**self.states, **other.states},
            {**self.workers, **other.workers},
            {**self.answers, **other.answers},
        )

    def __bool__(self) -> bool:
        return bool(self.answers)

    def of(self, fingerprints: Collection[str]) -> Inputs:
        """Return the inputs of some records alone."""
        answers = {key: answer for key, answer in self.answers.items() if key in fingerprints}
        workers = {key: self.workers[key] for _, _, key in answers.values() if key in self.workers}
        names = {name for _, name, _ in (*answers.values(), *workers.values())}
        sets = {name: self.sets[name] for name in names if name in self.sets}
        wanted = {state_name(path, listed) for paths in sets.values() for path, listed in paths}
        states = {name: state for name, state in self.states.items() if name in wanted}
        return Inputs(sets, states, workers, answers)

    def to_json(self) -> bytes:
        """Return the content of a ``.inputs.json``. Paths occur once, and sets are lists of their positions."""
        files = sorted({path for paths in self.sets.values() for path in paths})
        place = {path: number for number, path in enumerate(files)}
        value = {
            "schema": SCHEMA,
            "files": [[path, int(listed), self.states.get(state_name(path, listed), "")] for path, listed in files],
            "sets": {name: [place[path] for path in self.sets[name]] for name in sorted(self.sets)},
            "workers": {key: list(self.workers[key]) for key in sorted(self.workers)},
            "answers": {key: list(self.answers[key]) for key in sorted(self.answers)},
        }
        return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Inputs:
        """Return the inputs from the output of `to_json`.

        Raises
        ------
        RecordError
            If the data is invalid. The message starts with `where`.
        """
        try:
            value = json.loads(data)
            if value["schema"] != SCHEMA:
                raise ValueError(
                    f"its version is {value['schema']!r}, and this cumatrix reads {SCHEMA}: update cumatrix"
                )
            files = [(_path(path), bool(listed)) for path, listed, _ in value["files"]]
            states = {
                state_name(*file): _text(state) for file, (_, _, state) in zip(files, value["files"], strict=True)
            }
            sets = {_hash(name): tuple(files[_place(place)] for place in of) for name, of in value["sets"].items()}
            workers = {
                _hash(key): (_hash(first), _hash(name), _as_table(ready))
                for key, (first, name, ready) in value["workers"].items()
            }
            answers = {
                _hash(key): (_hash(first), _hash(name), _hash(worker))
                for key, (first, name, worker) in value["answers"].items()
            }
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            why = (str(error).splitlines() or ["damaged"])[0][:200]
            raise RecordError(f"{where}: not an input manifest: {why}") from None
        return cls(sets, states, workers, answers)

    def packed(self) -> bytes:
        """Return the inputs for the metadata of ``results.parquet``."""
        return zlib.compress(self.to_json(), 6)

    @classmethod
    def unpacked(cls, data: bytes, where: str) -> Inputs:
        """Return the inputs from the output of `packed`.

        Raise `RecordError` if the data is invalid or unpacks to more than 512 MiB.
        """
        try:
            unpack = zlib.decompressobj()
            text = unpack.decompress(data, _LARGEST)
        except zlib.error as error:
            raise RecordError(f"{where}: its input manifest is damaged: {error}") from None
        if unpack.unconsumed_tail:
            raise RecordError(f"{where}: its input manifest has more than {_LARGEST >> 20} MiB")
        return cls.from_json(text, where)


def state_name(path: str, listed: bool) -> str:
    """Return the name of a path in `Inputs.states`."""
    return f"{path}/" if listed else path


def inputs_path(path: Path) -> Path:
    """Return ``x.inputs.json`` for ``x.jsonl``."""
    return path.with_name(path.name.removesuffix(".jsonl") + ".inputs.json")


def read_inputs(paths: Iterable[Path]) -> Inputs:
    """Read the manifests next to files of records. Without any, the result is empty.

    Raises
    ------
    RecordError
        If a manifest is damaged.
    """
    found = Inputs()
    for path in map(inputs_path, paths):
        if path.is_file():
            try:
                if path.stat().st_size > _LARGEST:
                    raise RecordError(f"{path}: has more than {_LARGEST >> 20} MiB")
                data = path.read_bytes()
            except OSError as error:
                raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
            found |= Inputs.from_json(data, str(path))
    return found


def _hash(value: Any) -> str:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise ValueError("a key is not a hash")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 200:
        raise ValueError("the state of a file is not a short text")
    return value


def _as_table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("a worker's description is not a table")
    return value


def _place(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a set names a file that is not in the list")
    return value


def _path(value: Any) -> str:
    """Return the name of a path after checking it."""
    if not isinstance(value, str) or "\0" in value or len(value) > 8192:
        raise ValueError("the name of a file is invalid")
    path = value.removeprefix("link:").removeprefix("times:").removeprefix("pyc:")
    if not path.startswith(("/", "$")):
        raise ValueError("the name of a file is not absolute")
    return value
