"""The index that wheels come from: the one that the user has configured for uv, or else for pip; never a project's own."""

from __future__ import annotations

import configparser
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.web.address import public

PYPI = "https://pypi.org/simple"
"""The index where none is configured."""

# What uv calls pip's settings of an index.
_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
_KEYS = (*_SETTINGS, "no-index")
# An index that is given by one of these variables, or by one of these keys of a uv.toml, is meant for uv.
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
    """Variables and options that tell uv the index which the user has configured for pip.

    Empty where an index is configured for uv itself (its variables, the user's or the machine's ``uv.toml``), and where there is none for pip
    either: uv takes PyPI then. Of pip there are its variables (``PIP_INDEX_URL``) and its configuration files; as pip does, all its indexes are looked
    at for the best match.

    Parameters
    ----------
    environ : Mapping[str, str]
        The variables of the process.

    Returns
    -------
    variables : dict
        To be added to those of the process.
    options : list
        For uv's command line.
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
    """Indexes that uv asks, the first one first, and its folders or pages of wheels (``find-links``).

    Parameters
    ----------
    environ : Mapping[str, str]
        The variables of the process.
    """
    variables, options = index_settings(environ)
    said = {**environ, **variables}
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
    more = [*said.get("UV_INDEX", "").split(), *said.get("UV_EXTRA_INDEX_URL", "").split(), *more]
    links = [*filter(None, said.get("UV_FIND_LINKS", "").split(",")), *links]
    default = said.get("UV_DEFAULT_INDEX") or said.get("UV_INDEX_URL") or default or PYPI
    # An index may be written with a name: NAME=ADDRESS.
    indexes = [re.sub(r"^[\w.-]+=", "", address) for address in [*more, default]]
    return ([] if "--no-index" in options else list(dict.fromkeys(indexes))), links


def index_called(environ: Mapping[str, str] = os.environ) -> str:
    """What messages call the index that uv asks: ``PyPI``, or the machines and folders that the user has configured."""
    indexes, links = index_addresses(environ)
    named = ["PyPI" if address == PYPI else _host(address) for address in [*indexes, *links]]
    return " and ".join(dict.fromkeys(named)) or "no index"


def _host(address: str) -> str:
    """The host of an address; a folder as it is. Never the whole address, which may hold a password."""
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
            continue  # pip itself will say what is wrong with it
        for section in ("global", "install"):
            items = dict(parser.items(section)) if parser.has_section(section) else {}
            found |= {key: items[key] for key in _KEYS if items.get(key)}
    named = {key: environ.get(f"PIP_{key.upper().replace('-', '_')}", "") for key in _KEYS}
    found |= {key: value for key, value in named.items() if value}
    for key in ("extra-index-url", "find-links"):  # several, between spaces or on lines of their own
        if key in found:
            found[key] = (" " if key == "extra-index-url" else ",").join(found[key].split())
    return found


def _pip_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """Configuration files of pip, as ``pip config debug`` lists them: later ones win."""
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
    """The user's and the machine's ``uv.toml`` (https://docs.astral.sh/uv/concepts/configuration-files/)."""
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
        return {}  # uv itself will say what is wrong with it


def _names_index(path: Path) -> bool:
    table = _table(path)
    pip = table.get("pip")
    return bool(_UV_KEYS & (table.keys() | (pip.keys() if isinstance(pip, dict) else set())))
