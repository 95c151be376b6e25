"""The Python environment under test, and the probe scripts of `harness.worker`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

import harness
from harness.diagnostics import one_line
from harness.environments.store import Resolved
from harness.errors import PartUnavailable, UsageError
from harness.git import GitError, build_of, checkout_of
from harness.libraries import LIBRARIES, number_of
from harness.model import ToolkitRef
from harness.protocol import process_output
from harness.protocol.codec import Message, WireError
from harness.protocol.messages import Build, Distribution, Interpreter
from harness.web.address import redact

if TYPE_CHECKING:
    from packaging.requirements import Requirement


SECONDS = 60
"""Time limit of a probe."""
_SCRIPTS = Path(harness.__file__).parent / "worker"

_Probe = tuple[str, str, tuple[str, ...], str]
_begun: dict[_Probe, Future[process_output.Finished]] = {}


def libraries() -> list[str]:
    """Return the distributions that the probe looks up, each with the first module imported from it."""
    return [
        f"{distribution}:{library.modules[0]}" if library.modules else distribution
        for library in LIBRARIES.values()
        for distribution in library.distributions
    ]


def begin_own(python: str | None) -> None:
    """Start the probe of cumatrix's own interpreter in the background if the user names no other one."""
    if python is None:
        probe = (sys.executable, "probe.py", tuple(libraries()), "PYTHONPATH")
        pool = ThreadPoolExecutor(1)
        _begun[probe] = pool.submit(_run, *probe)
        pool.shutdown(wait=False)  # the thread ends after this task


def finished(python: str, script: str, arguments: Sequence[str], *, without: str) -> process_output.Finished:
    """Return the output of a probe; reuse that of `begin_own` once.

    Raises
    ------
    OSError, ValueError
        If the probe cannot be started.
    subprocess.TimeoutExpired
        If the probe exceeds the time limit.
    """
    probe = (python, script, tuple(arguments), without)
    begun = _begun.pop(probe, None)
    return begun.result() if begun else _run(*probe)


def _run(python: str, script: str, arguments: Sequence[str], without: str) -> process_output.Finished:
    argv = [python, "-s", str(_SCRIPTS / script), *arguments]
    environ = {name: value for name, value in os.environ.items() if name != without}
    return process_output.run(argv, seconds=SECONDS, errors=process_output.Errors.APART, env=environ)


_WORDS = 300  # last characters of stderr that messages quote

M = TypeVar("M", bound=Message)


class ProbeFailed(Exception):
    """A failed probe; the message has the reason."""


def ask(python: str, script: str, arguments: Sequence[str], kind: type[M], *, without: str) -> M:
    """Run a probe and parse its output.

    Parameters
    ----------
    python : str
        The interpreter.
    script : str
        The probe's file in ``harness/worker``.
    arguments : sequence of str
        The probe's arguments.
    kind : type of Message
        Type of the message that the probe prints.
    without : str
        Environment variable to remove for the probe.

    Raises
    ------
    ProbeFailed
        If the probe cannot be started, exceeds the time limit or prints anything else.
    """
    try:
        done = finished(python, script, arguments, without=without)
    except subprocess.TimeoutExpired:
        raise ProbeFailed(f"no answer within {SECONDS} s") from None
    except (OSError, ValueError) as error:
        raise ProbeFailed(str(error)) from None
    try:
        if done.code:
            raise WireError
        if not done.whole:
            raise WireError(f"it printed {done.total} bytes")
        answer: M = kind.from_line(done.output)
        return answer
    except WireError as error:
        code = done.code
        how = f"its process ended with {'signal' if code < 0 else 'exit code'} {abs(code)}" if code else str(error)
        words = one_line(done.errors.strip()[-_WORDS:])
        raise ProbeFailed(f"{how}: {words}" if words else how) from None


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The source of a development build.

    Parameters
    ----------
    version : str
        Version in its metadata.
    path : str
        Folder that the package is imported from, if it is outside of the installers' folders.
    commit : str
        Full hash of the commit that it was built from; empty if unknown.
    dirty : bool
        Whether its checkout differs from the commit.
    url : str
        Address that it was installed from; empty if unknown.
    editable : bool
        Whether it was installed in editable mode.
    digest : str
        Hash of the installed files; empty for a checkout.
    problem : str
        Reason why git cannot determine the commit.
    number : int
        Number of commits in its history (`harness.git.number_of`); 0 if unknown.
    """

    version: str
    path: str = ""
    commit: str = ""
    dirty: bool = False
    url: str = ""
    editable: bool = False
    digest: str = ""
    problem: str = ""
    number: int = 0

    @property
    def build(self) -> str:
        """Its version in cells and columns, distinct from any release's: ``0.15.0+git.1234.3f2a9c1``."""
        return build_of(
            self.version, commit=self.commit, number=self.number, dirty=self.dirty, place=self.path, digest=self.digest
        )

    def facts(self) -> dict[str, str | bool]:
        """Return its entry in records (``toolchain.observed.builds``)."""
        commit = f"{self.commit}+dirty" if self.dirty else self.commit
        known = {"version": self.version, "commit": commit, "path": self.path, "url": self.url, "digest": self.digest}
        known["problem"] = self.problem
        kept: dict[str, str | bool] = {name: value for name, value in known.items() if value}
        return {**kept, "editable": True} if self.editable else kept


