"""``cumatrix init``."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import click

from harness.cases.toml import read_toml_text
from harness.cli.command import Command
from harness.cli.terminal import say
from harness.diagnostics import one_line
from harness.errors import NothingToRun, UsageError
from harness.project.config import TABLE, read_config
from harness.project.detect import look
from harness.project.discovery import OWN, PYPROJECT
from harness.project.discovery import found as configuration
from harness.project.init import proposal
from harness.project.programs import configured
from harness.records.files import replace_files


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--own", is_flag=True, help=f"Write {OWN}. Default: into {PYPROJECT} where there is one, else {OWN}.")
def init(*, dry_run: bool, own: bool) -> int:
    """Write a configuration for this project.

    init reads setup.py (CUDAExtension), compile_commands.json or CMakeLists.txt, other CUDA C++ files (.cu) with their include directories,
    and Python files with Numba kernels. It runs and copies nothing. It lists what it leaves out, with the reason. It does not overwrite a
    configuration.

    \b
    cumatrix init --dry-run
    cumatrix init && cumatrix run
    """
    root = Path.cwd()
    there = configuration(root)
    if there:
        raise UsageError(
            f"{os.path.relpath(there)} configures cumatrix already: `cumatrix config` shows what it says; --dry-run shows nothing new"
        )
    seen = look(root)
    for text in seen.left_out:
        say(f"left out: {one_line(text, 500)}", err=True)
    if not seen.programs:
        raise NothingToRun(
            "found no setup.py with a CUDAExtension, no compile_commands.json, no CMakeLists.txt with CUDA, no CUDA C++ (.cu) and no Python with typed Numba kernels here: "
            "name files in cumatrix.toml, or try one with `cumatrix try FILE`"
        )
    shared = (root / PYPROJECT).is_file() and not own
    path = root / (PYPROJECT if shared else OWN)
    block = proposal(seen, TABLE if shared else ())
    for line in block.rstrip().splitlines():
        say(line)
    if dry_run:
        return 0
    before = read_toml_text(path, path.name) if shared else ""
    text = f"{before.rstrip()}\n\n{block}" if before.strip() else block
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path.name} cannot take a table [tool.cumatrix] at its end ({error}): --own writes {OWN}"
        ) from None
    replace_files({path: text.encode()})
    programs = configured(read_config(path))
    say(
        f"{path.name}: {len(programs)} program{'s' if len(programs) != 1 else ''}; `cumatrix config` shows them, `cumatrix run` compiles them",
        err=True,
    )
    return 0
