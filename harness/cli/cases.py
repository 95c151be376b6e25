"""``cumatrix cases``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

import click

from harness.cli import complete
from harness.cli.command import CommandGroup
from harness.cli.options import all_cases_option, cases_option
from harness.cli.terminal import say, say_json, say_rows
from harness.errors import UsageError, did_you_mean
from harness.project.current import programs_here
from harness.protocol.text import counted

if TYPE_CHECKING:
    from harness.cases.library import CaseSummary

_NAMES = 50
_FOLDER = all_cases_option(name="root")


@click.group(cls=CommandGroup)
def cases() -> None:
    """List, check, create and copy cases."""


@cases.command("list")
@click.argument("selection", nargs=-1, metavar="[CASE]…", shell_complete=complete.cases)
@_FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a case.")
def list_(selection: tuple[str, ...], root: tuple[Path, ...], as_json: bool) -> int:
    """List the topics of cases, or the cases of a topic.

    CASE is a topic (wmma), a case (wmma/fragments) or a path. Without a folder of cases, list shows cumatrix's own
    cases. --json prints every case with its features, languages and upstream pages.

    \b
    cumatrix cases list
    cumatrix cases list wmma shared-memory/static
    """
    from harness.cases.discovery import load_cases
    from harness.cases.library import summary_of

    programs = programs_here()
    if root == (Path("cases"),) and not root[0].exists() and not programs:
        from harness.cases.sources import packaged_cases

        root = (packaged_cases(),)
    found = [summary_of(case) for case in load_cases(root, selection, programs)]
    if as_json:
        for summary in found:
            say_json(summary.to_json())
        return 0
    topics = Counter(summary.topic for summary in found)
    say_rows(_cases(found) if selection else _topics(found, topics), bold={0})
    more = "" if selection else ": `cumatrix cases list TOPIC` lists those of a topic"
    say(f"{counted(len(found), 'case')} in {counted(len(topics), 'topic')}{more}", err=True)
    return 0


def _topics(found: Sequence[CaseSummary], topics: Mapping[str, int]) -> list[tuple[str, ...]]:
    from harness.cases.discovery import library_topics, topic_rank

    known = library_topics()
    rows: list[tuple[str, ...]] = [("topic", "cases", "about", "names")]
    for topic, count in sorted(topics.items(), key=lambda item: topic_rank(item[0])):
        names = [summary.name.removeprefix(f"{topic}/") for summary in found if summary.topic == topic]
        about = known[topic].title if topic in known else ""
        rows.append((topic, str(count), about, shorten(", ".join(names), _NAMES, placeholder=" …")))
    return rows


def _cases(found: Sequence[CaseSummary]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("case", "variants", "backends", "title")]
    rows += [(each.name, str(each.variants), " ".join(each.backends), each.title) for each in found]
    return rows


@cases.command()
@click.argument("selection", nargs=-1, metavar="[CASE]…", shell_complete=complete.cases)
@_FOLDER
@click.option("--write-schema", is_flag=True, help="Also write the JSON Schema for editors, next to the cases.")
def check(selection: tuple[str, ...], root: tuple[Path, ...], **options: bool) -> int:
    """Check cases and the project's configuration without compiling anything."""
    from harness.cases.discovery import load_cases
    from harness.cases.library import check as check_cases
    from harness.cases.schema import write_schema

    for folder in root if options["write_schema"] else ():
        write_schema(folder / "case.schema.json")
    programs = programs_here()
    # Names of configured programs are not cases in a folder.
    names = {case.name for case in load_cases((), (), programs)}
    wanted = [item for item in selection if item not in names]
    problems = check_cases(root, wanted, needed=not programs) if wanted or not selection else []
    for problem in problems:
        say(f"cumatrix: {problem}", err=True)
    if not problems:
        say(f"{counted(len(load_cases(root, selection, programs)), 'case')} checked: no problems", err=True)
    return 2 if problems else 0


@cases.command()
@click.argument("name", metavar="TOPIC/NAME")
@click.option(
    "--from",
    "origin",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A program of the project (.cu, .py). The case references it in place; nothing is copied.",
)
@cases_option(name="root")
def new(name: str, origin: Path | None, root: Path) -> int:
    """Write a case that runs: case.toml, and by default a small program.

    \b
    cumatrix cases new demo/scale && cumatrix run demo/scale
    cumatrix cases new csrc/softmax --from csrc/softmax.cu
    """
    from harness.project.init import new_case

    for path in new_case(name, root, origin):
        say(path)
    option = "" if root == Path("cases") else f" --cases {shlex.quote(str(root))}"
    say(f"`cumatrix run {name}{option}` runs it", err=True)
    return 0


@cases.command("copy")
@click.argument("names", nargs=-1, metavar="[CASE|TOPIC]…", shell_complete=complete.cases)
@click.option(
    "--to", "folder", type=click.Path(path_type=Path), default=Path("cases"), show_default=True, metavar="FOLDER",
    help="The folder of cases to copy to.",
)  # fmt: skip
def copy(names: tuple[str, ...], folder: Path) -> int:
    """Copy cumatrix's own cases to a folder: the named ones, or all.

    Nothing is overwritten. Without names, the folder must be empty or missing. A single name that is neither a case nor
    a topic is the folder: `cumatrix cases copy my-cases` copies the library to my-cases.

    \b
    cumatrix cases copy shared-memory/static
    cumatrix cases copy wmma atomics/bfloat16 --to tests/cases
    """
    from harness.cases.discovery import find_cases
    from harness.cases.library import copy_cases, copy_some
    from harness.cases.sources import packaged_cases

    root = packaged_cases()
    places = {path.parent.relative_to(root).as_posix() for path in find_cases(root)}
    known = places | {place.partition("/")[0] for place in places}
    selection = [name.strip("/") for name in names]
    if len(selection) == 1 and selection[0] not in known:
        folder, selection = Path(names[0]), []
    if unknown := [name for name in selection if name not in known]:
        raise UsageError(f"no case or topic of the library is called {unknown[0]!r}{did_you_mean(unknown[0], known)}")
    count = len(copy_some(selection, folder)) if selection else copy_cases(folder)
    option = "" if folder == Path("cases") else f" --cases {shlex.quote(str(folder))}"
    say(
        f"{counted(count, 'case')} copied to {folder}: `cumatrix run{''.join(f' {name}' for name in selection)}{option}` runs {'it' if count == 1 else 'them'}",
        err=True,
    )
    return 0
