"""Options with a single value."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from command import commands_of

from harness.cli.main import cumatrix

COMMANDS = dict(commands_of(cumatrix))
SINGLE = [
    (name, option)
    for name, command in COMMANDS.items()
    for parameter in command.params
    if isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag or parameter.hidden)
    for option in parameter.opts
]


@pytest.mark.parametrize(("name", "option"), SINGLE)
def test_an_option_of_one_value_is_not_given_twice(name: str, option: str) -> None:
    given = [f"{option}={value}" if option.startswith("--") else f"{option}{value}" for value in ("true", "false")]
    if len(option) > 2 and not option.startswith("--"):  # -std, -arch
        given = [word for value in ("true", "false") for word in (option, value)]
    with pytest.raises(click.UsageError) as caught:
        COMMANDS[name].make_context(name, [given[0], *given[1:]], obj=None)
    assert "is given 2 times and has one value" in caught.value.message
    assert option in caught.value.message


def test_there_are_such_options() -> None:
    assert {
        ("run", "--python"),
        ("run", "-t"),
        ("try", "-std"),
        ("report", "--out"),
        ("history add", "--history"),
    } <= set(SINGLE)


def test_the_same_option_by_two_names_is_given_twice() -> None:
    with pytest.raises(click.UsageError, match=r"-t/--toolkit is given 2 times .* commas between"):
        COMMANDS["run"].make_context("run", ["-t", "12.4", "--toolkit", "13.0"])


def test_flags_and_lists_may_be_given_again() -> None:
    context = COMMANDS["run"].make_context("run", ["--json", "--json", "--require", "numpy", "--require", "numba"])
    assert context.params["as_json"] is True
    assert context.params["require"] == ("numpy", "numba")


def test_a_value_that_looks_like_an_option_is_a_value() -> None:
    context = COMMANDS["try"].make_context("try", [__file__, "--option", "-a", "-a", "80", "-Xptxas", "-a"])
    assert (context.params["extra"], context.params["targets"]) == (("-a",), "80")


def _with_groups(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            if found:
                yield from _with_groups(found)


def test_each_command_and_group_has_two_names_of_help() -> None:
    """Also in a context without cumatrix's settings: click stores the option in the command."""
    for command in _with_groups(cumatrix):
        if command is not cumatrix:
            assert command.get_help_option_names(click.Context(command)) == ["-h", "--help"], command.name
