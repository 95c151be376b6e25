"""The bundled library of cases: summaries, checks, copies, and ``docs/library.md`` (``python -m harness.cases.library``)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.discovery import Roots, chosen_files, find_cases, library_topics, load_cases, topic_rank
from harness.cases.load import display, load_case
from harness.cases.sources import packaged_cases
from harness.cases.toml import CaseError, Problem
from harness.errors import UsageError
from harness.model.case import Case, Expectation
from harness.process_locks import HeldFolder


@dataclass(frozen=True, kw_only=True)
class CaseSummary:
    """One line of ``cases list``."""

    name: str
    topic: str
    title: str
    heavy: bool
    features: tuple[str, ...]
    languages: tuple[str, ...]
    backends: tuple[str, ...]
    variants: int
    links: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a plain JSON value of every field."""
        return asdict(self)


def summary_of(case: Case) -> CaseSummary:
    """Return the summary of a case."""
    return CaseSummary(
        name=case.name,
        topic=case.topic,
        title=case.title,
        heavy=case.heavy,
        features=case.features,
        languages=tuple(case.sources),
        backends=backends_of(case),
        variants=len(case.variants),
        links=case.links,
    )


def backends_of(case: Case) -> tuple[str, ...]:
    """Return the names of the backends that can compile a case."""
    return backends_among(case.sources, case.backends)


def backends_among(languages: Collection[str], only: Collection[str]) -> tuple[str, ...]:
    """Return the names of the backends for a case's languages; `only` restricts them unless empty."""
    return tuple(info.name for info in BACKENDS.values() if info.language_among(languages, only))


def check(root: Roots, selection: Sequence[str] = (), *, needed: bool = True) -> list[str]:
    """Return every problem of the selected cases, one sentence each.

    The check goes beyond loading: it reports kernels that their source does not mention, rules that an earlier rule
    makes unreachable, and duplicate titles.
    """
    sentences: list[str] = []
    titles: dict[str, str] = {}
    for path, home in chosen_files(root, selection, needed=needed):
        try:
            case = load_case(path, home)
        except CaseError as error:
            sentences += str(error).splitlines()
            continue
        file = display(path, home)
        sentences += map(str, _doubts(case, file))
        other = titles.setdefault(case.title, case.name)
        if other != case.name:
            sentences.append(f'{file}: title: is the same as that of "{other}"')
    # Each case below a faults.toml reports the file's problems.
    return list(dict.fromkeys(sentences))


def _doubts(case: Case, file: str) -> list[Problem]:
    found = []
    for language, kernels in case.entries.items():
        files = [case.sources[language], *(case.together if language != "python" else ())]
        text = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
        for kernel in kernels:
            if not re.search(rf"\b{re.escape(kernel)}\b", text):
                message = f'"{kernel}" does not occur in {case.sources[language].name}'
                found.append(Problem(file=file, line=0, key=f"entry.{language}", message=message))
    for key, rules in (("unsupported", case.unsupported), ("expect", case.expectations)):
        seen: dict[str, int] = {}
        for rule in rules:
            earlier = seen.get("") or seen.get(rule.when.text)
            if earlier:
                message = f"is never reached: the rule of line {earlier} applies wherever this one does"
                found.append(Problem(file=file, line=rule.line, key=key, message=message))
            seen.setdefault(rule.when.text, rule.line)
    return found


PAGE = Path("docs", "library.md")
_EVERYWHERE = "everywhere"
_INTRODUCTION = """\
# The library of cases

{cases} programs in {topics} topics. Each case is the smallest program that shows one feature compiling for one combination and failing for another. `python -m harness.cases.library` generates this page from the case files, and a test keeps it current.

`cumatrix cases list TOPIC` lists the cases of a topic. `cumatrix run TOPIC/NAME -t all -a all` runs a case with every installed tool. A combination without a row must build; the first row that applies counts. The conditions are those of
[case files](cases.md#conditions).
"""


