"""History: a folder with one Parquet file per run (``run=ID/cells.parquet``), which pandas reads as one table.

``docs/analysis.md`` has the format. Each file is written under a temporary name and then renamed: readers never see a
partial file.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis.frame import COLUMNS, NUMBERS, answered, make_frame
from harness.errors import UsageError
from harness.matrix.axes import AXIS, PLACE
from harness.matrix.marks import KINDS
from harness.process_locks import exclusive_folder
from harness.records import Record
from harness.records.files import replace_files
from harness.records.record import RecordError
from harness.records.schema import check_kernels, check_value

SCHEMA = 1
FILE = "cells.parquet"

_KINDS = {"Int64": pa.int64(), "float64": pa.float64(), "boolean": pa.bool_()}
_RUN = ("started", "commit", "machine")
_SCHEMA = pa.schema(
    [
        *((name, _KINDS[NUMBERS[name]] if name in NUMBERS else pa.string()) for name in COLUMNS if name != "run"),
        *((name, pa.string()) for name in _RUN),
    ],
    metadata={"cumatrix.history": str(SCHEMA)},
)


class HistoryError(UsageError):
    """A history that cannot be read or written. The message is one plain sentence."""


@dataclass(frozen=True, kw_only=True)
class History:
    """The content of a history.

    Parameters
    ----------
    table : DataFrame
        One row per cell and run, by start of the run and then in the order of the matrix: the columns of
        `harness.analysis.frame.make_frame`, and ``started``, ``commit`` and ``machine`` (JSON) of the run.
    warnings : tuple of str
        Skipped files, with the reason.
    """

    table: pd.DataFrame
    warnings: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs, oldest first."""
        return tuple(self.table["run"].drop_duplicates())

    def cells_of(self, run: str) -> pd.DataFrame:
        """Return the cells of one run, for `harness.analysis.diff.changes`.

        Parameters
        ----------
        run : str
            A name, its prefix, ``latest``, or ``previous``: the run before the latest one in its environment.
        """
        return self.table[self.table["run"] == self.find(run)].reset_index(drop=True)

    def find(self, run: str) -> str:
        """Return the full name of a run."""
        runs = self.runs
        if run in ("latest", "previous") and runs:
            # The previous run is one of the same environment: the runs of several environments alternate.
            environments = self.table.drop_duplicates("run").set_index("run")["environment"]
            same = [name for name in runs if environments[name] == environments[runs[-1]]]
            if run == "latest" or len(same) > 1:
                return same[-1 if run == "latest" else -2]
        found = [name for name in runs if name == run] or [name for name in runs if name.startswith(run)]
        if len(found) != 1:
            raise HistoryError(
                f"{len(found) or 'no'} run{'s' if len(found) > 1 else ''} of the history called {run!r}; there are {', '.join(runs[-5:]) or 'none'}"
            )
        return found[0]


