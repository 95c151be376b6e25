"""docs/configuration.md has every key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from harness.project.keys import CONFIG, NAMED, SETTINGS

TEXT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def test_every_key_and_variable_is_explained() -> None:
    words = set(re.findall(r"`([^`\n]+)`", TEXT))
    assert set(CONFIG) - {"programs"} | set(NAMED) <= words | {"features", "links"}
    assert {setting.variable for setting in SETTINGS.values() if setting.variable} <= words


def test_every_example_has_known_keys() -> None:
    for block in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL):
        table = tomllib.loads(block)["tool"]["cumatrix"]
        assert set(table) <= set(CONFIG)
        assert all(set(program) <= set(NAMED) for program in table.get("programs", []))