def origins_of(distributions: Mapping[str, Distribution]) -> dict[str, Origin]:
    """Return the origins of distributions from outside an index, by normalized name; git describes checkouts."""
    return {name: _origin(found) for name, found in distributions.items() if found.apart or found.url}


def _origin(found: Distribution) -> Origin:
    commit, number, dirty, problem = found.commit, 0, False, ""
    path = found.folder if found.apart else _place(found.url) if found.editable else ""
    if path:
        # The current content counts, not the commit at installation.
        commit = ""
        try:
            if checkout := checkout_of(Path(path)):
                commit, number, dirty = checkout.commit, checkout.number, checkout.dirty
        except GitError as error:
            problem = str(error)
    return Origin(
        version=found.version, path=path, commit=commit, dirty=dirty, url=redact(found.url),
        editable=found.editable, digest="" if path else found.digest, problem=problem, number=number,
    )  # fmt: skip


def _place(url: str) -> str:
    """Return the folder of a ``file:`` address."""
    return unquote(urlsplit(url).path)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """An interpreter and its installed distributions.

    Parameters
    ----------
    name : str
        Name for users: the tox environment, or ``local``.
    python : str
        Path of the interpreter.
    version : str
        Version of the interpreter.
    distributions : Mapping[str, Distribution]
        Installed distributions by normalized name.
    broken : Mapping[str, str]
        Reasons why requested versions are missing, by normalized name.
    origins : Mapping[str, Origin]
        Origins of the distributions from outside an index.
    resolved : Resolved or None
        The resolution of an environment that cumatrix creates (`harness.environments`): only the backends of its
        library run in it. None for an existing environment.
    toolkits : tuple of ToolkitRef
        The CUDA releases of its cells; empty for all requested releases.
    mark : str
        Suffix of the library version's local part in the names of cells, if the version alone is ambiguous:
        ``python3.13``.
    named : bool
        Whether the user or tox named it.
    only : str
        The only library whose backends run in an unresolved environment, such as a development build's. Empty for all.
    """

    name: str
    python: str
    version: str
    distributions: Mapping[str, Distribution]
    broken: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    resolved: Resolved | None = None
    toolkits: tuple[ToolkitRef, ...] = ()
    mark: str = ""
    named: bool = False
    only: str = ""

    @property
    def library(self) -> str:
        """The only library whose backends run in it; empty for all."""
        return self.resolved.recipe.library if self.resolved else self.only

    def build_of(self, *names: str) -> str:
        """Return the version of the first installed one of these distributions; it identifies a development build."""
        named = self.version_of(*names)
        if named is None:
            return ""
        return self.origins[named[0]].build if named[0] in self.origins else named[1]

    @property
    def builds(self) -> dict[str, Build]:
        """Modules imported from outside of the installers' folders, for workers."""
        modules = {
            name: library.modules[0]
            for library in LIBRARIES.values()
            for name in library.distributions
            if library.modules
        }
        return {
            name: Build(modules[name], found.folder, found.version)
            for name, found in self.distributions.items()
            if found.apart and name in modules
        }

    def version_of(self, *names: str) -> tuple[str, str] | None:
        """Return the name and version of the first installed one of these distributions.

        The version is the library's if the distribution has its own numbering.
        """
        found = next((name for name in names if name in self.distributions), None)
        return (found, number_of(found, self.distributions[found].version)) if found else None

    @property
    def packages(self) -> dict[str, str]:
        """Versions for conditions, under plain names: ``cupy`` for all of its wheels."""
        # An environment that cumatrix creates has all resolved packages.
        versions = {name: found.version for name, found in self.distributions.items() if found.root or self.resolved}
        found = {
            name: self.version_of(*library.distributions)
            for name, library in LIBRARIES.items()
            if library.in_conditions
        }
        plain = {name: named[1] for name, named in found.items() if named}
        return {**versions, "python": self.version, **plain}


