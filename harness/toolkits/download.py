"""Wheels that uv downloads from the user's index, each verified by its SHA-256."""

from __future__ import annotations

import configparser
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from harness.errors import PartUnavailable
from harness.process_locks import at_work
from harness.protocol import process_output
from harness.protocol.process_output import Finished
from harness.tables import read_table
from harness.web.address import public, redact


@cache
def _pins() -> dict[str, dict[Version, dict[str, list[str]]]]:
    table = read_table("toolkits/wheels.toml")
    return {
        canonicalize_name(name): {Version(version): wheels for version, wheels in versions.items()}
        for name, versions in table.items()
    }


def pinned(name: str, version: str) -> frozenset[str] | None:
    """Return the pinned SHA-256 hashes (hexadecimal) of a version's wheels for this machine.

    Return None if the version is not pinned.

    Parameters
    ----------
    name : str
        Full name of the wheel on PyPI: ``nvidia-cutlass``.
    version : str
        Version; 3.5.1 equals 3.5.1.0.
    """
    wheels = _pins().get(canonicalize_name(name), {}).get(Version(version))
    if wheels is None:
        return None
    return frozenset([*wheels.get(platform.machine(), ()), *wheels.get("any", ())])


def pinned_versions(name: str) -> list[str]:
    """Return every pinned version of a wheel, pre-releases included, oldest first."""
    return list(map(str, sorted(_pins().get(canonicalize_name(name), {}))))


PYPI = "https://pypi.org/simple"
"""The default index."""

# uv's variables for pip's index settings.
_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
_KEYS = (*_SETTINGS, "no-index")
# A user who sets one of these variables, or one of these keys in uv.toml, has configured an index for uv.
_UV_VARIABLES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_FIND_LINKS",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_CONFIG_FILE",
)
_UV_KEYS = {"index", "index-url", "extra-index-url", "find-links", "no-index"}


def index_settings(environ: Mapping[str, str] = os.environ) -> tuple[dict[str, str], list[str]]:
    """Return the variables and options that make uv use the index configured for pip.

    Both are empty if an index is configured for uv itself, by its variables or the user's or the machine's ``uv.toml``.
    They are also empty if no index is configured for pip: uv then uses PyPI. pip's settings are its variables
    (``PIP_INDEX_URL``) and its configuration files. uv selects the best match across all indexes, as pip does.

    Returns
    -------
    variables : dict
        Variables to add to the environment of the process.
    options : list
        Options for uv's command line.
    """
    if any(environ.get(name) for name in _UV_VARIABLES) or any(map(_names_index, _uv_files(environ))):
        return {}, []
    found = _pip_settings(environ)
    options = ["--no-index"] if found.pop("no-index", "0").lower() not in ("0", "false", "no", "off") else []
    variables = {_SETTINGS[key]: value for key, value in found.items() if not environ.get(_SETTINGS[key])}
    if "UV_INDEX" in variables or "UV_FIND_LINKS" in variables:
        variables["UV_INDEX_STRATEGY"] = environ.get("UV_INDEX_STRATEGY") or "unsafe-best-match"
    return variables, options


def index_addresses(environ: Mapping[str, str] = os.environ) -> tuple[list[str], list[str]]:
    """Return the indexes that uv queries, in order, and its folders or pages of wheels (``find-links``)."""
    variables, options = index_settings(environ)
    settings = {**environ, **variables}
    default = ""
    more: list[str] = []
    links: list[str] = []
    for table in map(_table, _uv_files(environ)):
        for part in (table, table.get("pip", {})):
            if not isinstance(part, dict):
                continue
            named = [item for item in part.get("index", ()) if isinstance(item, dict) and "url" in item]
            more += [str(item["url"]) for item in named if not item.get("default")]
            default = default or next(
                (str(item["url"]) for item in named if item.get("default")), part.get("index-url", "")
            )
            more += map(str, part.get("extra-index-url", ()))
            links += map(str, part.get("find-links", ()))
            options += ["--no-index"] if part.get("no-index") else []
    more = [*settings.get("UV_INDEX", "").split(), *settings.get("UV_EXTRA_INDEX_URL", "").split(), *more]
    links = [*filter(None, settings.get("UV_FIND_LINKS", "").split(",")), *links]
    default = settings.get("UV_DEFAULT_INDEX") or settings.get("UV_INDEX_URL") or default or PYPI
    # uv accepts an index with a name: NAME=ADDRESS.
    indexes = [re.sub(r"^[\w.-]+=", "", address) for address in [*more, default]]
    return ([] if "--no-index" in options else list(dict.fromkeys(indexes))), links


