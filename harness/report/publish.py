"""The published matrix: written as a few small files, and read next to a user's own cells."""

from __future__ import annotations

import json
import re
import shlex
import tarfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pandas as pd
from packaging.version import Version

from harness import __version__
from harness.analysis.cell_sets import Rejudge, merge_and_judge, rejudger
from harness.answers.cells import (
    COLUMNS,
    features_of,
    names_in,
    own_in,
    own_of,
    place_of_fault,
    split_variant,
    text_of_row,
)
from harness.answers.store import packed_answers
from harness.answers.table import known_releases
from harness.backends import BACKENDS, label_of, library_of
from harness.cases.discovery import load_cases
from harness.diagnostics import one_line
from harness.errors import NothingToRun
from harness.git import GitError, checkout_of, git
from harness.matrix.axes import backend_key, natural_key
from harness.matrix.marks import kind_of
from harness.matrix.ranges import consecutive, spell
from harness.model import Case, Status
from harness.model.cell import HostCompiler
from harness.published import (
    ANSWERS,
    ENVIRONMENT,
    MANIFEST,
    README,
    RECORDS,
    SCHEMA,
    Manifest,
    digests_of,
    is_published,
    read_manifest,
    stale_cases,
)
from harness.records import Conflict, Merged, Record, Results, weight
from harness.records.files import replace_files
from harness.records.merge import OTHERS, agreement_key, case_of, is_of, other_result
from harness.records.parquet import read_parquet, results_parquet
from harness.records.plan import Plan
from harness.report.inputs import read_results


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A published matrix.

    Parameters
    ----------
    manifest : Manifest
        Its manifest.
    merged : Merged
        Its records, with current verdicts.
    stale : tuple of str
        Cases whose program changed since: their cells are of an earlier version.
    """

    manifest: Manifest
    merged: Merged
    stale: tuple[str, ...]

    @property
    def warnings(self) -> list[str]:
        """Notes for the reader."""
        if not self.stale:
            return []
        return [f"published answers of {', '.join(self.stale)} are of an earlier version of the case"]


def read_publication(folder: Path, rejudge: Rejudge | None) -> Publication:
    """Read a published matrix.

    Raises
    ------
    RecordError
        If the matrix is damaged.
    """
    records, plans = read_parquet(folder / RECORDS)
    manifest = read_manifest(folder)
    if rejudge:
        records = list(map(rejudge, records))
    merged = Merged(records=tuple(records), plans=tuple(plans), missing=(), conflicts=())
    return Publication(manifest=manifest, merged=merged, stale=tuple(stale_cases(manifest.cases)))


def is_own(cell: Mapping[str, Any]) -> bool:
    """Return whether a record or a planned cell is the report author's own."""
    return bool(cell.get("environment") != ENVIRONMENT)


def own_part(table: pd.DataFrame) -> pd.DataFrame:
    """Return the report author's own cells, or all cells if there are no own ones."""
    own = table[table["environment"] != ENVIRONMENT]
    return own if len(own) else table


def of_own(merged: Merged) -> Merged | None:
    """Return the own cells of a set, or None without any."""
    records = tuple(record for record in merged.records if is_own(record))
    if not records and not merged.missing:
        return None
    return replace(merged, records=records, plans=tuple(plan for plan in merged.plans if is_own(plan)))


def side_by_side(own: Merged, published: Merged) -> Merged:
    """Merge own cells with published cells.

    If both have an answer and the answers differ, the own record lists the other one.

    A missing answer never hides an answer: for a cell that is unavailable in the own run, the published answer counts.
    """
    theirs = {record["cell"]: record for record in published.records}
    planned = {cell["cell"] for cell in own.missing}
    records: dict[str, Record] = {cell: record for cell, record in theirs.items() if cell not in planned}
    conflicts = list(own.conflicts)
    for record in own.records:
        other = theirs.get(record["cell"])
        if other is None or weight(record) >= weight(other):
            records[record["cell"]] = record
        if other is not None and weight(record) == weight(other) == 2 and agreement_key(record) != agreement_key(other):
            kept: Record = {**record, OTHERS: [*record.get(OTHERS, ()), other_result(other)]}
            records[record["cell"]] = kept
            conflicts.append(Conflict(cell=record["cell"], kept=kept, dropped=(other,)))
    return replace(
        own,
        records=tuple(records[cell] for cell in sorted(records)),
        plans=(*published.plans, *own.plans),
        conflicts=tuple(conflicts),
    )


