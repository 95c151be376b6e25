"""The cell to reproduce: its record, its exact program, and the hashed wheels to install."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.backends import BACKENDS, WHEELS
from harness.cases.rules import NAMED, include_of, options_for
from harness.errors import UsageError
from harness.libraries import LIBRARIES
from harness.model import Case, Cell, Target, Toolchain, ToolkitRef
from harness.model.cell import BUNDLED, ROCM, host_named
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.protocol.backend import Job
from harness.protocol.messages import Options, Setup
from harness.records import Record, not_repeatable
from harness.toolkits import RELEASES
from harness.toolkits.download import lock, pinned

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]{1,400})"|<([^>\n]{1,400})>)', re.MULTILINE)
_MOST_FILES, _MOST_BYTES = 5000, 64 << 20


@dataclass
class Program:
    """A program laid out in another folder.

    Parameters
    ----------
    sources : list of str
        Paths of the program's files in the folder, in order.
    include : list of str
        Its include directories in the folder, in search order.
    files : dict
        Every required file by its path in the folder.
    """

    sources: list[str]
    include: list[str] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def encoding(self) -> str:
        """The encoding of its sources: Latin-1 if one of them is not UTF-8."""
        texts = [self.files[place].read_bytes() for place in self.sources]
        try:
            [text.decode("utf-8") for text in texts]
        except UnicodeDecodeError:
            return "latin-1"
        return "utf-8"

    def below(self, folder: str) -> Program:
        """Return the program laid out in a subfolder."""
        return Program(
            [f"{folder}/{place}" for place in self.sources],
            [f"{folder}/{place}" for place in self.include],
            {f"{folder}/{place}": path for place, path in self.files.items()},
        )


def gather(sources: Sequence[Path], include: Sequence[Path]) -> Program:
    """Collect the program, and the files that it includes or imports from its own folder and from `include`.

    Preprocessor conditions are ignored, so a header that only some compilers read is collected too. Headers whose names
    come from macros, and data files, are not found.

    Parameters
    ----------
    sources : sequence of Path
        The program's files: CUDA C++, or one Python file.
    include : sequence of Path
        Include directories other than the toolkit's.

    Raises
    ------
    UsageError
        If the program cannot be read, or is too large to copy.
    """
    sources, include = list(map(_real, sources)), [_real(folder) for folder in include]
    if sources[0].suffix == ".py":
        files = _modules(sources[0])
        found, near = files, files
    else:
        found, near = _headers(sources, include)
    # Files that are reached by "../x.h", and the directories around the program, keep their relative places.
    around = [folder for folder in include if any(each.is_relative_to(folder) for each in sources)]
    root = Path(os.path.commonpath([*around, *(path.parent for path in (*sources, *near))]))
    places = {folder: folder.relative_to(root).as_posix() for folder in include if folder.is_relative_to(root)}
    for number, folder in enumerate((each for each in include if each not in places), 1):
        places[folder] = f"include-{number}"
    program = Program([path.relative_to(root).as_posix() for path in sources], [places[folder] for folder in include])
    for path in found:
        home = root if path.is_relative_to(root) else next(each for each in places if path.is_relative_to(each))
        below = path.relative_to(home).as_posix()
        program.files[below if home is root else f"{places[home]}/{below}"] = path
    if len(found) > _MOST_FILES or sum(path.stat().st_size for path in found) > _MOST_BYTES:
        raise UsageError(
            f"{sources[0].name} includes {len(found)} files of its own, too much for a folder to be handed on"
        )
    return program


def _real(path: Path) -> Path:
    # The program's real folder decides which headers are next to it: links to files stay, links to folders are
    # resolved.
    return path.absolute().parent.resolve() / path.name


def _headers(sources: Sequence[Path], include: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files with all that they include, and those not found through an include directory."""
    found, near = dict.fromkeys(sources), dict.fromkeys(sources)
    waiting = list(sources)
    while waiting and len(found) <= _MOST_FILES:
        path = waiting.pop()
        for header, folder in _included(path, include):
            # Headers next to a header in an include directory are found through that directory too.
            companions = folder is None and (path in near or not any(header.is_relative_to(each) for each in include))
            if header not in found or (companions and header not in near):
                found[header] = None
                near |= {header: None} if companions else {}
                waiting.append(header)
    return list(found), list(near)