def look(python: str | None = None, *, name: str | None = None, require: Sequence[str] = ()) -> Environment:
    """Read the installed distributions of an interpreter.

    Parameters
    ----------
    python : str, optional
        Path of the interpreter, or of its virtual environment; cumatrix's own by default.
    name : str, optional
        Name of the environment; tox's, or ``local``, by default.
    require : sequence of str
        Requirements that the environment was created from, such as ``cupy-cuda12x==13.*``. `broken` has the unmet ones;
        cells of their libraries become ``unavailable``.

    Raises
    ------
    UsageError
        If a requirement is invalid, if the name is no valid file name, or if /proc is not mounted.
    PartUnavailable
        If the interpreter cannot be run.
    """
    if not os.path.exists("/proc/self/stat"):
        raise UsageError(
            "cumatrix needs /proc, which is not mounted here, or is that of other processes: run `mount -t proc proc /proc`"
        )
    called = name or os.environ.get("TOX_ENV_NAME") or "local"
    if (
        called in (".", "..")
        or "/" in called
        or not called.isprintable()
        or len(called.encode("utf-8", "replace")) > 200
    ):
        raise UsageError(
            f"{called!r} cannot be the name of an environment, because files get its name: write letters, digits, - and ."
        )
    # Workers start in other folders, so relative paths become absolute; a bare name is looked up on PATH.
    executable = os.path.abspath(python) if python and os.sep in python else python or sys.executable
    if os.path.isdir(executable):
        executable = os.path.join(executable, "bin", "python")
    try:
        answer = ask(executable, "probe.py", libraries(), Interpreter, without="PYTHONPATH")
    except ProbeFailed as error:
        raise PartUnavailable(f"cannot list the packages of {executable}: {error}") from None
    broken: dict[str, str] = {}
    for text in require:
        wanted = _requirement(text)
        there = answer.distributions.get(canonicalize_name(wanted.name))
        if there is None:
            broken[canonicalize_name(wanted.name)] = f"asked for {text}, but {wanted.name} is not installed"
        elif not wanted.specifier.contains(there.version, prereleases=True):
            broken[canonicalize_name(wanted.name)] = f"asked for {text}, but {wanted.name} {there.version} is installed"
    return Environment(
        name=called,
        python=executable,
        version=answer.python,
        distributions=answer.distributions,
        broken=broken,
        origins=origins_of(answer.distributions),
        named=called != "local",
    )


def _requirement(text: str) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement  # a tenth of a run's import time

    try:
        wanted = Requirement(text)
        if wanted.url:
            raise UsageError(f"{text!r} is an address; a requirement is a name with versions, such as numba==0.59.1")
        return wanted
    except InvalidRequirement as error:
        raise UsageError(f"{text!r} is not a requirement such as numba==0.59.1: {str(error).splitlines()[0]}") from None
