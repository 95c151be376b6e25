"""Trust in configurations, as in direnv: cumatrix runs programs that a configuration names only after the user allows it.

Trust belongs to the path of a file and the values that need trust. It is stored in the user's configuration folder,
outside any repository. A change of these values, or another path, needs new trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.project.commands import units_of
from harness.project.config import Config, listed
from harness.project.setup_py import extensions_of
from harness.protocol.process_output import Unreadable, read_plain
from harness.protocol.text import one_line
from harness.records.files import replace_files
from harness.tables import users

PROGRAMS = "programs"
"""Setting of all keys of programs (`flags`, `define`, `libraries`, …), at the top level and in ``[[programs]]``."""

_VERSIONS = re.compile(r"[\d.t+]+(?:\.\.[\d.t+]+)?|python[\d.]*|all|pre|")
# Options of nvcc, gcc, clang and their linkers that name a program, a plugin or a file of options, or run the output.
_RUNS = re.compile(
    r"(?:^|[\s,=\"'\\])(?:--?(?:ccbin|compiler-bindir|archiver-binary|arbin|options-file|optf|run|qpp-config|input-drive-prefix"
    r"|f(?:pass-)?plugin|fuse-ld|specs|wrapper|load|ptxas-path|config|Xclang|Xassembler|Xlinker|linker-options|Xarchive|archive-options)"
    r"|-B|-W[alp],|@)"
)
# Options with paths that are only read.
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
        Key of the configuration (`PROGRAMS` for keys of programs).
    key : str
        Key as written in the file.
    value : str
        The value.
    does : str
        Effect of the value: ``runs``, ``fetches``, ``writes outside of the project``.
    line : int
        Line of the key.
    """

    setting: str
    key: str
    value: str
    does: str
    line: int


def programs_named(config: Config) -> tuple[Named, ...]:
    """Return every value of a configuration that needs trust."""
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
    """Return whether a value of ``python`` is more than versions or an interpreter on the path."""
    return not all(_VERSIONS.fullmatch(word.strip()) for word in text.split(","))


def _is_build(text: str) -> bool:
    """Return whether a value of ``with`` is more than releases: ``-e PATH``, ``NAME @ …`` or an environment."""
    return text.lstrip().startswith("-") or "@" in text or "/" in text


def _outside(root: Path) -> Callable[[str], bool]:
    """Return a test of whether a path, with links resolved, leads out of the project or its repository."""
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
    """Yield key, value and effect of each value in a table that needs trust."""
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
    if "commands" in table:
        try:
            units = units_of(config.root / table["commands"])
        except (UsageError, OSError):
            return  # the reader of the units reports the error
        flags = dict.fromkeys(flag for unit in units for flag in unit.flags)
        yield from (("commands", flag, "runs a program through") for flag in _running(flags))
    if "extension" in table:
        try:
            found = extensions_of(config.root / table["extension"])
        except (UsageError, OSError):
            return  # the reader of the sources reports the error
        for each in found:
            yield from (("extension", flag, "runs a program through") for flag in _running(each.flags))


def _running(flags: Iterable[str]) -> Iterator[str]:
    """Yield options that make a compiler run something: they name a program, or a path other than an include directory.

    Shell characters are harmless, since no tool starts through a shell (`harness.nvidia.nvcc`).
    """
    before = ""
    for flag in flags:
        words = _ONE_BACKEND.sub("", flag)
        value = _READ.fullmatch(before) and _SPLIT.fullmatch(before) and words[:1] != "-"
        if not (value or _READ.fullmatch(words)) and (_RUNS.search(words) or "/" in words):
            yield flag
        before = flag  # an option for one backend leaves the next word to the others


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


VARIABLE = "CUMATRIX_TRUST"
"""Environment variable: ``1`` trusts every configuration; folders, separated as in ``PATH``, trust the configurations in and below them."""

_LARGEST = 1 << 20
_SHOWN = 200


class Untrusted(UsageError):
    """A configuration with values that need trust, which the user has not allowed."""

    def __init__(self, config: Config, named: Sequence[Named]) -> None:
        self.config, self.named = config, tuple(named)
        first = named[0]
        keys = list(dict.fromkeys(each.key for each in named[1:] if each.key != first.key))
        more = f" (so are {', '.join(keys)})" if keys else ""
        super().__init__(
            f"{config.shown}:{first.line}: {first.key}: cumatrix {first.does} {shown(first.value)}, which is not trusted{more}: "
            f"look at the file, then allow it with `cumatrix trust`, or with {VARIABLE}=1 in CI"
        )


