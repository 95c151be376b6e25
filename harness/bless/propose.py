"""Proposed expectations of a case, learned from its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from harness.backends import BACKENDS
from harness.bless.evidence import Evidence, Observation, OutcomeKind, WrongEvidence, kinds, pattern_for, place_of
from harness.diagnostics import one_line
from harness.matrix.axes import target_key, version_key
from harness.matrix.ranges import spell
from harness.model import Case, Cell, Expectation, Status
from harness.model.cell import named_toolkit
from harness.model.condition import Condition, Version
from harness.model.judge import expectation_of
from harness.protocol.text import counted
from harness.regex import pattern
from harness.rules import Example, Inseparable, Rule, TooManyRules, learn

_SHOWN = 3
_range = partial(spell, whole=2, last=" and ")

UNTOLD = "observed"
"""First word of a new expectation's reason."""


def observed(cells: Sequence[Observation], dates: Mapping[str, str]) -> str:
    """Return the reason of a new expectation.

    For example: ``observed on 2026-11-22 with nvrtc, CUDA 12.4 to 13.0, sm_50 to sm_75; write here why it is so``.
    """
    tools: dict[str, set[str]] = {}
    for each in cells:
        tools.setdefault(each.cell.toolchain.backend, set()).add(each.cell.toolchain.library)
    with_ = ", ".join(
        f"{backend} {_range(sorted(filter(None, versions), key=version_key))}".strip()
        for backend, versions in sorted(tools.items())
    )
    releases = sorted(
        {str(each.cell.toolchain.toolkit) for each in cells}, key=lambda text: version_key(text.split("+")[0])
    )
    targets = sorted({str(each.cell.target) for each in cells}, key=target_key)
    days = sorted({dates[each.run] for each in cells if each.run in dates})
    when = f" on {_range(days)}" if days else ""
    return f"{UNTOLD}{when} with {with_}, {named_toolkit(_range(releases))}, {_range(targets)}; write here why it is so"


def left_open(evidence: Evidence, untried: Sequence[int]) -> Iterator[str]:
    """Describe the cells without evidence, one sentence each.

    Parameters
    ----------
    evidence : Evidence
        Evidence for one case.
    untried : sequence of int
        Numbers of expectations that apply to no cell with evidence.
    """
    case = evidence.case
    if evidence.missing:
        yield f"{counted(len(evidence.missing), 'cell')} of the plan never arrived: {_some(evidence.missing)}"
    if evidence.unsupported:
        yield f"{counted(len(evidence.unsupported), 'cell')} unsupported: nothing is expected of them"
    if evidence.stale:
        yield f"{counted(evidence.stale, 'cell')} of variants that the case does not have any more: left out"
    answered = [*(each.cell for each in evidence.observations), *evidence.unsupported]
    backends = [info.name for info in BACKENDS.values() if info.language(case)]
    if other := [name for name in backends if name not in {cell.toolchain.backend for cell in answered}]:
        yield f"not tried: {', '.join(other)}"
    if variants := [each.name for each in case.variants if each.name not in {cell.variant.name for cell in answered}]:
        yield f"not tried: {len(variants):,} of {len(case.variants):,} variants: {_some(variants)}"
    yield from _gaps(evidence)
    if untried:
        lines = ", ".join(str(case.expectations[place].line) for place in untried)
        what = "the expectation in line {} holds" if len(untried) == 1 else "the expectations in lines {} hold"
        yield f"{what.format(lines)} first for no cell that was tried: left as it is"


def _gaps(evidence: Evidence) -> Iterator[str]:
    """Yield a sentence on untested combinations of tested values."""
    known = {_spot(each.cell) for each in evidence.observations}
    unsupported = {_spot(cell) for cell in evidence.unsupported}
    variants = dict.fromkeys(spot[0] for spot in known)
    toolchains = dict.fromkeys(spot[1] for spot in known)
    targets = dict.fromkeys(spot[2] for spot in known)
    count = len(variants) * len(toolchains) * len(targets) - len(
        known | {spot for spot in unsupported if spot[0] in variants and spot[1] in toolchains and spot[2] in targets}
    )
    if count > 0 and len(known) * 20 > count:
        gaps = (
            spot for spot in product(variants, toolchains, targets) if spot not in known and spot not in unsupported
        )
        first = next(gaps)
        yield f"{counted(count, 'cell')} between those that were tried, such as {' '.join(filter(None, first))}"


