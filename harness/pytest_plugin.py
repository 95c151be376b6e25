"""pytest collects cases: every ``case.toml`` gives one item a cell.

Works with ``-n``, ``-k``, ``-m``, ``--lf`` and ``--junitxml``. An unexpected success of a known fault fails, as
strict xfail does. Records are written as by ``cumatrix run``, also from several workers of pytest-xdist. Cases that the
library has compiled before are answered from the cache. Where cells were chosen and no compiler answered any, pytest ends as it
does without tests, with 5.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cases import load_case
from harness.diagnostics import one_line
from harness.engine.context import RunContext
from harness.engine.runner import Runner
from harness.engine.session import Request, axes_of, cells_of, context_for, record_of
from harness.engine.unanswered import asked_of, unanswered, without_answer
from harness.errors import CumatrixError, NothingToRun
from harness.model import Case, Cell, Status, Verdict
from harness.records import Record, RecordWriter, at_stage, make_plan, this_commit

_FORK_SERVERS = 4
_KEY = pytest.StashKey["_Session"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cumatrix", "cumatrix: what CUDA code compiles where")
    add = group.addoption
    add("--cumatrix-backend", metavar="B,…", help="backends, as in cumatrix run; also CUMATRIX_BACKEND")
    add("--cumatrix-toolkit", metavar="V,…", help="CUDA releases; also CUMATRIX_TOOLKIT")
    add("--cumatrix-target", metavar="T,…", help="architectures; also CUMATRIX_TARGET")
    add("--cumatrix-python", metavar="PATH", help="interpreter of the environment under test; also CUMATRIX_PYTHON")
    add("--cumatrix-device", metavar="D", help="CUDA devices: auto, none, or numbers; also CUMATRIX_DEVICE")
    add("--cumatrix-out", metavar="FILE", help="file of records (default: reports/ENVIRONMENT.jsonl)")
    add("--cumatrix-fresh", action="store_true", help="forget what earlier runs left in the file of records")
    add("--cumatrix-no-cache", action="store_true", help="compile everything")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cumatrix: a cell of cumatrix's matrix")
    config.stash[_KEY] = _Session(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(_KEY, None)
    if session:
        session.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name == "case.toml":
        return CaseFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_finish(session: pytest.Session) -> None:
    ours = session.config.stash[_KEY]
    try:
        if ours.problem:
            raise ours.problem
        ours.begin([item.cell for item in session.items if isinstance(item, CellItem)])
    except CumatrixError as error:
        if not ours.worker:
            raise pytest.UsageError(str(error)) from None
        ours.problem = error  # nobody listens to how a worker ends: its cells say it


def pytest_sessionfinish(session: pytest.Session) -> None:
    ours = session.config.stash[_KEY]
    ours.close()  # not later: pytest-xdist ends its workers once they have said that they are done
    if session.exitstatus == pytest.ExitCode.OK and without_answer(ours.told):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for sentence in config.stash[_KEY].sentences():
        terminalreporter.write_line(f"cumatrix: {one_line(sentence, 500)}", yellow=True)


class _Session:
    """What all items of one pytest process share; made when the first case is collected."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        # The workers of one run are one run: xdist gives them all the same name of it.
        self.worker = getattr(config, "workerinput", None)
        self.run = (self.worker["testrunuid"] if self.worker else uuid.uuid4().hex)[:12]
        self._context: RunContext | None = None
        self._runner: Runner | None = None
        self._writer: RecordWriter | None = None
        self._closed = False
        self.problem: CumatrixError | None = None
        self.told: list[dict[str, Any]] = []
        config.pluginmanager.register(self, "cumatrix-session")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what was told of a cell, here or in a worker of pytest-xdist."""
        told = dict(report.user_properties)
        if report.when == "call" and "cell" in told:
            self.told.append(told)

    def sentences(self) -> list[str]:
        """What was asked for by name and no compiler answered."""
        if not self.told:
            return []
        silence = without_answer(self.told)
        if silence:
            return [silence]
        return unanswered(asked_of(self.request, self.context.environment, self.context.devices), self.told)

    @property
    def request(self) -> Request:
        from os import environ

        def value(name: str) -> Any:
            return self.config.getoption(f"--cumatrix-{name}") or environ.get(f"CUMATRIX_{name.upper()}")

        return Request(
            backends=value("backend"),
            toolkits=value("toolkit"),
            targets=value("target"),
            python=value("python"),
            device=value("device") or "auto",
            environment=environ.get("CUMATRIX_ENVIRONMENT"),
            require=tuple(environ.get("CUMATRIX_REQUIRE", "").split()),
            cache=not self.config.getoption("--cumatrix-no-cache"),
        )

    @property
    def context(self) -> RunContext:
        if self._context is None:
            self._context = context_for(self.request)
        return self._context

    @property
    def out(self) -> Path:
        named = self.config.getoption("--cumatrix-out")
        return Path(named) if named else self.config.rootpath / "reports" / f"{self.context.environment.name}.jsonl"

    def cells(self, case: Case) -> list[Cell]:
        """Cells of a case; none, and a `problem`, where nothing can be run as it was asked for."""
        try:
            axes_of(self.request, self.context.environment, self.context.devices)
        except CumatrixError as error:
            if self.worker:
                raise
            self.problem = error
            return []
        return cells_of(self.request, self.context.environment, [case], self.context.devices)

    def begin(self, cells: list[Cell]) -> None:
        """Open the file of records, which the workers of one run share."""
        if not cells or self.config.getoption("--collect-only"):
            return
        plan = make_plan(cells, run=self.run, environment=self.context.environment.name, commit=this_commit())
        self._writer = RecordWriter(self.out, plan, fresh=self.config.getoption("--cumatrix-fresh")).__enter__()

    def perform(self, cell: Cell) -> Record:
        """Run one cell and write its record."""
        if self.problem:
            raise self.problem
        if self._runner is None:
            self._runner = Runner(self.context, keep=_FORK_SERVERS)
        outcome, cached, fingerprint = self._runner.run(cell)
        record = record_of(cell, outcome, cached, fingerprint, self.run)
        if self._writer:
            self._writer.append(record)
        return record

    def close(self) -> None:
        if self._runner:
            self._runner.close()
            self._runner = None
        if self._context and not self._closed:
            self._context.close()
            self._closed = True
        if self._writer:
            self._writer.__exit__(None, None, None)
            self._writer = None


class CaseFile(pytest.File):
    """A ``case.toml``."""

    def collect(self) -> Iterator[CellItem]:
        ours = self.config.stash[_KEY]
        try:
            case = load_case(self.path, self.path.parent.parent.parent)
            cells = ours.cells(case)
        except NothingToRun:
            return
        except CumatrixError as error:
            raise self.CollectError(str(error)) from None
        for cell in cells:
            yield CellItem.from_parent(self, name=cell.id.removeprefix(case.name).strip(), cell=cell)


class CellItem(pytest.Item):
    """One cell."""

    def __init__(self, *, cell: Cell, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.cell = cell
        self.add_marker("cumatrix")
        self.extra_keyword_matches.add(cell.id)  # so that -k takes a case's name with its topic
        # Cells of one toolchain share a worker process: pytest -n auto --dist loadgroup keeps them together.
        if self.config.pluginmanager.hasplugin("xdist"):
            self.add_marker(pytest.mark.xdist_group(cell.toolchain.name))

    def runtest(self) -> None:
        record = self.config.stash[_KEY].perform(self.cell)
        for key in (
            "cell",
            "backend",
            "library",
            "toolkit",
            "target",
            "status",
            "stage",
            "verdict",
            "fingerprint",
            "reason",
        ):
            self.user_properties.append((key, str(record[key] or "")))
        said = record["reason"] or next((item["message"] for item in record["diagnostics"]), "")
        match Verdict(record["verdict"]):
            case Verdict.UNSUPPORTED:
                pytest.skip(said)
            case Verdict.XFAIL:
                pytest.xfail(record["expected"]["reason"] or said)
            case Verdict.PASS:
                return
        raise CellFailed(record)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CellFailed | CumatrixError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.cell.id


class CellFailed(Exception):
    """A cell that is not as expected."""

    def __init__(self, record: Record) -> None:
        wanted = record["expected"]
        lines = [at_stage(record["status"], record["stage"])]
        lines.append(f"expected: {at_stage(wanted['status'], wanted['stage'])}")
        if wanted["diagnostic"]:
            lines.append(f"expected diagnostic: /{wanted['diagnostic']}/")
        if record["verdict"] == Verdict.XPASS:
            lines.append(f"[XPASS(strict)] {wanted['reason']} {wanted['link']}")
        if record["reason"]:
            lines.append(record["reason"])
        lines += [f"{item['severity']}: {item['message']}" for item in record["diagnostics"][:5]]
        if record["status"] != Status.BUILT:
            lines += ["", record["log"][-3000:], "", *record["command"]]
        super().__init__("\n".join(lines))
