"""The part of the pytest plugin that loads with the first case: files, items, and the run that they share."""

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from harness.cases.load import load_case
from harness.diagnostics import clean, no_command, one_line
from harness.engine.context import RunContext, RunRequest, prepare
from harness.engine.executor import Run
from harness.engine.install import Step, install
from harness.engine.plan import axes_of, cells_of
from harness.engine.proof import requested_names, unanswered, without_answer
from harness.errors import CumatrixError, NothingToRun, UsageError
from harness.matrix.marks import kind_of
from harness.model import Case, Cell, Status, Verdict
from harness.model.gpus import parse_gpus
from harness.model.target import TargetError
from harness.project.config import Config, limits_of, read_config
from harness.project.discovery import found
from harness.project.programs import configured
from harness.project.trust import PROGRAMS, require_trust
from harness.records import Record, RecordWriter, at_stage, make_plan, this_commit
from harness.records.files import check_writable
from harness.wheels.gate import Requirement, missing
from harness.wheels.sources import needs_code, read_source

_FORK_SERVERS = 4
_KEY = pytest.StashKey["Session"]()


def session_of(config: pytest.Config) -> Session:
    """Return the session of this pytest process; create it on first use."""
    if _KEY not in config.stash:
        config.stash[_KEY] = Session(config)
    return config.stash[_KEY]


def existing(config: pytest.Config) -> Session | None:
    """Return the session, or None if no case was collected."""
    return config.stash.get(_KEY, None)


