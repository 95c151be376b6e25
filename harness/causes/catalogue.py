"""The catalogue: from what a compiler said to its cause and remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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
    fitting = [
        cause
        for cause in catalogue().values()
        if record["status"] in cause.status
        and (not cause.stage or record["stage"] in cause.stage)
        and cause.when(facts)
    ]
    found: dict[str, Match] = {}
    messages = [one_line(item["message"]) for item in record["diagnostics"]]
    for text in (*messages, one_line(record["reason"])):
        first = _first(fitting, text)
        if first:
            found.setdefault(first.name, Match(cause=first, text=text))
    if not found and record["status"] != "built":
        for match in causes_in_log(record["log"], fitting):
            found.setdefault(match.cause.name, match)
    if not found:
        for cause in fitting:
            if cause.pattern is None:
                found[cause.name] = Match(cause=cause, text="")
    return tuple(found.values())


def causes_in_log(log: str, among: Sequence[Cause] | None = None) -> tuple[Match, ...]:
    """Known causes in any log, each with the first line that tells it, in the order of the lines.

    Of several causes of the same words, the first of the table that does not depend on a cell is told, and those before it that do
    are told with it: without a cell nobody can know.
    """
    causes = list(catalogue().values()) if among is None else among
    found: dict[str, Match] = {}
    for number, line in enumerate(clean(log[:_MAX_LOG]).splitlines(), 1):
        text = one_line(line, 4000)
        if not text:
            continue
        for cause in causes:
            if cause.pattern is not None and cause.pattern.search(text):
                found.setdefault(cause.name, Match(cause=cause, text=text, line=number))
                if not cause.where or among is not None:
                    break
    return tuple(sorted(found.values(), key=lambda match: (match.line, bool(match.cause.where))))


def _first(causes: Sequence[Cause], text: str) -> Cause | None:
    return next((cause for cause in causes if cause.pattern is not None and text and cause.pattern.search(text)), None)


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
