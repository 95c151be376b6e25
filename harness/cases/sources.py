"""The programs of a case: where they lie, and which kernels must come out of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from harness.cases.errors import Report, shown
from harness.cases.keys import IDENTIFIER, SOURCE
from harness.cases.tables import check_table
from harness.errors import did_you_mean

SIGNATURE = r"^[A-Za-z_][A-Za-z0-9_.]*\(.*\)$"
_SIGNATURES = '{ scale = "void(float32[:])" }, each kernel with its Numba signature'


def read_programs(
    report: Report, folder: Path, good: Mapping[str, Any]
) -> tuple[dict[str, Path], dict[str, dict[str, str]]]:
    """``[source]`` and ``[entry]``: by language, the path of the program, and its kernels with their signatures; notes problems in `report`."""
    named = check_table(report, ("source",), good.get("source", {}), SOURCE)
    if good.get("source") == {}:
        report.add(("source",), 'names no program: write cuda = "kernel.cu" or python = "kernel.py"')
    sources = _sources(report, folder, named)
    return sources, _entries(report, good.get("entry", {}), set(sources))


def _sources(report: Report, folder: Path, value: Mapping[str, str]) -> dict[str, Path]:
    """Path by language; notes what is missing or lies outside `folder`."""
    sources = {}
    for language, text in value.items():
        if message := wrong_path(folder, text):
            report.add(("source", language), message)
        else:
            sources[language] = folder / text
    return sources


def wrong_path(folder: Path, text: str) -> str | None:
    """What is wrong with `text` as the name of a file in the case's folder, or None."""
    path = folder / text
    try:
        if message := _outside(folder, text):
            return message
        if not path.is_file():
            return f"there is no file {shown(text)} in the case's folder{_beside(folder, text)}"
        with open(path, "rb"):
            return None
    except (OSError, RuntimeError, ValueError):
        return f"{shown(text)} cannot be read"


def wrong_folder(folder: Path, text: str) -> str | None:
    """What is wrong with `text` as the name of a folder in the case's folder, or None."""
    try:
        if message := _outside(folder, text):
            return message
        return None if (folder / text).is_dir() else f"there is no folder {shown(text)} in the case's folder"
    except (OSError, RuntimeError, ValueError):
        return f"{shown(text)} cannot be read"


def _outside(folder: Path, text: str) -> str | None:
    posix = PurePosixPath(text)
    if "\\" in text or PureWindowsPath(text).drive:
        return f"write folders with /, not {shown(text)}"
    if posix.is_absolute() or ".." in posix.parts:
        return f"must lie in the case's folder, not at {shown(text)}"
    if not (folder / text).resolve().is_relative_to(folder.resolve()):
        return f"{shown(text)} is a link that leads out of the case's folder"
    return None


def _beside(folder: Path, text: str) -> str:
    hint = did_you_mean(
        text, sorted(item.name for item in folder.iterdir() if item.is_file() and item.suffix != ".toml")
    )
    return hint if hint.startswith(" (did") else ""


def _entries(report: Report, value: Any, languages: Collection[str]) -> dict[str, dict[str, str]]:
    """By language, kernels and their signatures."""
    if not isinstance(value, dict):
        report.add(("entry",), f"must be a table, not {shown(value)}")
        return {}
    entries: dict[str, dict[str, str]] = {}
    for language, kernels in value.items():
        if language not in SOURCE:
            report.add(("entry", language), f"unknown key{did_you_mean(language, SOURCE)}")
        elif language not in languages:
            report.add(("entry", language), f"the case has no source.{language}")
        elif language != "python":
            entries[language] = _names(report, language, kernels)
        else:
            entries[language] = _signatures(report, kernels)
    if "python" in languages and "python" not in value:
        report.add(("entry", "python"), f"is missing: write {_SIGNATURES}")
    return entries


def _names(report: Report, language: str, kernels: Any) -> dict[str, str]:
    key = ("entry", language)
    if not isinstance(kernels, list) or not kernels:
        report.add(key, f'must be a list of kernels such as ["scale"], not {shown(kernels)}')
        return {}
    for index, name in enumerate(kernels):
        if not isinstance(name, str) or not re.fullmatch(IDENTIFIER[1:-1], name):
            report.add(key, f'{shown(name)} is not the name of an extern "C" kernel')
        elif name in kernels[:index]:
            report.add(key, f"has {shown(name)} twice")
    return {name: "" for name in kernels if isinstance(name, str)}


def _signatures(report: Report, kernels: Any) -> dict[str, str]:
    key = ("entry", "python")
    if not isinstance(kernels, dict) or not kernels:
        report.add(key, f"must be {_SIGNATURES}, not {shown(kernels)}")
        return {}
    good = {}
    for name, signature in kernels.items():
        if not re.fullmatch(IDENTIFIER[1:-1], name):
            report.add((*key, name), f"{shown(name)} is not the name of a function")
        elif not isinstance(signature, str) or not re.fullmatch(SIGNATURE[1:-1], signature):
            report.add((*key, name), f'must be a signature such as "void(float32[:])", not {shown(signature)}')
        else:
            good[name] = signature
    return good
