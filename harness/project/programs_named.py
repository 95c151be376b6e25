"""Values of a configuration that make cumatrix run, fetch or write outside of its project: they need the user's trust."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.project.config import Config, listed
from harness.project.setup_py import extensions_of

PROGRAMS = "programs"
"""The keys of programs (`flags`, `define`, `libraries`, …), at the top level and in ``[[programs]]``."""

_VERSIONS = re.compile(r"[\d.t+]+(?:\.\.[\d.t+]+)?|python[\d.]*|all|pre|")
# Options of nvcc, gcc, clang and their linkers that name a program, a plugin or a file of further options, or run what was built.
_RUNS = re.compile(
    r"(?:^|[\s,=\"'\\])(?:--?(?:ccbin|compiler-bindir|archiver-binary|arbin|options-file|optf|run|qpp-config|input-drive-prefix"
    r"|f(?:pass-)?plugin|fuse-ld|specs|wrapper|load|Xclang|Xassembler|Xlinker|linker-options|Xarchive|archive-options)"
    r"|-B|-W[alp],|@)"
)
# Paths in these are read, and nothing of them is run.
_SPLIT = re.compile(r"-[IDUL]|--?[a-z-]+")  # the value is the next word
_ONE_BACKEND = re.compile(r"^[A-Za-z][\w-]*:(?=-)")
_READ = re.compile(
    r"-[IDUL].*|--?(?:isystem|iquote|idirafter|include|include-path|system-include|pre-include|library-path)(?:[= ].*)?"
)


@dataclass(frozen=True)
class Named:
    """A value that needs trust.

    Parameters
    ----------
    setting : str
        The key of the configuration it counts for (`PROGRAMS` for those of programs).
    key : str
        The key as the file has it.
    value : str
        The text that names something.
    does : str
        What happens with it: ``runs``, ``fetches``, ``writes outside of the project``.
    line : int
        Line of the key.
    """

    setting: str
    key: str
    value: str
    does: str
    line: int


def programs_named(config: Config) -> tuple[Named, ...]:
    """Every value of a configuration that needs trust; none where there is none."""
    if config.file is None:
        return ()
    return (*_settings(config), *_programs(config))


def _settings(config: Config) -> Iterator[Named]:
    checks: Mapping[str, tuple[Callable[[str], bool], str]] = {
        "python": (_is_program, "runs"),
        "host-compiler": (lambda text: "/" in text or "=" in text, "runs"),
        "toolkit": (lambda text: "/" in text, "runs the compilers in"),
        "with": (_is_build, "runs or builds"),
        "library": (lambda text: "git+" in text, "fetches"),
        **dict.fromkeys(("results", "page", "artifacts"), (_outside(config.root), "writes outside of the project, to")),
    }
    for name, (needs, does) in checks.items():
        texts = listed(config.values.get(name, []))
        yield from (Named(name, name, text, does, config.lines[name]) for text in texts if needs(text))


def _is_program(text: str) -> bool:
    """Return whether ``python`` is more than versions, or an interpreter on the path."""
    return not all(_VERSIONS.fullmatch(word.strip()) for word in text.split(","))


def _is_build(text: str) -> bool:
    """Return whether ``with`` is more than releases: ``-e PATH``, ``NAME @ …`` or an environment."""
    return text.lstrip().startswith("-") or "@" in text or "/" in text


def _outside(root: Path) -> Callable[[str], bool]:
    """Return whether a path leads out of the project, or of its repository; links are followed."""
    place = root.resolve()
    top = next((each for each in (place, *place.parents) if (each / ".git").exists()), place)
    return lambda text: not (place / text).resolve().is_relative_to(top)


def _programs(config: Config) -> Iterator[Named]:
    report = config.report()
    for number, table in enumerate(config.tables):
        above: tuple[str | int, ...] = () if number == 0 else (PROGRAMS, number - 1)
        for name, text, does in _in_table(config, table):
            key = name if number == 0 else f"{PROGRAMS}.{name}"
            yield Named(PROGRAMS, key, text, does, report.line((*above, name)))


def _in_table(config: Config, table: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Key, value and what happens with it."""
    rules = [rule for rule in listed(table.get("options", [])) if isinstance(rule, Mapping)]
    lists = [("flags", table.get("flags", []))]
    lists += [("options", rule.get(name, [])) for rule in rules for name in ("flags", "ptxas")]
    for name, flags in lists:
        yield from ((name, flag, "runs a program through") for flag in _running(_texts(flags)))
    for rule in rules:
        if rule.get("depth") == "extension":
            yield "options", "extension", "loads what it builds, by depth ="
    for text in _texts(table.get("libraries", {})):
        if "git+" in text:
            yield "libraries", text, "fetches"
    if "extension" in table:
        try:
            found = extensions_of(config.root / table["extension"])
        except (UsageError, OSError):
            return  # told when its sources are looked for
        for each in found:
            yield from (("extension", flag, "runs a program through") for flag in _running(each.flags))


def _running(flags: Iterable[str]) -> Iterator[str]:
    """Options that make a compiler run something: they name a program, or a path that is not one of an include directory.

    Characters of a shell are harmless: no tool is started through one (`harness.nvidia.nvcc`).
    """
    before = ""
    for flag in flags:
        words = _ONE_BACKEND.sub("", flag)
        value = _READ.fullmatch(before) and _SPLIT.fullmatch(before) and words[:1] != "-"
        if not (value or _READ.fullmatch(words)) and (_RUNS.search(words) or "/" in words):
            yield flag
        before = flag  # one for a backend alone leaves the next word to the others


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