class Session:
    """State that all items of a pytest process share."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        # xdist gives all workers of a run the same id.
        self.worker = getattr(config, "workerinput", None)
        self.run = (self.worker["testrunuid"] if self.worker else uuid.uuid4().hex)[:12]
        self._context: RunContext | None = None
        self._run: Run | None = None
        self._writer: RecordWriter | None = None
        self.problem: CumatrixError | None = None
        self._fingerprints: set[str] = set()
        self.reported: list[dict[str, Any]] = []

    def sentences(self) -> list[str]:
        """Return sentences about requested names without a compiler's answer."""
        if not self.reported:
            return []
        silence = without_answer(self.reported)
        if silence:
            return [silence]
        return unanswered(requested_names(self.context), self.reported)

    @cached_property
    def project(self) -> Config:
        """Settings of the project's configuration. Options and environment variables override them."""
        path = found(self.config.rootpath)
        return read_config(path) if path else Config()

    def _request(self) -> RunRequest:
        from os import environ

        project = self.project

        def value(name: str) -> Any:
            given = self.config.getoption(f"--cumatrix-{name}") or environ.get(f"CUMATRIX_{name.upper()}")
            return given or project.option(name)

        self._check_trust()
        return RunRequest(
            backends=value("backend"),
            toolkits=value("toolkit"),
            targets=value("target"),
            python=value("python"),
            device=value("device") or "auto",
            where=project.option("where"),
            environment=environ.get("CUMATRIX_ENVIRONMENT") or project.option("environment"),
            require=tuple(environ.get("CUMATRIX_REQUIRE", "").split()) or project.option("require") or (),
            no_cache=self.config.getoption("--cumatrix-no-cache"),
            libraries=tuple(
                self.config.getoption("--cumatrix-with")
                or environ.get("CUMATRIX_WITH", "").split()
                or project.option("with")
                or ()
            ),
            header_libraries=project.option("library") or (),
            host_compilers=tuple(
                environ.get("CUMATRIX_HOST_COMPILER", "").split() or project.option("host-compiler") or ()
            ),
            limits=limits_of(project),
            offline=bool(value("offline")),
            earlier=tuple(self.config.getoption("--cumatrix-from") or environ.get("CUMATRIX_FROM", "").split()),
        )

    def _check_trust(self) -> None:
        """Raise an error if the project's configuration names untrusted programs. Values of options and variables need no trust."""
        from os import environ

        named = {
            "toolkit": self.config.getoption("--cumatrix-toolkit") or environ.get("CUMATRIX_TOOLKIT"),
            "python": self.config.getoption("--cumatrix-python") or environ.get("CUMATRIX_PYTHON"),
            "with": self.config.getoption("--cumatrix-with") or environ.get("CUMATRIX_WITH", "").split(),
            "host-compiler": environ.get("CUMATRIX_HOST_COMPILER", "").split(),
            "results": self.config.getoption("--cumatrix-out"),
            "library": None,
        }
        self.check_trust(self.project, [name for name, value in named.items() if not value])

    def check_trust(self, project: Config, settings: Collection[str]) -> None:
        """Call `harness.project.trust.require_trust` with this session's option."""
        require_trust(project, settings, trusted=self.config.getoption("--cumatrix-trust"))

    @property
    def context(self) -> RunContext:
        if self._context is None:
            self._context = prepare(self._request())
        return self._context

    @property
    def out(self) -> Path:
        named = self.config.getoption("--cumatrix-out")
        folder = self.project.option("results") or self.config.rootpath / "reports"
        return Path(named) if named else folder / f"{self.context.name}.jsonl"

    def cells(self, case: Case) -> list[Cell]:
        """Return the cells of a case. If the request cannot run, set `problem` and return none."""
        try:
            axes_of(self.context)
        except CumatrixError as error:
            if self.worker:
                raise
            self.problem = error
            return []
        return cells_of(self.context, [case])

    def begin(self, cells: list[Cell]) -> None:
        """Open the record file, which the workers of a run share."""
        if not cells or self.config.getoption("--collect-only"):
            return
        check_writable(self.out)
        self._context = install(cells, self.context, self._report, self._tell)
        plan = make_plan(cells, run=self.run, environment=self.context.name, commit=this_commit())
        self._writer = RecordWriter(self.out, plan, fresh=self.config.getoption("--cumatrix-fresh")).__enter__()

    def _report(self, steps: Sequence[Step]) -> Callable[[Step], AbstractContextManager[None]]:
        @contextmanager
        def under(step: Step) -> Iterator[None]:
            self._tell(f"installing {step.title} ({steps.index(step) + 1} of {len(steps)})")
            yield

        return under

    def _tell(self, text: str) -> None:
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal:  # workers of pytest-xdist have none
            terminal.write_line(f"cumatrix: {one_line(text, 500)}")

    def perform(self, cell: Cell) -> Record:
        """Run one cell and write its record."""
        if self.problem:
            raise self.problem
        if self._run is None:
            self._run = Run(self.context, keep=_FORK_SERVERS)
        record = self._run.result(cell).record(self.run)
        self._fingerprints.add(record["fingerprint"])
        if self._writer:
            self._writer.append(record)
        return record

    def finish(self, session: pytest.Session) -> None:
        """End all processes. If no compiler answered a selected cell, set the exit status of a session without tests."""
        self.close()  # not later: pytest-xdist terminates workers as soon as they have reported
        if session.exitstatus == pytest.ExitCode.OK and without_answer(self.reported):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def collected(self, session: pytest.Session) -> None:
        """Open the record file and install what the cells need, or raise the error of the request."""
        try:
            if self.problem:
                raise self.problem
            self.begin([item.cell for item in session.items if isinstance(item, CellItem)])
        except CumatrixError as error:
            if not self.worker:
                raise pytest.UsageError(no_command(clean(str(error)))) from None
            self.problem = error  # pytest ignores a worker's exit status: the worker's cells report the error

    def close(self) -> None:
        if self._run and self._writer:
            self._writer.inputs = self._run.inputs(self._fingerprints)
        if self._run:
            self._run.close()
            self._run = None
        if self._writer:
            self._writer.__exit__(None, None, None)
            self._writer = None


