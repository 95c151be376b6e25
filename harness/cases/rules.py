"""Tables with a condition: ``[[options]]``, ``[[unsupported]]``, ``[[launch]]``, ``[[verify]]`` and ``[[expect]]``.

``faults.toml``, in the folder of cases or of a topic, lists faults of a library for every case below it. A case's own expectations come first, then
those of its topic, then those of the folder of cases.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

from harness.backends import BACKENDS
from harness.cases.launch import LaunchReader
from harness.cases.schema import EXPECT, EXPECTED, FAULTS, LAUNCH, OPTIONS, UNSUPPORTED, VERIFY
from harness.cases.sources import project_of, wrong_folder
from harness.cases.toml import Report, check_integers, parse_toml, read_toml_text, shown
from harness.cases.values import Key, check_table
from harness.errors import did_you_mean
from harness.model.case import (
    Case,
    Expectation,
    LaunchRule,
    OptionRule,
    RequiredKernels,
    Scalar,
    UnsupportedRule,
    Variant,
    VerifyRule,
)
from harness.model.cell import Cell
from harness.model.condition import Condition, ConditionError
from harness.model.outcome import Stage, Status
from harness.model.target import KNOWN_TARGETS, OLD_TARGETS, VIRTUAL_PATTERN
from harness.regex import PatternError, pattern
from harness.toolkits import RELEASES

FILE_NAME = "faults.toml"


def faults_of(topic: Path, root: Path) -> tuple[Expectation, ...]:
    """Faults that the cases of a topic meet, in order.

    Parameters
    ----------
    topic, root : Path
        The topic's folder, and the folder of cases.

    Raises
    ------
    CaseError
        With everything that is wrong with a file, each with file, line and key.
    """
    found: list[Expectation] = []
    for folder in dict.fromkeys((topic, root)):
        path = folder / FILE_NAME
        if path.exists():
            shown = path.resolve().relative_to(root.resolve().parent).as_posix()
            found += _read_faults(read_toml_text(path, shown), shown)
    return tuple(found)


@lru_cache(maxsize=64)
def _read_faults(text: str, shown: str) -> tuple[Expectation, ...]:
    data = parse_toml(text, shown)
    report = Report(shown, text)
    check_integers(report, data)
    report.close()
    faults = read_expectations(report, check_table(report, (), data, FAULTS))
    for number, fault in enumerate(faults):
        if not fault.xfail or not fault.reason:
            report.add(
                ("expect", number), "a fault is expected to fail, and has a reason: write xfail = true and reason"
            )
    report.close()
    return tuple(faults)


LISTS = ("include", "flags", "ptxas", "functions")
"""Options whose tables add to each other; of the others, the last table's counts."""

TOOLS = ("assembler", "linker")
"""Options that name another CUDA release for one tool."""

NAMED = ("compile_for", *TOOLS)
"""Options whose value may be the name of a definition, so that parameters vary them."""

_LITERAL = re.compile(rf"\d+\.\d+|{VIRTUAL_PATTERN}")


def options_for(cell: Cell) -> dict[str, Any]:
    """Options for the backend of `cell`, by the names of `harness.cases.schema.OPTIONS`.

    ``arch`` is always there: where the case says nothing, it is ``implicit`` for libraries that ask
    the device, and ``given`` for bare compilers.
    """
    info = BACKENDS.get(cell.toolchain.backend)
    merged: dict[str, Any] = {"arch": "implicit" if info and info.asks_device else "given"}
    if not cell.case.options:
        return merged
    facts = cell.facts()
    for rule in cell.case.options:
        if not rule.when(facts):
            continue
        for name, value in rule.values.items():
            merged[name] = [*merged.get(name, []), *value] if name in LISTS else value
    plain = {name: value for name, value in merged.items() if name not in NAMED}
    return {**plain, **named(merged, cell.variant.definitions)}


def named(options: Mapping[str, Any], definitions: Mapping[str, Scalar]) -> dict[str, Any]:
    """Those of `NAMED` among the options, each with the definition that it names in its place; left out where there is no such definition."""
    found = {name: definitions.get(options[name], options[name]) for name in NAMED if name in options}
    return {name: value for name, value in found.items() if value != options[name] or _LITERAL.fullmatch(value)}


def releases_named(cell: Cell) -> dict[str, str]:
    """CUDA releases of single tools in a cell, by the option that names them."""
    options = options_for(cell) if any(name in rule.values for rule in cell.case.options for name in TOOLS) else {}
    return {name: options[name] for name in TOOLS if name in options}


def include_of(case: Case, options: dict[str, Any]) -> list[Path]:
    """Include directories that the options of a case name, which are taken out of them; they are named as seen from the case's folder."""
    return [case.path.parent.absolute() / folder for folder in options.pop("include", ())]


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


