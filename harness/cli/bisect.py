"""``cumatrix bisect``."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from harness.backends import BACKENDS
from harness.bisection.axes import (
    CudaReleases,
    HeaderReleases,
    LibraryCommits,
    LibraryReleases,
    missing_releases,
    releases_of,
    versions_of,
    with_version,
)
from harness.bisection.git import OTHER, SAME, UNTESTABLE, Checkout, CommitLog, build, compare, run_alone
from harness.bisection.search import Border, Ends, Lane, Search
from harness.bisection.sentences import Findings, groups_of, tell
from harness.bisection.trials import Bisection, SearchAxis, journal_for, place_for
from harness.cases.discovery import load_cases
from harness.cli.bisect_output import Progressing, show
from harness.cli.command import split_program
from harness.cli.files import SUFFIXES
from harness.cli.options import Seconds, TryCommand, axes, cases_option, habits, program_options
from harness.cli.progress import install_for
from harness.cli.selection import program_request, requested_programs, with_nvcc
from harness.cli.terminal import console_for
from harness.diagnostics import one_line
from harness.engine.context import RunContext, RunRequest, prepare
from harness.engine.environments import default_toolkit
from harness.engine.executor import Run
from harness.engine.machine import usable_cores
from harness.engine.plan import cells_of
from harness.engine.program_axes import parse_chosen
from harness.environments.releases import NAMES
from harness.errors import CumatrixError, NothingToRun, PartUnavailable, UsageError, did_you_mean
from harness.model import Case
from harness.model.case import spell
from harness.records import Record
from harness.toolkits import LIBRARIES

# A shell runs between git and the step: git treats any code up to 127 as "bad", including that of a step that fails to
# start.
_BETWEEN = f'cd "$0" || exit 255; "$@"; case $? in {SAME}) exit {SAME};; 10) exit {OTHER};; {UNTESTABLE}) exit {UNTESTABLE};; *) exit 255;; esac'
_CODES = {SAME: 0, OTHER: 10, UNTESTABLE: UNTESTABLE}


@dataclass(frozen=True)
class GitBisection:
    """A bisection of a git checkout.

    Parameters
    ----------
    checkout : Checkout
        The checkout.
    good, bad : str
        Commits that the user calls good and bad.
    old, new : str
        The same commits, the older one first.
    log : CommitLog
        Outcomes of commits.
    quiet : bool
        Whether the steps print nothing.
    """

    checkout: Checkout
    good: str
    bad: str
    old: str
    new: str
    log: CommitLog
    quiet: bool = False

    @classmethod
    def of(
        cls, checkout: Checkout, good: str | None, bad: str | None, log: CommitLog, *, quiet: bool = False
    ) -> GitBisection:
        """Read the values of ``--good`` and ``--bad``.

        Raises
        ------
        UsageError
            If a commit does not exist, or the commits are unrelated.
        """
        if not good:
            raise UsageError(
                "--over git: needs --good REV, a commit at which it is as it should be (and --bad REV, by default HEAD)"
            )
        first, second = checkout.commit(good), checkout.commit(bad or "HEAD")
        if first == second:
            raise UsageError(f"--good and --bad both name {first[:12]}: there is nothing between")
        if checkout.is_ancestor(first, second):
            return cls(checkout, first, second, first, second, log, quiet)
        if checkout.is_ancestor(second, first):
            return cls(checkout, first, second, second, first, log, quiet)
        raise UsageError(f"neither of {good} and {bad or 'HEAD'} comes after the other in {checkout.path}")


def step(
    checkout: Checkout,
    log: CommitLog,
    old: str,
    tried: Callable[[], Sequence[Record]],
    command: str,
    seconds: float,
    console: Console,
) -> int:
    """Run one step of ``git bisect run``: build the current commit, test it, and compare it with the older end.

    Parameters
    ----------
    checkout, log
        The checkout, and the outcomes so far.
    old : str
        Commit to compare with; empty to test only.
    tried : callable
        Compiles the cells and returns their records.
    command : str
        The project's own build command; empty for none.
    seconds : float
        Time limit of the build, in seconds.
    """
    commit, began = checkout.git("rev-parse", "HEAD"), time.monotonic()
    name = checkout.subjects([commit])[commit]
    if log.outcomes(commit) is None:
        why, records = build(command, checkout.path, seconds) if command else "", []
        try:
            records = list(tried()) if not why else []
        except CumatrixError as error:
            why = str(error)
        log.keep(commit, records, why or next((each["reason"] for each in records if each["reason"]), ""))
    found = log.outcomes(commit) or {}
    outcome = (
        ", ".join(dict.fromkeys(found_outcome.text for found_outcome in found.values()))
        or f"cannot be tested: {log.reason(commit)}"
    )
    console.print(Text(one_line(f"  {name}: {outcome}  ({time.monotonic() - began:.1f} s)", 300)), soft_wrap=True)
    if not found:
        return _CODES[UNTESTABLE]
    return _CODES[compare(log.outcomes(old) or {}, found)] if old else 0


def search(bisection: GitBisection, argv: Sequence[str], console: Console) -> tuple[list[tuple[str, str]], bool]:
    """Return every border as the commits before and after it, and whether the search was interrupted."""
    borders: list[tuple[str, str]] = []
    checkout, log = bisection.checkout, bisection.log
    chain = checkout.between(bisection.old, bisection.new)
    try:
        with checkout.bisecting():
            began = time.monotonic()
            for commit in (bisection.old, bisection.new):
                checkout.git("checkout", "--quiet", "--detach", commit)
                _look(bisection, commit, argv)
            each, steps = (time.monotonic() - began) / 2, max(0, (len(chain) - 2)).bit_length()
            console.print(
                f"{len(chain) - 2} commits between: about {steps} steps, about {max(1, round(each * steps))} s for a border",
                markup=False,
            )
            old = bisection.old
            while compare(log.outcomes(old) or {}, log.outcomes(bisection.new) or {}) == OTHER:
                border = _border(bisection, chain, old, argv)
                borders.append(border)
                old = border[1]
    except KeyboardInterrupt:
        return borders, True
    return borders, False


def _look(bisection: GitBisection, commit: str, argv: Sequence[str]) -> None:
    """Test one of the ends, which must be testable."""
    run_alone(_step(bisection, "", argv), quiet=bisection.quiet)
    if not bisection.log.outcomes(commit):
        which = "--good" if commit == bisection.good else "--bad"
        raise PartUnavailable(
            f"{commit[:12]}, which {which} names, cannot be tested: {bisection.log.reason(commit) or 'its step came to no end'}"
        )


def _step(bisection: GitBisection, old: str, argv: Sequence[str]) -> list[str]:
    program = [
        sys.executable,
        "-P",
        "-c",
        "from harness.cli import main; main()",
        *argv[:1],
        "--git-step",
        str(bisection.log.folder),
        old,
        *argv[1:],  # may contain --, after which options are not recognized
    ]
    return ["sh", "-c", _BETWEEN, os.getcwd(), *program]


def _border(bisection: GitBisection, chain: Sequence[str], old: str, argv: Sequence[str]) -> tuple[str, str]:
    """Return the last commit with the outcomes of `old`, and the first commit with others."""
    log, place = bisection.log, {commit: number for number, commit in enumerate(chain)}
    found = bisection.checkout.first_different(old, bisection.new, _step(bisection, old, argv), quiet=bisection.quiet)
    before = log.outcomes(old) or {}
    other = [commit for commit in found if (outcomes := log.outcomes(commit)) and compare(before, outcomes) == OTHER]
    after = min(other or [bisection.new], key=lambda commit: place[commit])
    same = [
        commit
        for commit in chain[: place[after]]
        if (outcomes := log.outcomes(commit)) and compare(before, outcomes) == SAME
    ]
    return max(same, key=lambda commit: place[commit]), after


def findings_of(bisection: GitBisection, over: str, borders: Sequence[tuple[str, str]], interrupted: bool) -> Findings:
    """Return the result for display."""
    log = bisection.log
    chain = bisection.checkout.between(bisection.old, bisection.new)
    tried = [place for place, commit in enumerate(chain) if log.outcomes(commit) is not None]
    called = bisection.checkout.subjects([chain[place] for place in tried] or chain[:1])
    names = [called.get(commit, commit[:12]) for commit in chain]
    outcomes = {(place, lane): each for place in tried for lane, each in (log.outcomes(chain[place]) or {}).items()}
    place_of = {commit: place for place, commit in enumerate(chain)}
    ends = Ends(tuple(names), place_of[bisection.good], place_of[bisection.bad])

    def borders_of(lane: Lane) -> list[Border]:
        pairs = [Border(place_of[before], place_of[after]) for before, after in borders]
        return [
            pair
            for pair in pairs
            if (pair.before, lane) in outcomes
            and (pair.after, lane) in outcomes
            and outcomes[pair.before, lane].key != outcomes[pair.after, lane].key
        ]

    good_of = partial(ends.good_of, outcomes)
    groups = groups_of(outcomes, good_of)
    reasons = {place: log.reason(chain[place]) for place in tried if not log.outcomes(chain[place])}
    return Findings(
        over=over,
        versions=chain,
        names=names,
        called=str,
        tried=tried,
        reasons=reasons,
        groups=groups,
        borders=tell(names, groups, borders_of, str, good_of),
        contradiction="" if interrupted else ends.contradiction(outcomes, reasons),
        interrupted=interrupted,
    )


_DROPPED = {"--good", "--bad", "--releases", "--every", "-j", "--jobs", "--json", "--out"}
_FLAGS = {"--every", "--json"}
_TOOLKIT = {"-t", "--toolkit"}
OVER = (*NAMES, "cuda", "headers", *LIBRARIES, "git:PATH")


def program_of(what: str, options: Mapping[str, Any]) -> Case:
    """Return the only program of a file or a case; ``[name=value,…]`` selects variants of a case.

    Raises
    ------
    UsageError
        If the name matches no program, or several.
    """
    file, _ = split_program(Path(what))
    if file.suffix in SUFFIXES:
        if not file.is_file():
            raise UsageError(f"there is no file {what}")
        programs = requested_programs([Path(what)], options)
        if len(programs) > 1:
            names = ", ".join(case.name for case in programs[:4])
            raise UsageError(
                f"bisect takes one program, and {what} has {len(programs)}: {names}{', …' if len(programs) > 4 else ''}"
            )
        return programs[0]
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
    several = load_cases(options["cases"], [name])
    if len(several) > 1:
        names = ", ".join(case.name for case in several[:4])
        raise UsageError(
            f"bisect takes one case, and {name} matches {len(several)}: {names}{', …' if len(several) > 4 else ''}"
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


def axis_of(over: str, case: Case, context: RunContext, releases: str | None, console: Console) -> SearchAxis:
    """Return the search axis with the requested releases.

    Raises
    ------
    UsageError
        If the axis or a release is unknown.
    PartUnavailable
        If the index cannot be reached.
    """
    request = context.request
    if over == "cuda":
        if releases and request.toolkits:
            raise UsageError("--over cuda goes over toolkits: name them with -t or with --releases, not with both")
        versions = releases_of(releases or request.toolkits)
        context, case = for_host_program(context.asking(toolkits=",".join(versions)), case, console)
        return CudaReleases(context, case, versions)
    if over == "headers":
        compiler = releases_of(request.toolkits or default_toolkit(context.environment))
        if len(compiler) != 1:
            raise UsageError(f"--over headers takes one compiler: -t {compiler[-1]}")
        context, case = for_host_program(context.asking(toolkits=compiler[0]), case, console)
        return CudaReleases(context, case, releases_of(releases), compiler[0])
    if over in LIBRARIES:
        if over in parse_chosen(request.header_libraries, Path.cwd()):
            raise UsageError(
                f"--over {over} searches versions of {over}: name them with --releases, and not with --library"
            )
        versions = versions_of(LIBRARIES[over], releases)
        with_version(case, LIBRARIES[over], versions[0])  # raises an error if the case does not use the library
        context, case = for_host_program(context, case, console)
        return HeaderReleases(LIBRARIES[over], context, case, versions)
    if over in NAMES:
        fitting = [info.name for info in BACKENDS.values() if info.library == over and info.language(case)]
        backends = fitting if request.backends in (None, "all") else (request.backends or "").split(",")
        if not fitting:
            of_it = ", ".join(info.name for info in BACKENDS.values() if info.library == over)
            raise UsageError(f"--over {over}: {case.name} is not for {of_it}")
        if not {word.strip() for word in backends} & set(fitting):
            raise UsageError(
                f"--over {over}: -b {request.backends} is no backend of {over}; it has {', '.join(fitting)}"
            )
        if not request.libraries:
            return LibraryReleases.of(over, request, case, releases)
        if releases:
            raise UsageError("--with selects commits to search: --releases names releases of the index")
        return LibraryCommits.of(over, request, case)
    raise UsageError(_unknown_axis(over))


def _unknown_axis(over: str) -> str:
    return (
        f"--over {over!r}: no such axis{did_you_mean(over, OVER)}. For the first release of a package that runs on a GPU: "
        f"cumatrix wheel {one_line(over, 40)} --require sm_120 --since"
    )


def for_host_program(context: RunContext, case: Case, console: Console) -> tuple[RunContext, Case]:
    """Restrict a host program to nvcc."""
    return with_nvcc(context, case, console) if case.program else (context, case)


def again(argv: Sequence[str], over: str, releases: Sequence[str]) -> str:
    """Return the command line that tests exactly these releases; without releases, the original one."""
    if not releases:
        return shlex.join(["cumatrix", *argv])
    if over.startswith("git:"):
        ends = ["--good", releases[0][:12], "--bad", releases[-1][:12]]
        return shlex.join(["cumatrix", *without(argv, _DROPPED), *ends])
    kept = without(argv, _DROPPED | (_TOOLKIT if over == "cuda" else set()))
    return shlex.join(["cumatrix", *kept, "--releases", ",".join(releases)])


def without(argv: Sequence[str], dropped: Collection[str]) -> list[str]:
    """Remove options and their values from a command line."""
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


_OPTIONS: list[Any] = [
    click.option(
        "--over", required=True, metavar="AXIS",
        help="What to search: cupy, numba, cuda, headers, git:PATH. Also numba-cuda, torch, cutlass and cccl. cuda searches whole toolkits, headers a toolkit's headers under one compiler, git:PATH the commits of a checkout.",
    ),
    click.option("--good", metavar="V", help="A good release. The search begins there. Default: the oldest."),
    click.option("--bad", metavar="V", help="A bad release. The search ends there. Default: the newest, or HEAD of a checkout."),
    click.option("--releases", metavar="V,…", help="Only these releases: 12.0..12.9, or 0.57.1,0.58.1,0.59.0."),
    click.option("--every", is_flag=True, help="Try every release."),
    click.option("--build", "build_command", default="", metavar="COMMAND", help="Command that builds a commit. The shell runs it in the checkout."),
    click.option("--build-timeout", type=Seconds(1, 7 * 86400), default=3600.0, show_default=True, metavar="S", help="Time limit of --build in seconds."),
    cases_option(),
    click.option(
        "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
        help="Also write the records to a file. It keeps records of other cells. Not with git:PATH.",
    ),
    click.option("--git-step", nargs=2, hidden=True),
]  # fmt: skip


def _options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(cls=TryCommand)
@click.argument("what", metavar="CASE|FILE", required=False, default="")
@_options
@axes
@habits
@program_options
def bisect(what: str, over: str, good: str | None, bad: str | None, as_json: bool, **options: Any) -> int:
    """Find the release or commit that changed an outcome.

    CASE is a case, with [name=value] for some of its variants. FILE is CUDA C++ (.cu) or Python (.py).

    \b
    cumatrix bisect cooperative/numba-9432 --over numba
    cumatrix bisect kernel.cu --over cuda --good 12.3 --bad 13.0
    cumatrix bisect kernel.cu -I ../lib/include --over git:../lib --good v1.2 --build make

    \b
    Exit codes: 0 the search ended; 1 an outcome contradicts --good or --bad; 2 bad usage;
    3 no answer, or no commit changes it; 4 a release could not be tried; 130 interrupted.

    cumatrix installs and tests releases for real. It first tests both ends and the first release of each series. Then
    it tests releases between two releases with different outcomes, until the two are neighbours. Releases between two
    equal outcomes are not tested without --every. Status, stage and the compiler's first message together form the
    outcome. Releases without a wheel, and releases that fail to import, are skipped and listed.

    Several targets, backends and variants are searched together and reported separately. If you interrupt a search, the
    same command continues it.

    Without --good and --bad, "broke" and "fixed" follow the case's expectation; a file is expected to build. In a
    checkout, `git bisect run` searches. It refuses a checkout with changes and restores the commit afterwards.
    """
    errors = console_for(sys.stderr)
    git = over.removeprefix("git:") if over.startswith("git:") else None
    if not what:
        known = git is not None or over in ("cuda", "headers", *LIBRARIES, *NAMES)
        raise UsageError(
            "name the case or the file to compile: cumatrix bisect --help" if known else _unknown_axis(over)
        )
    if options["git_step"]:
        folder, old = options["git_step"]
        tried = partial(_records, what, options, errors)
        return step(
            Checkout.at(git or ".", clean=False), CommitLog(Path(folder)), old, tried,
            options["build_command"], options["build_timeout"], errors,
        )  # fmt: skip
    findings = find(what, over, good, bad, options, sys.argv[1:], errors)
    # Commits of --with already have cached results, so repeating the whole search is cheap.
    sides = findings.sides if git is not None or not findings.of_commits else []
    return _end(findings, again(sys.argv[1:], over, sides), as_json=as_json)


def _end(findings: Findings, command: str, *, as_json: bool) -> int:
    """Show the result and return the exit code; a search of commits without a border is an error.

    Raises
    ------
    NothingToRun
        If no commit changes an outcome.
    """
    code = show(findings, command, as_json=as_json)
    if findings.of_commits and not findings.borders and not findings.interrupted:
        first, last = findings.names[0], findings.names[-1]
        raise NothingToRun(f"no commit from {first} to {last} changes an outcome that both ends have")
    return code


def find(
    what: str, over: str, good: str | None, bad: str | None, options: Mapping[str, Any], argv: Sequence[str], errors: Console
) -> Findings:  # fmt: skip
    """Search releases or commits, with progress on a console.

    Parameters
    ----------
    what, over, good, bad, options
        As for the command.
    argv : sequence of str
        Command line, which the steps of a checkout repeat.
    errors : Console
        Console for progress; a quiet one shows none.
    """
    case, request = program_of(what, options), program_request(options)
    if not over.startswith("git:"):
        return _over_releases(case, request, over, good, bad, options, errors)
    if options["releases"] or options["every"] or options["out"]:
        raise UsageError("--releases, --every and --out are not for --over git:PATH, whose commits git chooses")
    return _over_git(over, case, prepare(request), good, bad, argv, errors)


def _over_releases(
    case: Case, request: RunRequest, over: str, good: str | None, bad: str | None, options: Mapping[str, Any], errors: Console
) -> Findings:  # fmt: skip
    if options["build_command"]:
        raise UsageError("--build is for --over git:PATH: releases come as wheels")
    # Environments are made only for the releases that are tested.
    python = replace(request, libraries=(over,)).interpreter
    context = replace(prepare(replace(request, libraries=(), python=python)), request=request)
    axis = axis_of(over, case, context, options["releases"], errors)
    ends = Ends.of(axis.versions, axis.named(good), axis.named(bad), axis.called("").strip())
    hopeless = dict(axis.hopeless)
    if request.offline:
        lacking, wanted = missing_releases(axis, ends.versions)
        hopeless |= lacking
        if lacking:
            errors.print(f"cumatrix: {wanted.offline}", soft_wrap=True, markup=False)
    interrupted = False
    with Progressing(errors) as watch:
        kept = journal_for(case, context, [over])
        found = Bisection(
            axis,
            Search[Lane](ends.versions, every=options["every"], hopeless=hopeless),
            watch,
            install_for,
            kept,
            options["jobs"] or 0,
            options["out"],
        )
        try:
            found.run()
        except KeyboardInterrupt:
            interrupted = True
    places = range(len(ends.versions))
    reasons = {place: why for place in places if (why := hopeless.get(ends.versions[place]))} | found.reasons
    good_of = partial(ends.good_of, found.outcomes)
    groups = groups_of(found.outcomes, good_of)
    names = tuple(map(axis.title, ends.versions))
    borders = tell(names, groups, found.search.borders, axis.called, good_of)
    return Findings(
        over=over,
        versions=ends.versions,
        names=names,
        called=axis.called,
        tried=sorted(found.search.tried),
        reasons=reasons,
        lacking=found.lacking,
        groups=groups,
        borders=borders,
        contradiction=ends.contradiction(found.outcomes, reasons),
        interrupted=interrupted,
    )


def _over_git(
    over: str, case: Case, context: RunContext, good: str | None, bad: str | None, argv: Sequence[str], errors: Console
) -> Findings:
    checkout = Checkout.at(over.removeprefix("git:"))
    argv = without(argv, {"--good", "--bad", "--json"})
    kept = place_for(case, context, [str(checkout.path), *argv], outside=checkout.path)
    with ExitStack() as stack:
        folder = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cumatrix-bisect-")))
        folder.mkdir(exist_ok=True)
        bisection = GitBisection.of(checkout, good, bad, CommitLog(folder), quiet=errors.quiet)
        bisection.log.forget_untestable()
        return findings_of(bisection, over, *search(bisection, argv, errors))


def _records(what: str, options: Mapping[str, Any], errors: Console) -> list[Record]:
    """Compile the current commit and return its records."""
    context, case = for_host_program(prepare(program_request(options)), program_of(what, options), errors)
    cells = cells_of(context, [case])
    with Run(install_for(cells, context), context.request.jobs or usable_cores()) as run:
        records = [result.record("bisect") for result in run.results(cells)]
    counts = Counter(map(Lane.of_commit, records))
    if several := [lane for lane, count in counts.items() if count > 1]:
        raise UsageError(f"--with names several builds for {several[0].backend}, whose cells differ in nothing but the commit: name one")  # fmt: skip
    return records
