"""Builds a record from a cell and its outcome."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, cast

from harness import __version__
from harness.matrix.axes import AXES
from harness.model import Case, Cell, Expectation, KernelResources, Outcome, Stage, Status, Verdict
from harness.model.case import name_of, tensor_cores_of
from harness.model.judge import shortfall
from harness.records.record import SCHEMA, Expected, Record
from harness.records.schema import Field, fields_of

_KEYS = tuple(Record.__annotations__)
"""The keys of records, in the order of their definition."""


def make_record(
    cell: Cell,
    outcome: Outcome,
    expected: Expectation,
    verdict: Verdict,
    *,
    run: str,
    cached: bool,
    fingerprint: str,
    taken_from: str = "",
) -> Record:
    """Build the record of a cell.

    Two runs with the same outcome give the same record except for ``run``, ``seconds``, ``peak_bytes``, ``cached``,
    ``shared_steps`` and ``taken_from``. The record therefore has no clock time: the plan has the start of the run.

    Parameters
    ----------
    cell : Cell
        The requested cell.
    outcome : Outcome
        The actual outcome.
    expected : Expectation
        The outcome that the case expects.
    verdict : Verdict
        The verdict, for readers that do not judge again.
    run : str
        Name of the run, as in its plan.
    cached : bool
        Whether the outcome is from the cache.
    fingerprint : str
        Content key of the cell.
    taken_from : str
        The source of a foreign outcome; empty for the user's own.
    """
    case, toolchain = cell.case, cell.toolchain
    facts = outcome.to_json()
    plain = _as_it_is if cached and not taken_from else _plain  # the cache contains checked JSON
    record = {
        "schema": SCHEMA,
        "cell": cell.id,
        **{axis.key: axis.value(cell) for axis in AXES},
        **({"program": case.program} if case.program else {"project": case.project} if case.project else {}),
        "title": case.title,
        "features": list(case.features),
        "links": list(case.links),
        "environment": toolchain.environment,
        "toolchain": {
            "requested": {
                "packages": dict(toolchain.packages),
                "library": toolchain.library,
                "toolkit": toolchain.toolkit.release,
                "headers": toolchain.toolkit.headers,
                **({"cuda_home": toolchain.toolkit.home} if toolchain.toolkit.local else {}),
                **({"host_compiler": toolchain.host.version} if toolchain.host.version else {}),
                **({"libraries": dict(cell.variant.libraries)} if cell.variant.libraries else {}),
            },
            "observed": plain(facts["observed"]),
        },
        "status": outcome.status.value,
        "stage": outcome.stage and outcome.stage.value,
        "stages": [stage.value for stage in outcome.stages],
        "verdict": verdict.value,
        "expected": expected_json(expected),
        "reason": (shortfall(expected, outcome) if outcome.status is Status.BUILT else "") or outcome.reason,
        "diagnostics": facts["diagnostics"],
        "artifact": facts["artifact"],
        "device": plain(facts["device"]),
        "signal": outcome.signal,
        "seconds": plain(outcome.seconds),
        "peak_bytes": outcome.peak_bytes,
        "cached": cached,
        "shared_steps": list(outcome.shared_steps),
        "command": list(outcome.command),
        "log": outcome.log,
        "notes": [*outcome.notes, *code_notes(case, outcome)],
        "fingerprint": fingerprint,
        "run": run,
        "cumatrix": __version__,
        **({"taken_from": taken_from} if taken_from else {}),
    }
    ordered = {key: record[key] for key in _KEYS if key in record}
    assert len(ordered) == len(record), "a key that Record does not have"
    return cast("Record", ordered)


def _as_it_is(value: Any) -> Any:
    return value


def _plain(value: Any) -> Any:
    """Return the value as a reader of the file gets it, without tuples and other mapping types."""
    if type(value) is str:  # most values are; the check against an abstract class is the slowest part
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number of JSON")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {name: _plain(item) for name, item in value.items()} if isinstance(value, Mapping) else value


def expected_json(expected: Expectation) -> Expected:
    """Return the applied expectation in the form of a record."""
    fields: Expected = {
        "status": expected.status.value,
        "stage": expected.stage and expected.stage.value,
        "diagnostic": expected.diagnostic,
        "xfail": expected.xfail,
        "reason": expected.reason,
        "link": expected.link,
    }
    if expected.kernels and expected.kernels.names:
        fields["kernels"] = list(expected.kernels.names)
    if expected.kernels and expected.kernels.count:
        fields["kernel_count"] = expected.kernels.count
    if expected.tensor_cores is not None:
        fields["tensor_cores"] = expected.tensor_cores
    return fields


_BEGIN, _END = "<!-- made by python -m harness.report.exports -->", "<!-- to here -->"
_WORDS: tuple[type[StrEnum], ...] = (Status, Stage, Verdict)


def with_tables(page: str) -> str:
    """Replace the text between the two marks of a page."""
    made = "\n".join((_BEGIN, "", *_keys(), "", *_words(), "", _END))
    return re.sub(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", lambda _: made, page, flags=re.DOTALL)


def _keys() -> Iterator[str]:
    yield "| key | type | meaning |"
    yield "| --- | --- | --- |"
    for key, field in _all(fields_of(Record)):
        yield f"| `{key}` | {_kind(field.check.kind)} | {field.description} |"


def _kind(text: str) -> str:
    """Return the name of a kind of values in a table: ``integer or null`` for ``a whole number or null``."""
    return text.replace("a whole number", "integer").replace("true or false", "boolean").removeprefix("a ")


def _words() -> Iterator[str]:
    for words in _WORDS:
        yield f"- A {words.__name__.lower()} is one of {', '.join(f'`{word}`' for word in words)}."


def _all(fields: Iterable[Field], before: str = "") -> Iterator[tuple[str, Field]]:
    """Yield keys with the keys of their tables: ``artifact.kernels[].name``."""
    for field in fields:
        key = before + field.name
        yield key, field
        if field.table is not None:
            several = "[]" if field.check.schema.get("type") == "array" else ""
            yield from _all(fields_of(field.table), f"{key}{several}.")


def largest(kernels: Sequence[Mapping[str, Any]], resource: str) -> int | None:
    """Return the largest value of a resource (``num_regs``, ``shared_bytes``, …) of any kernel, or None if no value is known."""
    if len(kernels) < 2:  # most cells
        return kernels[0].get(resource) if kernels else None
    known = [number for kernel in kernels if (number := kernel.get(resource)) is not None]
    return max(known, default=None)


_FEATURE = "tensor-cores"
"""Feature of cases whose code is expected to use tensor cores."""

TENSOR_CORES, NO_TENSOR_CORES, SPILLS, LOCAL = "tensor cores: ", "no tensor cores", "spills ", "local memory: "
"""The starts of the notes."""

_MUCH_LOCAL = 1024  # bytes per thread: an array, or a stack that is not known at compile time


def code_notes(case: Case, outcome: Outcome) -> Iterator[str]:
    """Yield notes on the code of a built cell's kernels. Unknown values give no note.

    A cell without tensor cores gets a note only if the case has that feature.
    """
    if outcome.status is not Status.BUILT or outcome.artifact is None:
        return
    kernels = outcome.artifact.kernels
    found = tensor_cores_of(kernel.tensor_cores for kernel in kernels)
    if found and (case.program or _FEATURE in case.features):
        yield f"{TENSOR_CORES}{found.replace(' ', ', ')}"
    elif found == "" and _FEATURE in case.features:
        yield NO_TENSOR_CORES
    if worst := _most(kernels, "spill_bytes", 1):
        yield f"{SPILLS}{worst.spill_bytes} bytes of registers ({name_of(worst.name)})"
    if worst := _most(kernels, "local_bytes", _MUCH_LOCAL):
        yield f"{LOCAL}{worst.local_bytes} bytes per thread ({name_of(worst.name)})"


def _most(kernels: tuple[KernelResources, ...], resource: str, least: int) -> KernelResources | None:
    """Return the kernel with the highest value of a resource, if the value is at least `least`."""
    found = max(kernels, key=lambda kernel: getattr(kernel, resource) or 0, default=None)
    return found if found and (getattr(found, resource) or 0) >= least else None
