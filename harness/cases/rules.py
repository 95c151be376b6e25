"""Tables with a condition: ``[[options]]``, ``[[unsupported]]``, ``[[launch]]``, ``[[verify]]`` and ``[[expect]]``.

``faults.toml`` lists faults of a library for every case below its folder: a topic, or the folder of cases. A case's own
expectations come first, then those of its topic, then those of the folder of cases.
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
    """Return the faults for the cases of a topic, in order.

    Parameters
    ----------
    topic, root : Path
        The topic's folder, and the folder of cases.

    Raises
    ------
    CaseError
        If a file has problems, all of them with file, line and key.
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
"""Options whose tables accumulate. For other options the last table wins."""

TOOLS = ("assembler", "linker")
"""Options that name another CUDA release for one tool."""

NAMED = ("compile_for", *TOOLS)
"""Options whose value may be the name of a definition, so parameters can vary them."""

_LITERAL = re.compile(rf"\d+\.\d+|{VIRTUAL_PATTERN}")


def options_for(cell: Cell) -> dict[str, Any]:
    """Return the options for the backend of `cell`, by the names of `harness.cases.schema.OPTIONS`.

    ``arch`` is always present. By default it is ``implicit`` for libraries that query the device, and ``given`` for
    command-line compilers.
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
    """Return the `NAMED` options with definitions resolved; options that name a missing definition are omitted."""
    found = {name: definitions.get(options[name], options[name]) for name in NAMED if name in options}
    return {name: value for name, value in found.items() if value != options[name] or _LITERAL.fullmatch(value)}


def releases_named(cell: Cell) -> dict[str, str]:
    """Return the CUDA releases of single tools in a cell, by the option that names them."""
    options = options_for(cell) if any(name in rule.values for rule in cell.case.options for name in TOOLS) else {}
    return {name: options[name] for name in TOOLS if name in options}


def include_of(case: Case, options: dict[str, Any]) -> list[Path]:
    """Remove the include directories from the options and return them, relative to the case's folder."""
    return [case.path.parent.absolute() / folder for folder in options.pop("include", ())]


_VIRTUAL = tuple(str(target) for target in (*OLD_TARGETS, *KNOWN_TARGETS) if target.virtual)
_NO_VARIANTS = (Variant(labels={}, definitions={}),)


class Rules(TypedDict):
    """Rules of a case, as keyword arguments of `harness.model.case.Case`."""

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
    """Read every rule of a case and add problems to `report`.

    Parameters
    ----------
    report : Report
        Report that collects problems.
    folder : Path
        Folder of the case.
    good : Mapping
        Valid tables of the case file.
    kernels : sequence of str
        Entries of the case, of all languages.
    variants : sequence of Variant
        Variants, whose definitions expressions of launches may use.
    parameters : Mapping
        Possible values in conditions, by parameter.
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
    """Read the ``[[expect]]`` tables of a file without parameters in conditions; add problems to `report`."""
    return _Reader(report, {}).read("expect", good, EXPECT, _expectation)


class _Reader:
    """Reads the lists of tables of one file."""

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
                self.report.add((name, index, "xfail"), "an expected build cannot be expected to fail")
            if name == "expect" and "kernels" in good and good.get("status") != Status.BUILT:
                self.report.add((name, index, "kernels"), "only a build has kernels: the status is not built")
            if name == "expect" and "tensor_cores" in good and good.get("status") != Status.BUILT:
                self.report.add((name, index, "tensor_cores"), "only a build has code: the status is not built")
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
    """Check options that may name a definition in each variant with the definition; at least one variant must have it."""
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
    """Return the requirement of a key ``kernels``, from its names or number; None without the key."""
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
    """Return the expectations and the rules on unsupported cells in a program's comments, in order.

    Parameters
    ----------
    path : Path
        CUDA C++ or Python.
    parameters : Mapping, optional
        Possible values of parameters in conditions.

    Raises
    ------
    CaseError
        If comments have problems, all of them with file and line.
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
    """Read one comment; raise `ValueError` with the problem."""
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
        raise ValueError("an expected build cannot be expected to fail")
    if message:
        pattern(message)
    return Expectation(
        when=when, status=Status(status), stage=Stage(stage) if stage else None, diagnostic=message or None,
        xfail=rule["word"] == "xfail", line=line,
    )  # fmt: skip