def read_expectations(report: Report, good: Mapping[str, Any]) -> list[Expectation]:
    """The ``[[expect]]`` tables of a file whose conditions name no parameters; notes problems in `report`."""
    return _Reader(report, {}).read("expect", good, EXPECT, _expectation)


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
            if name == "expect" and "kernels" in good and good.get("status") != Status.BUILT:
                self.report.add((name, index, "kernels"), "only what is built has kernels: the status is not built")
            if name == "expect" and "tensor_cores" in good and good.get("status") != Status.BUILT:
                self.report.add((name, index, "tensor_cores"), "only what is built has code: the status is not built")
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
    kernels = required_kernels(good.pop("kernels", None))
    return Expectation(when=when, line=line, stage=stage, kernels=kernels, **{**good, "status": Status(good["status"])})


def required_kernels(value: Any) -> RequiredKernels | None:
    """Kernels that a key ``kernels`` requires: its names, or their number; None where it is not there."""
    if value is None:
        return None
    return (
        RequiredKernels(count=value) if isinstance(value, int) else RequiredKernels(names=tuple(dict.fromkeys(value)))
    )


_COMMENT = re.compile(r"^[ \t]*(?://+|#)[ \t]*cumatrix:[ \t]*(.*?)[ \t]*\r?$")
_RULE = re.compile(
    r"""(?P<word>\S+) (?:[ \t]+(?P<status>[a-z_]+))? (?:[ \t]+at[ \t]+(?P<stage>\w+))? (?:[ \t]+"(?P<text>(?:\\.|[^"\\])*)")?
    (?:[ \t]+when[ \t]+(?P<when>.+))?""",
    re.VERBOSE,
)
_WORDS = ("expect", "xfail", "unsupported")
_FORM = 'write: cumatrix: expect rejected "words of the compiler" when cc < "8.0"'
_MOST_LINES = 200_000


def rules_in(
    path: Path, parameters: Mapping[str, Collection[Any]] | None = None
) -> tuple[tuple[Expectation, ...], tuple[UnsupportedRule, ...]]:
    """Expectations and rules of what is not applicable, in the order of the program.

    Parameters
    ----------
    path : Path
        CUDA C++ or Python.
    parameters : Mapping, optional
        Values of parameters that conditions may name.

    Raises
    ------
    CaseError
        With everything that is wrong, each with file and line.
    """
    text = path.read_text("utf-8", "replace")
    report = Report(os.path.relpath(path))
    expectations: list[Expectation] = []
    unsupported: list[UnsupportedRule] = []
    for number, line in enumerate(text.split("\n")[:_MOST_LINES], 1):
        found = _COMMENT.match(line)
        if not found:
            continue
        try:
            rule = _read(found[1], parameters or {}, number)
        except (ValueError, ConditionError, PatternError) as error:
            report.add((), str(error), line=number)
            continue
        if isinstance(rule, Expectation):
            expectations.append(rule)
        else:
            unsupported.append(rule)
    report.close()
    return tuple(expectations), tuple(unsupported)


def _read(text: str, parameters: Mapping[str, Collection[Any]], line: int) -> Expectation | UnsupportedRule:
    """One comment; raises `ValueError` with what is wrong."""
    rule = _RULE.fullmatch(text)
    if not rule or rule["word"] not in _WORDS:
        word = text.split()[0] if text.split() else ""
        hint = did_you_mean(word, _WORDS) if word not in _WORDS else ""
        raise ValueError(f"cannot read this comment of cumatrix's{hint}; {_FORM}")
    when = Condition.parse(rule["when"] or "", parameters, values={"backend": BACKENDS})
    message = re.sub(r'\\(")', r"\1", rule["text"] or "")
    if rule["word"] == "unsupported":
        if rule["status"] or rule["stage"] or not message:
            raise ValueError('write: cumatrix: unsupported "why" when cc < "7.0"')
        return UnsupportedRule(when=when, reason=message, line=line)
    status, stage = rule["status"] or "", rule["stage"]
    if status not in EXPECTED:
        raise ValueError(f"{status or 'nothing'} is no status{did_you_mean(status, EXPECTED)}; {_FORM}")
    if stage and stage not in tuple(Stage):
        raise ValueError(f"{stage} is no stage{did_you_mean(stage, tuple(Stage))}")
    if rule["word"] == "xfail" and status == Status.BUILT:
        raise ValueError("what is expected to be built cannot be expected to fail")
    if message:
        pattern(message)
    return Expectation(
        when=when, status=Status(status), stage=Stage(stage) if stage else None, diagnostic=message or None,
        xfail=rule["word"] == "xfail", line=line,
    )  # fmt: skip