def index_called(environ: Mapping[str, str] = os.environ) -> str:
    """Return the name of uv's index for messages: ``PyPI``, or the configured hosts and folders."""
    indexes, links = index_addresses(environ)
    named = ["PyPI" if address == PYPI else _index_host(address) for address in [*indexes, *links]]
    return " and ".join(dict.fromkeys(named)) or "no index"


def _index_host(address: str) -> str:
    """Return the host of an address, or a folder unchanged. The whole address may contain a password."""
    try:
        return urlsplit(address).hostname or public(address)
    except ValueError:
        return public(address)


def _pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in _pip_files(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(path.read_text("utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue  # pip itself reports the error
        for section in ("global", "install"):
            items = dict(parser.items(section)) if parser.has_section(section) else {}
            found |= {key: items[key] for key in _KEYS if items.get(key)}
    named = {key: environ.get(f"PIP_{key.upper().replace('-', '_')}", "") for key in _KEYS}
    found |= {key: value for key, value in named.items() if value}
    for key in ("extra-index-url", "find-links"):  # several values, separated by spaces or line breaks
        if key in found:
            found[key] = (" " if key == "extra-index-url" else ",").join(found[key].split())
    return found


def _pip_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield pip's configuration files, as ``pip config debug`` lists them; later files override earlier ones."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    home = Path(environ.get("HOME") or Path.home())
    for folder in reversed((environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")):
        yield Path(folder, "pip", "pip.conf")
    yield Path("/etc/pip.conf")
    yield home / ".pip" / "pip.conf"
    yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "pip", "pip.conf")
    yield Path(sys.prefix, "pip.conf")
    if named:
        yield Path(named)


def _uv_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the user's and the machine's ``uv.toml`` (https://docs.astral.sh/uv/concepts/configuration-files/)."""
    if environ.get("UV_NO_CONFIG"):
        return
    if named := environ.get("UV_CONFIG_FILE"):
        yield Path(named)
    home = Path(environ.get("HOME") or Path.home())
    yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "uv", "uv.toml")
    for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"):
        yield Path(folder, "uv", "uv.toml")
    yield Path("/etc/uv/uv.toml")


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}  # uv itself reports the error


def _names_index(path: Path) -> bool:
    table = _table(path)
    pip = table.get("pip")
    return bool(_UV_KEYS & (table.keys() | (pip.keys() if isinstance(pip, dict) else set())))


TIMEOUT = 1800
"""Time limit of uv in seconds."""

# The kernel kills uv as soon as this process ends: prctl(PR_SET_PDEATHSIG, SIGKILL) survives execve(2).
_TIED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


class NothingInstallable(PartUnavailable):
    """A part that cannot be installed, for a reason that affects every part.

    Parameters
    ----------
    what : str
        The part's name.
    why : str
        The reason: uv is missing, or the index is unreachable.
    """

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} cannot be installed: {why}")
        self.why = why


def uv_program() -> str:
    """Return the path of uv: from its wheel, or else from PATH, where conda installs it.

    Raises
    ------
    FileNotFoundError
        If uv is not installed.
    """
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        if found := shutil.which("uv"):
            return found
        raise FileNotFoundError("cumatrix requires uv, which is not installed: install it") from None


def run_uv(what: str, words: Sequence[str], folder: Path, *, built: bool = False) -> str:
    """Run uv and return its output.

    Parameters
    ----------
    what : str
        The subject of messages, such as ``CUDA 12.4``.
    words : sequence of str
        uv's arguments: ``pip compile -`` or ``venv PATH``. ``pip`` commands also receive the index options.
    folder : Path
        The working folder (`harness.process_locks.work_folder`).
    built : bool
        Whether uv may build a distribution; otherwise it only installs wheels from the index.

    Raises
    ------
    NothingInstallable
        If uv is not installed, or the index is unreachable.
    PartUnavailable
        If uv fails, is killed, or exceeds `TIMEOUT`; the message includes uv's message.
    """
    project, temporary = folder / "project", folder / "tmp"
    for path in (project, temporary):
        path.mkdir(exist_ok=True)
    # uv reads the settings of the surrounding project, which may belong to a stranger. This empty project shields uv
    # from any project around the data folder.
    for name in ("uv.toml", "pyproject.toml"):
        (project / name).touch()
    try:
        binary = uv_program()
    except FileNotFoundError as absent:
        raise NothingInstallable(what, str(absent)) from None
    variables, options = index_settings()
    environ = {**os.environ, **variables, "TMPDIR": str(temporary)}
    environ.pop("VIRTUAL_ENV", None)

    def run(*words: str) -> Finished:
        argv = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), binary]
        argv += [*words, "--project", str(project)]
        return process_output.run(argv, env=environ, seconds=TIMEOUT, errors=process_output.Errors.APART)

    try:
        with at_work(folder, run("cache", "dir").output.strip()):
            done = run(*words, "--quiet", *(options if words[0] == "pip" else ()))
            if done.code < 0:
                raise PartUnavailable(f"{what}: uv was killed by signal {-done.code}; run it again")
    except subprocess.TimeoutExpired:
        raise PartUnavailable(f"{what}: no answer from {index_called()} within {TIMEOUT} s") from None
    errors = redact(done.errors)
    error = _first_the_cause(errors) if built else " ".join(errors.split())[-600:]
    if "hash mismatch" in error.lower():
        raise PartUnavailable(
            f"{what} is not installed: a wheel that was downloaded has another SHA-256 than it should have. {error}. "
            "Find out who changed it, or take another index"
        )
    if done.code and "No space left on device" in done.errors:
        raise PartUnavailable(
            f"{what} is not installed: no space is left on the device, in {folder.parent} or in uv's cache; make room, and run it again"
        )
    if done.code and not built and "error sending request for url" in error:
        raise NothingInstallable(what, f"{index_called()} cannot be reached: {error.rpartition('cause: ')[2]}")
    if done.code:
        how = "built or installed" if built else f"installed from {index_called()}"
        raise PartUnavailable(f"{what} cannot be {how}: {error}")
    if not done.whole:
        raise PartUnavailable(f"{what} cannot be installed: uv printed {done.total} bytes about it")
    return done.output