def append(
    folder: Path, records: Iterable[Record], plans: Iterable[Mapping[str, Any]], *, commit: str = ""
) -> list[str]:
    """Add runs to a history and return their names.

    A run replaces an existing one, unless the history has more of its cells.

    Parameters
    ----------
    folder : Path
        The folder of the history. It is created if missing.
    records : iterable of dict
        Records of one or several runs.
    plans : iterable of dict
        The plans of the runs: start, machine, and planned cells without a record.
    commit : str, optional
        The tested commit, for runs whose plan lacks it.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    with exclusive_folder(
        Path(folder),
        lambda who: HistoryError(f"{folder}: another history add is writing to it{who}: wait until that one has ended"),
    ):
        return _append(Path(folder), records, plans, commit)


def _append(folder: Path, records: Iterable[Record], plans: Iterable[Mapping[str, Any]], commit: str) -> list[str]:
    by_run: dict[str, list[Record]] = {}
    for record in records:
        by_run.setdefault(record["run"], []).append(record)
    known = {plan["run"]: plan for plan in plans}
    contents: dict[Path, bytes] = {}
    for run in dict.fromkeys([*known, *by_run]):
        path = folder / f"run={quote(run, safe='')}" / FILE
        found, plan = by_run.get(run, []), known.get(run, {})
        cells = {item["cell"] for item in (*found, *plan.get("cells", ()))}
        # If some of a run's cells were run again since, a file of records has only the other cells.
        if cells and not cells < _cells(path):
            contents[path] = _file(found, plan, commit)
    replace_files(contents)
    return [unquote(path.parent.name.removeprefix("run=")) for path in contents]


def _cells(path: Path) -> set[str]:
    """Return the cells of a run in a history, or an empty set if the file is missing or unreadable."""
    try:
        return set(pq.read_table(path, columns=["cell"], partitioning=None)["cell"].to_pylist())
    except (pa.ArrowException, OSError, KeyError):
        return set()


def _file(records: Sequence[Record], plan: Mapping[str, Any], commit: str) -> bytes:
    arrived = {record["cell"] for record in records}
    table = make_frame(records, [cell for cell in plan.get("cells", ()) if cell["cell"] not in arrived])
    facts = {
        "started": plan.get("started", ""),
        "commit": plan.get("commit") or commit,
        "machine": json.dumps(plan.get("machine", {}), sort_keys=True),
    }
    table = table.drop(columns="run").assign(**facts)
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(table, schema=_SCHEMA, preserve_index=False), buffer, compression="zstd")
    return buffer.getvalue()


def read_history(folder: Path, columns: Sequence[str] | None = None) -> History:
    """Read a history while others may write to it.

    Parameters
    ----------
    folder : Path
        The history.
    columns : sequence of str, optional
        Columns to read; by default, all. ``cell``, ``run`` and ``started`` are always included.
    """
    if not Path(folder).is_dir():
        raise HistoryError(
            f"{folder}: there is no history; make one with cumatrix history add RESULTS --history {folder}"
        )
    wanted = list(dict.fromkeys(["cell", "started", *(columns or _SCHEMA.names)]))
    warnings: list[str] = []
    tables = list(_tables(Path(folder), [name for name in wanted if name != "run"], warnings))
    if not tables:
        empty = make_frame([]).assign(**dict.fromkeys(_RUN, ""))
        return History(table=empty, warnings=tuple(warnings))
    table = pa.concat_tables(tables, promote_options="default").to_pandas()
    for name, kind in NUMBERS.items():
        if name in table:
            table[name] = table[name].astype(kind)
    # A damaged file may contain several starts of one run. The first start counts.
    order = table[["started", "run"]].drop_duplicates().sort_values(["started", "run"], key=_when)["run"].unique()
    table["run"] = pd.Categorical(table["run"], categories=list(order), ordered=True)
    table = table.sort_values("run", kind="stable", ignore_index=True)
    table["run"] = table["run"].astype(object)
    return History(table=table, warnings=tuple(warnings))


def _when(column: pd.Series) -> pd.Series:
    return (
        pd.to_datetime(column, utc=True, errors="coerce", format="ISO8601").fillna(pd.Timestamp(0, tz="UTC"))
        if column.name == "started"
        else column
    )


def _tables(folder: Path, columns: Sequence[str], warnings: list[str]) -> Iterator[pa.Table]:
    for path in sorted(folder.glob(f"run=*/{FILE}")):
        try:
            file = pq.ParquetFile(path)
            version = (file.schema_arrow.metadata or {}).get(b"cumatrix.history", b"")
            if not version.isdigit():
                warnings.append(f"{path}: not written by cumatrix; skipped")
                continue
            if int(version) > SCHEMA:
                raise HistoryError(
                    f"{path} has version {int(version)} and this cumatrix reads versions up to {SCHEMA}: update cumatrix"
                )
            table = _as_written(file.read(columns=list(columns)), columns)
        except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError, RecordError) as error:
            warnings.append(f"{path}: cannot be read, skipped: {(str(error).splitlines() or ['damaged'])[0]}")
            continue
        run = unquote(path.parent.name.removeprefix("run="))
        yield table.replace_schema_metadata(None).append_column("run", pa.array([run] * len(table), pa.string()))


def _as_written(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return a table with these columns in cumatrix's types. A column that another version lacks is empty.

    Raises
    ------
    ArrowException, ValueError
        If a column is missing that every version has, or contains a value that cumatrix does not write.
    """
    found = []
    for name in columns:
        kind = _SCHEMA.field(name).type
        if name in _ALWAYS and name not in table.column_names:
            raise ValueError(f"there is no column {name}")
        column = table.column(name) if name in table.column_names else pa.nulls(len(table), kind)
        if pa.types.is_string(kind) and not _is_text(column.type):
            raise ValueError(f"the column {name} contains {column.type}, not text")
        column = column.cast(kind)
        if pa.types.is_string(kind):
            column = column.fill_null("")
        if name in _CHECKS:
            for value in column.unique().to_pylist():
                _CHECKS[name](name, value)
        found.append(column)
    return pa.table(found, names=list(columns))


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))


def _known_kind(name: str, value: str) -> None:
    if value not in KINDS:
        raise ValueError(f"{name}: {value!r} is not a kind of cell")


def _list_of_tables(_name: str, value: str) -> None:
    check_kernels(json.loads(value or "[]"))


_ALWAYS = frozenset(("cell", "started", *(key for key in PLACE if not AXIS[key].optional), "mark", "outcome"))
_CHECKS: Mapping[str, Callable[[str, str], None]] = {
    **dict.fromkeys(("cell", "case", "backend", "target", "toolkit"), check_value),
    "mark": _known_kind,
    "kernels": _list_of_tables,
}
"""Checks of a column's distinct values."""


