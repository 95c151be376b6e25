"""Axes of programs: header libraries (``--library``) and nvcc's host compilers (``--host-compiler``)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

from harness.backends import HOST_COMPILERS
from harness.cases.load import MAX_VARIANTS, display
from harness.cases.toml import CaseError, Report
from harness.diagnostics import hint
from harness.errors import PartUnavailable, UsageError, did_you_mean
from harness.model import Case, HeaderLibrary, Headers, HostCompiler, Variant
from harness.model.cell import HOST_COMPILER, compiler_version, host_named
from harness.protocol import process_output
from harness.toolkits import LIBRARIES
from harness.toolkits.header_libraries import is_release, known_versions
from harness.toolkits.header_sources import EXAMPLES, headers_of, read_source
from harness.web.address import redact

Chosen = Mapping[str, Sequence[str]]
"""Releases, folders and revisions by library name, as in ``--library``."""


def parse_chosen(texts: Sequence[str], base: Path) -> dict[str, list[str]]:
    """Parse ``cutlass=3.5.1,4.0..4.2`` and ``cutlass=../cutlass@main``; ranges, series and ``all`` become versions.

    Parameters
    ----------
    texts : sequence of str
        One for each ``--library``; values of one library are combined.
    base : Path
        The folder of relative paths.

    Raises
    ------
    UsageError
        If a library is unknown, or if a value is neither one of its versions nor a folder or revision.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name, values = name.strip(), values.removeprefix("=").strip()
        if not equals or not values:
            raise UsageError(
                f"--library {redact(text)!r}: write NAME=VERSIONS, such as cutlass=4.2.0 or cutlass={EXAMPLES.split(',')[0]}"
            )
        if name not in LIBRARIES:
            raise UsageError(f"--library {redact(text)!r}: unknown library{did_you_mean(name, LIBRARIES)}")
        for value in filter(None, map(str.strip, values.split(","))):
            try:
                found.setdefault(name, []).extend(_values(LIBRARIES[name], value, base))
            except UsageError as error:
                raise UsageError(f"--library {redact(text)!r}: {error}") from None
    return {name: list(dict.fromkeys(values)) for name, values in found.items()}


def _values(library: HeaderLibrary, text: str, base: Path) -> list[str]:
    known = known_versions(library)
    stable = [version for version in known if not Version(version).is_prerelease]
    if text == "all":
        return stable
    first, dots, last = text.partition("..")
    if dots and is_release(first) and is_release(last):
        found = [version for version in stable if Version(first) <= Version(version) and _not_after(version, last)]
        if not found:
            raise UsageError(f"{library.name} has no versions from {first} to {last}; known are {', '.join(stable)}")
        return found
    if is_release(text):
        series = [version for version in stable if re.match(rf"{re.escape(text)}(\.|$)", version)]
        # An unknown version may have a newer wheel, which the index knows.
        return [text] if text in known or not series else [series[-1]]
    source = read_source(text, base)
    # The result does not depend on the current folder.
    if source.folder:
        return [str(source.folder)]
    revision = f"@{source.revision}" if source.revision else ""
    below = f"#subdirectory={source.subfolder}" if source.subfolder else ""
    return [f"git+{source.url}{revision}{f'..{source.last}' if source.last else ''}{below}"]


def _not_after(version: str, last: str) -> bool:
    """Return whether a version is at most another version, or in its series: 4.2.1 in ..4.2."""
    parts = Version(last).release
    return Version(version).release[: len(parts)] <= parts


def with_libraries(cases: Sequence[Case], chosen: Chosen, found: Callable[[HeaderLibrary, str, Path], dict[str, Headers]]) -> list[Case]:  # fmt: skip
    """Return cases whose variants have version numbers of header libraries; folders and revisions are looked up.

    Parameters
    ----------
    cases : sequence of Case
        The loaded cases.
    chosen : Mapping
        Versions that replace those in the cases; a program without a case gets them as an additional axis.
    found : callable
        Returns headers by their version numbers (`Finder`).

    Raises
    ------
    UsageError
        If no case uses a chosen library, or if a revision does not exist; the message has file, line and key.
    """
    for name in chosen:
        if not any(name in case.libraries or _takes_headers(case) for case in cases):
            raise UsageError(f"--library {name}: none of the chosen programs uses it")
    return [_expanded(_with_chosen(case, chosen), chosen, found) for case in cases]


class Finder:
    """Looks up headers outside of releases, each once per run.

    Parameters
    ----------
    offline : bool
        Access no network.
    """

    def __init__(self, *, offline: bool = False) -> None:
        self.offline = offline
        self._found: dict[tuple[str, str, Path], dict[str, Headers]] = {}

    def __call__(self, library: HeaderLibrary, text: str, base: Path) -> dict[str, Headers]:
        """Return headers by their version numbers; if a repository is unreachable, headers with a problem."""
        key = (library.name, text, base)
        if key not in self._found:
            try:
                self._found[key] = headers_of(library, read_source(text, base), offline=self.offline)
            except PartUnavailable as error:
                named = re.sub(r"[^a-z0-9]+", ".", text.rpartition("@")[2].lower()).strip(".")[-40:].strip(".")
                self._found[key] = {f"0+{named or 'head'}": Headers(problem=str(error))}
        return self._found[key]


