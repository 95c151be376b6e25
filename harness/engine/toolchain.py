"""A prepared toolchain: the toolkit, the interpreter, and their known facts."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from harness import native
from harness.backends import BACKENDS, takes_wheels
from harness.cases.rules import TOOLS, options_for
from harness.engine.environment import Environment
from harness.engine.file_states import Roots
from harness.engine.fingerprints import Key
from harness.engine.fork_server import ForkServer
from harness.engine.program_axes import absent as absent_host
from harness.errors import PartUnavailable
from harness.model import Case, Cell, Outcome, Status, Target, Toolchain, ToolkitRef
from harness.model.target import VENDORS
from harness.nvidia.nvcc import missing_from
from harness.protocol.backend import Ended
from harness.protocol.messages import CLAIMED_LANDLOCK, Ready, Setup, made_for
from harness.toolkits import Installed, ToolkitStore
from harness.toolkits.releases import PARTS, PARTS_OF_TORCH
from harness.toolkits.rocm import not_installed as rocm_missing
from harness.toolkits.store import borrowed


def clean_environment(cuda_home: str) -> dict[str, str]:
    """Return the variables of a worker: the user's PATH without other CUDA folders, and the toolkit's variables."""
    folders = [
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(folder) and not _has_cuda(folder)
    ]
    return {
        "PATH": os.pathsep.join([f"{cuda_home}/bin", *folders]),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "CUDA_HOME": cuda_home,
        "CUDA_PATH": cuda_home,
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        # A fork server must have a single thread when it forks.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        # coverage.py sets the first one when it measures cumatrix's tests, including workers. The second one is for
        # tests, too.
        **{name: os.environ[name] for name in ("COVERAGE_PROCESS_CONFIG", CLAIMED_LANDLOCK) if name in os.environ},
    }


def plain_path(cuda_home: str) -> str:
    """Return ``PATH`` for cells that compile in their own process: the toolkit's tools and the system's."""
    return os.pathsep.join([f"{cuda_home}/bin", "/usr/local/bin", "/usr/bin", "/bin"])


def _has_cuda(folder: str) -> bool:
    return bool(re.search(r"cuda", folder, re.IGNORECASE)) or any(
        os.path.exists(os.path.join(folder, tool)) for tool in ("nvcc", "ptxas")
    )


@dataclass(frozen=True)
class PreparedToolchain:
    """A toolchain with everything that its cells need.

    Parameters
    ----------
    toolchain : Toolchain
        The requested toolchain.
    environment : Environment
        The interpreter and its libraries.
    toolkit, headers : Installed or None
        Installed toolkits of the compiler and of the headers; None if missing.
    tools : Path
        Folder of cumatrix's own stand-ins.
    steps : Path or None
        Folder of compile steps that cells of this run share, by case (`steps_of`).
    variables : Mapping[str, str]
        Variables that lead the worker to a real device's driver.
    memory : int
        Memory limit of a worker and its cell together, in bytes; 0 for no limit. Needs a control group.
    roots : Roots
        Names of folders in its key.
    absent : str
        The message for a missing toolkit; empty for the command that installs it.
    """

    toolchain: Toolchain
    environment: Environment
    toolkit: Installed | None
    headers: Installed | None
    tools: Path
    steps: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    memory: int = 0
    roots: Roots = field(default_factory=lambda: Roots({}), compare=False)
    absent: str = ""

    @classmethod
    def of(
        cls,
        toolchain: Toolchain,
        environment: Environment,
        store: ToolkitStore,
        tools: Path,
        steps: Path | None = None,
        variables: Mapping[str, str] | None = None,
        memory: int = 0,
        roots: Roots | None = None,
        absent: str = "",
    ) -> PreparedToolchain:
        """Prepare a toolchain from the installed parts."""
        toolkit, headers = store.of(toolchain.toolkit)
        return cls(
            toolchain, environment, toolkit, headers, tools, steps, variables or {}, memory, roots or Roots({}), absent
        )

    @cached_property
    def problem(self) -> Outcome | None:
        """The reason why no cell can run here, known before any process is started; None if cells can run."""
        info, ref = BACKENDS[self.toolchain.backend], self.toolchain.toolkit
        found = self.environment.version_of(*info.distributions)
        if early := _known_before(self.toolchain, self.environment):
            return early
        if info.distributions:
            broken = [
                self.environment.broken[name]
                for name in (*info.distributions, *info.companions)
                if name in self.environment.broken
            ]
            if broken:
                return _problem(Status.UNAVAILABLE, broken[0])
            if found is None and not info.machine:
                return _problem(
                    Status.UNAVAILABLE,
                    f"{info.name} needs {info.distributions[0]}, which is not installed in {self.environment.name}: "
                    f"`{self.environment.python} -m pip install {info.distributions[0]}`",
                )
            replaced = self.environment.version_of(*info.excludes)
            if replaced:
                words = f"{replaced[0]} {replaced[1]} is installed and takes the place of {info.name}"
                return _problem(Status.UNAVAILABLE, words)
            incompatibility = info.incompatibility(found[0], ref.release) if found else None
            if incompatibility:
                return _problem(Status.UNSUPPORTED, incompatibility)
        if missing := absent_host(self.toolchain.host):
            return _problem(Status.UNAVAILABLE, self.absent or missing)
        for release, toolkit in ((ref.release, self.toolkit), (ref.headers, self.headers)):
            if toolkit is None:
                missing = rocm_missing(release) if ref.rocm else self.absent or _not_installed(release)
                return _problem(Status.UNAVAILABLE, missing)
            try:
                _ = toolkit.fingerprint
            except PartUnavailable as error:
                return _problem(Status.UNAVAILABLE, str(error))
        return None

    @cached_property
    def include(self) -> list[Path]:
        """Include directories of the headers' toolkit."""
        assert self.headers is not None
        return self.headers.include

    @property
    def setup(self) -> Setup:
        """The first message to a worker of this toolchain."""
        assert self.toolkit is not None
        ref, info = self.toolchain.toolkit, BACKENDS[self.toolchain.backend]
        return Setup(
            home=self.toolkit.home,
            release=ref.release,
            headers=ref.headers,
            include=[str(folder) for folder in self.include],
            tools=self.tools,
            wheels=takes_wheels(self.toolchain.library),
            device=self.toolchain.device,
            builds=self.environment.builds,
            module=info.module,
            place=info.place,
            bundled=ref.bundled,
            rocm=ref.rocm,
        )

    def fork_server(self) -> ForkServer:
        """Start a worker process."""
        self.tools.mkdir(parents=True, exist_ok=True)
        python, backend, follow = self.environment.python, self.toolchain.backend, self._library[0]
        return ForkServer(python, backend, self.setup, self._variables, follow, memory=self.memory)

    def products(self, folder: Path) -> list[str]:
        """Return folders whose files are products, not inputs; `folder` is a fork server's."""
        return [os.path.realpath(each) for each in (folder, self.steps, self.tools) if each]

    @property
    def unfollowed(self) -> str:
        """The reason why reads of cells cannot be followed; empty if they can."""
        return self._library[1]

    @cached_property
    def _library(self) -> tuple[Path | None, str]:
        """The library that follows reads, built for this machine; none for devices, whose results are not cached."""
        if self.toolchain.device:
            return None, ""
        try:
            self.tools.mkdir(parents=True, exist_ok=True)
            return native.build_reads(self.tools), ""
        except (Ended, OSError, subprocess.SubprocessError) as error:
            return None, str(error)

    @cached_property
    def _variables(self) -> dict[str, str]:
        return {**clean_environment(str(self.setup.home)), **_host(self.toolchain), **self.variables}

    @cached_property
    def path(self) -> str:
        """``PATH`` of the cells: the user's if the backend looks up a host compiler in it."""
        home = str(self.setup.home)
        return self._variables["PATH"] if BACKENDS[self.toolchain.backend].nvcc else plain_path(home)

    @cached_property
    def key(self) -> str:
        """First key of everything that all cells of the toolchain share: the request, without the files read."""
        assert self.toolkit is not None and self.headers is not None
        info = BACKENDS[self.toolchain.backend]
        key = Key("toolchain").add("backend", info.name)
        key.add("python", [self.roots.name(one_name_of(self.environment.python)), self.environment.version])
        versions = {name: found.version for name, found in self.environment.distributions.items()}
        key.add("libraries", versions if info.distributions else {})
        key.add("library", self.toolchain.library)  # contains the source of its CUDA
        key.add("device", self.toolchain.device).add("host_compiler", self.toolchain.host.version)
        key.add("toolkit", self.toolkit.fingerprint).add("headers", self.headers.fingerprint)
        variables = {**self._variables, "PATH": self.path}.items()
        key.add("variables", {name: self.roots.names(value) for name, value in variables})
        return key.add("homes", [self.roots.name(str(home)) for home in (self.toolkit.home, self.headers.home)]).hex()

    def unknown_target(self, cell: Cell, ready: Ready) -> str:
        """Return the reason why this toolchain lacks a target, by the compilers' own lists; empty if it has the target."""
        info = BACKENDS[self.toolchain.backend]
        if cell.target.vendor.name not in info.vendors:
            return f"{info.name} builds for {' and '.join(VENDORS[name].label for name in info.vendors)} GPUs alone, not for {cell.target}"
        release, targets = self.toolchain.toolkit.release, _to_be_known(cell)
        for each in targets:
            if str(each) not in ready.targets:
                return f"CUDA {release} knows no {each} (ptxas --help)"
        if targets and ready.architectures_of and targets[0].cc not in (ready.architectures or ()):
            return f"{ready.architectures_of} knows no compute capability {targets[0].capability}"
        return ""

    def observed(self, ready: Ready) -> dict[str, Any]:
        """Return the versions of all involved parts for records."""
        assert self.toolkit is not None and self.headers is not None
        found = dict(ready.observed)
        if self.toolchain.toolkit.local:
            found["rocm_home" if self.toolchain.toolkit.rocm else "cuda_home"] = str(self.toolkit.home)
        elif not self.toolchain.toolkit.bundled:
            found["wheels"] = dict(self.toolkit.packages)
        if self.headers.release != self.toolkit.release:
            found["headers_wheels"] = dict(self.headers.packages)
        if taken := borrowed(self.headers.home):
            found["borrowed"] = taken
        info = BACKENDS[self.toolchain.backend]
        builds = {
            name: self.environment.origins[name].facts()
            for name in (*info.distributions, *info.companions)
            if name in self.environment.origins
        }
        return {**found, **({"builds": builds} if builds else {})}


