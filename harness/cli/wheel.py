"""``cumatrix wheel``: the GPUs that a binary runs on."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.command import Command
from harness.cli.terminal import say, say_commands, say_json
from harness.errors import UsageError
from harness.model.gpus import DEFAULT_GPUS, Gpu, parse_gpus
from harness.model.target import TargetError

if TYPE_CHECKING:
    from harness.wheels.gate import Requirement
    from harness.wheels.sources import Found

_FORMS = ("github", "sarif", "gitlab")


class _Gpus(click.ParamType):  # type: ignore[type-arg]  # generic in new releases of click only
    """A list of GPUs in the user's spelling."""

    name = "gpus"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the GPUs."""
        try:
            return parse_gpus(value) if isinstance(value, str) else value
        except TargetError as error:
            self.fail(str(error), param, ctx)


GPUS = _Gpus()
"""Parameter type of options that name GPUs."""


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[FILE|NAME[==VERSION]|FOLDER]…")
@click.option(
    "--gpu",
    "gpus",
    type=GPUS,
    metavar="GPUS",
    help="GPUs to show: sm_75..sm_121, or names, as in 'RTX 5090,H100'. Default: those of --require, else one of each compute capability from 7.0 on.",
)
@click.option(
    "--require",
    "required",
    type=GPUS,
    metavar="GPUS",
    help="Exit with 1 if a library does not run on one of these GPUs, and name what is missing.",
)
@click.option("--native", is_flag=True, help="With --require: compilation by the driver (JIT) does not count.")
@click.option("--complete", is_flag=True, help="With --require: each fatbin of a library must run, not only some.")
@click.option(
    "--since",
    is_flag=True,
    help="With --require and NAME: the first release that lacks nothing, by bisection over the index's wheels.",
)
@click.option(
    "--kernels",
    is_flag=True,
    help="Read the names of all kernels. Default: only of kernels without code that the rest of the library has.",
)
@click.option(
    "--tag",
    default="",
    metavar="TEXT",
    help="Take the wheel with this in its file's name: aarch64, cp312. Default: this machine's.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
    help="Print the gaps of --require as GitHub's annotations, SARIF, or GitLab's report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else there.")
def wheel(
    sources: tuple[str, ...], gpus: list[Gpu] | None, required: list[Gpu] | None, native: bool, complete: bool, since: bool,
    kernels: bool, tag: str, form: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Show which GPUs a wheel, a library or an environment runs on.

    A source is a wheel, a library, an executable, an archive (.a), a fatbin, a cubin, PTX, a folder such as an
    environment, or a requirement, whose wheel is downloaded. wheel executes nothing of it. Two wheels of one package
    are compared; the exit code is then 1 if a GPU is lost.

    \b
    cumatrix wheel dist/mine-1.0-cp311-cp311-linux_x86_64.whl
    cumatrix wheel dist/*.whl --require sm_75..sm_121
    cumatrix wheel torch==2.11.0 --require 'RTX 5090,H100' --native
    cumatrix wheel bitsandbytes==0.49.0 bitsandbytes==0.50.2
    cumatrix wheel bitsandbytes --require 'RTX 5090' --since
    cumatrix wheel .venv --gpu 'RTX 5090'
    """
    if not sources:
        raise UsageError("name a wheel, a library, a folder or a requirement: see cumatrix wheel --help")
    if (native or complete or form) and not required:
        raise UsageError("--native, --complete and --format go with --require")
    if since and (not required or form or len(sources) != 1):
        raise UsageError("--since goes with --require and one NAME, and without --format")
    if form and as_json:
        raise UsageError("--format and --json exclude each other")
    from harness.wheels.gate import Requirement, missing

    shown = gpus or required or parse_gpus(DEFAULT_GPUS)
    requirement = Requirement(tuple(required or ()), native, complete)
    if since:
        return _since(sources[0], requirement, tag, as_json=as_json)
    found = _read(sources, tag, shown, every_name=kernels)
    from harness.cli import wheel_output as output

    if _compared(found) and not required:
        return output.comparison(found[0], found[1], shown, as_json=as_json)
    lacking = missing(found, requirement)
    if as_json:
        say_json(output.to_json(found, shown, lacking, requirement))
    elif form == "github":
        say_commands(output.github_lines(lacking))
    elif form:
        say_json(output.document(form, lacking))
    else:
        for each in found:
            output.show(each, shown, every_name=kernels)
        output.show_missing(lacking, requirement)
    return 1 if lacking else 0


