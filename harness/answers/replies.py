"""Replies to questions without a single feature: comparisons of releases, facts about architectures and CUDA releases, limits.

Each reply has a key (`harness.answers.vocabulary.Reading.keys`). The page contains the replies of all keys. The
terminal makes only the reply to its question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from harness.answers.answer import tool_label
from harness.answers.cells import Entry, Feature, Known, Row, brings_tools, is_host
from harness.answers.comparison import Comparison, Pair
from harness.answers.query import Reply, ReplyRow
from harness.answers.question import Vocabulary
from harness.answers.table import known_releases
from harness.answers.verdict import FAULT, WORKS
from harness.backends import BACKENDS, label_of, library_of
from harness.causes.catalogue import causes_in_log
from harness.causes.occupancy import BLOCK_THREADS, CONSTANT, MAX_REGISTERS, STATIC_SHARED, limits_of
from harness.libraries import companions_of
from harness.libraries import label_of as library_label
from harness.matrix.axes import spell_targets, target_key, version_key
from harness.matrix.ranges import between, spell_tried
from harness.model import Target
from harness.model.compatibility import (
    FIRST_OF_FAMILIES,
    MINOR_DRIVERS,
    RELEASES,
    RULES,
    SOURCES,
    Way,
    last_release_of_gpu,
    newest_hosts,
    ptx_of_release,
    release_of_gpu,
)
from harness.model.compatibility import answer as code_on_gpu
from harness.model.target import NVIDIA, VENDORS
from harness.protocol.text import counted

GENERATIONS = ("kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")
TENSOR = 70
"""The first compute capability with tensor cores: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#warp-matrix-functions"""

WITHOUT_TENSOR = re.compile(r"(gtx )?16[356]0( ti)?|t[46]00|t[12]000")
"""Products of compute capability 7.5 without tensor cores: https://en.wikipedia.org/wiki/GeForce_16_series, https://en.wikipedia.org/wiki/Quadro"""

GRID_BLOCKS = "2,147,483,647 × 65,535 × 65,535"
CLUSTER_BLOCKS = 8
CLUSTERS = 90
"""The first compute capability with clusters: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#thread-block-clusters"""


_GUIDE = "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html"
_TENSOR_GUIDE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#warp-matrix-functions"
_PRODUCTS = "https://developer.nvidia.com/cuda-gpus"
_PROCESSORS = "https://llvm.org/docs/AMDGPUUsage.html#processors"
_NAMED = 4
_PAIRED = 24
"""The maximum number of releases for which the page compares all pairs."""
_ENOUGH_PROGRAMS = 10
"""The minimum number of programs that two releases both build for the answer that the newer release is not broken."""