_LINKS = 8
"""Maximum number of links from one name of an interpreter to the next."""


def one_name_of(python: str) -> str:
    """Return the canonical name of an interpreter, after links between names in its folder.

    ``python``, ``python3`` and ``python3.11``, as scripts and ``python -m`` use them, start the same interpreter.
    """
    folder = os.path.dirname(python)
    if os.path.isfile(os.path.join(os.path.dirname(folder), "pyvenv.cfg")):
        return os.path.join(folder, "python")  # a virtual environment has one interpreter
    for _ in range(_LINKS):
        try:
            link = os.readlink(python)
        except OSError:
            break
        if os.sep in link:
            break
        python = os.path.join(folder, link)
    return python


def steps_of(prepared: PreparedToolchain, case: Case) -> str:
    """Return the folder of a case's shared compile steps (`harness.nvidia.nvcc`); empty if its cells share none.

    The folder is created if it is missing. Each case has its own, so that a hostile case affects only itself. Programs
    that run share none.
    """
    if not prepared.steps or not BACKENDS[prepared.toolchain.backend].nvcc or prepared.toolchain.device:
        return ""
    folder = prepared.steps / Key("steps").add("case", case.name).add("path", str(case.path)).hex()
    folder.mkdir(exist_ok=True)
    return str(folder)