_GOOD = frozenset(key for key, kind in KINDS.items() if kind.as_expected)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One cell in one run. `changed` is True if the cell differs from the previous run that has it."""

    run: str
    started: str
    commit: str
    mark: str
    outcome: str
    verdict: str
    message: str
    cached: bool | None
    seconds: float | None
    registers: int | None
    changed: bool


@dataclass(frozen=True, kw_only=True)
class Break:
    """A cell that is not as expected in the last run with a result for it.

    Parameters
    ----------
    cell : str
        Its id.
    last_good : str or None
        The last run in which the cell was as expected, or None.
    first_bad : str
        The first run after that in which the cell was not as expected.
    since : str
        The start of `first_bad`.
    runs : int
        The number of runs since then with a result for the cell.
    mark : str
        Key of its current kind.
    """

    cell: str
    last_good: str | None
    first_bad: str
    since: str
    runs: int
    mark: str


@dataclass(frozen=True, kw_only=True)
class Unsteady:
    """A cell whose outcome changes repeatedly.

    Parameters
    ----------
    cell : str
        Its id.
    flaky : bool
        Whether the same content key (program, options, toolkit, library) has different outcomes. Then only chance or
        the machine differs.
    outcomes : tuple of str
        Outcomes, in the order in which they first occurred.
    switches : int
        The number of changes from one run to the next.
    """

    cell: str
    flaky: bool
    outcomes: tuple[str, ...]
    switches: int


def cell_history(history: History, cell: str) -> tuple[Event, ...]:
    """Return every run of a cell, oldest first."""
    table = history.table[history.table["cell"] == cell]
    facts = table["outcome"] + "\n" + table["verdict"] + "\n" + table["diagnostics"]
    rows = table.assign(changed=(facts != facts.shift()) & (table["cell"] == table["cell"].shift()))
    names = list(Event.__dataclass_fields__)
    plain = rows[names].astype(object).where(rows[names].notna(), None)
    return tuple(Event(**row) for row in plain.to_dict("records"))


def breaks(history: History) -> tuple[Break, ...]:
    """Return the cells that are currently not as expected, the latest breaks first."""
    table = _telling(history)
    bad = ~table["mark"].isin(_GOOD)
    last = bad.groupby(table["cell"]).transform("last")
    part = table[last].assign(bad=bad[last])
    if part.empty:
        return ()
    # The ongoing series of failures: everything after the last good run.
    after = (~part["bad"])[::-1].groupby(part["cell"][::-1]).cumsum()[::-1] == 0
    good = part[~part["bad"]].groupby("cell")["run"].last()
    since = part[after].groupby("cell").agg(
        first_bad=("run", "first"), since=("started", "first"), runs=("run", "size"), mark=("mark", "last")
    )  # fmt: skip
    places = {run: place for place, run in enumerate(history.runs)}
    found = [
        Break(
            cell=str(row.Index),
            last_good=good.get(row.Index),
            first_bad=row.first_bad,
            since=row.since,
            runs=int(row.runs),
            mark=row.mark,
        )
        for row in since.itertuples()
    ]
    return tuple(sorted(found, key=lambda item: (-places[item.first_bad], item.cell)))


def unsteady(history: History, *, switches: int = 2) -> tuple[Unsteady, ...]:
    """Return flaky cells, and then cells that changed at least `switches` times."""
    table = _telling(history)
    same = table[table["fingerprint"] != ""]
    kinds = same.groupby(["cell", "fingerprint"], sort=False)["outcome"].nunique()
    flaky = set(kinds[kinds > 1].index.get_level_values("cell"))
    changed = (table["outcome"] != table.groupby("cell")["outcome"].shift()) & table["cell"].duplicated()
    count = changed.groupby(table["cell"]).sum()
    names = sorted(flaky | set(count[count >= switches].index))
    part = table[table["cell"].isin(names)]
    outcomes = part.groupby("cell")["outcome"].unique() if names else {}
    found = [
        Unsteady(cell=cell, flaky=cell in flaky, outcomes=tuple(outcomes[cell]), switches=int(count[cell]))
        for cell in names
    ]
    return tuple(sorted(found, key=lambda item: (not item.flaky, -item.switches, item.cell)))


def trend(history: History) -> pd.DataFrame:
    """Return a frame with a row per environment and run.

    Its columns are ``cells``, ``good``, ``bad``, ``built``, ``missing``, and the median and the sum of ``seconds``.
    """
    table = history.table
    facts = table.assign(
        good=table["mark"].isin(_GOOD),
        bad=~table["mark"].isin(_GOOD),
        built=table["outcome"] == "built",
        missing=table["outcome"] == "missing",
    )
    groups = facts.groupby(["environment", "run"], sort=False)
    sums: dict[str, Any] = {name: (name, "sum") for name in ("good", "bad", "built", "missing")}
    found = groups.agg(
        started=("started", "first"), commit=("commit", "first"), cells=("cell", "size"), **sums,
        seconds=("seconds", "sum"), median=("seconds", "median"),
    ).reset_index()  # fmt: skip
    places = {run: place for place, run in enumerate(history.runs)}
    return found.sort_values(
        ["environment", "run"],
        key=lambda column: column.map(places) if column.name == "run" else column,
        ignore_index=True,
    )


def _telling(history: History) -> pd.DataFrame:
    """Return the cells with a result in a run: a cell that is unavailable in one run did not break."""
    table = history.table
    return table[answered(table)]
