"""Output of ``cumatrix cases list`` and ``cumatrix cases check``; no compiler is needed."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.backends import BACKENDS
from harness.cases.discovery import Roots, chosen_files
from harness.cases.load import display, load_case
from harness.cases.toml import CaseError, Problem
from harness.model.case import Case


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
        """Plain JSON value of every field."""
        return asdict(self)


def summary_of(case: Case) -> CaseSummary:
    """The summary of a case."""
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
    """Names of the backends that have something to compile in a case."""
    return backends_among(case.sources, case.backends)


def backends_among(languages: Collection[str], only: Collection[str]) -> tuple[str, ...]:
    """As `backends_of`, of a case with programs in these languages that is for these backends only, or for all."""
    return tuple(info.name for info in BACKENDS.values() if info.language_among(languages, only))


def check(root: Roots, selection: Sequence[str] = (), *, needed: bool = True) -> list[str]:
    """Everything that is wrong with the chosen cases, one sentence each; empty when all are right.

    Beyond what loading refuses: kernels that their source does not mention, rules that an earlier
    rule makes unreachable, and titles used twice.
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
    # Each case below a faults.toml reports what is wrong with it.
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