def _to_be_known(cell: Cell) -> tuple[Target, ...]:
    """Return architectures that the compilers must list, that of the code first; none to let the compilers refuse."""
    options = options_for(cell)
    if options.get("every_target") or BACKENDS[cell.toolchain.backend].every_target:
        return ()
    target = Target.parse(made_for(options, str(cell.target)))
    # The other toolkit's tool reports by itself whether it supports the target.
    return (target,) if options.keys() & set(TOOLS) else (target, cell.target)


def _host(toolchain: Toolchain) -> dict[str, str]:
    """Return variables that select the host compiler, for backends that run one: the requested one, else the user's."""
    names = ("NVCC_CCBIN", "CC", "CXX") if BACKENDS[toolchain.backend].nvcc else ()
    if toolchain.host.name:
        return dict.fromkeys(names, toolchain.host.program)
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _known_before(toolchain: Toolchain, environment: Environment) -> Outcome | None:
    """Return the outcome if no installation can help: no wheels exist for this combination."""
    info, ref, resolved = BACKENDS[toolchain.backend], toolchain.toolkit, environment.resolved
    if info.distributions and resolved and resolved.recipe.refused:
        return _problem(Status.UNSUPPORTED, resolved.recipe.refused)
    # An unresolved environment has an unknown CUDA release.
    known = resolved is None or bool(resolved.lock)
    lacking = missing_from(ref.release) if info.nvcc and known and not ref.local else ""
    return _problem(Status.UNAVAILABLE, lacking) if lacking else None


