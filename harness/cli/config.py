"""``cumatrix config``."""

from __future__ import annotations

import os
import sys
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from harness.cli.command import Command
from harness.cli.terminal import console_for, say, say_json
from harness.diagnostics import one_line
from harness.model import Case
from harness.project.config import Config, config_schema
from harness.project.current import here
from harness.project.keys import SETTINGS
from harness.project.programs import configured
from harness.project.trust import is_trusted, line_of, needs_trust


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a setting and a program.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of cumatrix.toml, for editors.")
def config(*, as_json: bool, schema: bool) -> int:
    """Show the settings of this project and their sources.

    [tool.cumatrix] in pyproject.toml, or cumatrix.toml, in this folder or a parent gives the defaults. An environment variable overrides
    the file, and an option overrides both. docs/configuration.md lists every key.

    \b
    cumatrix init                        write the file for this project
    cumatrix config                      show settings and programs
    cumatrix config --schema > cumatrix.schema.json
    """
    if schema:
        say_json(config_schema())
        return 0
    project = here()
    programs = configured(project)
    settings = [_setting(project, name) for name in SETTINGS]
    if as_json:
        for each in settings:
            say_json(each)
        for case in programs:
            say_json({"program": case.name, "files": [str(path) for path in (*case.sources.values(), *case.together)]})
        return 0
    console = console_for(sys.stdout)
    say(f"configuration: {project.shown or 'none: `cumatrix init` writes one'}")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("key", "value", "from"):
        table.add_column(heading, overflow="fold")
    for each in settings:
        table.add_row(each["key"], Text(one_line(each["value"])), Text(each["from"]))
    console.print(table)
    if named := needs_trust(project):
        trusted = "trusted" if is_trusted(project, named) else "not trusted: `cumatrix trust` allows it"
        for value in named:
            say(f"line {value.line}: {line_of(value)} ({trusted})")
    for case in programs:
        console.print(Text(one_line(_program(case), 500)), soft_wrap=True)
    return 0


def _setting(project: Config, name: str) -> dict[str, Any]:
    setting = SETTINGS[name]
    if setting.variable and os.environ.get(setting.variable):
        return {"key": name, "value": os.environ[setting.variable], "from": setting.variable}
    if name in project.values:
        value = project.values[name]
        text = (
            ", ".join(value)
            if isinstance(value, list)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
        )
        return {"key": name, "value": text, "from": f"{project.shown}:{project.lines[name]}"}
    return {"key": name, "value": setting.default, "from": "default"}


def _program(case: Case) -> str:
    (language,) = case.sources
    parts = [
        f"program {case.name}: {'PyTorch' if language == 'torch' else 'CUDA C++' if language == 'cuda' else 'Python'}"
    ]
    if case.together:
        parts.append(f"{len(case.together) + 1} files")
    if len(case.variants) > 1:
        parts.append(f"{len(case.variants)} variants")
    rules = len(case.expectations) + len(case.unsupported)
    return ", ".join([*parts, *([f"{rules} expectations"] if rules else [])])
