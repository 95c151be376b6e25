"""``cumatrix libraries``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from rich.filesize import decimal

from harness.cli.command import CommandGroup
from harness.cli.progress import shown_on
from harness.cli.terminal import console_for, say
from harness.engine.environment import Environment
from harness.engine.environments import line_up
from harness.engine.install import Missing, steps
from harness.environments.index import Index
from harness.environments.releases import NAMES, Published, choose, is_version, parse_with, published
from harness.environments.store import EnvironmentStore, Made
from harness.errors import CumatrixError, PartUnavailable, UsageError, did_you_mean
from harness.libraries import LIBRARIES
from harness.matrix.ranges import spell
from harness.toolkits.store import data_folder

_TOOLKIT = click.option(
    "-t", "--toolkit", "toolkits", metavar="V,…",
    help="CUDA releases for the environments: CuPy has a wheel for each major one. Default: one from the release date of the library.",
)  # fmt: skip
_PYTHON = click.option(
    "--python", metavar="V,…", help="Versions of Python. Default: cumatrix's own, or an installed one with a wheel of the release."
)  # fmt: skip


@click.group(cls=CommandGroup)
def libraries() -> None:
    """Install and remove library releases, each in its environment.

    `cumatrix run --with NAME=V` installs the releases that it needs. They are stored in CUMATRIX_HOME, by default the
    user's data folder.

    \b
    cumatrix libraries list cupy
    cumatrix libraries install cupy=12,13.0,13.1..14 -t 12.4,13.0
    cumatrix libraries remove cupy=12
    """


@libraries.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--installed", is_flag=True, help="Only releases with an environment here, without reading the index.")
@click.option("--offline", is_flag=True, help="Use the last answer of the index, regardless of its age.")
def list_(names: tuple[str, ...], installed: bool, offline: bool) -> int:
    """List the releases in the index, oldest first, with the installed ones.

    Each line shows the day of the release, the versions of Python with wheels for this machine, the major CUDA releases
    with wheels, and the size of installed environments.
    """
    store, index = EnvironmentStore(), Index(data_folder() / "index", offline=offline)
    store.sweep()
    there: dict[tuple[str, str], list[Made]] = {}
    for made in store.installed():
        there.setdefault((made.library, made.version), []).append(made)
    for name in _known(names):
        releases = [] if installed else _worth_listing(name, published(name, index))
        rows = [_line(each, there.pop((name, str(each.version)), [])) for each in releases]
        # Installed releases are also listed if the index lacks them or is not read.
        rows += [
            f"{name:10}  {version:9}  {made[0].released or '-':10}  {_made(made)}"
            for (library, version), made in sorted(there.items()) if library == name
        ]  # fmt: skip
        for line in rows:
            say(line)
    return 0


def _known(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in NAMES:
            raise UsageError(f"unknown library {name!r}{did_you_mean(name, NAMES)}")
    return names or NAMES


def _worth_listing(name: str, releases: list[Published]) -> list[Published]:
    return choose(parse_with(f"{name}=all"), releases) if releases else []


def _line(release: Published, made: Sequence[Made]) -> str:
    pythons = release.pythons()
    python = f"Python {spell(pythons, to='–')}" if pythons else "no wheel here"
    cuda = f"CUDA {','.join(map(str, release.majors))}" if release.majors else "any CUDA"
    if not release.majors and LIBRARIES[release.library].follows_runtime:
        cuda = "its own CUDA"
    return f"{release.library:10}  {release.version!s:9}  {release.day or '-':10}  {python:17}  {cuda:13}  {_made(made)}".rstrip()


def _made(made: Sequence[Made]) -> str:
    return "installed: " + ", ".join(_spelled(each) for each in made) if made else "-"


def _spelled(made: Made) -> str:
    wheel = next(name for name in LIBRARIES[made.library].distributions if name in made.packages)
    what = f"{wheel}, " if wheel != made.library else ""
    return f"{what}Python {made.interpreter.minor}, {decimal(made.size())}"


@libraries.command("install")
@click.argument("wanted", nargs=-1, required=True, metavar="NAME=V,…")
@_TOOLKIT
@_PYTHON
@click.option("--force", is_flag=True, help="Create existing environments again.")
def install_(wanted: tuple[str, ...], toolkits: str | None, python: str | None, force: bool) -> int:
    """Create environments: cupy=12,13.0,13.1..14, numba=all, cupy=13.6.0+cuda13.

    `cumatrix run --with` uses them. Existing environments stay unchanged.
    """
    console = console_for(sys.stderr)
    planned = [each for text in wanted for each in _line_up(text, toolkits, python)]
    store = EnvironmentStore()
    here = [each for each in planned if each.broken]
    to_do = [each for each in planned if not each.broken and (force or not each.python)]
    under = None
    problems = [next(iter(each.broken.values())) for each in here]
    if to_do:
        found = steps(Missing(environments=to_do), Index(data_folder() / "index"), console.print, force=force)
        under = shown_on(console)(found)
        for step in found:
            try:
                with under(step):
                    step.run()
            except CumatrixError as error:
                problems.append(str(error))
    for each in planned:
        made = store.find(each.resolved) if each.resolved and not each.broken else None
        if made:
            console.print(f"{each.name}: {made.home}", soft_wrap=True)
    if problems:
        raise PartUnavailable("; ".join(dict.fromkeys(problems)))
    return 0


def _line_up(text: str, toolkits: str | None, python: str | None) -> tuple[Environment, ...]:
    """Return the environments of an argument, which may name CUDA and Python: ``cupy=13.6.0+cuda13+python3.13``."""
    spec, *marks = text.split("+")
    for mark in marks:
        if mark.startswith("cuda") and mark.removeprefix("cuda").isdigit():
            toolkits = mark.removeprefix("cuda")
        elif mark.startswith("python") and is_version(mark.removeprefix("python")):
            python = mark.removeprefix("python")
        else:
            spec += f"+{mark}"
    try:
        return line_up([spec], toolkits, python)
    except UsageError as error:
        raise UsageError(str(error).removeprefix("--with ")) from None


@libraries.command()
@click.argument("wanted", metavar="NAME=V")
@_TOOLKIT
@_PYTHON
def path(wanted: str, toolkits: str | None, python: str | None) -> int:
    """Print the interpreter of an installed environment."""
    store = EnvironmentStore()
    for each in _line_up(wanted, toolkits, python):
        made = store.find(each.resolved) if each.resolved and not each.broken else None
        if made is None:
            raise PartUnavailable(f"{each.name} is not installed: run `cumatrix libraries install {wanted}`")
        say(made.python)
    return 0


@libraries.command()
@click.argument("wanted", nargs=-1, required=True, metavar="NAME[=V]…")
def remove(wanted: tuple[str, ...]) -> int:
    """Remove environments: all of a library (cupy), or those of a release (cupy=13.6.0) or series (cupy=13). Wheels stay in uv's cache."""
    store = EnvironmentStore()
    store.sweep()
    removed = False
    for text in wanted:
        name, _, version = text.partition("=")
        _known([name])
        parts = version.lstrip("=").split(".") if version else []
        chosen = [
            each
            for each in store.installed()
            if each.library == name and each.version.split(".")[: len(parts)] == parts
        ]
        for made in chosen:
            size = made.size()
            store.remove(made)
            removed = True
            say(f"{made.key}: removed, {decimal(size)}", err=True)
        if not chosen:
            say(f"{text}: was not installed", err=True)
    if removed:
        say("their wheels stay in uv's cache, and most of the room with them: `uv cache clean NAME` frees it", err=True)
    return 0