def _first_the_cause(error: str) -> str:
    """Return uv's message about a failed build, with the build's exception (the last line of its output) first."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    words = [line for line in lines if not line.startswith("hint:")]
    return f"{words[-1][:300]} (uv: {' '.join(' '.join(lines).split())[-400:]})" if words else ""


@dataclass(frozen=True)
class Wheel:
    """A wheel on an index.

    Parameters
    ----------
    name, version : str
        The requested name and version.
    sha256 : str
        Its hash on the index in hexadecimal digits; empty if the index provides none.
    host : str
        Its origin, for messages.
    """

    name: str
    version: str
    sha256: str
    host: str

    @property
    def known(self) -> bool:
        """Return whether cumatrix pins the version's hash."""
        return pinned(self.name, self.version) is not None


def choose(what: str, wanted: Mapping[str, str], folder: Path) -> list[Wheel]:
    """Query the index for the wheels of some exact versions.

    Parameters
    ----------
    what : str
        The subject of messages, such as ``CUDA 12.4``.
    wanted : Mapping[str, str]
        Versions by the full name of the wheel.
    folder : Path
        The working folder.

    Raises
    ------
    PartUnavailable
        If a wheel is unavailable, has no hash, or its hash differs from the pinned one.
    """
    lines = "".join(f"{name}=={version}\n" for name, version in wanted.items())
    requirements = folder / "requirements.in"
    requirements.write_text(lines, "utf-8")
    output = _uv(
        what, ["compile", "--no-header", "--no-annotate", "--format", "pylock.toml", str(requirements)], folder
    )
    packages = {item["name"]: item for item in tomllib.loads(output).get("packages", ())}
    return [_choose(what, name, version, packages.get(name, {})) for name, version in wanted.items()]