class Replies:
    """Replies from cells.

    Parameters
    ----------
    known : Known
        The tried cells.
    itself : Known
        The cells reduced to support for architectures (`harness.answers.answer.known_of_itself`).
    vocabulary : Vocabulary
        The vocabulary of questions.
    """

    def __init__(self, known: Known, itself: Known, vocabulary: Vocabulary) -> None:
        self.known, self.vocabulary = known, vocabulary
        self.comparison = Comparison(known)
        self._broken: dict[str, dict[str, str]] = {}
        self._releases: dict[str, Reply | None] = {}
        self.builds: dict[str, dict[str, Row]] = {}
        for row in itself.rows:
            if row.target.startswith("sm_") and row.toolkit and "+headers" not in row.toolkit:
                of = self.builds.setdefault(row.target, {})
                if row.toolkit not in of or row.letter == WORKS:
                    of[row.toolkit] = row

    @cached_property
    def toolkits(self) -> tuple[str, ...]:
        """Tried CUDA releases, oldest first."""
        return tuple(sorted({toolkit for of in self.builds.values() for toolkit in of}, key=version_key))

    def of(self, key: str) -> Reply | None:
        """Return the reply of a key, or None if nothing is known."""
        intent, _, rest = key.partition(" ")
        make = {
            "release": self._release,
            "breaks": self._breaks,
            "drop": self._drop,
            "requires": self._requires,
            "limits": self._limits,
            "tensor": self._tensor,
            "minimum": self._minimum,
            "driver": _driver,
            "supported": self._supported,
            "last": self._last,
            "first": self._first,
            "capability": self._capability,
            "supports": self._supports,
            "with": self._with,
            "ptx": _ptx,
            "vendor": _vendor,
            "code": self._code,
            "hosts": _hosts,
            "host": self._host,
        }[intent]
        return make(rest)

    def known_keys(self) -> Iterator[str]:
        """Yield every key with a reply, except the keys of ``supports``."""
        releases = self.comparison.releases
        names = dict.fromkeys((*self.vocabulary.architectures, *self.builds))
        for name, versions in releases.items():
            for place, version in enumerate(versions):
                yield from (
                    f"breaks {name} {version}",
                    f"drop {name} {version}",
                    f"release {name} {version}",
                )
                # A library with many releases has pairs with the next three releases and the newest one.
                others = versions[place + 1 :]
                near = others if len(versions) <= _PAIRED else dict.fromkeys((*others[:3], *others[-1:]))
                yield from (f"breaks {name} {version} {other}" for other in near)
        for toolkit in self.toolkits:
            yield from (f"{intent} cuda {toolkit}" for intent in ("minimum", "supported", "driver", "ptx", "hosts"))
        yield from self._combinations()
        numbers = dict.fromkeys(Target.parse(target).cc for target in self.builds)
        yield from (f"code {code} {number}" for code in self.builds for number in numbers)
        for name in ("gcc", "clang"):
            yield from (
                f"host {name} {version}{f' {toolkit}' if toolkit else ''}"
                for version in self.vocabulary.versions.get(name, ())
                for toolkit in ("", *self.toolkits)
            )
        yield from (
            f"vendor {backend} {start}"
            for start, names in self.vocabulary.builders.items()
            for backend in BACKENDS
            if backend not in names
        )
        yield "limits every"
        for name in names:
            yield from (
                f"{intent} {name}" for intent in ("drop", "requires", "limits", "tensor", "last", "first", "capability")
            )

    def _combinations(self) -> Iterator[str]:
        """Yield the keys of each library and of each of its releases with a CUDA release, and with the CUDA releases of a series."""
        cuda = self.comparison.releases.get("cuda", ())
        found: dict[tuple[str, str], set[str]] = {}
        for row in self.comparison.rows:
            library = library_of(row.tool.partition(" ")[0])
            # A key consists of words, but a version in foreign records may contain spaces.
            if library and row.toolkit in cuda and not row.axis and " " not in row.version:
                for release in ("*", row.version):
                    found.setdefault((library, release), set()).add(row.toolkit)
        series: dict[str, list[str]] = {}
        for toolkit in self.comparison.releases.get("cuda", ()):
            series.setdefault(toolkit.partition(".")[0], []).append(toolkit)
        for (library, release), toolkits in found.items():
            for toolkit in sorted(toolkits, key=version_key):
                yield f"with {library} {release} {toolkit} {toolkit}"
            for of in series.values():
                if toolkits.intersection(of):
                    yield f"with {library} {release} {of[0]} {of[-1]}"

    # Releases

    def _breaks(self, rest: str) -> Reply | None:
        name, *releases = rest.split(" ")
        after = releases[-1]
        before = releases[0] if len(releases) > 1 else self.comparison.previous(name, after)
        found = self.comparison.pairs(name, before, after) if before else []
        if not found:
            return None
        one, other = release_label(name, before), release_label(name, after)
        broken = [(pair.before, pair.after) for pair in found if pair.breaks]
        fixed = [(pair.before, pair.after) for pair in found if pair.fixes]
        of = f"{len(broken):,} of {len(found):,} pairs of cells"
        cases, built = ({before.case for before, _ in rows} for rows in (broken, fixed))
        lead = (
            f"{counted(len(cases), 'case')} that {one} builds {'does' if len(cases) == 1 else 'do'} not build with {other} ({of})."
            if broken
            else f"Nothing that {one} builds fails with {other} (0 of {len(found):,} pairs of cells)."
        )
        more = (
            f" {counted(len(built), 'case')} that {one} refuses {'builds' if len(built) == 1 else 'build'} with {other}."
            if fixed
            else ""
        )
        gone = [target for target in self.builds if self._built(target, before) and self._built(target, after) is False]
        lost = f" {other} builds nothing for {spell_targets(gone)}." if name == "cuda" and gone else ""
        own = companions_of(name)
        added = [
            target for target in self.builds if self._built(target, after) and self._built(target, before) is False
        ]
        if name == "cuda" and added:
            more += f" {other} builds for {spell_targets(added)}; {one} does not."
        worse = "".join(f" In between, {lost}" for lost in self._broken_between(name, before, after))
        note = f" Each with its own {' and '.join(map(library_label, own))}." if own and broken else ""
        rows = (*self._rows(broken, "never"), *self._rows(fixed, "works"))
        return Reply(sentence=f"{lead}{lost}{more}{worse}{note}", rows=rows)

    def _broken_between(self, name: str, before: str, after: str) -> list[str]:
        """Return sentences about the broken releases of a library between two of its releases.

        A broken release fails to build what an earlier release builds, and a later release builds all of it again. CUDA
        releases are never broken in this sense.
        """
        if name not in self._broken:
            of = {item: self._release(f"{name} {item}") for item in self.comparison.releases.get(name, ())}
            self._broken[name] = {
                item: _LEAD.sub("", reply.sentence)
                for item, reply in of.items()
                if reply
                and name != "cuda"
                and (reply.sentence.startswith("Yes. ") or reply.sentence.endswith("builds all of these again."))
            }
        return [sentence for item, sentence in self._broken[name].items() if version_key(before) < version_key(item) < version_key(after)]  # fmt: skip

    def _release(self, rest: str) -> Reply | None:
        if rest not in self._releases:
            self._releases[rest] = self._make_release(rest)
        return self._releases[rest]

    def _make_release(self, rest: str) -> Reply | None:
        name, release = rest.split(" ")
        before, built = self._with_release(name, release)
        if not built:
            return None
        broken = [(pair.before, pair.after) for pair in built if pair.breaks]
        one, own = release_label(name, before), release_label(name, release)
        if not broken:
            few = len(built) < _ENOUGH_PROGRAMS
            head, tail = ("No fault is known", ", and no other was tried with both") if few else ("No", "")
            return Reply(sentence=f"{head}. {own} builds each of the {len(built):,} programs that {one} builds{tail}.")
        lost = {id(row) for _, row in broken}
        # The next release may have been tried with other programs.
        again, after = next(
            (
                (pairs, later)
                for later in self.comparison.later(name, release)
                if (pairs := [pair for pair in self.comparison.pairs(name, release, later) if id(pair.before) in lost])
            ),
            ([], ""),
        )
        fixed = sum(pair.fixes for pair in again)
        these = "these" if len(again) == len(broken) else f"the {len(again):,} of these that were tried with it"
        more = (
            f"{release_label(name, after)} builds {'all' if fixed == len(again) else f'{fixed:,}'} of {these} again"
            if fixed
            else f"{release_label(name, after)} builds none of {these} either"
            if again
            else "no later release was tried with these"
        )
        lead = (
            f"Yes. {own} builds none of the {len(built):,} programs that {one} builds"
            if len(broken) == len(built)
            else f"In part. {own} does not build {len(broken):,} of the {len(built):,} programs that {one} builds"
        )
        return Reply(sentence=f"{lead}; {more}.", rows=self._rows(broken, "never"))

    def _with_release(self, name: str, release: str) -> tuple[str, list[Pair]]:
        """Return the release to compare with, and the pairs of cells that it builds.

        It is the previous tried release. If nothing breaks compared with that release, it is the last earlier release
        that builds a known fault of this release.
        """
        previous = self.comparison.previous(name, release)
        built = self._pairs_built(name, previous, release)
        if not any(pair.breaks for pair in built) and self.comparison.has_fault(name, release):
            for before in self.comparison.earlier(name, release)[1:]:
                earlier = self._pairs_built(name, before, release)
                if any(pair.breaks and pair.after.letter == FAULT for pair in earlier):
                    return before, earlier
        return previous, built

    def _pairs_built(self, name: str, before: str, release: str) -> list[Pair]:
        """Return the cells that a release builds, each with the same cell of another release."""
        return [pair for pair in self.comparison.pairs(name, before, release) if pair.before.letter == WORKS]

    def _with(self, rest: str) -> Reply | None:
        """Compare a library's cells with some CUDA releases to the cells of the same library releases with other CUDA releases."""
        name, release, first, last = rest.split(" ")
        within = [item for item in self.toolkits if version_key(first) <= version_key(item) <= version_key(last)]
        rows, pairs = self.comparison.with_toolkits(name, release, within)
        label = library_label(name) if release == "*" else release_label(name, release)
        if not rows and any(brings_tools(info.name) for info in BACKENDS.values() if info.library == name):
            return Reply(sentence=f"Not tried. {label} brings a CUDA release of its own.", known=False)
        if not rows:
            others, _ = self.comparison.with_toolkits(name, release, self.toolkits)
            known = self._spell({row.toolkit for row in others})
            return Reply(sentence=f"Not tried. {label} was tried with CUDA {known}.", known=False) if others else None
        tried = sorted({row.toolkit for row in rows}, key=version_key)
        cuda = f"CUDA {self._spell(tried)}"
        versions = {row.version for row in rows}
        of = f" ({self._releases_of(name, versions)})" if release == "*" else ""
        good = [row for row in rows if row.letter == WORKS]
        first = self._oldest(name, rows) if release == "*" else ""
        if not pairs:
            lead = "Yes" if good else "No"
            sentence = f"{lead}. {label}{of} builds {len(good):,} of the {len(rows):,} programs that were tried with {cuda}; no other CUDA release was tried with these."
            return Reply(sentence=sentence + first, rows=self._rows(((row,) for row in good), "works"))
        lost = [(before, after) for before, after in pairs if after.letter != WORKS]
        count, what = len(pairs), "that it builds with another CUDA release"
        if not lost:
            sentence = f"Yes. With {cuda}, {label}{of} builds each of the {count:,} programs {what}."
        elif len(lost) == count:
            sentence = f"No. With {cuda}, {label}{of} builds none of the {count:,} programs {what}."
        else:
            sentence = (
                f"In part. With {cuda}, {label}{of} does not build {len(lost):,} of the {count:,} programs {what}."
            )
        return Reply(sentence=sentence + first, rows=self._rows(lost, "never"))

    def _oldest(self, name: str, rows: Sequence[Row]) -> str:
        """Return a sentence about the oldest release of a library that builds a program with some CUDA releases."""
        tried = min((row.version for row in rows), key=version_key)
        builds = min((row.version for row in rows if row.letter == WORKS), key=version_key, default="")
        what = "was tried with it" if builds == tried else "builds a program with it"
        return f" {release_label(name, builds)} is the oldest release that {what}." if builds else ""

    def _releases_of(self, name: str, versions: Collection[str]) -> str:
        return spell_tried(versions, self.comparison.releases.get(name, ()), version_key)

    def _drop(self, rest: str) -> Reply | None:
        name, _, release = rest.rpartition(" ")
        if name in self.comparison.releases:
            return self._drop_release(name, release)
        targets = self._targets(rest)
        only = self._alone("newer", targets, self.comparison.only_for)
        return only and replace(only, sentence=" ".join(filter(None, (self._gone(targets), only.sentence))))

    def _requires(self, rest: str) -> Reply | None:
        return self._alone("older", self._targets(rest), self.comparison.new_for)

    def _alone(
        self, others: str, targets: Sequence[str], alone_for: Callable[[str], tuple[list[Row], int]]
    ) -> Reply | None:
        """Count the cases that build for some architectures and for no newer or older one."""
        rows, count = [], 0
        for target in targets:
            alone, built = alone_for(target)
            rows += alone
            count += built
        if not count:
            return None
        cases, names = {row.case for row in rows}, spell_targets(targets)
        sentence = (
            f"{counted(len(cases), 'case')} {'builds' if len(cases) == 1 else 'build'} for {names} and for no {others} architecture (of {count:,} cells)."
            if rows
            else f"Each of the {count:,} cells that build for {names} builds for {'an' if others == 'older' else 'a'} {others} architecture, too."
        )
        return Reply(sentence=sentence, rows=self._rows(((row,) for row in rows), "works"))

    def _gone(self, targets: Sequence[str]) -> str:
        """Return a sentence about the CUDA releases that no longer build for some architectures."""
        found: dict[tuple[str, ...], list[str]] = {}
        for target in targets:
            of = self.builds.get(target, {})
            last = self._last_of(target)
            later = tuple(item for item in of if last and version_key(item) > version_key(last))
            if later:
                found.setdefault((last, *sorted(later, key=version_key)), []).append(target)
        parts = [
            f"CUDA {self._spell(later)} {'builds' if len(later) == 1 else 'build'} nothing for {spell_targets(names)}; CUDA {last} is the last release that does."
            for (last, *later), names in found.items()
        ]
        return " ".join(parts)

    def _drop_release(self, name: str, release: str) -> Reply | None:
        rows, count = self.comparison.only_with(name, release)
        if not count:
            return None
        label = release_label(name, release)
        cases = {row.case for row in rows}
        lead = (
            f"{counted(len(cases), 'case')} {'builds' if len(cases) == 1 else 'build'} with {label} and with no newer release ({len(rows):,} of {count:,} cells)."
            if rows
            else f"Each of the {count:,} cells that build with {label} builds with a newer release, too."
        )
        last = [
            target for target in self.builds if name == "cuda" and self._last_of(target) == release != self.toolkits[-1]
        ]
        more = f" {label} is the last release that builds for {spell_targets(last)}." if last else ""
        return Reply(sentence=lead + more, rows=self._rows(((row,) for row in rows), "works"))

    def _host(self, rest: str) -> Reply | None:
        """Return the CUDA releases that accept a host compiler, or whether one does if no cell was tried with both."""
        name, version, *toolkits = rest.split(" ")
        newest = {toolkit: found[name] for toolkit in RELEASES if name in (found := newest_hosts(toolkit))}
        if not version.isdigit() or not newest:
            return None
        if not toolkits:
            first = next((toolkit for toolkit, most in newest.items() if int(version) <= most), "")
            oldest, last = next(iter(newest)), list(newest)[-1]
            sentence = (
                f"No CUDA release up to {last} accepts {name} {version} as its host compiler."
                if not first
                else f"CUDA {first} accepts {name} {version} as its host compiler; the headers of earlier releases were not read."
                if first == oldest
                else f"CUDA {first} is the first release that accepts {name} {version} as its host compiler."
            )
            return Reply(sentence=sentence, sources=(SOURCES["host compilers"],))
        if (name, version, toolkits[0]) in self._hosted or toolkits[0] not in newest:
            return None
        reply = _hosts(f"cuda {toolkits[0]}")
        lead = "Yes" if int(version) <= newest[toolkits[0]] else "No"
        return reply and replace(reply, sentence=f"{lead}. {reply.sentence}")

    @cached_property
    def _hosted(self) -> set[tuple[str, str, str]]:
        """Host compilers with their versions and CUDA releases that cells were compiled with."""
        return {(row.axis, row.version, row.toolkit) for row in self.comparison.rows if is_host(row.axis)}

    # Architectures

    def _code(self, rest: str) -> Reply | None:
        """Apply the rules of compatibility to a cubin and to PTX, and to a compute capability."""
        name, number = rest.split(" ")
        code = Target.parse(name)
        if code.vendor is not NVIDIA or not number.isdigit():
            return None
        gpu = f"compute capability {Target.parse(f'sm_{number}').capability}{self._generation(f'sm_{number}').replace(',', ' of')}"
        own, ptx = code_on_gpu(code, int(number)), code_on_gpu(code.as_virtual, int(number))
        translated = f"PTX for {code.as_virtual}"
        jit = ptx.way is Way.JIT
        if own.way is Way.UNKNOWN:
            also = f"{translated} {'runs there: the driver compiles it' if jit else 'does not run there'}"
            sentence = f"Not known: whether a cubin for {code} runs on {gpu}. {also}."
        elif own.way is Way.NATIVE:
            sentence = f"Yes. A cubin for {code} runs on {gpu}."
        elif jit:
            sentence = f"In part. A cubin for {code} does not run on {gpu}. {translated} does: the driver compiles it."
        else:
            sentence = f"No. Neither a cubin for {code} nor {translated} runs on {gpu}."
        rules = list(dict.fromkeys((own.rule, ptx.rule)))
        return Reply(
            sentence=sentence,
            rows=tuple(ReplyRow(text=RULES[rule].text) for rule in rules),
            sources=tuple(dict.fromkeys(source for rule in rules for source in RULES[rule].source.split(" "))),
            known=own.way is not Way.UNKNOWN,
        )

    def _targets(self, name: str) -> list[str]:
        targets = self.vocabulary.architectures.get(name, (name,))
        return sorted((target for target in targets if target in self.builds), key=target_key)

    def _built(self, target: str, toolkit: str) -> bool | None:
        row = self.builds.get(target, {}).get(toolkit)
        return None if row is None else row.letter == WORKS

    def _last_of(self, target: str) -> str:
        return max(
            (item for item in self.builds.get(target, ()) if self._built(target, item)), key=version_key, default=""
        )

    def _first_of(self, target: str) -> str:
        return min(
            (item for item in self.builds.get(target, ()) if self._built(target, item)), key=version_key, default=""
        )

    def _spell(self, toolkits: Collection[str]) -> str:
        return spell_tried(toolkits, self.toolkits, version_key)

    def _first(self, name: str) -> Reply | None:
        found: dict[str, list[str]] = {}
        for target in self._targets(name):
            if first := self._first_of(target):
                found.setdefault(first, []).append(target)
        parts, rows = [], []
        for first, targets in sorted(found.items(), key=lambda item: version_key(item[0])):
            earlier = [item for item in self.builds[targets[0]] if version_key(item) < version_key(first)]
            before = max(earlier, key=version_key, default="")
            gap = between(before, first, known_releases()["cuda"], version_key) if before else ()
            untried = f" ({', '.join(gap)} untried)" if gap else ""
            parts.append(
                f"CUDA {first} is the first release that builds for {spell_targets(targets)}: CUDA {before} does not{untried}."
                if before
                else f"CUDA {first}, the oldest release tried, already builds for {spell_targets(targets)}.{_documented_first(targets, first)}"
            )
            rows += [self._itself(targets[0], item) for item in (before, first) if item]
        return Reply(sentence=" ".join(parts), rows=tuple(rows)) if parts else None

    def _last(self, name: str) -> Reply | None:
        found: dict[str, list[str]] = {}
        for target in self._targets(name):
            if last := self._last_of(target):
                found.setdefault(last, []).append(target)
        parts, rows = [], []
        for last, targets in sorted(found.items(), key=lambda item: version_key(item[0])):
            later = [item for item in self.builds[targets[0]] if version_key(item) > version_key(last)]
            after = min(later, key=version_key, default="")
            parts.append(
                f"CUDA {last} is the last release that builds for {spell_targets(targets)}: CUDA {after} does not."
                if after
                else f"CUDA {last}, the newest release tried, builds for {spell_targets(targets)}."
            )
            rows += [self._itself(targets[0], item) for item in (last, after) if item]
        return Reply(sentence=" ".join(parts), rows=tuple(rows)) if parts else self._dropped(name)

    def _dropped(self, name: str, before: str = "") -> Reply | None:
        """Return the last CUDA release of architectures without cells, from NVIDIA's documents.

        Return None unless all of the architectures were dropped (`before` a release).
        """
        found: dict[str, list[str]] = {}
        for target in map(Target.parse, self.vocabulary.architectures.get(name, (name,))):
            last = (
                last_release_of_gpu(target.cc) if target.vendor is NVIDIA and str(target) not in self.builds else None
            )
            if last is None or (before and version_key(last.cuda) >= version_key(before)):
                return None
            found.setdefault(last.cuda, []).append(str(target))
        sentence = " ".join(
            f"CUDA {last} is the last release for {', '.join(targets)}: NVIDIA's release notes say so, and no cell was compiled."
            for last, targets in sorted(found.items(), key=lambda item: version_key(item[0]))
        )
        return Reply(sentence=f"{'No. ' if before else ''}{sentence}", sources=(SOURCES["drivers"],))

    def _supports(self, rest: str) -> Reply | None:
        name, low, high = rest.rsplit(" ", 2)
        within = [item for item in self.toolkits if version_key(low) <= version_key(item) <= version_key(high)]
        targets = self._targets(name)
        outcomes = {(target, item): self._built(target, item) for target in targets for item in within}
        outcomes_known = {value for value in outcomes.values() if value is not None}
        if not outcomes_known:
            return self._dropped(name, low)
        label = f"CUDA {self._spell(within)}"
        if outcomes_known == {True}:
            sentence = f"Yes. {label} {'builds' if len(within) == 1 else 'build'} for {spell_targets(targets)}."
        elif outcomes_known == {False}:
            (last, first), target = (self._last_of(targets[0]), self._first_of(targets[0])), targets[0]
            other = (
                f"; CUDA {last} is the last release that does"
                if last and version_key(last) < version_key(within[0])
                else f"; CUDA {first} is the first release that does"
                if first
                else ""
            )
            sentence = f"No. {label} {'does' if len(within) == 1 else 'do'} not build for {spell_targets(targets)}{other if len({self._last_of(each) for each in targets}) == 1 or not last else f' ({target}: CUDA {first} to {last})'}."
        else:
            good = [item for item in within if any(outcomes[target, item] for target in targets)]
            best = [target for target in targets if any(outcomes[target, item] for item in within)]
            sentence = f"In part. CUDA {self._spell(good)} {'builds' if len(good) == 1 else 'build'} for {spell_targets(best)}."
        return Reply(sentence=sentence, rows=tuple(self._itself(target, item) for target in targets for item in within))

    def _itself(self, target: str, toolkit: str) -> ReplyRow:
        row = self.builds[target][toolkit]
        works = row.letter == WORKS
        return ReplyRow(
            kind="works" if works else "never",
            text=f"CUDA {toolkit} {'builds' if works else 'does not build'} for {target}",
            cells=(row.cell,),
        )

    def _minimum(self, rest: str) -> Reply | None:
        _, toolkit = rest.split(" ")
        targets = self._of_toolkit(toolkit)
        if not targets:
            return None
        least = Target.parse(targets[0])
        below = [
            target for target in sorted(self.builds, key=target_key) if target_key(target) < target_key(targets[0])
        ]
        refused = [target for target in below if self._built(target, toolkit) is False]
        # CUDA 11 also builds for Kepler, which has no cells.
        sentence = (
            f"The minimum compute capability of CUDA {toolkit} is {least.capability} ({least}): it builds nothing for {spell_targets(refused)}."
            if refused
            else f"CUDA {toolkit} builds for compute capability {least.capability} ({least}); nothing below it was tried."
        )
        return Reply(
            sentence=sentence,
            rows=tuple(self._itself(target, toolkit) for target in (*refused[-1:], targets[0])),
        )

    def _supported(self, rest: str) -> Reply | None:
        _, toolkit = rest.split(" ")
        targets = self._of_toolkit(toolkit)
        if not targets:
            return None
        refused = [target for target in sorted(self.builds, key=target_key) if self._built(target, toolkit) is False]
        more = f"; not for {spell_targets(refused)}" if refused else ""
        return Reply(
            sentence=f"CUDA {toolkit} builds for {', '.join(targets)}{more}.",
            rows=tuple(self._itself(target, toolkit) for target in (*targets, *refused)),
        )

    def _of_toolkit(self, toolkit: str) -> list[str]:
        return [target for target in sorted(self.builds, key=target_key) if self._built(target, toolkit)]

    def _capability(self, name: str) -> Reply | None:
        targets = self.vocabulary.architectures.get(name, (name,))
        plain = list(dict.fromkeys(Target.parse(target).capability for target in targets))
        own = Target.parse(targets[0])
        label = _product(name)
        if own.vendor is not NVIDIA:
            of_amd = name in self.vocabulary.architectures
            sentence = (
                f"{label} is {', '.join(targets)}."
                if of_amd
                else f"{own} is a target of {own.vendor.label}{self._examples(own)}."
            )
            return Reply(sentence=sentence, sources=(_PROCESSORS,))
        of = " or ".join(plain) if len(plain) > 1 else plain[0]
        if name in GENERATIONS:
            sentence = f"{label} is compute capability {', '.join(plain)} ({', '.join(targets)})."
        elif name in self.vocabulary.architectures:
            sentence = f"{label} is compute capability {of} ({', '.join(targets)}){self._generation(targets[0])}."
        else:
            kinds = {"a": "the architecture-specific target", "f": "the family-specific target", "": ""}
            kind = kinds[own.suffix]
            sentence = f"{own} is {f'{kind} of ' if kind else ''}compute capability {own.capability}{self._generation(str(own))}{self._examples(own)}."
        first = self._first(name)
        return Reply(sentence=" ".join(filter(None, (sentence, first.sentence if first else ""))), rows=first.rows if first else (), sources=(_PRODUCTS,))  # fmt: skip

    def _generation(self, target: str) -> str:
        plain = str(Target.parse(target).plain)
        of = self.vocabulary.architectures
        return next((f", {name.capitalize()}" for name in GENERATIONS if plain in of.get(name, ())), "")

    def _examples(self, target: Target) -> str:
        plain = str(target.plain)
        names = [
            name
            for name, targets in self.vocabulary.architectures.items()
            if targets[0] == plain
            and name not in (*GENERATIONS, "ada lovelace", "jetson", "tegra")
            and not re.fullmatch(r"\d+( ti)?|rtx \d0( series)?", name)
        ]
        return f": {', '.join(map(_product, names[:_NAMED]))}" if names else ""

    def _tensor(self, name: str) -> Reply | None:
        targets = self.vocabulary.architectures.get(name, (name,))
        own = Target.parse(targets[0])
        if own.vendor is not NVIDIA:
            return None
        with_them, without = (
            list(dict.fromkeys(each.capability for each in map(Target.parse, targets) if (each.cc >= TENSOR) is have))
            for have in (True, False)
        )
        where = f"{_product(name)} (compute capability {', '.join(with_them or without)}{'' if name in GENERATIONS else self._generation(targets[0])})"
        if with_them and without:
            sentence = f"In part. {where} has tensor cores; that of compute capability {', '.join(without)} has none: 7.0 (Volta) is the first with them."
        elif not with_them:
            sentence = f"No. {where} has no tensor cores: compute capability 7.0 (Volta) is the first with them."
        elif WITHOUT_TENSOR.fullmatch(name):
            sentence = (
                f"No. {where} has no tensor cores: the GTX 16 series and T400 to T2000 are the Turing without them."
            )
        else:
            apart = (
                ", but for the GTX 16 series and T400 to T2000" if own.cc == 75 and name in (str(own), "turing") else ""
            )
            sentence = f"Yes. {where} has tensor cores{apart}; compute capability 7.0 (Volta) is the first with them."
        return Reply(sentence=sentence, sources=(_TENSOR_GUIDE,))

    def _limits(self, name: str) -> Reply | None:
        every = (
            f"{STATIC_SHARED:,} bytes of static shared memory, {BLOCK_THREADS:,} threads a block, 32 a warp, {MAX_REGISTERS} registers a thread, "
            f"{CONSTANT:,} bytes of constant memory and 4,096 bytes of kernel parameters (32,764 with CUDA 12.1 or later from compute capability 7.0), "
            f"{GRID_BLOCKS} blocks a grid"
        )
        if name == "every":
            found = {target: limits for target in self.builds if target[-1].isdigit() and (limits := limits_of(target))}
            rows = [
                ReplyRow(text=f"{target}: {limits.block_shared:,} bytes of dynamic shared memory a block")
                for target, limits in sorted(found.items(), key=lambda item: target_key(item[0]))
            ]
            sentence = f"Every architecture has {every}, and from compute capability 9.0 on {CLUSTER_BLOCKS} blocks a portable cluster; dynamic shared memory depends on it."
            return Reply(sentence=sentence, rows=tuple(rows), sources=(_GUIDE,))  # fmt: skip
        targets = self.vocabulary.architectures.get(name, (name,))
        if (own := Target.parse(targets[0])).vendor is not NVIDIA:
            # https://llvm.org/docs/AMDGPUUsage.html#target-features
            size = "64 work-items" if str(own).startswith("gfx9") else "32 work-items, or 64 by option"
            return Reply(sentence=f"{_product(name)}: wavefronts of {size}.", sources=(_PROCESSORS,))
        by_limit: dict[str, list[str]] = {}
        for target in targets:
            if limits := limits_of(target):
                cluster = f"{CLUSTER_BLOCKS} blocks a portable cluster, " if Target.parse(target).cc >= CLUSTERS else ""
                text = (
                    f"{limits.block_shared:,} bytes of dynamic shared memory a block, {cluster}{limits.threads:,} threads, {limits.blocks} blocks and "
                    f"{limits.shared:,} bytes of shared memory a multiprocessor"
                )
                by_limit.setdefault(text, []).append(target)
        if not by_limit:
            return None
        dynamic = "; ".join(
            f"{text}{f' ({spell_targets(of)})' if len(by_limit) > 1 else ''}" for text, of in by_limit.items()
        )
        limits = limits_of(targets[0]) or limits_of(next(iter(by_limit.values()))[0])
        source = limits.source if limits else _GUIDE
        return Reply(sentence=f"{_product(name)}: {dynamic}; {every}.", rows=self._shared(targets), sources=(source,))

    @cached_property
    def _shared_memory(self) -> list[Row]:
        cases = ("shared-memory/static", "shared-memory/dynamic")
        return [row for row in self.comparison.rows if row.case in cases and row.tool == "nvrtc"]

    def _shared(self, targets: Sequence[str]) -> tuple[ReplyRow, ...]:
        """Return rows about shared memory, each with the newest CUDA release that its size was tried with."""
        newest: dict[tuple[str, str], Row] = {}
        for row in self._shared_memory:
            if row.target in targets:
                key = (row.case, row.rest)
                if key not in newest or version_key(row.toolkit) > version_key(newest[key].toolkit):
                    newest[key] = row
        return tuple(
            ReplyRow(
                case=case,
                title=self.known.features[case].title,
                kind="works" if row.letter == WORKS else "never",
                text=f"{rest}: {'builds' if row.letter == WORKS else 'does not build'} with CUDA {row.toolkit} for {row.target}",
                cells=(row.cell,),
            )
            for (case, rest), row in newest.items()
        )

    def _rows(self, changes: Iterable[tuple[Row, ...]], kind: str) -> tuple[ReplyRow, ...]:
        """Return the rows of cells by case, each with variants, tools, architectures and the cells of the last change."""
        found: dict[str, dict[str, dict[str, dict[str, tuple[str, ...]]]]] = {}
        for rows in changes:
            row = rows[-1]
            tool = tool_label(Entry(case=row.case, rest=row.rest, tool=row.tool, axis=row.axis, grids={}, proofs={}))
            of = found.setdefault(row.case, {}).setdefault(tool, {}).setdefault(row.target, {})
            of[row.rest] = tuple(each.cell for each in rows)
        order = {case: number for number, case in enumerate(self.known.features)}
        lines = []
        for case, tools in sorted(found.items(), key=lambda item: order[item[0]]):
            for tool, targets in tools.items():
                rests = dict.fromkeys(rest for of in targets.values() for rest in of if rest)
                names = "; ".join(list(rests)[:_NAMED]) + (
                    f" and {len(rests) - _NAMED} more" if len(rests) > _NAMED else ""
                )
                last = next(iter(targets[max(targets, key=target_key)].values()))
                text = f"{f'{names}: ' if names else ''}{tool} on {spell_targets(targets)}"
                lines.append(
                    ReplyRow(case=case, title=self.known.features[case].title, kind=kind, text=text, cells=last)
                )
        return tuple(lines)


