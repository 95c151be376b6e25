"""Options of commands that take a file without a case: what it is compiled with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.axes import request_of
from harness.cli.habits import rules_of, targets_of
from harness.cli.programs import place_of, programs_of, tried
from harness.engine.session import Request
from harness.hints import hint
from harness.model import Case
from harness.project.commands import unit_of
from harness.project.units import with_unit


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    options = [
        click.option(
            "-I", "include", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
            help="A further include directory.",
        ),
        click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help="A macro, or a constant of a Python module."),
        click.option("--std", "-std", metavar="STD", help="C++ dialect, such as c++17."),
        click.option(
            "--option", "extra", multiple=True, metavar="[BACKEND:]OPTION",
            help="An option for the compilers, as it is, or for one backend alone: --option=-default-device, --option nvcc:-lineinfo.",
        ),
        click.option(
            "--compile-commands", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="JSON",
            help="A build's compile_commands.json: each file is compiled with its own command line in there (-I, -D, -std, what else compilers know). What is left out is said.",
        ),
        click.option("--device-only", is_flag=True, help="nvcc: leave the host pass out."),
        click.option("--toolkit-first", is_flag=True, help="The toolkit's include directories in front of -I and --library, as with nvcc's -isystem; else they stand behind."),
        click.option("--signature", multiple=True, metavar="NAME=SIG", help="Signature of a Numba kernel: 'axpy=void(float32[:])'."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def programs_asked(files: Sequence[Path], options: Mapping[str, Any]) -> list[Case]:
    """A case for each file, with the options that click has read."""
    rules = rules_of(options, options["extra"])
    cases = programs_of(
        files, include=options["include"], define=options["define"], rules=rules, signatures=options["signature"]
    )
    return of_build(cases, options["compile_commands"])


def of_build(cases: Sequence[Case], database: Path | None) -> list[Case]:
    """The programs as a build compiles them, where one is named; says what of its command lines is left out."""
    if not database:
        return list(cases)
    found = []
    for case in cases:
        source = next(iter(case.sources.values()))
        unit = unit_of(database, source)
        if unit.dropped:
            hint(f"{case.name}: of its command line in {database} is left out: {' '.join(unit.dropped)}")
        built = with_unit(case, unit, database)
        found.append(built if case.program else tried(built, place_of(source)))
    return found


def program_request(options: Mapping[str, Any], **more: Any) -> Request:
    """The request that such options make."""
    asking = {**options, "targets": targets_of(options)}
    return request_of(asking, include=tuple(folder.resolve() for folder in options["include"]), **more)