def _takes_headers(case: Case) -> bool:
    return not case.has_file and "cuda" in case.sources


def _with_chosen(case: Case, chosen: Chosen) -> Case:
    for name, texts in chosen.items():
        if _takes_headers(case):
            case = replace(
                case,
                libraries={**case.libraries, name: LIBRARIES[name]},
                variants=tuple(_with(variant, name, text) for variant in case.variants for text in texts),
            )
        elif name in case.libraries:
            first = case.variants[0].libraries[name]
            kept = [variant for variant in case.variants if variant.libraries[name] == first]
            variants = tuple(_with(variant, name, text) for text in texts for variant in kept)
            case = replace(case, variants=variants)
    return case


def _with(variant: Variant, name: str, text: str) -> Variant:
    labels = {**variant.labels, name: text} if name in variant.labels else variant.labels
    return replace(variant, labels=labels, libraries={**variant.libraries, name: text})


def _expanded(case: Case, chosen: Chosen, found: Callable[[HeaderLibrary, str, Path], dict[str, Headers]]) -> Case:
    for name, library in case.libraries.items():
        texts = dict.fromkeys(variant.libraries[name] for variant in case.variants)
        if all(map(is_release, texts)) and case.has_file:
            continue
        report = Report("") if not case.has_file else _report(case)
        numbers: dict[str, list[str]] = {}
        built: dict[str, Headers] = {}
        for text in texts:
            try:
                if is_release(text):
                    numbers[text] = [text]
                    if message := library.problem(text):
                        raise UsageError(message)
                    continue
                of = found(library, text, case.path.parent)
            except UsageError as error:
                if not case.has_file or name in chosen:
                    raise UsageError(f"--library {name}={text}: {error}") from None
                report.add(("libraries", name), str(error))
                continue
            numbers[text] = [number for number in of if number not in built]
            built |= of
        report.close()
        variants = [(variant, number) for variant in case.variants for number in numbers[variant.libraries[name]]]
        if len(variants) > MAX_VARIANTS:
            raise CaseError(f"{case.name}: these are {len(variants)} variants; a case may have {MAX_VARIANTS}")
        case = replace(
            case,
            libraries={**case.libraries, name: replace(library, built={**library.built, **built})},
            variants=tuple(_numbered(case, variant, name, number) for variant, number in variants),
        )
    return case


def _numbered(case: Case, variant: Variant, name: str, number: str) -> Variant:
    with_number = _with(variant, name, number)
    if case.has_file:
        return with_number
    return replace(with_number, options=f"{variant.options} --library={name}={number}".strip())


def _report(case: Case) -> Report:
    return Report(display(case.path, case.path.parents[2]), case.path.read_text("utf-8-sig"))


_PACKAGES = {"gcc": "g++-{}", "clang": "clang-{}"}
_OWN_NAME = re.compile(r"[a-z][a-z0-9.+-]{0,39}")
_SECONDS = 20


class HostCompilers:
    """Host compilers for nvcc cells.

    Parameters
    ----------
    chosen : sequence of HostCompiler
        The values of ``--host-compiler``; they replace the compilers of every case.
    """

    def __init__(self, chosen: Sequence[HostCompiler] = ()) -> None:
        self.chosen = tuple(chosen)

    def of(self, case: Case) -> tuple[HostCompiler, ...]:
        """Return the host compilers of one case.

        Without ``--host-compiler``, these are the case's compilers that this machine has, or the machine's default
        compiler. A message lists the missing ones, with the command that installs them.
        """
        if self.chosen:
            return self.chosen
        wanted = [of_name(name) for name in case.host_compilers]
        there = tuple(each for each in wanted if found(each))
        if missing := [each.name for each in wanted if each not in there]:
            hint(
                f"{case.name}: skipped, because this machine lacks them: {', '.join(missing)} ({install(missing)}). "
                "--host-compiler requests them anyway"
            )
        return there or (own(),)


def parse_host_compilers(texts: Iterable[str]) -> tuple[HostCompiler, ...]:
    """Parse ``gcc-11,gcc-13``, ``gcc-11..gcc-14``, ``all`` and ``glibc-2.43=/opt/new/bin/g++``.

    Returns
    -------
    tuple of HostCompiler
        Each with its version if it is installed.

    Raises
    ------
    UsageError
        If a value is invalid, or if a path is neither gcc nor clang.
    """
    values = [value.strip() for text in texts for value in text.split(",")]
    chosen = [compiler for value in values if value for compiler in _read(value)]
    if values and not chosen:
        raise UsageError(f"--host-compiler: no compiler is named; write {HOST_COMPILERS}")
    programs: dict[str, str] = {}
    for each in chosen:
        if programs.setdefault(each.name, each.program) != each.program:
            raise UsageError(
                f"--host-compiler: {programs[each.name]} and {each.program} are both named {each.name}: rename one of them, "
                f"NAME={each.program}"
            )
    return tuple(dict.fromkeys(chosen))