class CaseFile(pytest.File):
    """A ``case.toml`` file."""

    def collect(self) -> Iterator[CellItem]:
        ours = session_of(self.config)
        try:
            case = load_case(self.path, self.path.parent.parent.parent)
            cells = ours.cells(case)
        except NothingToRun:
            return
        except CumatrixError as error:
            raise self.CollectError(no_command(clean(str(error)))) from None
        for cell in cells:
            yield CellItem.from_parent(self, name=no_command(cell.id.removeprefix(case.name).strip()), cell=cell)


class ProjectFile(pytest.File):
    """A configuration that names programs, or binaries and the GPUs that they must run on."""

    def collect(self) -> Iterator[CellItem | WheelItem]:
        ours = session_of(self.config)
        try:
            project = read_config(self.path)
            ours.check_trust(project, [PROGRAMS])
            cells = [cell for case in configured(project) for cell in _cells(ours, case)]
            required = _required(project)
        except CumatrixError as error:
            raise self.CollectError(no_command(clean(str(error)))) from None
        for cell in cells:
            yield CellItem.from_parent(self, name=no_command(cell.id), cell=cell)
        for path in (project.option("wheel.files") or ()) if required else ():
            name = no_command(one_line(f"wheel {os.path.relpath(path, project.root)}"))
            yield WheelItem.from_parent(self, name=name, pattern=str(path), required=required)


def _required(project: Config) -> Requirement | None:
    """Return the requirement of the table ``wheel``; None if the table requires nothing."""
    if not (names := project.option("wheel.require")):
        return None
    try:
        gpus = tuple(parse_gpus(names))
    except TargetError as error:
        raise UsageError(f"{project.shown}: wheel.require: {error}") from None
    return Requirement(gpus, bool(project.option("wheel.native")), bool(project.option("wheel.complete")))


def _cells(ours: Session, case: Case) -> list[Cell]:
    try:
        return ours.cells(case)
    except NothingToRun:
        return []


class CellItem(pytest.Item):
    """The item of a cell."""

    def __init__(self, *, cell: Cell, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.cell = cell
        self.add_marker("cumatrix")
        self.extra_keyword_matches.add(cell.id)  # -k matches a case's name with its topic
        # Cells of a toolchain share worker processes: pytest -n auto --dist loadgroup runs them in one pytest worker.
        if self.config.pluginmanager.hasplugin("xdist"):
            self.add_marker(pytest.mark.xdist_group(cell.toolchain.name))

    def runtest(self) -> None:
        record = session_of(self.config).perform(self.cell)
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
        self.user_properties.append(("mark", kind_of(record).key))
        message = record["reason"] or next((item["message"] for item in record["diagnostics"]), "")
        match Verdict(record["verdict"]):
            case Verdict.UNSUPPORTED:
                pytest.skip(no_command(one_line(message)))
            case Verdict.XFAIL:
                pytest.xfail(no_command(one_line(record["expected"]["reason"] or message)))
            case Verdict.PASS:
                return
        raise CellFailed(record)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CellFailed | CumatrixError):
            return no_command(clean(str(excinfo.value)))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, no_command(self.cell.id)


class WheelItem(pytest.Item):
    """The item of binaries that must run on required GPUs."""

    def __init__(self, *, pattern: str, required: Requirement, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.pattern, self.required = pattern, required
        self.add_marker("cumatrix")

    def runtest(self) -> None:
        paths = [Path(path) for path in sorted(glob.glob(self.pattern, recursive=True))]
        if not paths:
            raise UsageError(f"{self.pattern} fits no file: build the binaries first")
        found = [read_source(path, path.name, gpus=self.required.gpus) for path in paths]
        for each in found:
            needs_code(each)
        if lacking := missing(found, self.required):
            raise WheelFailed("\n".join(f"{each.source}: {each.library}: {each.gpu}: {each.why}" for each in lacking))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, WheelFailed | CumatrixError):
            return no_command(clean(str(excinfo.value)))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"  # pytest changes dots in a name at the end of an id


class WheelFailed(Exception):
    """Binaries that lack code for a required GPU."""


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
        super().__init__(no_command(clean("\n".join(lines))))  # pytest prints it unescaped