_TEXT = """# The published matrix

Made by `cumatrix publish` on records of cumatrix {cumatrix}; the newest run is of {made}. {cells:,} cells of {cases} cases, {answered:,} of them answered by a compiler: {statuses}.
Every answer was compiled; none was written by hand. The compilers took {hours:,.1f} hours, one cell after another. {size} in all.

`cumatrix ask "bf16 wmma sm_75"` answers from it, `cumatrix report` shows it next to your own results, and pandas reads it: `pandas.read_parquet("results.parquet")`.

| file | what it has | bytes |
| --- | --- | --- |
| `results.parquet` | each cell's record: status, stage, diagnostics, reason, versions asked for and found, command, content key, seconds, resources of kernels | {parquet:,} |
| `answers.json.gz` | the same cells as `cumatrix ask` reads them, without pyarrow: place, kind, first message | {packed:,} |
| `manifest.json` | runs with their commands and machines, versions of what compiled, counts, and a digest of each case | |

Left out of records: logs, but where no diagnostic tells what happened (of these the first {log:,} characters), what the outcomes were read from (`.inputs.json`), and all but the first {key} digits of content keys. Left out as a whole: planned cells that never arrived, cells of a case
that was another program than it is in this version, programs without a case, and cells on a real GPU. `environment` is `published` in all of them.

## What was tried

| tool | cells | answered | versions | CUDA | targets |
| --- | --- | --- | --- | --- | --- |
{tools}

## What was not

{untried}
{coverage}
## The same again

<details><summary>The commands of all runs</summary>

{commands}
- and then `cumatrix publish RECORDS… --out reports/matrix`

</details>

To extend it: `cumatrix publish reports/matrix new.jsonl --out reports/matrix`. A later record of a cell takes the place of an earlier one, but an answer never gives way to the lack of one.
`cumatrix report reports/matrix --out html` is its page.
"""


_COVERAGE = """
## What is planned

[`plan.toml`](plan.toml) has the axes that are crossed, and why. A square is two neighbouring values of each of two axes: with all four places tried, a difference belongs to one axis or to both together; with some of them the axes are confounded.

{}

`cumatrix publish --next 5` prints the commands that compile what is missing, the most useful first.
"""


def readme(
    manifest: Mapping[str, Any], others: Mapping[str, Sequence[str]], log: int, seconds: float, coverage: str = ""
) -> str:
    """Return the text of the README.

    Parameters
    ----------
    manifest : Mapping
        The content of ``manifest.json``.
    others : Mapping
        Tried versions by header library, and by family of host compilers.
    log : int
        Kept characters of a log.
    seconds : float
        Time of the answered cells.
    coverage : str
        Coverage of the plan; empty without a plan.
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
        key=KEY,
        hours=seconds / 3600,
        tools="\n".join(_backend_row(backend, of) for backend, of in manifest["backends"].items()),
        untried="\n".join(_untried(manifest["backends"], others)) or "Every release that cumatrix knows was tried.",
        coverage=_COVERAGE.format(coverage) if coverage else "",
        commands="\n".join(f"- `{command}`" for command in _commands(manifest["runs"])),
    )


def _commands(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(one_line(str(run["command"]), 1000).replace("`", "'") for run in runs))


def _backend_row(backend: str, of: Mapping[str, Any]) -> str:
    columns = (", ".join(of[key]) for key in ("libraries", "toolkits", "targets"))
    return " | ".join((f"| {label_of(backend)}", f"{of['cells']:,}", f"{of['answered']:,}", *columns)) + " |"


def _untried(backends: Mapping[str, Mapping[str, Any]], versions: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each library, and for CUDA, with the known releases that have no cell."""
    tried: dict[str, set[str]] = {name: set(found) for name, found in versions.items()}
    for backend, of in backends.items():
        if library := library_of(backend):
            tried.setdefault(library, set()).update(of["libraries"])
        tried.setdefault("cuda", set()).update(of["toolkits"])
    lines = []
    for name, known in known_releases().items():
        left = [release for release in known if release not in tried.get(name, ())]
        if left:
            label = "CUDA" if name == "cuda" else name
            spans = ", ".join(map(spell, consecutive(left, sorted(known, key=Version))))
            lines.append(f"- {label}: {spans} ({len(left)} of {len(known)} releases)")
    return lines