def _read(value: str) -> list[HostCompiler]:
    if value == "all":
        if here := on_path():
            return here
        raise UsageError(f"--host-compiler all: PATH has no host compiler: {install(['gcc-13'])}")
    first, dots, last = value.partition("..")
    if dots:
        ends = [re.fullmatch(HOST_COMPILER, end) for end in (first, last)]
        if ends[0] and ends[1] and ends[0][1] == ends[1][1] and int(ends[0][2]) <= int(ends[1][2]):
            return [of_name(f"{ends[0][1]}-{number}") for number in range(int(ends[0][2]), int(ends[1][2]) + 1)]
    elif re.fullmatch(HOST_COMPILER, value):
        return [of_name(value)]
    elif os.sep in value:
        return [_of_path(value)]
    raise UsageError(f"--host-compiler {value!r}: write {HOST_COMPILERS}")


def of_name(name: str) -> HostCompiler:
    """Return the compiler of a name such as ``gcc-13`` (g++-13 on PATH), with its version if it is installed."""
    compiler = host_named(name)
    path = found(compiler)
    return replace(compiler, version=(version_of(path) if path else "") or compiler.version)


def _of_path(value: str) -> HostCompiler:
    name, equals, path = value.partition("=")
    if not equals:
        name, path = "", value
    elif not _OWN_NAME.fullmatch(name):
        raise UsageError(f"--host-compiler {value!r}: {name!r} is no name of small letters, digits, '-', '.' and '+'")
    program = str(Path(path).expanduser().absolute())
    if not shutil.which(program):
        raise UsageError(f"--host-compiler {value!r}: {path} is not a program")
    version = version_of(program)
    if not version:
        raise UsageError(f"--host-compiler {value!r}: {path} --version names neither gcc nor clang")
    return HostCompiler(name=name or version.partition(",")[0].replace(" ", "-"), version=version, program=program)


def on_path() -> list[HostCompiler]:
    """Return every gcc and clang on PATH whose name has a version."""
    names = set()
    for folder in filter(os.path.isdir, os.environ.get("PATH", os.defpath).split(os.pathsep)):
        for program in os.listdir(folder):
            if match := re.fullmatch(r"(g|clang)\+\+-(\d{1,2})", program):
                names.add((("clang", "gcc")[match[1] == "g"], int(match[2])))
    ordered = sorted(names, key=lambda each: (each[0] != "gcc", each[1]))
    return [of_name(f"{family}-{number}") for family, number in ordered]


def own() -> HostCompiler:
    """Return the machine's default host compiler, which nvcc uses without ``--host-compiler``."""
    path = shutil.which(os.environ.get("NVCC_CCBIN") or "gcc")
    return HostCompiler(version=version_of(path) if path else "")


def found(compiler: HostCompiler) -> str:
    """Return the path of a requested host compiler on this machine; empty if it is missing."""
    return shutil.which(compiler.program) or ""


def absent(compiler: HostCompiler) -> str:
    """Return the reason why a requested host compiler is unavailable; empty if it is available or not requested."""
    if not compiler.name or found(compiler):
        return ""
    advice = [install([compiler.name]), "name one by its path: --host-compiler NAME=/opt/gcc/bin/g++"]
    return f"{compiler.name} is not here, no {compiler.program} on the path: {', or '.join(filter(None, advice))}"


def install(names: Sequence[str]) -> str:
    """Return the command that installs host compilers; empty if none has a package."""
    packages = [_PACKAGES[match[1]].format(match[2]) for name in names if (match := re.fullmatch(HOST_COMPILER, name))]
    return f"apt-get install {' '.join(packages)}" if packages else ""


@lru_cache
def version_of(program: str) -> str:
    """Return a compiler's version and that of its C library: ``gcc 12.2.0, glibc 2.36``; empty unless gcc or clang."""
    own = compiler_version(_output_of([program, "--version"]).partition("\n")[0])
    if not own:
        return ""
    macros = _output_of([program, "-E", "-dM", "-x", "c++", "-include", "features.h", "/dev/null"])
    library = [re.search(rf"^#define {name} (\d+)$", macros, re.MULTILINE) for name in ("__GLIBC__", "__GLIBC_MINOR__")]
    return f"{own}, glibc {library[0][1]}.{library[1][1]}" if library[0] and library[1] else own


def _output_of(argv: Sequence[str]) -> str:
    try:
        done = process_output.run(argv, seconds=_SECONDS, errors=process_output.Errors.DROPPED)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.output if done.code == 0 else ""
