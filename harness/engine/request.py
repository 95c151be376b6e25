"""The request of a run: everything that a user asks for, built once by the command line, the API or pytest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from harness.environments.interpreters import is_version, parse_pythons
from harness.errors import UsageError
from harness.model import Case
from harness.protocol.messages import Limits


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A user's request. Fields have the names of the commands' parameters, and the values as written.

    Parameters
    ----------
    cases : tuple of Path
        Folders of cases.
    programs : tuple of Case
        Programs of the project's configuration.
    selection : tuple of str
        Names, topics or paths of cases; empty for all.
    backends, toolkits, targets : str or None
        Axes; None for the ones that fit the environment.
    where : str or None
        ``--where``: a condition that cells must hold.
    python : str or None
        Interpreter of the environment under test; with `libraries`, versions of Python for theirs (``3.9,3.13``).
    environment : str or None
        Name of the environment.
    require : tuple of str
        Requirements that the environment was made for.
    libraries : tuple of str
        Releases of libraries under test, each in an environment of its own: ``cupy=12,13.0`` (``--with``).
    header_libraries : tuple of str
        ``--library``: versions of header libraries, in the place of those in the cases.
    host_compilers : tuple of str
        ``--host-compiler``: host compilers for nvcc, in the place of those that the cases name.
    include : tuple of Path
        Further include directories.
    order : str
        ``plan``, ``reverse`` or ``random``.
    shard : str or None
        ``2/5``: the second of five parts.
    costs : Path or None
        Records of an earlier run, whose times balance shards.
    device : str
        ``auto``, ``none``, or numbers of CUDA devices.
    sanitize : bool
        Run compute-sanitizer over every launch.
    limits : Limits
        Limits of each cell.
    total_memory : int
        Memory of all cells together, in bytes; 0 for the machine's free memory.
    jobs : int or None
        Cells that compile at once; None for the number of cores.
    executor : str
        Name of the executor (`harness.engine.executor.EXECUTORS`); empty for threads of this process.
    no_cache : bool
        Compile everything and keep nothing.
    earlier : tuple of str
        ``--from``: results of others, whose outcomes answer where nothing has changed.
    offline : bool
        Download nothing.
    trace : Path or None
        File for the trace of the run.
    artifacts : Path or None
        ``--keep-artifacts``: folder for cubins and PTX.
    """

    cases: tuple[Path, ...] = (Path("cases"),)
    programs: tuple[Case, ...] = ()
    selection: tuple[str, ...] = ()
    backends: str | None = None
    toolkits: str | None = None
    targets: str | None = None
    where: str | None = None
    python: str | None = None
    environment: str | None = None
    require: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    header_libraries: tuple[str, ...] = ()
    host_compilers: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    order: str = "plan"
    shard: str | None = None
    costs: Path | None = None
    device: str = "auto"
    sanitize: bool = False
    limits: Limits = field(default_factory=Limits)
    total_memory: int = 0
    jobs: int | None = None
    executor: str = ""
    no_cache: bool = False
    earlier: tuple[str, ...] = ()
    offline: bool = False
    trace: Path | None = None
    artifacts: Path | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any], **more: Any) -> Self:
        """The request of a command's parameters, as click gives them; `more` are fields that no option has."""
        names = {each.name for each in fields(cls)}
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
        }
        limits = Limits(seconds=given["timeout"], memory=given["memory"], rlimits=dict(given["rlimits"]))
        return cls(**{name: value for name, value in given.items() if name in names} | {"limits": limits} | more)

    @property
    def python_versions(self) -> str | None:
        """``--python`` where it names versions for the environments of ``--with``; None where it names an interpreter."""
        words = (self.python or "").split(",")
        return self.python if self.libraries and self.python and all(map(is_version, words)) else None

    @property
    def interpreter(self) -> str | None:
        """The interpreter of the existing environment; None for cumatrix's own.

        Raises
        ------
        UsageError
            On versions of Python without ``--with``.
        """
        if self.python_versions:
            return None
        if self.python and re.fullmatch(r"\d[^/]*", self.python):
            if self.libraries:
                parse_pythons(self.python)  # raises, with what is wrong
            raise UsageError(
                f"--python {self.python}: versions are for the environments of --with; without it, name an interpreter by its path"
            )
        return self.python
