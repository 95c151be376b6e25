"""The page of all cases, ``docs/library.md``: ``python -m harness.cases.overview`` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from harness.cases.discovery import load_cases
from harness.cases.summary import backends_of
from harness.model.case import Case, Expectation

PAGE = Path("docs", "library.md")
_EVERYWHERE = "everywhere"
_INTRODUCTION = """\
# The library of cases

{cases} programs in {topics} topics, each the smallest that shows one thing which compiles here and not there. This page is made of the case files: `python -m harness.cases.overview` writes it, and a test holds it true.

`cumatrix cases list TOPIC` lists the cases of a topic, `cumatrix run TOPIC/NAME -t all -a all` runs a case through everything that is installed. What is not named under a case is expected to be built; the first line that applies counts. Conditions are those of
[case files](cases.md#conditions).
"""


def page(cases: Sequence[Case]) -> str:
    """Markdown of all `cases`: the topics, what is known to be broken, and each case with what is expected of it."""
    topics = [(topic, list(group)) for topic, group in groupby(cases, key=lambda case: case.topic)]
    parts = [_INTRODUCTION.format(cases=len(cases), topics=len(topics))]
    parts.append(_table(["topic", "cases", "about"], [_topic_row(topic, group) for topic, group in topics]))
    parts.append(
        "## Known faults\n\nFaults that should be fixed, or were fixed later: cells that fail for these reasons are `xfail`, and `xpass` when they are built.\n"
    )
    parts.append(_table(["case", "where", "why", "upstream"], list(_faults(cases))))
    for topic, group in topics:
        parts.append(f"## {topic}\n")
        parts += [_case(case) for case in group]
    return "\n".join(parts).rstrip() + "\n"


def _topic_row(topic: str, group: Sequence[Case]) -> list[str]:
    features = sorted({feature for case in group for feature in case.features})
    return [f"[{topic}](#{topic})", str(len(group)), ", ".join(features)]


def _faults(cases: Sequence[Case]) -> Iterator[list[str]]:
    for rule in dict.fromkeys(rule for case in cases for rule in case.faults):
        met = [case for case in cases if rule in case.faults]
        everywhere = len(met) == len(cases)
        name = "every case" if everywhere else f"every case of {met[0].topic}"
        yield [
            f"[{name}](../cases{'' if everywhere else f'/{met[0].topic}'}/faults.toml)",
            _where(rule),
            _cell(rule.reason),
            _link(rule.link),
        ]
    for case in cases:
        for rule in case.expectations:
            if rule.xfail:
                yield [f"[{case.name}]({_file(case)})", _where(rule), _cell(rule.reason), _link(rule.link)]


def _case(case: Case) -> str:
    lines = [f"### {case.name}\n", f"**{case.title}**\n"]
    if case.description:
        lines.append(" ".join(case.description.split()) + "\n")
    facts = [f"[case.toml]({_file(case)})", f"for {', '.join(backends_of(case))}"]
    if len(case.variants) > 1:
        facts.append(f"{len(case.variants)} variants")
    if case.heavy:
        facts.append("heavy: runs when it is named")
    lines.append(" · ".join([*facts, *map(_link, case.links)]) + "\n")
    rows = [[_where(rule), _what(rule), _cell(rule.reason)] for rule in case.expectations]
    if rows:
        lines.append(_table(["where", "what", "why"], rows))
    return "\n".join(lines)


def _what(rule: Expectation) -> str:
    said = f"{rule.status} at {rule.stage}" if rule.stage else str(rule.status)
    return f"{said} (xfail)" if rule.xfail else said


def _where(rule: Expectation) -> str:
    return f"`{_cell(rule.when.text)}`" if rule.when.text else _EVERYWHERE


def _link(address: str) -> str:
    owner = address.removeprefix("https://github.com/").split("/")
    if address.startswith("https://github.com/") and len(owner) == 4 and owner[2] in ("issues", "pull"):
        return f"[{owner[1]} #{owner[3]}]({address})"
    host = address.split("//", 1)[1].split("/")[0]
    return f"[{host}]({address})" if address else ""


def _file(case: Case) -> str:
    return f"../cases/{case.name}/case.toml"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    root = Path(__file__).parents[2]
    (root / PAGE).write_text(page(load_cases(root / "cases")), "utf-8")
