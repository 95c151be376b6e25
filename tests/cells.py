"""Handmade cells, run by the real engine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment, look
from harness.engine.executor import Run
from harness.engine.prepared import Result
from harness.model import Case, Cell, Expectation, OptionRule, Outcome, Target, Toolchain, ToolkitRef, Variant
from harness.model.condition import Condition
from harness.protocol.messages import CellJob, Exit, Limits, Order
from harness.records import Record
from harness.toolkits import ToolkitStore

LANGUAGES = {name: info.languages[-1] for name, info in BACKENDS.items()}


def make_case(
    source: Path,
    name: str = "",
    *,
    entries: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    definitions: Mapping[str, Any] | None = None,
    expectations: Sequence[Expectation] = (),
) -> Case:
    """Return a case with one program."""
    language = "cuda" if source.suffix != ".py" else "cupy" if "import cupy" in source.read_text() else "python"
    return Case(
        name=name or f"made/{source.parent.name}",
        path=source,
        title=name or source.parent.name,
        sources={language: source},
        entries={language: dict(entries)} if entries else {},
        variants=(Variant(labels={}, definitions=dict(definitions or {})),),
        options=(OptionRule(when=Condition.always(), values=dict(options or {})),),
        expectations=tuple(expectations),
    )


def make_cell(
    case: Case, backend: str = "nvrtc", release: str = "12.4", target: str = "sm_80", *,
    environment: Environment | None = None, headers: str = "",
) -> Cell:  # fmt: skip
    """Return a cell of a case's only variant."""
    found = environment.version_of(*BACKENDS[backend].distributions) if environment else None
    toolchain = Toolchain(
        backend=backend,
        library=found[1] if found else "",
        toolkit=ToolkitRef(release=release, headers=headers or release),
        environment=environment.name if environment else "local",
        packages=environment.packages if environment else {},
    )
    return Cell(case=case, variant=case.variants[0], toolchain=toolchain, target=Target.parse(target))


def make_order(source: Path, target: str, scratch: Path, entries: Iterable[str] = (), **job: Any) -> Order:
    """Return the setup that a fork server gets for a program."""
    asked = CellJob(
        cell="made by hand", source=source, entries=dict(entries if isinstance(entries, Mapping) else dict.fromkeys(entries, "")),
        definitions={}, target=target, options=job.pop("options", {}), include=job.pop("include", []),
    )  # fmt: skip
    return Order(asked, scratch, Limits(seconds=800))


def make_exit(**fields: Any) -> Exit:
    """Return the end of a child that exited normally."""
    usual = {
        "exit": 0,
        "signal": None,
        "timed_out": False,
        "wall": 1.0,
        "leftovers": 0,
        "output": "",
        "output_total": 0,
        "peak_bytes": 0,
    }
    return Exit(**{**usual, "reads": None, **fields})


class Place:
    """An environment, with a run that keeps its fork servers between the tests of a module."""

    def __init__(self, python: str | None, store: ToolkitStore, *, seconds: float = 800.0) -> None:
        self.environment = look(python)
        self.store = store
        self.context = RunContext(self.environment, store, None, RunRequest(limits=Limits(seconds=seconds)))
        self._run: Run | None = None

    def cell(self, case: Case, backend: str, release: str, target: str) -> Cell:
        """Return a cell of this environment."""
        return make_cell(case, backend, release, target, environment=self.environment)

    def result(self, cell: Cell) -> Result:
        """Return the result of a cell."""
        self._run = self._run or Run(self.context, keep=3)
        return self._run.result(cell)

    def close(self) -> None:
        """End its fork servers until the next cell."""
        if self._run:
            self._run.close()
            self._run = None

    def run(
        self, backend: str, release: str, source: str | Path, target: str, *,
        entries: Mapping[str, str] | None = None, options: Mapping[str, Any] | None = None,
    ) -> Outcome:  # fmt: skip
        """Return the outcome of a program, given as text or as a file."""
        folder = Path(tempfile.mkdtemp(prefix="cumatrix-test-"))
        try:
            if isinstance(source, str):
                path = folder / ("kernel.py" if LANGUAGES[backend] == "python" else "kernel.cu")
                path.write_text(source)
                source = path
            case = make_case(source, "made/program", entries=entries, options=options)
            return self.result(self.cell(case, backend, release, target)).outcome
        finally:
            shutil.rmtree(folder)


def run_all(cells: Sequence[Cell], context: RunContext, jobs: int = 1) -> dict[str, Record]:
    """Return records of cells by id, in the order of the cells."""
    records: dict[str, Record] = {}

    with Run(context, jobs) as run:
        for result in run.results(cells):
            assert result.cell.id not in records, "a cell finished twice"
            records[result.cell.id] = result.record("run")
    return {cell.id: records[cell.id] for cell in cells}


def lasting(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a record that is equal for equal outcomes.

    The result omits the fingerprint. If another test creates an environment at the same time, uv links the files that a cell reads. A new
    link looks like a change until the content is hashed, and the cell then has no fingerprint.
    """
    passing = ("seconds", "cached", "run", "peak_bytes", "shared_steps", "fingerprint", "taken_from")
    return {key: value for key, value in record.items() if key not in passing}


def write_case(
    root: Path, name: str, source: str, table: str = "", *, file: str = "kernel.cu", language: str = ""
) -> Path:
    """Write a case as users do; return its ``case.toml``."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / file).write_text(source)
    language = language or ("python" if file.endswith(".py") else "cuda")
    path = folder / "case.toml"
    path.write_text(f'title = "{name}"\n\n[source]\n{language} = "{file}"\n\n{table}')
    return path


REJECTED = '[[expect]]\nstatus = "rejected"\ndiagnostic = "{}"\nreason = "it is wrong"\n'


def write_library(root: Path) -> None:
    """Write a small library of cases: built, rejected, with a known fault, slow, by target and by variant."""
    write_case(root, "plain/one", "__global__ void one(int *a) { *a = 1; }")
    write_case(
        root, "plain/two", "__global__ void two(float *a) { a[threadIdx.x] *= N; }", "[parameters]\nN = [2, 3]\n"
    )
    write_case(root, "wrong/name", "__global__ void name(int *a) { *a = missing; }", REJECTED.format("is undefined"))
    write_case(root, "wrong/known", "__global__ void known(int *a) { throw 1; }",
               REJECTED.format("exception handling") + "xfail = true\n")  # fmt: skip
    new = '[[expect]]\nwhen = \'cc < "8.0"\'\nstatus = "rejected"\nreason = "no such type"\n'
    write_case(
        root, "by-target/tf32",
        "#include <mma.h>\n__global__ void tf32() { nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> a; }", new,
    )  # fmt: skip
    write_case(root, "plain/header", '#include "own.h"\n__global__ void header(int *a) { *a = OWN; }')
    (root / "plain" / "header" / "own.h").write_text("#define OWN 7\n")
