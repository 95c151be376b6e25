"""Read a configuration, and look up its value for each command-line option."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.schema import DRAFT, add_tables, table_of
from harness.cases.toml import Key, Report, check_integers, parse_toml, read_toml_text, shown
from harness.cases.values import check_table
from harness.environments.releases import NAMES
from harness.errors import UsageError, did_you_mean
from harness.model import OptionRule, TargetError
from harness.model.condition import Condition
from harness.model.gpus import parse_gpus
from harness.model.target import check_known, parse_targets
from harness.project.discovery import PYPROJECT
from harness.project.keys import CONFIG, NAMED, SETTINGS, WHEEL
from harness.protocol.messages import Limits
from harness.toolkits import LIBRARIES, parse_toolkits

TABLE = ("tool", "cumatrix")
_SEVERAL = ("with", "library", "require", "host-compiler")
"""Settings with repeatable options. For other settings, the values of a list are joined to one text."""


class TableReport(Report):
    """Reports errors of one table of a file, with keys relative to the table."""

    def __init__(self, whole: Report, prefix: Key) -> None:
        self.whole, self.prefix = whole, prefix
        self.file, self.positions, self.problems = whole.file, whole.positions, whole.problems

    def add(self, key: Key, message: str, *, line: int | None = None) -> None:
        self.whole.add((*self.prefix, *key), message, line=line)

    def line(self, key: Key) -> int:
        return self.whole.line((*self.prefix, *key))


@dataclass(frozen=True)
class Config:
    """The settings of a project.

        Path of the file; None without one.
    shown : str
        Name of the file in messages.
    values : Mapping
        Settings (`harness.project.keys.SETTINGS`) as written.
    lines : Mapping
        Line of each setting.
    tables : tuple of Mapping
        Tables that name programs: the top-level table, then ``[[programs]]``.
    project : str
        Name of the project; empty if the file does not set it.
    text : str
        Text of the file, for line numbers.
    """

    file: Path | None = None
    shown: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    tables: tuple[Mapping[str, Any], ...] = ()
    text: str = ""
    project: str = ""

    @property
    def root(self) -> Path:
        """Folder of the project."""
        return self.file.parent if self.file else Path.cwd()

    @property
    def prefix(self) -> Key:
        """Path of the table in the file."""
        return TABLE if self.file and self.file.name == PYPROJECT else ()

    def report(self) -> Report:
        """Return a report for later errors in the file."""
        return TableReport(Report(self.shown, self.text), self.prefix)

    def place(self, text: str) -> Path:
        """Return the path of a file or folder in the configuration, relative to the current folder."""
        return Path(os.path.relpath(self.root / text))

    def option(self, name: str) -> Any:
        """Return a setting as the value of its command-line option: a text, or texts for a repeatable option; None if unset."""
        value = self.values.get(name)
        if value is None:
            return None
        if name in ("results", "page", "artifacts"):
            return self.place(value)
        if isinstance(value, bool):
            return value
        texts = value if isinstance(value, list) else [value]
        if name in ("cases", "wheel.files"):
            return tuple(map(self.place, texts))
        if name in _SEVERAL:
            return tuple(texts)
        return ",".join(texts) if isinstance(value, list) else value


NOTHING = Config()
"""The empty configuration."""


def read_config(path: Path) -> Config:
    """Read and check a configuration.

    Raises
    ------
    CaseError
        If the file has errors, all of them with file, line and key.
    """
    shown_path = os.path.relpath(path)
    text = read_toml_text(path, shown_path)
    data = parse_toml(text, shown_path)
    report = Report(shown_path, text)
    prefix = TABLE if path.name == PYPROJECT else ()
    for name in prefix:
        data = data.get(name, {}) if isinstance(data, dict) else {}
    part = TableReport(report, prefix)
    if isinstance(data, dict):
        check_integers(part, data)
        report.close()
    good = check_table(part, (), data, CONFIG)
    for name, wrong in _WRONG.items():
        if name in good and (message := wrong(_joined(good[name]))):
            part.add((name,), message)
    tables = [{name: value for name, value in good.items() if name not in (*SETTINGS, "programs", "project", "wheel")}]
    tables += _programs(part, good.get("programs", []))
    wheel = check_table(part, ("wheel",), good.get("wheel", {}), WHEEL)
    for name in ("gpu", "require"):
        if name in wheel and (message := _wrong_gpus(_joined(wheel[name]))):
            part.add(("wheel", name), message)
    report.close()
    values = {name: value for name, value in good.items() if name in SETTINGS}
    lines = {name: part.line((name,)) for name in (*values, *tables[0])}
    values |= {f"wheel.{name}": value for name, value in wheel.items()}
    return Config(path, shown_path, values, lines, tuple(tables), text, good.get("project", ""))


def _programs(report: Report, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        report.add(("programs",), "write [[programs]], with two brackets: there may be several")
        return []
    return [check_table(report, ("programs", index), item, NAMED) for index, item in enumerate(value)]


def _joined(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


def _wrong_backend(text: str) -> str:
    for name in filter(None, (word.strip() for word in text.split(","))):
        if name not in BACKENDS and name != "all":
            return f"unknown backend {shown(name)}{did_you_mean(name, BACKENDS)}"
    return ""


def _wrong_toolkit(text: str) -> str:
    try:
        # An installed CUDA is looked up at its first use: the file may come from another machine.
        words = [word for word in text.split(",") if not re.search(r"local|/", word)]
        if words:
            parse_toolkits(",".join(words))
    except UsageError as error:
        return str(error)
    return ""


def _wrong_target(text: str) -> str:
    try:
        words = [word for word in text.split(",") if word.strip() != "native"]
        for target in parse_targets(",".join(words)) if words else ():
            check_known(target)
    except TargetError as error:
        return str(error)
    return ""


def _wrong_gpus(text: str) -> str:
    try:
        parse_gpus(text)
    except TargetError as error:
        return str(error)
    return ""


def _wrong_library(known: Mapping[str, Any] | tuple[str, ...], example: str) -> Callable[[str], str]:
    def wrong(text: str) -> str:
        # Later values of a list have no name: "cupy=13,14".
        for name, equals, _ in (word.partition("=") for word in text.split(",") if "=" in word or "," not in text):
            word = re.split(r"[\s@<>!~\[]", name.strip())[0]
            if word not in known:
                return f"unknown library {shown(word)}{did_you_mean(word, known)}"
            if not equals and "@" not in name:
                return f"must name versions, as in {example}"
        return ""

    return wrong


_WRONG: Mapping[str, Callable[[str], str]] = {
    "backend": _wrong_backend,
    "toolkit": _wrong_toolkit,
    "target": _wrong_target,
    "with": _wrong_library(NAMES, '"cupy=13,14"'),
    "library": _wrong_library(LIBRARIES, '"cutlass=4.2"'),
}
"""Additional checks of settings, before anything runs."""


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def limits_of(config: Config) -> Limits:
    """Return the configured limits of a cell."""
    limits = Limits()
    seconds, memory = config.values.get("timeout"), config.values.get("memory")
    return Limits(
        seconds=float(seconds) if seconds is not None else limits.seconds,
        memory=int(memory[:-1]) * _UNITS[memory[-1]] if memory is not None else limits.memory,
    )


def config_schema() -> dict[str, Any]:
    """Return the schema of ``cumatrix.toml``, which also applies to ``[tool.cumatrix]`` in ``pyproject.toml``."""
    schema, program = table_of(CONFIG), table_of(NAMED)
    for table in (schema, program):
        add_tables(table["properties"])
    schema["properties"]["programs"] |= {"type": "array", "items": program}
    schema["properties"]["wheel"] |= table_of(WHEEL)
    return {"$schema": DRAFT, "title": "Configuration of cumatrix in a project", **schema}


_ONE_BACKEND = re.compile(r"([A-Za-z][\w-]*):(-.*)", re.DOTALL)


def split_flags(texts: Iterable[str]) -> dict[str, list[str]]:
    """Group options by the backend in front, ``nvcc:-O3``; options for all backends have an empty key."""
    flags: dict[str, list[str]] = {}
    for text in texts:
        found = _ONE_BACKEND.fullmatch(text)
        flags.setdefault(found[1] if found else "", []).append(found[2] if found else text)
    return flags


def only(backend: str, flags: list[str]) -> OptionRule:
    """Return the rule that adds options for one backend."""
    return OptionRule(when=Condition.parse(f'backend == "{backend}"'), values={"flags": flags})


def definitions_of(value: Any) -> dict[str, Any]:
    """Return definitions by name, from ``["N=4"]`` or a table."""
    if not isinstance(value, list):
        return dict(value or {})
    pairs = ((name, equals, item) for name, equals, item in (text.partition("=") for text in value))
    return {
        name: (int(item) if re.fullmatch(r"-?\d{1,18}", item) else item) if equals else 1
        for name, equals, item in pairs
    }


def from_root(root: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with absolute include directories."""
    folders = [str((root / folder).absolute()) for folder in values.get("include", ())]
    return {**values, **({"include": folders} if folders else {})}


def listed(value: Any) -> list[Any]:
    """Return a value as a list; a single value becomes a list of one."""
    return value if isinstance(value, list) else [value]
