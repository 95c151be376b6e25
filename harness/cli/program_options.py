"""Options of commands that take a file without a case: what it is compiled with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


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
