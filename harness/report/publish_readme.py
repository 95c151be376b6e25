"""The README of a published matrix: what is in it, what is not, and the commands that repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import Version

from harness.answers.names import LABELS
from harness.answers.spelling import spell_span
from harness.answers.table import known_releases
from harness.backends import library_of
from harness.diagnostics import one_line

_TEXT = """# The published matrix

Made by `cumatrix publish` on records of cumatrix {cumatrix}; the newest run is of {made}. {cells:,} cells of {cases} cases, {answered:,} of them answered by a compiler: {statuses}.
Every answer was compiled; none was written by hand. {size} in all.

`cumatrix ask "bf16 wmma sm_75"` answers from it, `cumatrix report` shows it beside your own results, and pandas reads it: `pandas.read_parquet("results.parquet")`.

| file | what it has | bytes |
| --- | --- | --- |
| `results.parquet` | each cell's record: status, stage, diagnostics, reason, versions asked for and found, command, content key, seconds, resources of kernels | {parquet:,} |
| `answers.json.gz` | the same cells as `cumatrix ask` reads them, without pyarrow: place, kind, first message | {packed:,} |
| `manifest.json` | runs with their commands and machines, versions of what compiled, counts, and a digest of each case | |

Left out of records: logs, but where no diagnostic tells what happened (of these the first {log:,} characters), and what the outcomes were read from (`.inputs.json`). Left out as a whole: planned cells that never arrived, cells of a case
that was another program than it is in this version, programs without a case, and cells on a real GPU. `environment` is `published` in all of them.

## What was tried

| tool | cells | answered | versions | CUDA | targets |
| --- | --- | --- | --- | --- | --- |
{tools}

## What was not

{untried}

## The same again

{commands}
- and then `cumatrix publish RECORDS… --out reports/matrix`

To extend it: `cumatrix publish reports/matrix new.jsonl --out reports/matrix`. A later record of a cell takes the place of an earlier one, but an answer never gives way to the lack of one.
`cumatrix report reports/matrix --out html` is its page.
"""


def readme(manifest: Mapping[str, Any], beside: Mapping[str, Sequence[str]], log: int) -> str:
    """Text of the README.

    Parameters
    ----------
    manifest : Mapping
        The content of ``manifest.json``.
    The content of ``manifest.json``.
        Versions by header library, and by family of host compilers, that were tried.
    log : int
        Characters of a log that are kept.
    """
    sizes = manifest["bytes"]
    return _TEXT.format(
        **{key: manifest[key] for key in ("cumatrix", "made", "cells", "answered")},
        cases=len(manifest["cases"]),
        statuses=", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in manifest["statuses"].items()),
        size=f"{sum(sizes.values()) / 1e6:.1f} MB",
        parquet=sizes["results.parquet"],
        packed=sizes["answers.json.gz"],
        log=log,
        tools="\n".join(_row(backend, of) for backend, of in manifest["backends"].items()),
        untried="\n".join(_untried(manifest["backends"], beside)) or "Every release that cumatrix knows was tried.",
        commands="\n".join(f"- `{command}`" for command in _commands(manifest["runs"])),
    )


def _commands(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(one_line(str(run["command"]), 1000).replace("`", "'") for run in runs))


def _row(backend: str, of: Mapping[str, Any]) -> str:
    columns = (", ".join(of[key]) for key in ("libraries", "toolkits", "targets"))
    return " | ".join((f"| {LABELS.get(backend, backend)}", f"{of['cells']:,}", f"{of['answered']:,}", *columns)) + " |"


def _untried(backends: Mapping[str, Mapping[str, Any]], beside: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each library, and CUDA: releases that cumatrix knows and that have no cell here."""
    tried: dict[str, set[str]] = {name: set(found) for name, found in beside.items()}
    for backend, of in backends.items():
        if library := library_of(backend):
            tried.setdefault(library, set()).update(of["libraries"])
        tried.setdefault("cuda", set()).update(of["toolkits"])
    lines = []
    for name, known in known_releases().items():
        left = [release for release in known if release not in tried.get(name, ())]
        if left:
            label = "CUDA" if name == "cuda" else name
            lines.append(f"- {label}: {', '.join(_spans(left, known))} ({len(left)} of {len(known)} releases)")
    return lines


def _spans(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Neighbours among the known releases as ranges."""
    ordered = sorted(known, key=Version)
    found: list[list[str]] = []
    for name in sorted(names, key=Version):
        if found and ordered.index(name) == ordered.index(found[-1][-1]) + 1:
            found[-1].append(name)
        else:
            found.append([name])
    return [spell_span(run) for run in found]