def reply_to_message(text: str, features: Iterable[Feature]) -> Reply | None:
    """Return the known cause of a compiler's message, with the cases that link to the same report.

    Parameters
    ----------
    text : str
        The message, or a log.
    features : iterable of Feature
        The cases.
    """
    matches = [match for match in causes_in_log(text) if not match.of_warning]
    if not matches:
        return None
    cause = matches[0].cause
    rows = [ReplyRow(text=cause.cause), ReplyRow(text=cause.remedy)]
    rows += [
        ReplyRow(case=feature.case, title=feature.title, text="has the same report upstream")
        for feature in features
        if {link for link in feature.links if "/issues/" in link or "/pull/" in link}.intersection(cause.links)
    ]
    where = f" ({cause.where})" if cause.where else ""
    return Reply(sentence=f"{cause.title}{where}.", rows=tuple(row for row in rows if row.text), sources=cause.links)


def combined(replies: Sequence[Reply]) -> Reply | None:
    """Return one reply that combines several, or None without replies."""
    if not replies:
        return None
    return Reply(
        sentence=" ".join(dict.fromkeys(reply.sentence for reply in replies)),
        rows=tuple(dict.fromkeys(row for reply in replies for row in reply.rows)),
        sources=tuple(dict.fromkeys(source for reply in replies for source in reply.sources)),
        known=any(reply.known for reply in replies),
    )


