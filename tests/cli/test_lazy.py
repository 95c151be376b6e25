"""Commands that are imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from harness.cli.main import COMMANDS, cumatrix


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_it_is_said_to_be(name: str) -> None:
    command = cumatrix.get_command(click.Context(cumatrix), name)
    assert isinstance(command, click.Command)
    assert command.name == name


def test_help_says_what_the_commands_say_of_themselves() -> None:
    shown = CliRunner().invoke(cumatrix, ["--help"], prog_name="cumatrix").output
    context = click.Context(cumatrix)
    for name in COMMANDS:
        command = cumatrix.get_command(context, name)
        assert command is not None
        first = command.get_short_help_str(60).removesuffix("...")
        assert f"  {name} " in shown
        assert first in " ".join(shown.split()), name


def test_help_imports_no_command() -> None:
    code = "import sys; from click.testing import CliRunner; from harness.cli.main import cumatrix; "
    code += "CliRunner().invoke(cumatrix, ['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert not {module.partition(":")[0] for module in COMMANDS.values()} & loaded
    assert not {"pandas", "harness.engine", "harness.cases"} & loaded


def test_a_command_that_is_none() -> None:
    done = CliRunner().invoke(cumatrix, ["runn"], prog_name="cumatrix")
    assert done.exit_code == 2
    assert "No such command 'runn'" in done.output
