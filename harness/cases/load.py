"""Reading one ``case.toml``."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.errors import CaseError, Problem, Report, shown
from harness.cases.keys import CASE, EXPECT, LAUNCH, NAME, OPTIONS, SOURCE, UNSUPPORTED, VERIFY, Key
from harness.cases.launch import LaunchReader
from harness.cases.libraries import read_libraries
from harness.cases.parameters import read_parameters
from harness.cases.sources import read_entries, read_sources, wrong_folder
from harness.cases.tables import check_table
from harness.errors import did_you_mean
from harness.model.case import Case, Expectation, OptionRule, UnsupportedRule, Variant
from harness.model.condition import Condition, ConditionError
from harness.model.enums import Stage, Status

FILE_NAME = "case.toml"
MAX_BYTES = 1_000_000
# tomllib needs memory by the square of a dotted key's length.
MAX_LINE = 4_000


def load_case(path: Path, root: Path) -> Case:
    """Read and check a case.

    Parameters
    ----------
    path : Path
        The ``case.toml``, at ``root/<topic>/<name>/case.toml``.
    root : Path
        The folder of cases.

    Raises
    ------
    CaseError
        With everything that is wrong, each with file, line and key.
    """
    path = Path(path)
    shown_path = display(path, root)
    name = _name(path, Path(root), shown_path)
    text = _read(path, shown_path)
    data = _parse(text, shown_path)
    report = Report(shown_path, text)
    case = _case(report, name, path, data)
    report.close()
    assert case is not None  # a report without problems has a case
    return case


def display(path: Path, root: Path) -> str:
    """A path as messages show it: with the folder of cases in front, ``cases/wmma/x/case.toml``."""
    try:
        return (Path(root).resolve().name / path.resolve().relative_to(Path(root).resolve())).as_posix()
    except (AttributeError, TypeError, ValueError, OSError, RuntimeError):
        return path.as_posix()


def _case(report: Report, name: str, path: Path, data: dict[str, Any]) -> Case | None:
    good = check_table(report, (), data, CASE)
    named = check_table(report, ("source",), good.get("source", {}), SOURCE)
    if good.get("source") == {}:
        report.add(("source",), 'names no program: write cuda = "kernel.cu" or python = "kernel.py"')
    sources = read_sources(report, path.parent, named)
    entries = read_entries(report, good.get("entry", {}), set(sources))
    libraries, versions = read_libraries(report, good.get("libraries", {}), path.parent)
    _known_backends(report, good.get("backends", []))
    variants, parameters = read_parameters(report, good.get("parameters", {}), versions)
    rules = _Rules(report, parameters)
    options = rules.read("options", good.get("options", []), OPTIONS, _option_rule)
    _known_folders(report, path.parent, good.get("options", []))
    unsupported = rules.read("unsupported", good.get("unsupported", []), UNSUPPORTED, _unsupported_rule)
    kernels = list(dict.fromkeys(name for names in entries.values() for name in names))
    reader = LaunchReader(report, path.parent, kernels, variants)
    launches = rules.read("launch", good.get("launch", []), LAUNCH, reader.launch)
    verify = rules.read("verify", good.get("verify", []), VERIFY, reader.verify)
    if launches and not kernels:
        report.add(("launch",), "names no kernel that must come out: write [entry] first")
    if verify and not launches:
        report.add(("verify",), "has nothing to check: write [[launch]] too")
    expectations = rules.read("expect", good.get("expect", []), EXPECT, _expectation)
    if report.problems:
        return None
    return Case(
        name=name,
        path=path,
        title=good["title"],
        description=good.get("description", "").strip(),
        features=tuple(good.get("features", ())),
        links=tuple(good.get("links", ())),
        sources=sources,
        entries=entries,
        backends=tuple(good.get("backends", ())),
        libraries=libraries,
        variants=variants or (Variant(labels={}, definitions={}),),
        options=tuple(options),
        unsupported=tuple(unsupported),
        launches=tuple(launches),
        verify=tuple(verify),
        expectations=tuple(expectations),
    )


def _known_backends(report: Report, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name not in BACKENDS:
            report.add(("backends",), f"entry {index + 1}: unknown backend {shown(name)}{did_you_mean(name, BACKENDS)}")


def _known_folders(report: Report, folder: Path, tables: Any) -> None:
    for index, table in enumerate(tables if isinstance(tables, list) else []):
        names = table.get("include") if isinstance(table, dict) else None
        for text in names if isinstance(names, list) else []:
            if isinstance(text, str) and (message := wrong_folder(folder, text)):
                report.add(("options", index, "include"), message)


class _Rules:
    """Reads the lists of tables that have a condition each."""

    def __init__(self, report: Report, parameters: Mapping[str, Collection[Any]]) -> None:
        self.report = report
        self.parameters = parameters

    def read(self, name: str, value: Any, keys: Mapping[str, Key], make: Callable[..., Any]) -> list[Any]:
        if not isinstance(value, list):
            self.report.add((name,), f"write [[{name}]], with two brackets: there may be several")
            return []
        made = []
        for index, item in enumerate(value):
            before = len(self.report.problems)
            good = check_table(self.report, (name, index), item, keys)
            when = self.condition((name, index, "when"), good.pop("when", ""))
            if name == "expect" and good.get("xfail") and good.get("status") == Status.BUILT:
                self.report.add((name, index, "xfail"), "what is expected to be built cannot be expected to fail")
            if len(self.report.problems) == before:
                made.append(make(when=when, line=self.report.line((name, index)), good=good))
        return made

    def condition(self, key: tuple[str | int, ...], text: str) -> Condition:
        try:
            return Condition.parse(" ".join(text.split()), self.parameters, values={"backend": BACKENDS})
        except ConditionError as error:
            self.report.add(key, str(error))
            return Condition.always()


def _option_rule(*, when: Condition, line: int, good: dict[str, Any]) -> OptionRule:
    return OptionRule(when=when, line=line, values=good)


def _unsupported_rule(*, when: Condition, line: int, good: dict[str, Any]) -> UnsupportedRule:
    return UnsupportedRule(when=when, line=line, **good)


def _expectation(*, when: Condition, line: int, good: dict[str, Any]) -> Expectation:
    stage = Stage(good.pop("stage")) if "stage" in good else None
    return Expectation(when=when, line=line, stage=stage, **{**good, "status": Status(good["status"])})


def _name(path: Path, root: Path, shown_path: str) -> str:
    try:
        # Where the file really lies counts: a link that leads out of the library is no case of it.
        parts = path.resolve().relative_to(root.resolve()).parts
    except (ValueError, OSError, RuntimeError):
        raise _failure(shown_path, f"lies outside the folder of cases, {root}") from None
    if len(parts) != 3 or parts[-1] != FILE_NAME or not all(re.match(NAME, part) for part in parts[:2]):
        message = f"a case lies at <topic>/<name>/{FILE_NAME} below the folder of cases"
        raise _failure(shown_path, f"{message}, with names of lower-case letters, digits, - _ and .")
    return "/".join(parts[:2])


def _read(path: Path, shown_path: str) -> str:
    try:
        if not path.is_file():
            raise _failure(shown_path, "there is no such file")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise _failure(shown_path, f"cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise _failure(shown_path, f"is larger than {MAX_BYTES // 1_000_000} MB, which no case needs")
    for bad, message in ((data.find(b"\0"), "has a NUL byte"), (_not_utf8(data), "is not UTF-8")):
        if bad >= 0:
            line = data[:bad].count(b"\n") + 1
            raise _failure(shown_path, f"{message}: is this a text file?", line)
    text = data.decode("utf-8-sig")
    for number, content in enumerate(text.split("\n"), start=1):
        if len(content) > MAX_LINE:
            raise _failure(shown_path, f"a line may have {MAX_LINE} characters, this one has {len(content)}", number)
    return text


def _not_utf8(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _parse(text: str, shown_path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _failure(shown_path, "is nested too deeply") from None
    except ValueError as error:
        # tomllib puts the place into the sentence; a number that is too long comes without one.
        match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = int(match[1]) if match and match[1] else text.count("\n") + 1 if match else 0
        message = str(error)[: match.start()] if match else str(error)
        raise _failure(shown_path, f"not valid TOML: {message}", line) from None


def _failure(file: str, message: str, line: int = 0) -> CaseError:
    return CaseError([Problem(file=file, line=line, key="", message=message)])
