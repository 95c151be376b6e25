"""Sets of cells and histories, judged by the cases' current expectations and filtered by ``--where``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.frame import cells_frame
from harness.analysis.history import FILE, History, read_history
from harness.cases.discovery import load_cases
from harness.diagnostics import one_line
from harness.matrix.axes import PLACE
from harness.model import (
    Artifact,
    Case,
    Cell,
    Diagnostic,
    Expectation,
    KernelResources,
    Outcome,
    Stage,
    Status,
    Target,
    Toolchain,
    ToolkitRef,
    Variant,
)
from harness.model.cell import host_named, none_left
from harness.model.judge import expectation_of, judge, shortfall
from harness.records import Merged, Record, RecordError, Results, expected_json, merge, read_records
from harness.records.merge import case_of, tell_devices
from harness.records.parquet import read_parquet
from harness.records.record_names import chooser

Rejudge = Callable[[Record], Record]
"""Return a record with a new verdict."""


def merge_and_judge(results: Results, rejudge: Rejudge | None) -> Merged:
    """Merge the read records into one set. With `rejudge`, the records of the set get current verdicts."""
    merged = merge(results.records, results.plans, results.inputs)
    return replace(merged, records=tuple(map(rejudge, merged.records))) if rejudge else merged


def rejudger(roots: Path | Sequence[Path], programs: Sequence[Case] = ()) -> Rejudge:
    """Return a function that judges a record by the current case.

    A record without a current case or variant keeps its verdict.

    Parameters
    ----------
    roots : Path or sequence of Path
        Folders of the cases. If a folder does not exist, the records of its cases keep their verdicts.
    programs : sequence of Case
        Programs in the project's configuration.

    Raises
    ------
    CaseError
        If a case cannot be read. The returned function raises `RecordError` if a record lacks the requested toolchain.
    """
    folders = [root for root in ([roots] if isinstance(roots, Path) else roots) if root.is_dir()]
    cases = {case.name: case for case in (*(load_cases(folders) if folders else ()), *programs)}

    variants = {name: {variant.name: variant for variant in case.variants} for name, case in cases.items()}

    def rejudge(record: Record) -> Record:
        case = cases.get(case_of(record))
        if case is None or record.get("project", "") != case.project:
            return record
        variant = variants[case.name].get(record["variant"])
        if variant is None:
            return record
        return _judged(record, case, expectation_of(*_with_facts(record, case, variant)))

    return rejudge


def cell_of(record: Record, case: Case, variant: Variant) -> Cell:
    """Return the cell of a record in the form that the conditions of the current case read.

    Raises
    ------
    RecordError
        If a record lacks the requested toolchain.
    """
    return _with_facts(record, case, variant)[0]


def _with_facts(record: Record, case: Case, variant: Variant) -> tuple[Cell, Mapping[str, Any]]:
    try:
        cell = Cell(case=case, variant=variant, toolchain=_toolchain(record), target=Target.parse(record["target"]))
        facts = cell.facts()
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"{one_line(record['cell'])}: toolchain or device lacks the requested values, so the cell cannot be judged again: "
            f"{one_line(repr(error), 100)}; run the cell again"
        ) from None
    return cell, facts


def outcome_of(record: Record, expected: Expectation | None = None) -> Outcome:
    """Return the part of a record's outcome that is judged.

    With an expectation, the outcome omits diagnostics and kernels that the expectation does not check. Most
    expectations check neither.
    """
    messages = expected is None or expected.diagnostic is not None
    kernels = expected is None or expected.kernels or expected.tensor_cores is not None
    return Outcome(
        status=Status(record["status"]),
        stage=Stage(record["stage"]) if record["stage"] else None,
        diagnostics=tuple(
            Diagnostic(severity=item["severity"], message=item["message"], fingerprint=item.get("fingerprint", ""))
            for item in (record["diagnostics"] if messages else ())
        ),
        artifact=_artifact(record) if kernels else None,
    )


def _artifact(record: Record) -> Artifact | None:
    """Return the artifact with the facts that expectations check: names of kernels, and tensor core instructions."""
    made = record["artifact"]
    return made and Artifact(
        format=made["format"], target=made["target"], bytes=made["bytes"], sha256=made["sha256"],
        kernels=tuple(
            KernelResources(name=kernel["name"], tensor_cores=kernel.get("tensor_cores")) for kernel in made["kernels"]
        ),
    )  # fmt: skip


def _toolchain(record: Record) -> Toolchain:
    requested = record["toolchain"]["requested"]
    device = record["device"]["name"] if record["device"].get("virtual") is False else ""
    host = record.get("host_compiler", ""), requested.get("host_compiler", "")
    packages = tuple(sorted(requested["packages"].items()))
    return _toolchain_of(
        record["backend"], requested["library"], requested["toolkit"], requested["headers"], packages, device, host
    )


@lru_cache(maxsize=1024)  # records have few distinct toolchains, and this caches the facts for conditions
def _toolchain_of(
    backend: str, library: str, toolkit: str, headers: str, packages: tuple[tuple[str, str], ...], device: str,
    host: tuple[str, str],
) -> Toolchain:  # fmt: skip
    return Toolchain(
        backend=backend, library=library, toolkit=ToolkitRef(release=toolkit, headers=headers),
        packages=dict(packages), device=device, host=host_named(*host),
    )  # fmt: skip


def _judged(record: Record, case: Case, expected: Expectation) -> Record:
    outcome = outcome_of(record, expected)
    return {
        **record,
        "expected": expected_json(expected),
        "verdict": str(judge(expected, outcome)),
        "reason": shortfall(expected, outcome) if outcome.status is Status.BUILT else record["reason"],
        "title": case.title,
    }


@dataclass(frozen=True, kw_only=True)
class CellSet:
    """Cells and their source.

    Parameters
    ----------
    name : str
        The file, the folder or the run.
    table : DataFrame
        The cells (`harness.analysis.frame.cells_frame`).
    warnings : tuple of str
        Warnings from reading the cells.
    known : tuple of dict
        The records and planned cells of the table. Empty for a run of a history, which has only the table.
    """

    name: str
    table: pd.DataFrame
    warnings: tuple[str, ...] = ()
    known: tuple[Mapping[str, Any], ...] = ()


def load_set(place: str, history: Path | None = None, rejudge: Rejudge | None = None) -> CellSet:
    """Read a set of cells.

    Parameters
    ----------
    place : str
        A ``.jsonl`` file, a folder of them, ``results.parquet``, a folder ``run=ID`` of a history, or with `history`
        the name of a run.
    history : Path, optional
        The history that contains named runs.
    rejudge : callable, optional
        Returns a record with a new verdict. Records of a history keep their verdicts.

    Raises
    ------
    RecordError, HistoryError
        If the set cannot be read. The message is one plain sentence.
    """
    path = Path(place)
    if history is not None and not path.exists():
        found = read_history(history)
        return CellSet(name=found.find(place), table=found.cells_of(place), warnings=found.warnings)
    if (path / FILE).is_file() or path.name == FILE:
        run = path if path.is_dir() else path.parent
        found = read_history(run.parent)
        name = run.name.removeprefix("run=")
        return CellSet(name=name, table=found.cells_of(name))
    if path.suffix == ".parquet":
        records, plans = read_parquet(path)
        results = Results(records=tuple(records), plans=tuple(plans), warnings=())
    else:
        results = read_records([path])
    merged = tell_devices(merge_and_judge(results, rejudge))
    known = (*merged.records, *merged.missing)
    return CellSet(name=place, table=cells_frame(merged), warnings=results.warnings, known=known)


COLUMNS = (
    *PLACE,
    "cell",
    "topic",
    "environment",
    "status",
    "stage",
    "verdict",
    "message",
    "reason",
    "mark",
    "run",
    "title",
)
"""Columns of a history that conditions read."""


def choose_in_sets(sets: Sequence[CellSet], where: str, across: Collection[str] = ()) -> list[CellSet]:
    """Keep the cells for which a condition holds in at least one of the sets, so that each cell is still compared with itself.

    Raises
    ------
    UsageError
        If the condition is invalid.
    NothingToRun
        If the condition holds for no cell.
    """
    key = [name for name in PLACE if name not in across]
    cells = [each.known or each.table.to_dict("records") for each in sets]
    holds = chooser(where, chain.from_iterable(cells))
    kept = {tuple(cell[name] for name in key) for cell in chain.from_iterable(cells) if holds(cell)}
    if not kept:
        raise none_left(" and ".join(each.name for each in sets), where)
    masks = [[row in kept for row in each.table[key].itertuples(index=False, name=None)] for each in sets]
    return [
        replace(each, table=each.table[mask].reset_index(drop=True)) for each, mask in zip(sets, masks, strict=True)
    ]


def choose_in_history(history: History, where: str) -> History:
    """Keep the history of cells for which a condition holds in the last run with the cell.

    Raises
    ------
    UsageError
        If the condition is invalid.
    NothingToRun
        If the condition holds for no cell.
    """
    last = history.table.drop_duplicates("cell", keep="last")[list(COLUMNS)].to_dict("records")
    holds = chooser(where, last)
    kept = {row["cell"] for row in last if holds(row)}
    if not kept:
        raise none_left(f"the history's {len(last):,}", where)
    return replace(history, table=history.table[history.table["cell"].isin(kept)].reset_index(drop=True))
