"""Pythons of this machine, and users' names of their versions."""

from __future__ import annotations

import pytest

from harness.environments import releases as module
from harness.environments.releases import OWN, Python, is_version, parse_pythons, pythons, tags_of
from harness.errors import PartUnavailable, UsageError


def test_ours_is_the_first() -> None:
    assert pythons()[0] == OWN
    assert len({each.number for each in pythons()}) == len(pythons())


@pytest.mark.parametrize("text", ["3.9", "3.13", "3.11.7"])
def test_versions_are_told_from_paths(text: str) -> None:
    assert is_version(text) and not is_version(f"/usr/bin/python{text}") and not is_version(f"python{text}")


def test_versions_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Python("/usr/bin/python3.9", "3.9.18")
    monkeypatch.setattr(module, "pythons", lambda: (OWN, other))
    assert parse_pythons(f"3.9,{OWN.minor},3.9.18") == [other, OWN]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("three", "is no version of Python such as 3.13"),
        (",", "names no version"),
        ("3.8", "run in Python 3.9 and later"),
        ("3.9,2.7", "Python 3.9 and later, not in 2.7"),
    ],
)
def test_what_is_no_version_is_said(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "pythons", lambda: (OWN, Python("/usr/bin/python3.9", "3.9.18")))
    with pytest.raises(UsageError, match=said):
        parse_pythons(text)


def test_a_python_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake uv that cannot fetch a Python."""
    monkeypatch.setattr(module, "_uv", lambda *words: "")
    monkeypatch.setattr(module, "pythons", lambda: (OWN,))
    with pytest.raises(
        PartUnavailable, match=rf"this machine has no Python 3\.19, and uv cannot fetch one; it has {OWN.minor}"
    ):
        parse_pythons("3.19")


def test_tags_are_those_of_the_version() -> None:
    assert any(tag.interpreter == "cp39" for tag in tags_of((3, 9))) and not any(
        tag.interpreter == "cp310" for tag in tags_of((3, 9))
    )
