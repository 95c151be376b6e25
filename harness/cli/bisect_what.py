"""What ``bisect`` is asked: one program, one axis, and the command line that repeats what was found."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.backends import BACKENDS
from harness.bisection.cuda import CudaReleases, releases_of
from harness.bisection.header_library import HeaderReleases, versions_of, with_version
from harness.bisection.library import LibraryReleases
from harness.bisection.tries import SearchAxis
from harness.cases.select import load_cases
from harness.cli.host import with_nvcc
from harness.cli.languages import SUFFIXES
from harness.cli.program_request import programs_asked
from harness.engine.context import RunContext
from harness.engine.header_axis import parse_chosen
from harness.engine.line_up import default_toolkit
from harness.engine.session import Request
from harness.environments.releases import NAMES
from harness.errors import UsageError, did_you_mean
from harness.model import Case
from harness.model.case import spell
from harness.toolkits import LIBRARIES

_DROPPED = {"--good", "--bad", "--releases", "--every", "-j", "--jobs", "--json", "--out"}
_FLAGS = {"--every", "--json"}
_TOOLKIT = {"-t", "--toolkit"}
OVER = ("cupy", "numba", "numba-cuda", "torch", "cuda", "headers", "cutlass", "cccl", "git:PATH")


def program_of(what: str, cases: Path, options: Mapping[str, Any]) -> Case:
    """The one program that is named: a file, or a case, with ``[name=value,…]`` for some of its variants.

    Raises
    ------
    UsageError
        When it is none, or several.
    """
    path = Path(what)
    if path.suffix in SUFFIXES:
        if not path.is_file():
            raise UsageError(f"there is no file {what}")
        (case,) = programs_asked([path], options)
        return case
    given = [
        name
        for name in ("include", "define", "std", "extra", "device_only", "toolkit_first", "signature")
        if options[name]
    ]
    if given or any(value for name, value in options.items() if name.startswith("habit_")):
        raise UsageError(
            f"{what} is a case, which says itself how it is compiled: options of compilers are for files (.cu, .py)"
        )
    found = re.fullmatch(r"([^\[\]]+)\[(.+)\]", what)
    name, wanted = (found[1], found[2].split(",")) if found else (what, [])
    several = load_cases(cases, [name])
    if len(several) > 1:
        names = ", ".join(case.name for case in several[:4])
        raise UsageError(
            f"bisect takes one case, and {name} stands for {len(several)}: {names}{', …' if len(several) > 4 else ''}"
        )
    (case,) = several
    if not wanted:
        return case
    spelled = [{f"{key}={spell(value)}" for key, value in variant.labels.items()} for variant in case.variants]
    known = sorted(set().union(*spelled))
    for word in wanted:
        if word.strip() not in known:
            raise UsageError(f"{case.name} has no variant with {word.strip()!r}{did_you_mean(word.strip(), known)}")
    chosen = [
        variant
        for variant, words in zip(case.variants, spelled, strict=True)
        if {word.strip() for word in wanted} <= words
    ]
    if not chosen:
        raise UsageError(f"{case.name} has no variant with all of {', '.join(wanted)}")
    return replace(case, variants=tuple(chosen))


def axis_of(
    over: str, request: Request, case: Case, context: RunContext, releases: str | None, console: Console
) -> SearchAxis:
    """The axis that is searched, with the releases that are asked for.

    Raises
    ------
    UsageError
        On an axis that nothing knows, and on releases that it does not have.
    PartUnavailable
        When the index cannot be asked which there are.
    """
    if over == "cuda":
        if releases and request.toolkits:
            raise UsageError("--over cuda goes over toolkits: name them with -t or with --releases, not with both")
        versions = releases_of(releases or request.toolkits)
        request, case = as_meant(replace(request, toolkits=",".join(versions)), case, context, console)
        return CudaReleases(context, request, case, versions)
    if over == "headers":
        compiler = releases_of(request.toolkits or default_toolkit(context.environment))
        if len(compiler) != 1:
            raise UsageError(f"--over headers takes one compiler: -t {compiler[-1]}")
        request, case = as_meant(replace(request, toolkits=compiler[0]), case, context, console)
        return CudaReleases(context, request, case, releases_of(releases), compiler[0])
    if over in LIBRARIES:
        if over in parse_chosen(request.headers, Path.cwd()):
            raise UsageError(
                f"--over {over} searches versions of {over}: name them with --releases, and not with --library"
            )
        versions = versions_of(LIBRARIES[over], releases)
        with_version(case, LIBRARIES[over], versions[0])  # says where the case has nothing to do with it
        request, case = as_meant(request, case, context, console)
        return HeaderReleases(LIBRARIES[over], context, request, case, versions)
    if over in NAMES:
        if request.libraries:
            raise UsageError(
                f"--over {over} searches releases of {over}: name them with --releases, and not with --with"
            )
        fitting = [info.name for info in BACKENDS.values() if info.library == over and info.language(case)]
        asked = fitting if request.backends in (None, "all") else (request.backends or "").split(",")
        if not fitting:
            of_it = ", ".join(info.name for info in BACKENDS.values() if info.library == over)
            raise UsageError(f"--over {over}: {case.name} is not for {of_it}")
        if not {word.strip() for word in asked} & set(fitting):
            raise UsageError(
                f"--over {over}: -b {request.backends} is no backend of {over}; it has {', '.join(fitting)}"
            )
        return LibraryReleases.of(over, request, case, releases)
    raise UsageError(f"--over {over!r}: no such axis{did_you_mean(over, OVER)}")


def as_meant(request: Request, case: Case, context: RunContext, console: Console) -> tuple[Request, Case]:
    """A program of the host is meant for nvcc."""
    return with_nvcc(request, case, context.environment, context.store, console) if case.program else (request, case)


def again(argv: Sequence[str], over: str, releases: Sequence[str]) -> str:
    """The command line that tries just these releases; the one that was given where there are none."""
    if not releases:
        return shlex.join(["cumatrix", *argv])
    if over.startswith("git:"):
        ends = ["--good", releases[0][:12], "--bad", releases[-1][:12]]
        return shlex.join(["cumatrix", *without(argv, _DROPPED), *ends])
    kept = without(argv, _DROPPED | (_TOOLKIT if over == "cuda" else set()))
    return shlex.join(["cumatrix", *kept, "--releases", ",".join(releases)])


def without(argv: Sequence[str], dropped: Collection[str]) -> list[str]:
    """A command line without some options and their values."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        name = word.partition("=")[0] if word.startswith("--") else word
        if re.fullmatch(r"-[tj]\d.*", word):  # -j4, -t12.4
            name = word[:2]
        if name not in dropped:
            kept.append(word)
        elif name not in _FLAGS and name == word:
            next(words, None)
    return kept
