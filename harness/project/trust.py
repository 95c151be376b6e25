"""Trust in configurations: cumatrix runs what a folder's file names only after its user allows it, as direnv does.

Trust belongs to a file at a path with what it names. It is kept in the user's configuration folder, where no repository has files; a change of what is
named, or another path, needs new trust.
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
"""The keys of programs (`flags`, `define`, `libraries`, …), at the top level and in ``[[programs]]``."""

_VERSIONS = re.compile(r"[\d.t+]+(?:\.\.[\d.t+]+)?|python[\d.]*|all|pre|")
# Options of nvcc, gcc, clang and their linkers that name a program, a plugin or a file of further options, or run what was built.
_RUNS = re.compile(
    r"(?:^|[\s,=\"'\\])(?:--?(?:ccbin|compiler-bindir|archiver-binary|arbin|options-file|optf|run|qpp-config|input-drive-prefix"
    r"|f(?:pass-)?plugin|fuse-ld|specs|wrapper|load|ptxas-path|config|Xclang|Xassembler|Xlinker|linker-options|Xarchive|archive-options)"
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
    if "commands" in table:
        try:
            units = units_of(config.root / table["commands"])
        except (UsageError, OSError):
            return  # told when its units are looked for
        flags = dict.fromkeys(flag for unit in units for flag in unit.flags)
        yield from (("commands", flag, "runs a program through") for flag in _running(flags))
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


VARIABLE = "CUMATRIX_TRUST"
"""``1`` trusts every configuration; folders, separated as those of ``PATH``, the configurations in and below them."""

_LARGEST = 1 << 20
_SHOWN = 200


class Untrusted(UsageError):
    """A configuration names something to run, and is not trusted."""

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
    """A configuration that is trusted.

    Parameters
    ----------
    place : Path
        The file of the entry.
    file : str
        The configuration.
    named : tuple of str
        What it names, a line each.
    """

    place: Path
    file: str
    named: tuple[str, ...]


def require_trust(config: Config, settings: Collection[str], *, trusted: bool = False) -> None:
    """Stop unless what a configuration names may be run.

    Parameters
    ----------
    config : Config
        The configuration.
    settings : collection of str
        Its keys whose values are used; `PROGRAMS` for those of programs.
    trusted : bool
        The user trusts every configuration for this run (``--trust``).

    Raises
    ------
    Untrusted
        When the user has not allowed it.
    """
    everything = needs_trust(config)
    used = [each for each in everything if each.setting in settings]
    if used and not (trusted or _by_variable(config) or is_trusted(config, everything)):
        raise Untrusted(config, used)


def needs_trust(config: Config) -> tuple[Named, ...]:
    """Values of a configuration that need trust: all of a foreign user's file above the current folder, else those that name programs."""
    stranger = _stranger(config)
    return (*([stranger] if stranger else []), *programs_named(config))


def is_trusted(config: Config, named: Sequence[Named]) -> bool:
    """Return whether the user trusts a configuration's values."""
    return _place(config, named).is_file()


def trust(config: Config) -> tuple[Named, ...]:
    """Allow what a configuration names; returns it. Nothing is kept where it names nothing."""
    named = needs_trust(config)
    if named:
        entry = {"file": _file(config), "named": [line_of(each) for each in named]}
        replace_files({_place(config, named): json.dumps(entry, indent=1).encode()})
    return named


def revoke(file: Path) -> int:
    """Forget every trust in a file; returns how many entries that were."""
    gone = [entry for entry in entries() if entry.file == str(file.resolve())]
    for entry in gone:
        entry.place.unlink(missing_ok=True)
    return len(gone)


def entries() -> list[Entry]:
    """Everything that is trusted, by file."""
    return sorted(_entries(), key=lambda each: (each.file, each.named))


def line_of(named: Named) -> str:
    """One line for people: key, what happens, and the value, with nothing in it that acts on a terminal."""
    return f"{named.key}: {named.does} {shown(named.value)}"


def shown(text: str) -> str:
    """A value on one line, with nothing in it that acts on a terminal."""
    return one_line(text, _SHOWN)


def _entries() -> Iterator[Entry]:
    folder = _folder()
    for place in folder.glob("*.json") if folder.is_dir() else ():
        try:
            data = json.loads(read_plain(place, _LARGEST))
            yield Entry(place, str(data["file"]), tuple(map(str, data["named"])))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, Unreadable):
            continue  # trusts nothing: an entry counts by its name


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
    """A file above the current folder of another user's, such as ``/tmp/cumatrix.toml``."""
    if config.file is None or config.file.parent.resolve() == Path.cwd():
        return None
    owner = config.file.stat().st_uid
    if owner in (0, os.geteuid(), os.stat(".").st_uid):
        return None
    digest = hashlib.sha256(config.text.encode("utf-8", "surrogatepass")).hexdigest()
    return Named(PROGRAMS, "cumatrix", f"the file of user {owner} ({digest[:12]})", "obeys", 1)