def page(cases: Sequence[Case]) -> str:
    """Return the Markdown page of `cases`: topics, known faults, and each case with its expectations."""
    ordered = sorted(cases, key=lambda case: topic_rank(case.topic))
    topics = [(topic, list(group)) for topic, group in groupby(ordered, key=lambda case: case.topic)]
    parts = [_INTRODUCTION.format(cases=len(cases), topics=len(topics))]
    parts.append(_table(["topic", "cases", "title", "about"], [_topic_row(topic, group) for topic, group in topics]))
    parts.append(
        "## Known faults\n\nFaults that should be fixed, or were fixed later: cells that fail for these reasons are `xfail`, and `xpass` when they are built.\n"
    )
    parts.append(_table(["case", "where", "why", "upstream"], list(_faults(cases))))
    for topic, group in topics:
        parts.append(f"## {topic}\n")
        parts += [f"{about.title}: {about.about}.\n"] if (about := library_topics().get(topic)) else []
        parts += [_case(case) for case in group]
    return "\n".join(parts).rstrip() + "\n"


def _topic_row(topic: str, group: Sequence[Case]) -> list[str]:
    known = library_topics().get(topic)
    title, about = (known.title, known.about) if known else ("", "")
    return [f"[{topic}](#{topic})", str(len(group)), title, about]


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
    outcome = f"{rule.status} at {rule.stage}" if rule.stage else str(rule.status)
    return f"{outcome} (xfail)" if rule.xfail else outcome


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


def copy_cases(folder: Path) -> int:
    """Copy the library of cases to a missing or empty folder.

    Parameters
    ----------
    folder : Path
        Folder of the topics; created with its parents.

    Returns
    -------
    int
        Number of copied cases.

    Raises
    ------
    UsageError
        If the folder is not empty, in which case it stays unchanged, or cannot be written.
    """
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already: name another folder, as in `cumatrix cases copy other-cases`")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # An interrupted copy would look like a library with fewer cases, so the folder appears complete or not at all.
        with HeldFolder(folder.parent, ".cumatrix-") as scratch:
            whole = Path(scratch, "cases")
            _copy(packaged_cases(), whole)
            count = len(find_cases(whole))
            whole.rename(folder)
    except OSError as error:
        raise UsageError(f"cannot copy the cases to {folder}: {error.strerror or error}") from None
    return count


def copy_some(names: Collection[str], folder: Path) -> list[str]:
    """Copy cases of the library into a folder of cases, with the library's shared files.

    Parameters
    ----------
    names : collection of str
        Cases and topics.
    folder : Path
        Folder of cases; created if missing.

    Returns
    -------
    list of str
        Names of the copied cases.

    Raises
    ------
    UsageError
        If the folder already has a case, in which case that case stays unchanged, or cannot be written.
    """
    root = packaged_cases()
    places = {path.parent.relative_to(root).as_posix(): path.parent for path in find_cases(root)}
    chosen = sorted(place for place in places if place in names or place.partition("/")[0] in names)
    if there := [place for place in chosen if os.path.lexists(folder / place)]:
        raise UsageError(f"{folder / there[0]} is there already: remove it, or name another folder with --to")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for shared in root.glob("*.*"):
            if not (folder / shared.name).exists():
                shutil.copyfile(shared, folder / shared.name)
        for place in chosen:
            with HeldFolder(folder, ".cumatrix-") as scratch:
                _copy(places[place], Path(scratch, "case"))
                (folder / place).parent.mkdir(exist_ok=True)
                Path(scratch, "case").rename(folder / place)
    except OSError as error:
        raise UsageError(f"cannot copy cases to {folder}: {error.strerror or error}") from None
    return chosen


def _copy(origin: Path, target: Path) -> None:
    """Copy files without their permissions, and without the caches of Python and editors."""
    for path in origin.rglob("*"):
        name = path.relative_to(origin)
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in name.parts):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)


if __name__ == "__main__":
    root = Path(__file__).parents[2]
    (root / PAGE).write_text(page(load_cases(root / "cases")), "utf-8")