@dataclass(frozen=True)
class Entry:
    """A trusted configuration.

    Parameters
    ----------
    place : Path
        File of the entry.
    file : str
        Path of the configuration.
    named : tuple of str
        Trusted values, one line each.
    """

    place: Path
    file: str
    named: tuple[str, ...]


def require_trust(config: Config, settings: Collection[str], *, trusted: bool = False) -> None:
    """Raise `Untrusted` unless the used values of a configuration are allowed.

    Parameters
    ----------
    config : Config
        The configuration.
    settings : collection of str
        Keys with used values; `PROGRAMS` for keys of programs.
    trusted : bool
        Whether the user trusts every configuration for this run (``--trust``).

    Raises
    ------
    Untrusted
        If the user has not allowed the values.
    """
    everything = needs_trust(config)
    used = [each for each in everything if each.setting in settings]
    if used and not (trusted or _by_variable(config) or is_trusted(config, everything)):
        raise Untrusted(config, used)


def needs_trust(config: Config) -> tuple[Named, ...]:
    """Return the values of a configuration that need trust.

    A file of another user above the current folder needs trust as a whole, in addition to values that name programs.
    """
    stranger = _stranger(config)
    return (*([stranger] if stranger else []), *programs_named(config))


def is_trusted(config: Config, named: Sequence[Named]) -> bool:
    """Return whether the user trusts a configuration's values."""
    return _place(config, named).is_file()


def trust(config: Config) -> tuple[Named, ...]:
    """Store trust in the values of a configuration, and return them; without such values nothing is stored."""
    named = needs_trust(config)
    if named:
        entry = {"file": _file(config), "named": [line_of(each) for each in named]}
        replace_files({_place(config, named): json.dumps(entry, indent=1).encode()})
    return named


def revoke(file: Path) -> int:
    """Delete every trust in a file and return the number of deleted entries."""
    gone = [entry for entry in entries() if entry.file == str(file.resolve())]
    for entry in gone:
        entry.place.unlink(missing_ok=True)
    return len(gone)


def entries() -> list[Entry]:
    """Return all trusted configurations, sorted by file."""
    return sorted(_entries(), key=lambda each: (each.file, each.named))


def line_of(named: Named) -> str:
    """Return one line for people: key, effect and value, without terminal control characters."""
    return f"{named.key}: {named.does} {shown(named.value)}"


def shown(text: str) -> str:
    """Return a value on one line, without terminal control characters."""
    return one_line(text, _SHOWN)


def _entries() -> Iterator[Entry]:
    folder = _folder()
    for place in folder.glob("*.json") if folder.is_dir() else ():
        try:
            data = json.loads(read_plain(place, _LARGEST))
            yield Entry(place, str(data["file"]), tuple(map(str, data["named"])))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, Unreadable):
            continue  # only the file name of an entry grants trust, so its content may be invalid


def _folder() -> Path:
    return users("XDG_CONFIG_HOME", "~/.config") / "trusted"


def _file(config: Config) -> str:
    assert config.file is not None
    return str(config.file.resolve())


def _place(config: Config, named: Sequence[Named]) -> Path:
    values = sorted([each.setting, each.key, each.value] for each in named)
    text = json.dumps([_file(config), values])
    return _folder() / f"{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}.json"


def _by_variable(config: Config) -> bool:
    value = os.environ.get(VARIABLE, "")
    if value in ("", "0", "1"):
        return value == "1"
    file = Path(_file(config))
    folders = [Path(each).expanduser() for each in value.split(os.pathsep) if each]
    if lost := [each for each in folders if not each.is_absolute()]:
        raise UsageError(f"{VARIABLE}: {lost[0]} is neither 1 nor the absolute path of a folder")
    return any(file.is_relative_to(each.resolve()) for each in folders)


def _stranger(config: Config) -> Named | None:
    """Return a value for another user's file above the current folder, such as ``/tmp/cumatrix.toml``."""
    if config.file is None or config.file.parent.resolve() == Path.cwd():
        return None
    owner = config.file.stat().st_uid
    if owner in (0, os.geteuid(), os.stat(".").st_uid):
        return None
    digest = hashlib.sha256(config.text.encode("utf-8", "surrogatepass")).hexdigest()
    return Named(PROGRAMS, "cumatrix", f"the file of user {owner} ({digest[:12]})", "obeys", 1)
