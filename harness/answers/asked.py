"""The request of a question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from harness.answers.question import Chip, Vocabulary


@dataclass(frozen=True, kw_only=True)
class Query:
    """The request of a question, from its chips.

    Parameters
    ----------
    chips : tuple of Chip
        All of them.
    """

    chips: tuple[Chip, ...]

    def _values(self, kind: str) -> list[str]:
        return list(dict.fromkeys(value for chip in self.chips if chip.kind == kind for value in chip.values))

    @cached_property
    def targets(self) -> list[str]:
        """Architectures; none for all."""
        return self._values("target")

    @cached_property
    def toolkits(self) -> list[str] | None:
        """CUDA releases; None for all."""
        return self._values("toolkit") or None

    @cached_property
    def words(self) -> list[str]:
        """Free words, and the names of header libraries and host compilers."""
        return list(dict.fromkeys(chip.name for chip in self.chips if chip.kind in ("word", "header", "host")))

    @cached_property
    def unknown(self) -> list[Chip]:
        """Return the chip for an unknown name."""
        return [chip for chip in self.chips if chip.kind == "unknown"]

    def tools(self, vocabulary: Vocabulary) -> dict[str, list[str] | None] | None:
        """Versions by backend, None for all its versions; None where no tool is named, and no host compiler, which names those that have a use for it."""
        found: dict[str, list[str] | None] = {}
        for chip in self.chips:
            for backend in vocabulary.tools[chip.name] if chip.kind == "tool" else ():
                found[backend] = [*(found.get(backend) or ()), *chip.values] or None
        return found or (dict.fromkeys(vocabulary.hosted) if self.hosts() else None)

    def headers(self) -> dict[str, list[str]]:
        """Versions by header library; none of them for all."""
        return self._named("header")

    def hosts(self) -> dict[str, list[str]]:
        """Versions by host compiler; none of them for all."""
        return self._named("host")

    def _named(self, kind: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for chip in self.chips:
            if chip.kind == kind:
                found.setdefault(chip.name, []).extend(chip.values)
        return found
