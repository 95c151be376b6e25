"""Requested names without an answered cell; a run without an answer proves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.cases.discovery import names_of
from harness.engine.context import RunContext
from harness.engine.plan import choose_backends, specific, with_native
from harness.matrix.marks import without_kernels
from harness.model import Cell, Status
from harness.model.target import parse_targets
from harness.toolkits import parse_toolkits


@dataclass(frozen=True, kw_only=True)
class RequestedName:
    """One word of a request, and its values.

    Parameters
    ----------
    kind : str
        Key of a record: ``case``, ``backend``, ``toolkit`` or ``target``.
    word : str
        The word as the user wrote it.
    values : frozenset of str
        Values of the key that the word selects.
    called : str
        Name of the kind for users, if it differs: a ``file`` that has no case.
    """

    kind: str
    word: str
    values: frozenset[str]
    called: str = ""


def requested_names(context: RunContext) -> list[RequestedName]:
    """Return every case, backend, toolkit and target that the request names."""
    request = context.request

    def words(text: str | None) -> Iterator[str]:
        return filter(None, (word.strip() for word in (text or "").split(",")))

    def targets(word: str) -> list[str]:
        named = parse_targets(with_native(word, context.devices))
        # Some libraries build only sm_90a for a device of 9.0, so sm_90a counts for sm_90 as well.
        backends = choose_backends(request.backends, context.environment, context.others)
        return list(map(str, [*named, *(specific(named) if any(info.specific_from for info in backends) else ())]))

    found: dict[str, dict[str, Iterable[str]]] = {
        "case": {item: names_of(request.cases, [item], request.programs) for item in request.selection},
        "backend": {word: [info.name for info in choose_backends(word, context.environment)] for word in words(request.backends)},
        "toolkit": {word: map(str, parse_toolkits(word)) for word in words(request.toolkits)},
        "target": {word: targets(word) for word in words(request.targets)},
    }  # fmt: skip
    return [
        RequestedName(kind=kind, word=word, values=frozenset(values))
        for kind, named in found.items()
        for word, values in named.items()
    ]


def without_left_out(
    requested: Iterable[RequestedName], whole: Iterable[Cell], chosen: Iterable[Cell]
) -> list[RequestedName]:
    """Return the names that need an answer after a condition selected cells; excluded names need none.

    Parameters
    ----------
    requested : iterable of RequestedName
        The names in the request.
    whole, chosen : iterable of Cell
        All cells, and those for which the condition holds.
    """
    before, after = _values(whole), _values(chosen)
    return [item for item in requested if item.values & after[item.kind] or not item.values & before[item.kind]]


def _values(cells: Iterable[Cell]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"case": set(), "backend": set(), "toolkit": set(), "target": set()}
    for cell in cells:
        found["case"].add(cell.case.name)
        found["backend"].add(cell.toolchain.backend)
        found["toolkit"].add(str(cell.toolchain.toolkit))
        found["target"].add(str(cell.target))
    return found


def answered(record: Mapping[str, Any]) -> bool:
    """Return whether a compiler answered."""
    return Status(record["status"]).answered


def _is_empty(record: Mapping[str, Any]) -> bool:
    """Return whether a program was built without a kernel; a test's properties have the mark, not the artifact."""
    return record["mark"] == "no_kernels" if "mark" in record else without_kernels(record)


def without_answer(records: Sequence[Mapping[str, Any]]) -> str:
    """Return an error sentence if no cell was answered, or no answer has a kernel; empty if one has a kernel."""
    empty = 0
    # Read the records once, up to the first answer: each pass decompresses them.
    for record in filter(answered, records):
        if not _is_empty(record):
            return ""
        empty += 1
    if empty:
        count = f"any of the {empty:,} cells that were built" if empty > 1 else "the one cell that was built"
        return f"no kernel came out of {count}: name a program with a kernel, or instantiate its templates"
    if not records:
        return ""
    many = f"any of the {len(records):,} cells" if len(records) > 1 else "the one cell"
    return f"no compiler answered {many}: {_why(Counter(record['reason'] for record in records))}"


def unanswered(requested: Iterable[RequestedName], records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each requested name without an answered cell."""
    waiting: dict[RequestedName, Counter[str]] = {item: Counter() for item in requested}
    # Read the records once: each pass decompresses them.
    for record in records:
        if not waiting:
            break
        for item in [item for item in waiting if record[item.kind] in item.values]:
            if answered(record):
                del waiting[item]
            else:
                waiting[item][record["reason"]] += 1
    return [
        f"no compiler answered for the {item.called or item.kind} {item.word}: "
        + (_why(reasons) if reasons else "none of the chosen cells has it")
        for item, reasons in waiting.items()
    ]


def _why(given: Counter[str]) -> str:
    """Return the most frequent reasons."""
    reasons = given.most_common()
    more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 2 else ""
    return "; ".join(reason for reason, _ in reasons[: 1 if more else 2]) + more