def _not_installed(release: str) -> str:
    return f"CUDA {release} is not installed: run `cumatrix toolkits install {release}`"


def _problem(status: Status, reason: str) -> Outcome:
    return Outcome(status=status, reason=reason)


# NVRTC and cudafe++; gcc; clang.
_NOT_FOUND = re.compile(
    r'(?:cannot|could not) open source file "([^"]+)"|^(\S+): No such file or directory$|\'([^\']+)\' file not found'
)
_OF_TORCH = re.compile(r"(?:^|/)(?:torch|ATen|c10)/")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)


def part_of(header: str) -> str | None:
    """Return the component of CUDA that a header belongs to, if a toolkit may lack that component (``parts.toml``)."""
    return next((name for name, part in PARTS.items() if any(fnmatchcase(header, item) for item in part.headers)), None)


def without_part(outcome: Outcome, ref: ToolkitRef, include: Iterable[Path], source: Path) -> Outcome:
    """Return the outcome, or ``unavailable`` with an install command if a header of a missing component was not found.

    Parameters
    ----------
    outcome : Outcome
        The cell's outcome.
    ref : ToolkitRef
        The cell's toolkit.
    include : iterable of Path
        Include directories of the toolkit's headers. If they contain the header, the outcome stays a refusal.
    source : Path
        The program; its other missing components are listed as well.
    """
    first = next((item for item in outcome.diagnostics if item.severity in ("error", "fatal")), None)
    found = _NOT_FOUND.search(first.message) if first and outcome.status is Status.REJECTED and not ref.rocm else None
    if not found:
        return outcome
    header = next(filter(None, found.groups()))
    folders = list(include)
    if part_of(header) is None or _is_there(header, folders):
        return outcome
    named = [header, *(name for name in _INCLUDE.findall(_text(source)) if not _is_there(name, folders))]
    parts = list(dict.fromkeys(filter(None, map(part_of, named))))
    if first and _OF_TORCH.search(first.file):
        # PyTorch's headers include those of all components, one after another.
        parts += [name for name in PARTS_OF_TORCH if name not in parts and not _has(PARTS[name].headers, folders)]
    reason = f"{header} is a header of {parts[0]}, a part of CUDA that is not installed with {ref}"
    how = (
        f"add it to {ref.home}"
        if ref.local
        else f"run `cumatrix toolkits install {ref.headers} --with {','.join(parts)}`"
    )
    return replace(outcome, status=Status.UNAVAILABLE, stage=None, reason=f"{reason}: {how}")


def _is_there(header: str, folders: Iterable[Path]) -> bool:
    return any((folder / header).is_file() for folder in folders)


def _has(patterns: Iterable[str], folders: Iterable[Path]) -> bool:
    return any(True for folder in folders for pattern in patterns for _ in folder.glob(pattern))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
