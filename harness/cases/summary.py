"""Output of ``cumatrix cases list`` for a case; no compiler is needed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness.backends import BACKENDS

if TYPE_CHECKING:
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
