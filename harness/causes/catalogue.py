"""The catalogue: from what a compiler said to its cause and remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from harness.diagnostics import clean, one_line
from harness.model import Stage, Status, Target
from harness.model.condition import Condition, Version

FILE = "causes.toml"
_MAX_LOG = 2_000_000
_KEYS = frozenset(("title", "pattern", "status", "stage", "when", "where", "cause", "remedy", "links", "examples"))


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A known cause.

    Parameters
    ----------
    name, title : str
        Its key in the table, and one line.
    pattern : re.Pattern or None
        What it is told by; None where the status is enough.
    status, stage : frozenset of str
        What it may stand for; an empty `stage` is any.
    when : Condition
        Cells it applies to.
    where : str
        The same in words, empty for everywhere.
    cause, remedy : str
        Sentences.
    links : tuple of str
        Upstream's pages.
    examples : tuple of str
        What compilers really said.
    """

    name: str
    title: str
    pattern: re.Pattern[str] | None
    status: frozenset[str]
    stage: frozenset[str]
    when: Condition
    where: str
    cause: str
    remedy: str
    links: tuple[str, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Match:
    """A cause, and the words it was told by (empty where the status was enough); `line` counts from 1 in a log, 0 elsewhere."""

    cause: Cause
    text: str
    line: int = 0


@cache
def catalogue() -> Mapping[str, Cause]:
    """Every known cause by name, in the order of the table: the special before the general."""
    table = tomllib.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    return {name: _cause(name, entry) for name, entry in table.items()}


def _cause(name: str, entry: Mapping[str, Any]) -> Cause:
    unknown = set(entry) - _KEYS
    if unknown:
        raise ValueError(f"{FILE}: {name}: unknown key {sorted(unknown)[0]!r}")
    return Cause(
        name=name,
        title=entry["title"],
        pattern=re.compile(entry["pattern"]) if "pattern" in entry else None,
        status=frozenset(Status(word) for word in entry.get("status", ["rejected"])),
        stage=frozenset(Stage(word) for word in entry.get("stage", [])),
        when=Condition.parse(entry.get("when", "")),
        where=entry.get("where", ""),
        cause=entry["cause"],
        remedy=entry["remedy"],
        links=tuple(entry.get("links", ())),
        examples=tuple(entry.get("examples", ())),
    )


def causes_of(record: Mapping[str, Any]) -> tuple[Match, ...]:
    """Known causes of what happened to a cell, that of the most telling diagnostic first."""
    if record["status"] == "built" and not record["diagnostics"]:
        return ()
    facts = _facts(record)
    fitting = tuple(
        cause.name
        for cause in catalogue().values()
        if record["status"] in cause.status
        and (not cause.stage or record["stage"] in cause.stage)
        and cause.when(facts)
    )
    said = tuple(item["message"] for item in record["diagnostics"])
    # Of what only warned while it was built the log tells nothing that went wrong.
    return _told(fitting, (*said, record["reason"]), record["log"] if record["status"] != "built" else "")


@lru_cache(maxsize=256)
def _told(fitting: tuple[str, ...], said: tuple[str, ...], log: str) -> tuple[Match, ...]:
    """Those of `fitting` that words or else the log tell; else those that the status is enough for.

    Neighbouring cells mostly say the same, and all patterns over a whole log take a millisecond.
    """
    found: dict[str, Match] = {}
    for text in map(one_line, said):
        first = next((cause for cause in _telling(text) if cause.name in fitting), None)
        if first:
            found.setdefault(first.name, Match(cause=first, text=text))
    if not found:
        found = {match.cause.name: match for match in _in_log(log, frozenset(fitting))}
    if not found:
        causes = [catalogue()[name] for name in fitting]
        found = {cause.name: Match(cause=cause, text="") for cause in causes if cause.pattern is None}
    return tuple(found.values())


def causes_in_log(log: str) -> tuple[Match, ...]:
    """Known causes in any log, each with the first line that tells it, in the order of the lines.

    Of several causes of the same words, the first of the table that does not depend on a cell is told, and those before it that do
    are told with it: without a cell nobody can know.
    """
    return _in_log(log, None)


def _in_log(log: str, among: Set[str] | None) -> tuple[Match, ...]:
    found: dict[str, Match] = {}
    for number, line in enumerate(clean(log[:_MAX_LOG]).splitlines(), 1):
        text = one_line(line, 4000)
        for cause in _telling(text):
            if among is None or cause.name in among:
                found.setdefault(cause.name, Match(cause=cause, text=text, line=number))
                if not cause.where or among is not None:
                    break
    return tuple(sorted(found.values(), key=lambda match: (match.line, bool(match.cause.where))))


@lru_cache(maxsize=1024)
def _telling(text: str) -> tuple[Cause, ...]:
    """Causes whose pattern is in a line, wherever they apply; logs say the same line again and again."""
    return tuple(
        cause for cause in catalogue().values() if cause.pattern is not None and text and cause.pattern.search(text)
    )


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """What conditions may ask of a record, as of a cell (`harness.model.Cell.facts`)."""
    target = Target.parse(record["target"])
    requested = record["toolchain"]["requested"]
    release, _, headers = record["toolkit"].partition("+headers")
    return {
        "backend": record["backend"],
        "target": record["target"],
        "virtual": target.virtual,
        "suffix": target.suffix,
        "cc": Version(target.capability),
        **dict(_versions({"toolkit": release, "headers": headers or release, "library": record["library"]})),
        **dict(_versions({name.replace("-", "_"): value for name, value in requested.get("packages", {}).items()})),
    }


def _versions(texts: Mapping[str, Any]) -> Iterator[tuple[str, Version]]:
    for name, text in texts.items():
        try:
            yield name, Version(str(text).removesuffix("@local"))
        except ValueError:
            continue
