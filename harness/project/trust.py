"""Trust in configurations: what a folder's file names is run once its user has allowed it, as direnv does it.

Trust belongs to a file at a path with what it names. It is kept in the user's configuration folder, where no repository has files; a change of what is
named, or another path, needs new trust.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.project.config import Config
from harness.project.programs_named import PROGRAMS, Named, programs_named
from harness.protocol.process_output import Unreadable, read_plain
from harness.protocol.text import one_line
from harness.records.files import replace_files
from harness.user_folders import users

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
