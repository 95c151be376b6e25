"""The lists of tables that have a condition each: ``[[options]]``, ``[[unsupported]]``, ``[[launch]]``, ``[[verify]]``, ``[[expect]]``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from harness.backends import BACKENDS
from harness.cases.errors import Report, shown
from harness.cases.keys import EXPECT, LAUNCH, OPTIONS, UNSUPPORTED, VERIFY
from harness.cases.kinds import Key
from harness.cases.launch import LaunchReader
from harness.cases.options import NAMED, named
from harness.cases.places import project_of, wrong_folder
from harness.cases.tables import check_table
from harness.errors import did_you_mean
from harness.model.case import Expectation, OptionRule, UnsupportedRule, Variant
from harness.model.condition import Condition, ConditionError
from harness.model.enums import Stage, Status
from harness.model.launch import LaunchRule, VerifyRule
from harness.model.target import KNOWN_TARGETS, OLD_TARGETS
from harness.toolkits import RELEASES

_VIRTUAL = tuple(str(target) for target in (*OLD_TARGETS, *KNOWN_TARGETS) if target.virtual)
_NO_VARIANTS = (Variant(labels={}, definitions={}),)


class Rules(TypedDict):
    """The rules of a case, as `harness.model.case.Case` has them."""

    options: tuple[OptionRule, ...]
    unsupported: tuple[UnsupportedRule, ...]
    launches: tuple[LaunchRule, ...]
    verify: tuple[VerifyRule, ...]
    expectations: tuple[Expectation, ...]


def read_rules(
    report: Report,
    folder: Path,
    good: Mapping[str, Any],
    kernels: Sequence[str],
    variants: Sequence[Variant],
    parameters: Mapping[str, Collection[Any]],
) -> Rules:
    """Every rule of a case; notes problems in `report`.

    Parameters
    ----------
    report : Report
        Where problems go.
    folder : Path
        The case's folder.
    good : Mapping
        The tables of the case file.
    kernels : sequence of str
        The case's entries, of all languages.
    variants : sequence of Variant
        What expressions of launches may use.
    parameters : Mapping
        The values that conditions may name, by parameter.
    """
    reader = _Reader(report, parameters)
    options = reader.read("options", good, OPTIONS, _option_rule)
    _known_folders(report, folder, good.get("options", []))
    _known_values(report, options, variants)
    unsupported = reader.read("unsupported", good, UNSUPPORTED, _unsupported_rule)
    of_launches = LaunchReader(report, folder, kernels, variants)
    launches = reader.read("launch", good, LAUNCH, of_launches.launch)
    verify = reader.read("verify", good, VERIFY, of_launches.verify)
    if launches and not kernels:
        report.add(("launch",), "names no kernel that must come out: write [entry] first")
    if verify and not launches:
        report.add(("verify",), "has nothing to check: write [[launch]] too")
    expectations = reader.read("expect", good, EXPECT, _expectation)
    return {
        "options": tuple(options),
        "unsupported": tuple(unsupported),
        "launches": tuple(launches),
        "verify": tuple(verify),
        "expectations": tuple(expectations),
    }


class _Reader:
    """Reads one list after another."""

    def __init__(self, report: Report, parameters: Mapping[str, Collection[Any]]) -> None:
        self.report = report
        self.parameters = parameters

    def read(
        self, name: str, tables: Mapping[str, Any], keys: Mapping[str, Key], make: Callable[..., Any]
    ) -> list[Any]:
        """Apply `make` to each valid table of a list."""
        value = tables.get(name, [])
        if not isinstance(value, list):
            self.report.add((name,), f"write [[{name}]], with two brackets: there may be several")
            return []
        made = []
        for index, item in enumerate(value):
            before = len(self.report.problems)
            good = check_table(self.report, (name, index), item, keys)
            when = self._condition((name, index, "when"), good.pop("when", ""))
            if name == "expect" and good.get("xfail") and good.get("status") == Status.BUILT:
                self.report.add((name, index, "xfail"), "what is expected to be built cannot be expected to fail")
            if len(self.report.problems) == before:
                made.append(make(when=when, line=self.report.line((name, index)), good=good))
        return made

    def _condition(self, key: tuple[str | int, ...], text: str) -> Condition:
        try:
            return Condition.parse(" ".join(text.split()), self.parameters, values={"backend": BACKENDS})
        except ConditionError as error:
            self.report.add(key, str(error))
            return Condition.always()


def _known_folders(report: Report, folder: Path, tables: Any) -> None:
    project = project_of(folder)
    for index, table in enumerate(tables if isinstance(tables, list) else []):
        names = table.get("include") if isinstance(table, dict) else None
        for text in names if isinstance(names, list) else []:
            if isinstance(text, str) and (message := wrong_folder(folder, text, project)):
                report.add(("options", index, "include"), message)


def _known_values(report: Report, rules: Sequence[OptionRule], variants: Sequence[Variant]) -> None:
    """Validate options that may name a definition, in each variant that has the definition; one must."""
    for index, rule in enumerate(rules):
        for name in (name for name in NAMED if name in rule.values):
            found = [
                named(rule.values, variant.definitions)[name]
                for variant in variants or _NO_VARIANTS
                if name in named(rule.values, variant.definitions)
            ]
            known = _VIRTUAL if name == "compile_for" else tuple(RELEASES)
            wrong = next((value for value in found or [rule.values[name]] if value not in known), None)
            if wrong is not None:
                what = "virtual architecture" if name == "compile_for" else "CUDA release"
                hint = did_you_mean(str(wrong), [*known, *(key for variant in variants for key in variant.definitions)])
                message = (
                    f"{shown(wrong)} is no {what} that cumatrix knows, nor the name of a definition of the case{hint}"
                )
                report.add(("options", index, name), message)


def _option_rule(*, when: Condition, line: int, good: dict[str, Any]) -> OptionRule:
    return OptionRule(when=when, line=line, values=good)


def _unsupported_rule(*, when: Condition, line: int, good: dict[str, Any]) -> UnsupportedRule:
    return UnsupportedRule(when=when, line=line, **good)


def _expectation(*, when: Condition, line: int, good: dict[str, Any]) -> Expectation:
    stage = Stage(good.pop("stage")) if "stage" in good else None
    return Expectation(when=when, line=line, stage=stage, **{**good, "status": Status(good["status"])})
