"""From what a project has to the text of its configuration."""

from __future__ import annotations

import tomllib
from typing import Any

import tomlkit
from tomlkit.items import Array

from harness.diagnostics import one_line
from harness.libraries import LIBRARIES
from harness.model import KNOWN_TARGETS
from harness.project.seen import Found

TARGET = "sm_75..sm_120"
TOOLKIT = "13.0"
"""The first release whose wheels have an nvcc, and whose architectures begin with sm_75."""

_LONG = 60


def proposal(found: Found, prefix: tuple[str, ...]) -> str:
    """The configuration as TOML.

    Parameters
    ----------
    found : Found
        What was found.
    prefix : tuple of str
        Where its keys stand: ``("tool", "cumatrix")`` in a ``pyproject.toml``, nothing in a ``cumatrix.toml``.
    """
    programs = [{**table} for table in found.programs]
    head: dict[str, Any] = {}
    if len(programs) == 1:
        head |= programs.pop()
    kinds = found.kinds
    libraries = [name for kind, name in (("torch", "torch"), ("python", "numba-cuda")) if kind in kinds]
    releases = {name: LIBRARIES[name].releases[-1] for name in libraries}
    if libraries and len(kinds) > 1:
        # Where libraries are named, their backends alone run unless others are named as well.
        head["backend"] = [
            *(["nvrtc", "nvcc"] if "cuda" in kinds else []),
            *(["torch-nvcc"] if "torch" in kinds else []), *(["numba-cuda"] if "python" in kinds else []),
        ]  # fmt: skip
    if libraries:
        head["with"] = [f"{name}={release.version.removesuffix('.*')}" for name, release in releases.items()]
    head["toolkit"] = releases["torch"].toolkit if "torch" in releases else TOOLKIT
    known = [str(target) for target in KNOWN_TARGETS if str(target) in found.architectures]
    head["target"] = ",".join(known) or TARGET
    head["page"] = "reports/html"
    blocks = []
    why = [] if programs else [f"# {one_line(found.why[0])}"]
    heading = [f"[{'.'.join(prefix)}]"] if prefix else []
    nested = {name: head.pop(name) for name in ("options",) if name in head}
    blocks.append("\n".join([*heading, *why, *_lines({**head, **nested})]))
    for table, words in zip(programs, found.why, strict=False):
        blocks.append("\n".join([f"[[{'.'.join((*prefix, 'programs'))}]]", f"# {one_line(words)}", *_lines(table)]))
    text = "\n\n".join(blocks) + "\n"
    tomllib.loads(text)
    return text


def _lines(table: dict[str, Any]) -> list[str]:
    return [f"{name} = {_item(value)}" for name, value in table.items()]


def _item(value: Any) -> str:
    item = (
        tomlkit.item(_inline(value))
        if isinstance(value, list) and value and isinstance(value[0], dict)
        else tomlkit.item(value)
    )
    if isinstance(item, Array) and len(item.as_string()) > _LONG:
        item.multiline(True)
    return str(item.as_string())


def _inline(value: list[dict[str, Any]]) -> Any:
    array = tomlkit.array()
    for each in value:
        table = tomlkit.inline_table()
        table.update(each)
        array.append(table)
    return array