LOG = 2000
"""Kept characters of a log, for cells without a diagnostic that explains the outcome."""

KEY = 12
"""Kept digits of a content key."""

_OF_A_MACHINE = ("--out", "-j", "--jobs", "--from", "--page", "--memory", "--trace")
"""Options that the published commands omit."""

_TOOLS = (
    "nvrtc",
    "nvcc",
    "ptxas",
    *dict.fromkeys(info.library.replace("-", "_") for info in BACKENDS.values() if info.library),
)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The written matrix.

    Parameters
    ----------
    out : Path
        The folder.
    cells, answered : int
        The number of cells, and of cells with a compiler's answer.
    sizes : Mapping[str, int]
        Bytes by file.
    stale : Mapping[str, int]
        The number of omitted cells by case. The case's program changed or the case is gone.
    notes : tuple of str
        Notes for the publisher.
    """

    out: Path
    cells: int
    answered: int
    sizes: Mapping[str, int]
    stale: Mapping[str, int]
    notes: tuple[str, ...]


def publish(
    paths: Sequence[Path], out: Path, cases: Path, *, coverage: Callable[[Sequence[Record]], str] | None = None
) -> Published:
    """Write ``results.parquet``, ``answers.json.gz``, ``manifest.json`` and ``README.md``: all files or none.

    The same results and cases give the same bytes: the date is that of the newest run.

    Parameters
    ----------
    paths : sequence of Path
        Files of records or Parquet, folders of them, and matrices published earlier.
    out : Path
        Folder of the matrix.
    cases : Path
        The cases. Results of an earlier program of a case are not published.
    coverage : callable, optional
        Returns the coverage of the plan, a table for the README.

    Raises
    ------
    RecordError
        If the results are damaged.
    NothingToRun
        If nothing is left to publish.
    """
    current = _current(paths, read_results(paths), cases)
    notes = list(current.notes)
    if current.others:
        notes.append(
            f"{current.others:,} cells of other projects, of programs without a case, or on a real device, are left out"
        )
    merged = merge_and_judge(replace(current.results, records=tuple(map(_slim, current.records))), rejudger(cases))
    if not merged.records:
        raise NothingToRun(f"no cell of the cases in {cases} is left to publish")
    made_of = {case: current.digests[case] for case in sorted(set(map(case_of, merged.records)))}
    files = _files(merged, current.cases, made_of, coverage(merged.records) if coverage else "")
    replace_files({out / name: data for name, data in files.items()})
    return Published(
        out=out,
        cells=len(merged.records),
        answered=sum(_answered(record) for record in merged.records),
        sizes={name: len(data) for name, data in files.items()},
        stale=dict(sorted(current.stale.items())),
        notes=(*current.results.warnings, *notes),
    )


@dataclass(frozen=True, kw_only=True)
class _Current:
    """Results, and their records that match the current cases.

    Parameters
    ----------
    results : Results
        All results.
    records : sequence of Record
        The records of the current cases.
    cases : sequence of Case
        The cases.
    digests : Mapping[str, str]
        The digests of the cases.
    stale : Counter
        The number of records by case whose program changed since.
    others : int
        The number of records of other projects, of programs, or of a real device.
    notes : sequence of str
        Notes for the publisher.
    """

    results: Results
    records: Sequence[Record]
    cases: Sequence[Case]
    digests: Mapping[str, str]
    stale: Counter[str]
    others: int
    notes: Sequence[str]


def _current(paths: Sequence[Path], results: Results, cases: Path) -> _Current:
    digests = digests_of(cases)
    made_of, notes = _made_of(paths, results, cases, digests)
    known = {case.name: case for case in load_cases(cases)}
    kept, stale, others = [], Counter[str](), 0
    for record in results.records:
        case = case_of(record)
        if (
            record.get("program")
            or (case in known and not is_of(record, known[case]))
            or record["device"].get("virtual") is False
        ):
            others += 1
        elif made_of.get(record["run"], digests).get(case) != digests.get(case) or case not in digests:
            stale[case] += 1
        else:
            kept.append(record)
    return _Current(
        results=results,
        records=kept,
        cases=tuple(known.values()),
        digests=digests,
        stale=stale,
        others=others,
        notes=notes,
    )


def current_records(paths: Sequence[Path], cases: Path) -> Sequence[Record]:
    """Return the records that `publish` would use, one per cell: those of the current cases.

    Raises
    ------
    RecordError
        If the results are damaged.
    """
    current = _current(paths, read_results(paths), cases)
    return merge_and_judge(replace(current.results, records=tuple(current.records)), None).records


def _made_of(
    paths: Sequence[Path], results: Results, cases: Path, now: Mapping[str, str]
) -> tuple[dict[str, Mapping[str, str]], list[str]]:
    """Return the digests of the cases at the time of each run, and notes.

    The digests are from the commit in the run's plan, or from the matrix that contains the run.
    """
    found: dict[str, Mapping[str, str]] = {}
    by_commit: dict[str, Mapping[str, str] | None] = {}
    unknown = []
    published = [path if path.is_dir() else path.parent for path in map(Path, paths)]
    for folder in filter(is_published, published):
        manifest = read_manifest(folder)
        found |= {str(run["run"]): manifest.cases for run in manifest.value["runs"]}
    for plan in results.plans:
        commit = plan.get("commit", "")
        if plan["run"] in found:
            continue
        if commit not in by_commit:
            by_commit[commit] = _digests_at(commit, cases) if commit else None
        digests = by_commit[commit]
        found[plan["run"]] = now if digests is None else digests
        if digests is None:
            unknown.append(plan["run"])
    runs = "a run names" if len(unknown) == 1 else f"{len(unknown)} runs name"
    notes = [f"{runs} no commit that is known here: the cases are taken to be those in {cases}"] if unknown else []
    return found, notes


def _digests_at(commit: str, cases: Path) -> Mapping[str, str] | None:
    """Return the digests of the cases at a commit of their repository, or None if git does not have the commit."""
    checkout = checkout_of(cases.resolve())
    if checkout is None:
        return None
    place = cases.resolve().relative_to(checkout.root)
    with TemporaryDirectory() as folder:
        archive = Path(folder, "cases.tar")
        try:
            git("archive", "--format=tar", "-o", archive, commit, "--", place, folder=checkout.root)
        except GitError:
            return None
        with tarfile.open(archive) as file:
            file.extractall(Path(folder, "then"), filter="data")
        return digests_of(Path(folder, "then") / place)


def _slim(record: Record) -> Record:
    """Return a record with a short content key, because hashes do not compress, and without its log.

    The log stays if nothing else explains the outcome.
    """
    tells = record["diagnostics"] or record["status"] in ("built", "unsupported", "unavailable")
    log, key = "" if tells else record["log"][:LOG], record["fingerprint"][:KEY]
    slim: Record = {**record, "log": log, "fingerprint": key, "cached": False, "environment": ENVIRONMENT}
    return cast("Record", _without_home(slim))


_HOME = re.compile(r"(?:/[\w.+@~-]+){1,8}?/\.local/share/cumatrix/")


def _without_home(value: Any) -> Any:
    """Return a record's value without the compiling machine's folder, which a library's message may contain."""
    if isinstance(value, str):
        return _HOME.sub("$CUMATRIX_HOME/", value) if "/cumatrix/" in value else value
    if isinstance(value, Mapping):
        return {key: _without_home(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without_home(each) for each in value)
    return value


def _files(merged: Merged, cases: Collection[Case], digests: Mapping[str, str], coverage: str) -> dict[str, bytes]:
    arrived: dict[str, set[str]] = {}
    for record in merged.records:
        arrived.setdefault(record["run"], set()).add(record["cell"])
    # A cell that another run answered later stays planned in both.
    there = {record["cell"] for record in merged.records}
    plans = [
        {
            **plan,
            "environment": ENVIRONMENT,
            "argv": _words(plan["argv"]),
            "cells": [cell for cell in plan["cells"] if cell["cell"] in there],
        }
        for plan in merged.plans
        if plan["run"] in arrived
    ]
    runs = {plan["run"]: plan["started"] for plan in plans}
    rows = [_row(record) for record in merged.records]
    facts: list[tuple[str, str, str, Sequence[str], Sequence[str], Any, str]]
    facts = [(record["case"], record["title"], record["topic"], record["features"], record["links"], record["expected"], place_of_fault(record["backend"], record["library"], record["toolkit"])) for record in merged.records]  # fmt: skip
    # Questions may also name untried cases.
    facts += [(case.name, case.title, case.topic, list(case.features), list(case.links), None, "") for case in cases]
    parquet = results_parquet(merged.records, plans, small=True)
    texts = {case.name: [path.read_text("utf-8", "replace") for path in case.sources.values()] for case in cases}
    answers = packed_answers(rows, features_of(facts, names_in(texts)), runs, own_in(merged.records))
    sizes = {RECORDS: len(parquet), ANSWERS: len(answers)}
    seconds = sum(record["seconds"] or 0 for record in merged.records if _answered(record))
    manifest = {**_manifest(merged.records, plans, digests), "bytes": sizes}
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    return {
        RECORDS: parquet,
        ANSWERS: answers,
        MANIFEST: f"{text}\n".encode(),
        README: readme(manifest, _extra_versions(merged.records), LOG, seconds, coverage).encode(),
    }


def _extra_versions(records: Sequence[Record]) -> dict[str, list[str]]:
    """Return versions with a compiler's answer by header library, and by family of host compilers."""
    found: dict[str, list[str]] = {}
    answered = [record for record in records if _answered(record)]
    for variant in {record["variant"] for record in answered}:
        _, name, version = split_variant(variant)
        if name:
            found.setdefault(name, []).append(version)
    # The compiler's own version, whether a compiler was requested or not.
    for compilers in {own_of(record["backend"], "", record["toolchain"]) for record in answered}:
        for name, version in HostCompiler(version=compilers).versions.items():
            found.setdefault(name, []).append(version if name == "glibc" else version.partition(".")[0])
    return found


def _row(record: Record) -> tuple[str, ...]:
    first = record["diagnostics"][0]["message"] if record["diagnostics"] else ""
    message = text_of_row(record["status"], first, record["reason"], record["notes"])
    of: Mapping[str, Any] = record
    place = (of.get(key, "") for key in COLUMNS[:-3])
    return (*place, kind_of(record).key, record["status"], message)


def _manifest(records: Sequence[Record], plans: Sequence[Plan], digests: Mapping[str, str]) -> dict[str, Any]:
    by_backend: dict[str, dict[str, Any]] = {}
    for backend in sorted({record["backend"] for record in records}, key=backend_key):
        own = [record for record in records if record["backend"] == backend]
        by_backend[backend] = {
            "cells": len(own),
            "answered": sum(_answered(record) for record in own),
            "libraries": _sorted(record["library"] for record in own if _answered(record)),
            "toolkits": _sorted(record["toolkit"] for record in own if _answered(record)),
            "targets": _sorted(record["target"] for record in own if _answered(record)),
        }
    observed = {
        name: _sorted(str(version) for record in records if (version := record["toolchain"]["observed"].get(name)))
        for name in _TOOLS
    }
    of_run = Counter(record["run"] for record in records)
    return {
        "schema": SCHEMA,
        "made": max((plan["started"] for plan in plans), default="")[:10],
        "cumatrix": __version__,
        "cells": len(records),
        "answered": sum(_answered(record) for record in records),
        "statuses": dict(sorted(Counter(record["status"] for record in records).items())),
        "backends": by_backend,
        "observed": {name: found for name, found in observed.items() if found},
        "runs": [_run(plan, of_run[plan["run"]]) for plan in plans],
        "cases": dict(digests),
    }


def _run(plan: Plan, cells: int) -> dict[str, Any]:
    kept: dict[str, Any] = {key: plan[key] for key in ("run", "started", "commit", "machine") if key in plan}
    command = shlex.join(["cumatrix", *plan["argv"]])
    return {**kept, "command": command, "cells": cells}


def _words(argv: Iterable[Any]) -> list[str]:
    """Return a command without options that depend on the machine: its output path, and its number of parallel cells."""
    kept: list[str] = []
    words = iter(map(str, argv))
    for word in words:
        if word in _OF_A_MACHINE:
            next(words, None)
        elif not word.startswith(tuple(f"{name}=" for name in _OF_A_MACHINE)):
            kept.append(word)
    return kept


def _answered(record: Record) -> bool:
    return Status(record["status"]).answered


def _sorted(values: Iterable[str]) -> list[str]:
    return sorted(set(values) - {""}, key=natural_key)