def _documented_first(targets: Sequence[str], tried: str) -> str:
    """Return a sentence about the first CUDA release of some targets by NVIDIA's documents, if it is older than the oldest tried one."""
    order = list(RELEASES)
    of = [Target.parse(target) for target in targets]
    found = {str(release_of_gpu(target.cc) or "") for target in of}
    cudas = {release.cuda for target in of if (release := release_of_gpu(target.cc))}
    # The table has 9.0 for every older architecture. Family-specific targets came with PTX 8.8.
    if len(found) != 1 or len(cudas) != 1 or any(target.cc < TENSOR for target in of):
        return ""
    (first,) = cudas
    if any(target.suffix == "f" for target in of):
        first = max(first, FIRST_OF_FAMILIES, key=order.index)
    return (
        f" By NVIDIA's documents, CUDA {first} is the first for {'it' if len(of) == 1 else 'them'}."
        if order.index(first) < order.index(tried)
        else ""
    )


def _driver(rest: str) -> Reply | None:
    """Return the minimum Linux driver of a CUDA release, and the minimum driver with minor version compatibility."""
    toolkit = rest.removeprefix("cuda ")
    release = RELEASES.get(toolkit)
    if release is None:
        return None
    if release.driver:
        head = f"CUDA {toolkit} needs driver {release.driver} or later on Linux."
    else:
        newest = [each for each in RELEASES.values() if each.driver][-1]
        head = f"Not known: the least driver of CUDA {toolkit}. CUDA {newest.cuda} needs driver {newest.driver} or later on Linux."
    least = MINOR_DRIVERS.get(toolkit.partition(".")[0])
    more = f" A program built with CUDA {toolkit} starts with driver {least} or later, if it calls nothing newer and the driver compiles no PTX for it."
    return Reply(
        sentence=head + (more if least and least != release.driver else ""),
        sources=(SOURCES["drivers"], SOURCES["minor versions"]),
        known=bool(release.driver),
    )


