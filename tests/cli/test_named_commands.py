"""Commands in messages, hints and remedies exist, with their options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from command import commands_of

import harness
from harness.cli.main import cumatrix

COMMANDS = dict(commands_of(cumatrix))
GROUPS = {name.partition(" ")[0] for name in COMMANDS}
NAMED = re.compile(r"`cumatrix ([^`\n]+)`")
# Placeholders that a message fills in.
FIELD = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")


def _named() -> Iterator[tuple[str, str]]:
    root = Path(harness.__file__).parent
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.toml")]):
        for match in NAMED.finditer(path.read_text("utf-8")):
            yield path.relative_to(root).as_posix(), FIELD.sub(" x", match[1]).replace('\\"', '"')


FOUND = list(dict.fromkeys(_named()))


def test_there_are_such_commands() -> None:
    assert len(FOUND) > 80


@pytest.mark.parametrize(("file", "line"), FOUND)
def test_a_named_command_exists(file: str, line: str) -> None:
    words = shlex.split(line)
    name = next((name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS), "")
    if not name:
        assert words[0] in GROUPS | {"x"}, f"{file}: cumatrix has no command {words[0]}"
        return
    options = {
        spelled
        for parameter in COMMANDS[name].params
        if isinstance(parameter, click.Option)
        for spelled in (*parameter.opts, *parameter.secondary_opts)
    }
    end = words.index("--") if "--" in words else len(words)
    given = {word.partition("=")[0] for word in words[:end] if re.match(r"--?[a-zA-Z]", word)}
    unknown = {word for word in given if word.startswith("--") or len(word) == 2} - options - {"-h", "--help"}
    assert not unknown, f"{file}: cumatrix {name} has no {unknown}"
