"""Help: the help of every command fits on a screen, and ``cumatrix help`` contains all of it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from harness.cli.main import COMMAND_GROUPS, COMMANDS, cumatrix

SCREEN = 60


def commands(
    group: click.Group = cumatrix, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


ALL = dict(commands())


def shown(*words: str) -> str:
    done = CliRunner().invoke(cumatrix, words, prog_name="cumatrix", terminal_width=80)
    assert done.exit_code == 0, done.output
    return done.output


def test_every_command_is_in_one_group() -> None:
    assert sorted(name for names in COMMAND_GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_it_fits_on_a_screen(words: tuple[str, ...]) -> None:
    text = shown(*words, "--help")
    assert len(text.splitlines()) < SCREEN
    assert "  \\b" not in text and "\x08" not in text


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_it_names_every_option_and_help_explains_each(words: tuple[str, ...]) -> None:
    brief = shown(*words, "--help").replace("-\n", "-")  # a name that is longer than its line
    text = shown("help", *words)
    assert text.splitlines()[0].startswith(f"Usage: cumatrix {' '.join(words)}") and len(text.splitlines()) > 5
    whole = " ".join(text.split())
    for option in ALL[words].params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.opts[0] in brief
            assert " ".join((option.help or "").split()[:3]) in whole


def test_a_command_that_is_none_is_an_error() -> None:
    done = CliRunner().invoke(cumatrix, ["help", "cases", "lost"])
    assert done.exit_code == 2
    assert "no command 'cases lost'" in done.output