def _included(path: Path, include: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Yield the headers that a file includes, each with its include directory, or None for the file's own folder."""
    for quoted, pointed in _INCLUDE.findall(_text(path)):
        for folder in (None, *include) if quoted else include:
            header = Path(os.path.normpath((folder or path.parent) / (quoted or pointed)))
            if not os.path.isabs(quoted or pointed) and header.is_file():
                yield header, folder
                break


def _modules(source: Path) -> list[Path]:
    """Return the program, and the neighbouring modules and packages that it imports directly or indirectly."""
    found: dict[Path, None] = {source: None}
    waiting = [source]
    while waiting and len(found) <= _MOST_FILES:
        for name in _imported(waiting.pop()):
            package, module = source.parent / name, source.parent / f"{name}.py"
            files = sorted(package.rglob("*.py")) if package.is_dir() else [module] if module.is_file() else []
            waiting += [file for file in files if file not in found]
            found |= dict.fromkeys(files)
    return list(found)


def _imported(path: Path) -> set[str]:
    try:
        tree = ast.parse(_text(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # the syntax error may be the outcome to reproduce
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


CUDA, HEADERS = "cuda", "cuda-headers"
"""Folders of the compiler's toolkit, and of the headers' toolkit if it is a different one."""

_TAKEN = (CUDA, f"{CUDA}-wheels", HEADERS, f"{HEADERS}-wheels", ".venv")


@dataclass(frozen=True)
class ReproTarget:
    """A cell to reproduce.

    Parameters
    ----------
    record : Record
        The cell's record.
    cell : Cell
        The cell.
    program : Program
        Its program and headers.
    job : Job
        The compile job, with paths in the folder that is written.
    setup : Setup
        The job's toolkit, with paths in the same folder.
    builds : Mapping[str, Path]
        Wheels of development builds by distribution.
    """

    record: Record
    cell: Cell
    program: Program
    job: Job
    setup: Setup
    builds: Mapping[str, Path] = field(default_factory=dict)

    @property
    def backend(self) -> str:
        """Name of its backend."""
        return self.cell.toolchain.backend

    @property
    def library(self) -> str:
        """Version of its library, without the suffix for CUDA's headers from wheels."""
        return self.cell.toolchain.library.removesuffix(WHEELS)

    @property
    def series(self) -> tuple[int, int]:
        """The library's major and minor version."""
        version = Version(self.library)
        return version.major, version.minor

    @property
    def observed(self) -> dict[str, Any]:
        """Versions of the loaded libraries and tools."""
        return self.record["toolchain"]["observed"]

    @property
    def relocatable(self) -> bool:
        """Return whether the compiler's output requires linking."""
        return "link" in self.record["stages"] or any(note.startswith("not linked") for note in self.record["notes"])


def check_shown(record: Record) -> None:
    """Raise `UsageError` for a record that cannot be reproduced."""
    if why := not_repeatable(record):
        raise UsageError(f"{record['cell']} {why}")


def cell_of(record: Record, case: Case) -> Cell:
    """Return the cell of a record from the case's current version.

    Raises
    ------
    UsageError
        If the case no longer has the cell, or the record is incomplete.
    """
    requested = record["toolchain"]["requested"]
    try:
        toolkit = ToolkitRef(
            release=requested["toolkit"], headers=requested["headers"], home=requested.get("cuda_home", ""),
            local="cuda_home" in requested, bundled=str(record["toolkit"]).endswith(BUNDLED),
            rocm=str(record["toolkit"]).endswith(ROCM),
        )  # fmt: skip
        packages, host = dict(requested["packages"]), str(requested.get("host_compiler", ""))
        # These values become part of scripts, and a record may come from a stranger.
        if not all(re.fullmatch(r"\d{1,3}\.\d{1,3}", release) for release in (toolkit.release, toolkit.headers)):
            raise ValueError
        if record["library"]:
            Version(record["library"].removesuffix(WHEELS))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(
            f"the record of {record['cell']} does not tell which toolkit and which version of a library were asked for"
        ) from None
    variant = next((each for each in case.variants if each.name == record["variant"]), None)
    info = BACKENDS.get(record["backend"])
    if info is None or variant is None or not info.language(case):
        what = f"[{record['variant']}]" if record["variant"] else "a program"
        raise UsageError(f"{case.path} has no {what} for {record['backend']} any more: run the case again")
    return Cell(
        case=case,
        variant=variant,
        toolchain=Toolchain(
            backend=record["backend"], library=record["library"], toolkit=toolkit,
            environment=record["environment"], packages=packages, host=host_named(record.get("host_compiler", ""), host),
        ),
        target=Target.parse(record["target"]),
    )  # fmt: skip


def headers_of(cell: Cell, library: str) -> tuple[Path, ...]:
    """Return the include directories of a header library from a folder or a commit; empty for a release."""
    built = cell.case.libraries[library].built.get(cell.variant.libraries[library])
    return built.include if built else ()


def subject_of(
    record: Record, case: Case, include: Sequence[Path] = (), builds: Mapping[str, Path] | None = None
) -> ReproTarget:
    """Collect everything that reproduces a record's outcome.

    Parameters
    ----------
    record : Record
        The record.
    case : Case
        Its case; a program without a case is passed as a case too.
    include : sequence of Path
        Include directories of the run.
    builds : Mapping[str, Path], optional
        Wheels of its development builds by distribution.

    Raises
    ------
    UsageError
        If the record cannot be reproduced, or the case has changed.
    """
    check_shown(record)
    cell = cell_of(record, case)
    language = BACKENDS[record["backend"]].language(case) or ""
    options, source = options_for(cell), case.sources[language]
    if apart := [name for name in NAMED if name in options]:
        raise UsageError(
            f"{case.name} has what one tool made finished by another ({apart[0]}), and repro makes a folder of what one toolkit compiles: "
            "the record's command has both steps"
        )
    own = [*include, *include_of(case, options)]
    options.pop("memory", None)
    # Headers of a folder or a commit are copied with the program; headers of a release come from a wheel.
    copied = [folder for name in cell.variant.libraries for folder in headers_of(cell, name)]
    program = gather([source, *(case.together if language != "python" else ())], [*copied, *own])
    # A compiler that receives text does not find headers next to the program, but would find them in the script's
    # folder.
    if BACKENDS[record["backend"]].text_only or any(place.split("/")[0] in _TAKEN for place in program.files):
        program = program.below("program")
    toolkit = cell.toolchain.toolkit
    headers = CUDA if toolkit.headers == toolkit.release else HEADERS
    # From 13 on, CCCL has a separate folder.
    cccl = [f"{headers}/include/cccl"] if int(toolkit.headers.split(".")[0]) >= 13 else []
    folders = [] if toolkit.rocm else [f"{headers}/include", *cccl]
    copied_to, program_include = program.include[: len(copied)], program.include[len(copied) :]
    wheels = [
        f"{name}-wheels/{folder}"
        for name, version in cell.variant.libraries.items()
        if version not in case.libraries[name].built
        for folder in case.libraries[name].include
    ]
    setup = Setup(
        home=Path(CUDA), release=toolkit.release, headers=toolkit.headers, include=folders, tools=Path(),
        wheels=cell.toolchain.library.endswith(WHEELS),
    )  # fmt: skip
    job = Job(
        cell=cell.id, source=Path(program.sources[0]), together=list(map(Path, program.sources[1:])), entries=dict(case.entries.get(language, {})),
        definitions=dict(cell.variant.definitions), target=str(cell.target), options=cast("Options", options),
        include=[*copied_to, *wheels, *folders, *program_include], scratch=Path(),
    )  # fmt: skip
    return ReproTarget(record, cell, program, job, setup, builds or {})


@dataclass(frozen=True)
class Wheels:
    """A requirements file.

    Parameters
    ----------
    file : str
        Its name.
    folder : str
        The folder to unpack the wheels into (``--target``); empty for the virtual environment.
    text : str
        Its content.
    """

    file: str
    folder: str
    text: str


def wheels_of(subject: ReproTarget) -> list[Wheels]:
    """Return the requirements files.

    The library under test is installed into the virtual environment, and CUDA's wheels into a folder that no library
    searches. Without a library, the toolkit is installed into the virtual environment.

    Raises
    ------
    UsageError
        If the record names no versions.
    PartUnavailable
        If hashes require an index and no index responds.
    """
    groups = []
    toolkit = subject.cell.toolchain.toolkit
    if subject.library:
        groups.append(Wheels("requirements.txt", "", _resolved(subject)))
    if not toolkit.local and not toolkit.bundled:
        file, folder = ("requirements-cuda.txt", f"{CUDA}-wheels") if groups else ("requirements.txt", "")
        groups.append(Wheels(file, folder, _pinned(f"CUDA {toolkit.release}", _toolkit(subject, "wheels"))))
    if toolkit.headers != toolkit.release:
        text = _pinned(f"CUDA {toolkit.headers}", _toolkit(subject, "headers_wheels"))
        groups.append(Wheels("requirements-headers.txt", f"{HEADERS}-wheels", text))
    for name, version in subject.cell.variant.libraries.items():
        if headers_of(subject.cell, name):
            continue
        distribution, number = subject.cell.case.libraries[name].wheel(version)
        wheel = {distribution: number}
        groups.append(Wheels(f"requirements-{name}.txt", f"{name}-wheels", _pinned(f"{name} {version}", wheel)))
    return groups


def _toolkit(subject: ReproTarget, key: str) -> dict[str, str]:
    """Return a toolkit's wheels from the record, which includes parts such as cuFFT, or else from cumatrix's table."""
    toolkit = subject.cell.toolchain.toolkit
    release = toolkit.release if key == "wheels" else toolkit.headers
    found = subject.observed.get(key)
    if not isinstance(found, Mapping) or not found:
        if release not in RELEASES:
            raise UsageError(f"the record does not name the wheels of CUDA {release}")
        found = RELEASES[release].packages
    return {str(name): str(version) for name, version in found.items()}


def _pinned(what: str, wanted: Mapping[str, str]) -> str:
    """Return requirement lines with known hashes; an index provides the hashes of other versions."""
    known, unknown = [], {}
    for name, version in _checked(wanted).items():
        hashes = pinned(name, version)
        if hashes:
            known.append(_line(name, version, sorted(hashes)))
        else:
            unknown[name] = version
    if unknown:
        known.append(_lock(what, [f"{name}=={version}" for name, version in unknown.items()], deps=False))
    return "".join(known)


def _resolved(subject: ReproTarget) -> str:
    """Resolve the library, the record's packages and their dependencies.

    The record does not list dependencies, so they resolve to current versions.
    """
    library = BACKENDS[subject.backend].library
    table = LIBRARIES[library]
    requested = subject.record["toolchain"]["requested"]["packages"]
    known = {**{name.replace("_", "-"): version for name, version in subject.observed.items()}, **requested}
    names = [*table.distributions, *table.companions, *LIBRARIES["numpy"].distributions]
    names += LIBRARIES["nvidia-cuda-runtime"].distributions if subject.setup.wheels else ()
    # The first distribution in the environment is the library: conditions use one name for all its distributions.
    own = next((name for name in table.distributions if name in requested), None)
    wanted = {name: known[name] for name in names if isinstance(known.get(name), str) and known[name]}
    wanted = {name: version for name, version in wanted.items() if name not in table.distributions or name == own}
    if own is None:
        raise UsageError(f"the record of {subject.record['cell']} does not name the version of its {library}")
    builds = {name: wheel.as_uri() for name, wheel in subject.builds.items()}
    lines = [f"{name} @ {address}" for name, address in builds.items()]
    lines += [f"{name}=={version}" for name, version in _checked(wanted).items() if name not in builds]
    # A release may need packages that it does not require: ninja and setuptools for PyTorch's extensions.
    more = {re.split(r"[=<>!~]", item)[0] for release in table.releases for item in release.companions}
    lines += sorted(more - set(wanted) - set(table.companions))
    text = _lock(f"{own} {wanted[own]}", lines, deps=True, python=python_of(subject))
    for name, address in builds.items():  # the folder contains these wheels
        text = text.replace(f"{name} @ {address}", f"./{subject.builds[name].name}")
    return text


def python_of(subject: ReproTarget) -> str:
    """Return the record's version of Python, such as ``"3.11"``, which is also the default."""
    version = str(
        subject.observed.get("python") or subject.record["toolchain"]["requested"]["packages"].get("python", "")
    )
    found = re.match(r"3\.\d{1,2}", version)
    return found[0] if found else "3.11"


def _lock(what: str, lines: list[str], *, deps: bool, python: str = "") -> str:
    with HeldFolder(temporary_folder(), TEMPORARY) as folder:
        return lock(what, lines, folder, deps=deps, python=python)


def _checked(wanted: Mapping[str, str]) -> dict[str, str]:
    """Validate versions by normalized name: a record may come from a stranger, and an installer reads these lines."""
    for name, version in wanted.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or not _is_version(version):
            raise UsageError(f"the record names {name!r} {version!r}, which is no version of a wheel")
    return {canonicalize_name(name): version for name, version in wanted.items()}


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return text.isprintable() and text == text.strip()


def _line(name: str, version: str, hashes: list[str]) -> str:
    return " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{each}" for each in hashes)]) + "\n"