def _spot(cell: Cell) -> tuple[str, str, str]:
    toolchain = cell.toolchain
    return (cell.variant.name, f"{toolchain.name} {toolchain.host.name}".rstrip(), str(cell.target))


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(one_line, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")


_BUILT = Expectation(when=Condition.always(), status=Status.BUILT)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One proposed expectation.

    Parameters
    ----------
    kept : int or None
        Number of the expectation whose table is reused, with its reason, link and comments.
    changes : Mapping[str, object] or None
        New values of changed keys, None for a removed key; None without changes.
    """

    kept: int | None
    changes: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Proposal:
    """Proposed expectations of a case.

    Parameters
    ----------
    drafts : tuple of Draft
        Expectations, in the order of the file.
    wrong : int
        Number of cells that do not meet the current expectations.
    untried : tuple of int
        Numbers of expectations that apply first to no cell of the evidence. They stay unchanged.
    new, changed, dropped : int
        Numbers of such expectations.
    """

    drafts: tuple[Draft, ...]
    wrong: int
    untried: tuple[int, ...]
    new: int = 0
    changed: int = 0
    dropped: int = 0


def propose(evidence: Evidence, dates: Mapping[str, str], *, relearn: bool = False) -> Proposal:
    """Propose expectations that every cell of the evidence meets.

    Expectations that are right for all of their cells stay unchanged, as do those that apply to no cell. The evidence
    replaces wrong expectations, and with `relearn` every expectation that applies to a cell.

    Raises
    ------
    WrongEvidence
        If no condition separates the outcomes.
    """
    case, observations = evidence.case, evidence.observations
    own = len(case.expectations)
    places = [place_of(case, each.cell) for each in observations]
    fails = [each for each in observations if not each.as_expected(expectation_of(each.cell))]
    tried = {place for place in places if place is not None}
    untried = tuple(place for place in range(len(case.expectations)) if place not in tried)
    out = {
        place
        for place, each in zip(places, observations, strict=True)
        if place is not None and (relearn or each in fails)
    }
    if not fails and not (relearn and out):
        return Proposal(tuple(Draft(kept=place) for place in range(len(case.expectations))), 0, untried)
    front, rest = _slots(case, observations, out)
    before = [place for place in front if place not in out]
    after = [place for place in rest if place not in out]
    learned = _learn(case, observations, before, after)
    donors = sorted(out)
    drafts = _drafts(case, observations, places, learned, donors, dates)
    taken = {draft.kept for draft in drafts}
    return Proposal(
        drafts=(
            *(Draft(kept=place) for place in before),
            *drafts,
            *(Draft(kept=place) for place in after if place < own),
        ),
        wrong=len(fails),
        untried=untried,
        new=sum(draft.kept is None for draft in drafts),
        changed=sum(draft.kept is not None and draft.changes is not None for draft in drafts),
        dropped=sum(place not in taken for place in donors),
    )


def _slots(case: Case, observations: Sequence[Observation], out: set[int]) -> tuple[list[int], list[int]]:
    """Return the expectations before and after the change.

    New expectations come last, unless an older one would take their cells.
    """
    numbers = list(range(len(case.all_expectations)))
    kept = [case.all_expectations[place] for place in numbers if place not in out]
    for each in observations:
        first = _first(kept, each)
        if first is not _BUILT and not each.as_expected(first):
            at = min(out, default=len(case.expectations))
            return numbers[:at], numbers[at:]
    # Faults are not in the case file: they stay last.
    return numbers[: len(case.expectations)], numbers[len(case.expectations) :]


def _first(expectations: Sequence[Expectation], each: Observation) -> Expectation:
    facts = each.cell.facts()
    return next((item for item in expectations if item.when(facts)), _BUILT)


@dataclass(frozen=True)
class _Learned:
    rule: Rule
    cells: list[Observation]


def _learn(
    case: Case, observations: Sequence[Observation], before: Sequence[int], after: Sequence[int]
) -> list[_Learned]:
    """Learn rules for the cells that `before` leaves; `after` settles some of them."""
    first = [case.all_expectations[place] for place in before]
    last = [case.all_expectations[place] for place in after]
    open_ = [each for each in observations if _first(first, each) is _BUILT]
    examples = [
        Example(each.cell.facts(), kind, each.as_expected(_first(last, each)))
        for each, kind in zip(open_, kinds(open_), strict=True)
    ]
    try:
        rules = learn(examples)
    except Inseparable as error:
        one, other = open_[error.one].cell, open_[error.other].cell
        raise WrongEvidence(
            f"{case.name}: {one_line(one.id)} and {one_line(other.id)} had different outcomes, and differ in nothing that a condition can ask"
        ) from None
    except TooManyRules:
        raise WrongEvidence(
            f"{case.name}: the outcomes of its {len(open_):,} cells follow no rule that is shorter than a list of them; "
            "look at them with `cumatrix report` first"
        ) from None
    conditions = [Condition.parse(rule.condition, parameters_of(case)) for rule in rules]
    cells: list[list[Observation]] = [[] for _ in rules]
    for each in open_:
        facts = each.cell.facts()
        place = next((place for place, condition in enumerate(conditions) if condition(facts)), None)
        if place is not None:
            cells[place].append(each)
    return [_Learned(rule, mine) for rule, mine in zip(rules, cells, strict=True)]


def parameters_of(case: Case) -> dict[str, list[object]]:
    """Return the parameter names for a case's conditions, with their possible values."""
    found: dict[str, dict[object, None]] = {}
    for variant in case.variants:
        for name, value in variant.labels.items():
            known = Version(variant.libraries[name]) if name in variant.libraries else value
            found.setdefault(name, {})[known] = None
    return {name: list(values) for name, values in found.items()}


def _drafts(
    case: Case,
    observations: Sequence[Observation],
    places: Sequence[int | None],
    learned: Sequence[_Learned],
    donors: Sequence[int],
    dates: Mapping[str, str],
) -> list[Draft]:
    of = {id(each): place for each, place in zip(observations, places, strict=True)}
    givers = {number: _givers(case, item, of, donors) for number, item in enumerate(learned)}
    # If two rules could reuse one table, the rule with more of its cells does.
    pairs = sorted(
        ((-count, number, place) for number, found in givers.items() for place, count in found.items()),
    )
    takes: dict[int, int] = {}
    for _, number, place in pairs:
        if number not in takes and place not in takes.values():
            takes[number] = place
    drafts = []
    for number, item in enumerate(learned):
        kept = takes.get(number)
        like = kept if kept is not None else next(iter(givers[number]), None)
        drafts.append(_draft(case, item, kept, like, dates))
    return drafts


def _givers(case: Case, item: _Learned, of: Mapping[int, int | None], donors: Sequence[int]) -> dict[int, int]:
    """Count the cells by expectation, for expectations that at least one cell meets."""
    counts = Counter(place for each in item.cells if (place := of[id(each)]) is not None and place in donors)
    return {
        place: count
        for place, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        if any(each.as_expected(case.expectations[place]) for each in item.cells)
    }


def _draft(case: Case, item: _Learned, kept: int | None, like: int | None, dates: Mapping[str, str]) -> Draft:
    kind: OutcomeKind = item.rule.outcome  # type: ignore[assignment]
    values: dict[str, object] = {"when": item.rule.condition or None, "status": str(kind.status)}
    values["stage"] = str(kind.stage) if kind.stage else None
    old = case.expectations[like] if like is not None else None
    values["diagnostic"] = old.diagnostic if old and _finds(old, item.cells) else pattern_for(item.cells, kind)
    if old is None:
        return Draft(kept=None, changes={**values, "reason": observed(item.cells, dates)})
    if kept is None:
        values |= {"xfail": old.xfail or None, "reason": old.reason or None, "link": old.link or None}
        return Draft(kept=None, changes=values)
    if old.stage is None:
        values["stage"] = None
    replaced = {"when": old.when.text or None, "status": str(old.status), "stage": str(old.stage) if old.stage else None,
           "diagnostic": old.diagnostic}  # fmt: skip
    changes = {name: value for name, value in values.items() if value != replaced[name]}
    return Draft(kept=kept, changes=changes or None)


def _finds(old: Expectation, cells: Sequence[Observation]) -> bool:
    """Return whether the diagnostic of an expectation matches all the cells."""
    if old.diagnostic is None:
        return True
    wanted = pattern(old.diagnostic)
    return all(any(wanted.found_in(item.message) for item in each.outcome.diagnostics) for each in cells)
