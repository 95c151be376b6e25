"""Files of CUDA C++ that no build tells of."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from harness.cases.host_program import host_signs
from harness.project.files import INCLUDE, ProjectFiles, folder_of, headers_of, some
from harness.project.seen import Found

_WORDS = {"torch": "with PyTorch's headers", "host": "programs of the host, for nvcc", "device": "device code"}
_TORCH = re.compile(r"(?:torch|ATen|c10)/")


def kind_of(text: str) -> str:
    """``torch`` for CUDA C++ with PyTorch's headers, ``host`` for a program that compilers of device code cannot take, else ``device``."""
    if any(_TORCH.match(quoted or pointed) for quoted, pointed in INCLUDE.findall(text)):
        return "torch"
    return "host" if host_signs(text) else "device"


def loose(project: ProjectFiles, names: list[str], found: Found, settings: Mapping[str, dict[str, Any]]) -> None:
    """Note files that no build tells of, by kind and by the include directories that their headers are found in.

    Parameters
    ----------
    project, names : ProjectFiles, list of str
        The project, and those of its files.
    found : Found
        Takes the programs.
    settings : Mapping
        By the name of a ``setup.py``, what it says of all its files where it does not say which they are; for those with PyTorch's headers beside and below it.
    """
    headers = headers_of(project)
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name in names:
        text = project.text(name)
        included = INCLUDE.findall(text)
        kind = kind_of(text)
        folders = dict.fromkeys(folder for pair in included for folder in folder_of(project, name, pair, headers))
        groups.setdefault((kind, tuple(folders)), []).append(name)
    for (kind, include), files in groups.items():
        table: dict[str, Any] = {"sources": _patterns(project, files, names), "include": list(include)}
        words = _WORDS[kind]
        if kind == "torch":
            table["language"] = "torch"
            for setup, more in settings.items():
                if all(os.path.dirname(setup) in ("", *map(str, PurePath(name).parents)) for name in files):
                    table = {**more, **table, "include": list(dict.fromkeys([*more["include"], *include]))}
                    words = f"{words}, with the options of {setup}"
        elif kind == "host":
            table["backends"] = ["nvcc"]
        found.add(table, f"CUDA C++, {words}: {some(files)}")


def _patterns(project: ProjectFiles, files: list[str], others: list[str]) -> list[str]:
    """Patterns for files that are all of a folder's; the files themselves where it has others, too."""
    found: dict[str, None] = {}
    for name in files:
        folder = os.path.dirname(name)
        of_folder = [each for each in project.named(".cu") if os.path.dirname(each) == folder]
        whole = len(of_folder) > 1 and set(of_folder) <= set(files) and set(of_folder) <= set(others)
        found[os.path.join(folder, "*.cu") if whole else name] = None
    return list(found)