def unpack(what: str, wheels: Sequence[Wheel], site: Path, folder: Path) -> None:
    """Download wheels that `choose` returned, and unpack them into `site`.

    Raises
    ------
    PartUnavailable
        If a wheel cannot be downloaded, or differs from the index's entry.
    """
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(f"{w.name}=={w.version} --hash=sha256:{w.sha256}\n" for w in wheels), "utf-8")
    # Copies keep a modified file of a toolkit out of uv's cache and of other toolkits.
    words = ["install", "--require-hashes", "--link-mode", "copy", "--target", str(site), "-r", str(requirements)]
    _uv(what, words, folder)


def lock(what: str, lines: Sequence[str], folder: Path, *, deps: bool, python: str = "") -> str:
    """Resolve requirements to exact versions with the hashes of all their wheels, in the format of a requirements file.

    Parameters
    ----------
    what : str
        The subject of messages.
    lines : sequence of str
        Requirements.
    folder : Path
        The working folder.
    deps : bool
        Whether to resolve dependencies too.
    python : str
        The Python to resolve for, such as ``3.11``; by default, this process's Python.

    Raises
    ------
    PartUnavailable
        If the index does not respond, or a download fails.
    """
    requirements = folder / "requirements.in"
    requirements.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    words = ["compile", "--generate-hashes", "--no-header", "--no-annotate", str(requirements)]
    words += ["--python-version", python] if python else []
    return _uv(what, words, folder, deps=deps)


def _choose(what: str, name: str, version: str, package: Mapping[str, Any]) -> Wheel:
    ranks = {tag: rank for rank, tag in enumerate(sys_tags())}
    found = []
    for item in package.get("wheels", ()):
        address = item.get("url") or item.get("path") or ""
        try:
            tags = parse_wheel_filename(unquote(address.rsplit("/", 1)[-1]))[3]
        except InvalidWheelFilename:
            continue
        rank = min((ranks[tag] for tag in tags if tag in ranks), default=None)
        if rank is not None:
            found.append((rank, Wheel(name, version, item.get("hashes", {}).get("sha256", ""), _host(address))))
    if not found:
        raise PartUnavailable(
            f"{what} cannot be installed from {index_called()}: it has no wheel of {name} {version} for this machine"
        )
    known = pinned(name, version)
    right = [(rank, wheel) for rank, wheel in found if wheel.sha256 in known] if known is not None else found
    if known is not None and not right:
        wheel = min(found, key=lambda pair: pair[0])[1]
        raise PartUnavailable(
            f"{what} is not installed: the wheel of {name} {version} at {wheel.host} is not the one that cumatrix knows. "
            f"Its SHA-256 is {wheel.sha256 or 'unknown'}, and should be {' or '.join(sorted(known)) or 'none: there was no wheel for this machine'}. "
            "Find out who changed it, or take another index"
        )
    wheel = min(right, key=lambda pair: pair[0])[1]
    if not wheel.sha256:
        raise PartUnavailable(f"{what} is not installed: {wheel.host} provides no SHA-256 of {name} {version}")
    return wheel


def _host(address: str) -> str:
    parts = urlsplit(address)
    return parts.hostname or os.path.dirname(unquote(parts.path)) or "the index"


def _uv(what: str, words: Sequence[str], folder: Path, *, deps: bool = False) -> str:
    """Run ``uv pip`` on wheels only, without dependencies unless `deps` is set."""
    common = ["--only-binary", ":all:", "--python", sys.executable, *([] if deps else ["--no-deps"])]
    return run_uv(what, ["pip", *words, *common], folder)
