"""pytest plugin that collects cells as items.

Every ``case.toml``, and every program that ``cumatrix.toml`` or ``pyproject.toml`` names, has one item per cell. Every file pattern
in the table ``wheel`` is an item, too.

The plugin works with ``-n``, ``-k``, ``-m``, ``--lf`` and ``--junitxml``. An unexpected success of a known fault fails, as strict
xfail does. The plugin writes records as ``cumatrix run`` does, also with several workers of pytest-xdist. The cache answers cells
that have been compiled before. If cells are selected and no compiler answers any, pytest exits with 5, as it does without tests.

pytest loads this module in every project that has cumatrix installed. The other modules are imported when a case is collected.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.pytest_session import Session


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cumatrix", "cumatrix: what CUDA code compiles where")
    add = group.addoption
    add("--cumatrix-backend", metavar="B,…", help="backends, as in cumatrix run; also CUMATRIX_BACKEND")
    add("--cumatrix-toolkit", metavar="V,…", help="CUDA releases; also CUMATRIX_TOOLKIT")
    add("--cumatrix-target", metavar="T,…", help="architectures; also CUMATRIX_TARGET")
    add(
        "--cumatrix-with", metavar="NAME=V,…", action="append",
        help="releases of a library, each in an environment of its own, as --with in cumatrix run; also CUMATRIX_WITH",
    )  # fmt: skip
    add("--cumatrix-offline", action="store_true", help="install nothing that cells need; also CUMATRIX_OFFLINE")
    add(
        "--cumatrix-python", metavar="PATH|V,…",
        help="interpreter of the environment under test, or with --cumatrix-with versions of Python; also CUMATRIX_PYTHON",
    )  # fmt: skip
    add("--cumatrix-device", metavar="D", help="CUDA devices: auto, none, or numbers; also CUMATRIX_DEVICE")
    add("--cumatrix-out", metavar="FILE", help="record file (default: reports/ENVIRONMENT.jsonl)")
    add("--cumatrix-fresh", action="store_true", help="discard the records of earlier runs in the record file")
    add(
        "--cumatrix-from", metavar="RESULTS", action="append",
        help="results of others to reuse if nothing has changed, as --from in cumatrix run; also CUMATRIX_FROM",
    )  # fmt: skip
    add(
        "--cumatrix-trust",
        action="store_true",
        help="trust configurations to name programs, for this run; also CUMATRIX_TRUST",
    )
    add("--cumatrix-no-cache", action="store_true", help="compile everything")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cumatrix: a cell of cumatrix's matrix")
    config.pluginmanager.register(_Listener(config), "cumatrix-listener")


def pytest_unconfigure(config: pytest.Config) -> None:
    if session := _existing(config):
        session.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name not in ("case.toml", "cumatrix.toml", "pyproject.toml"):
        return None
    if file_path.name == "pyproject.toml" and b"[tool.cumatrix" not in file_path.read_bytes():
        return None
    from harness.pytest_session import CaseFile, ProjectFile

    return (CaseFile if file_path.name == "case.toml" else ProjectFile).from_parent(parent, path=file_path)


def pytest_collection_finish(session: pytest.Session) -> None:
    if ours := _existing(session.config):
        ours.collected(session)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if ours := _existing(session.config):
        ours.finish(session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if ours := _existing(config):
        from harness.diagnostics import no_command, one_line

        for sentence in ours.sentences():
            terminalreporter.write_line(no_command(f"cumatrix: {one_line(sentence, 500)}"), yellow=True)


class _Listener:
    """Collector of the reports of all cells, including those of pytest-xdist's workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record = dict(report.user_properties)
        if report.when == "call" and "cell" in record:
            from harness.pytest_session import session_of

            session_of(self.config).reported.append(record)


def _existing(config: pytest.Config) -> Session | None:
    import sys

    module = sys.modules.get("harness.pytest_session")
    return module.existing(config) if module else None
