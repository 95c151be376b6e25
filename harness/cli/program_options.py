"""Options of commands that take a file without a case: what it is compiled with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.axes import request_of
from harness.cli.habits import rules_of, targets_of
from harness.cli.programs import programs_of
from harness.engine.session import Request
from harness.model import Case


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
        click.option("--device-only", is_flag=True, help="nvcc: leave the host pass out."),
        click.option("--signature", multiple=True, metavar="NAME=SIG", help="Signature of a Numba kernel: 'axpy=void(float32[:])'."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def programs_asked(files: Sequence[Path], options: Mapping[str, Any]) -> list[Case]:
    """A case for each file, with the options that click has read."""
    rules = rules_of(options, options["extra"])
    if options["device_only"]:
        rules[()]["depth"] = "device"
    return programs_of(
        files, include=options["include"], define=options["define"], rules=rules, signatures=options["signature"]
    )


def program_request(options: Mapping[str, Any], **more: Any) -> Request:
    """The request that such options make."""
    asking = {**options, "targets": targets_of(options)}
    return request_of(asking, include=tuple(folder.resolve() for folder in options["include"]), **more)