def _ptx(rest: str) -> Reply | None:
    """Return the PTX version of a CUDA release."""
    toolkit = rest.removeprefix("cuda ")
    isa = ptx_of_release(toolkit)
    sentence = f"CUDA {toolkit} has PTX ISA {'.'.join(map(str, isa))}." if isa else ""
    return Reply(sentence=sentence, sources=(SOURCES["PTX versions"],)) if isa else None


def _hosts(rest: str) -> Reply | None:
    """Return the newest host compilers that nvcc of a CUDA release accepts."""
    toolkit = rest.removeprefix("cuda ")
    newest = " and ".join(f"{name} up to {version}" for name, version in newest_hosts(toolkit).items())
    return Reply(sentence=f"nvcc of CUDA {toolkit} accepts {newest} as host compilers.", sources=(SOURCES["host compilers"],)) if newest else None  # fmt: skip


def _vendor(rest: str) -> Reply:
    """Refuse a tool for a vendor's GPUs, by the tool's entry in the table of backends."""
    backend, start = rest.split(" ")
    vendor = next(vendor for vendor in VENDORS.values() if vendor.real == start)
    own = " and ".join(VENDORS[name].label for name in BACKENDS[backend].vendors)
    return Reply(
        sentence=f"Not tried. cumatrix compiles with {label_of(backend)} for GPUs of {own}, not of {vendor.label}.",
        known=False,
    )


_LEAD = re.compile(r"^(Yes|No|In part|No fault is known)\. ")


def without_lead(reply: Reply) -> Reply:
    """Return the reply without its yes or no, for an intent that does not decide (`Intent.decides`)."""
    return replace(reply, sentence=_LEAD.sub("", reply.sentence))


def release_label(name: str, version: str) -> str:
    """Return the label of a release: ``CUDA 13.5``, ``CuPy 14.2.0``."""
    return f"{'CUDA' if name == 'cuda' else library_label(name)} {version}"


def _product(name: str) -> str:
    """Return the label of a product: ``RTX 4090``, ``Hopper``. A bare number of a card gets its series."""
    if name in GENERATIONS or name == "ada lovelace":
        return name.title()
    if re.match(r"(sm_|compute_|gfx)\d", name):
        return name
    words = name.split(" ")
    return " ".join(word.title() if word in _WORDS or word == "ti" else word.upper() for word in words)


_WORDS = frozenset(
    "series radeon jetson nano orin xavier agx thor tegra tesla titan quadro grace spark pro hopper maxwell ada".split()
)