def _read(sources: Sequence[str], tag: str, gpus: Sequence[Gpu], *, every_name: bool) -> list[Found]:
    from harness.environments.index import Index
    from harness.toolkits.store import data_folder
    from harness.wheels.fetch import choose, fetched, requirement_of
    from harness.wheels.sources import needs_code, read_source

    index = Index(data_folder() / "index")
    found = []
    for text in sources:
        paths = (
            [Path(text)]
            if text and Path(text).exists()
            else [Path(each) for each in sorted(glob.glob(text, recursive=True))]
        )
        if not paths:
            requirement = requirement_of(text)
            if requirement is None or "/" in text:
                raise UsageError(
                    f"{text or 'an empty name'} is no file and no folder that is there, and no requirement such as bitsandbytes==0.50.2"
                )
            chosen = choose(requirement, index, tag)
            with ExitStack() as stack:
                path = stack.enter_context(fetched(chosen, lambda sentence: say(sentence, err=True)))
                found.append(read_source(path, chosen.file.name, gpus=gpus, every_name=every_name))
        found += [read_source(path, gpus=gpus, every_name=every_name) for path in paths]
    for each in found:
        needs_code(each)
    return found


def _since(text: str, required: Requirement, tag: str, *, as_json: bool) -> int:
    """Search the releases of a package; return 1 if the newest lacks something."""
    from harness.environments.index import Index
    from harness.toolkits.store import data_folder
    from harness.wheels.fetch import Chosen, fetched, releases, requirement_of
    from harness.wheels.gate import Missing, missing, since
    from harness.wheels.sources import read_source

    requirement = requirement_of(text)
    if requirement is None or Path(text).exists():
        raise UsageError(f"--since reads the releases of a package in the index, and {text} is none")
    steps: list[dict[str, Any]] = []

    def read(chosen: Chosen) -> list[Missing] | None:
        with fetched(chosen, lambda sentence: say(sentence, err=True)) as path:
            found = read_source(path, chosen.file.name)
        lacking = missing([found], required) if found.libraries else None
        words = "no device code" if lacking is None else "lacks nothing"
        if lacking:
            words = f"{lacking[0].library} lacks {lacking[0].gpu}"
        steps.append({"version": str(chosen.version), "file": found.name, "sha256": found.sha256, "outcome": words})
        say(f"{requirement.name} {chosen.version}: {words}", err=True)
        return lacking

    every = releases(requirement, Index(data_folder() / "index"), tag)
    outcome = since(every, read)
    first, before = (str(each.version) if each else "" for each in (outcome.first, outcome.before))
    names = ", ".join(map(str, required.gpus))
    if as_json:
        say_json(
            {"schema": 1, "package": requirement.name, "first": first, "before": before, "releases": len(every), "read": steps}
        )  # fmt: skip
    elif first:
        end = f"{before} lacks something" if before else "the oldest wheel"
        say(f"{requirement.name} runs on {names} since {first} ({end}; {outcome.read} of {len(every)} releases read)")
    else:
        say(f"{requirement.name} {before}, the newest, lacks something for {names}")
    return 0 if first else 1


def _compared(found: Sequence[Found]) -> bool:
    """Return whether two sources are wheels of one package in different versions."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    if len(found) != 2:
        return False
    try:
        (one, before, *_), (other, after, *_) = (parse_wheel_filename(Path(each.name).name) for each in found)
    except InvalidWheelFilename:
        return False
    return one == other and before != after
