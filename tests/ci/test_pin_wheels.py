"""``.ci/pin_wheels.py``, with a fake index."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

spec = importlib.util.spec_from_file_location("pin_wheels", ROOT / ".ci" / "pin_wheels.py")
assert spec and spec.loader
pin_wheels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pin_wheels)

TAGS = {"x86_64": "manylinux2014_x86_64.manylinux_2_17_x86_64", "aarch64": "manylinux2014_aarch64", "any": "any"}


def files_of(pins: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the reply of an index that has exactly these pins."""
    return [
        {
            "filename": f"{name.replace('-', '_')}-{version}-{number}-py3-none-{TAGS[kind]}.whl",
            "hashes": {"sha256": sha256},
        }
        for version, wheels in pins[name].items()
        for kind, of in wheels.items()
        for number, sha256 in enumerate(of, 1)
    ]


@pytest.fixture
def text() -> str:
    return (ROOT / "harness" / "toolkits" / "wheels.toml").read_text("utf-8")


@pytest.fixture
def pins(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


@pytest.fixture
def asked(pins: dict[str, Any]) -> list[str]:
    return []


@pytest.fixture
def fetch(pins: dict[str, Any], asked: list[str]) -> Callable[[str, str], list[dict[str, Any]]]:
    def fetch(index: str, name: str) -> list[dict[str, Any]]:
        asked.append(name)
        return files_of(pins, name)

    return fetch


def test_the_file_is_as_the_script_writes_it(text: str, pins: dict[str, Any], fetch: Any, asked: list[str]) -> None:
    """The tables and the pins name the same wheels."""
    assert pin_wheels.written(pin_wheels.pins(pins, "there", every=False, fetch=fetch)) == text
    assert "nvidia-cutlass" in asked  # new versions of header libraries
    assert "nvidia-cublas" not in asked  # existing pins are not fetched again


def test_all_of_it_again(text: str, pins: dict[str, Any], fetch: Any, asked: list[str]) -> None:
    assert pin_wheels.written(pin_wheels.pins(pins, "there", every=True, fetch=fetch)) == text
    assert sorted(asked) == sorted(pins)
    assert pin_wheels.written(pin_wheels.pins({}, "there", every=False, fetch=fetch)) == text


def test_a_new_release_is_asked_for(text: str, pins: dict[str, Any], fetch: Any, asked: list[str]) -> None:
    before = {**pins, "nvidia-cublas": {}}
    assert pin_wheels.written(pin_wheels.pins(before, "there", every=False, fetch=fetch)) == text
    assert "nvidia-cublas" in asked


def test_a_hash_that_differs_is_not_written(pins: dict[str, Any]) -> None:
    wheels = pins["nvidia-cublas"]["13.1.1.3"]
    other = {**pins, "nvidia-cublas": {**pins["nvidia-cublas"], "13.1.1.3": {**wheels, "x86_64": ["0" * 64]}}}
    (known,) = wheels["x86_64"]
    with pytest.raises(
        SystemExit, match=rf"nvidia-cublas 13\.1\.1\.3 for x86_64 is pinned as {known}, which there does"
    ):
        pin_wheels.pins(pins, "there", every=True, fetch=lambda index, name: files_of(other, name))


def test_a_version_that_is_not_there_is_named(pins: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="there has no wheel of nvidia-cublas "):
        pin_wheels.pins({}, "there", every=False, fetch=lambda index, name: [])


@pytest.mark.parametrize(
    ("filename", "found"),
    [
        ("nvidia_cublas-13.1.1.3-py3-none-manylinux_2_27_x86_64.whl", ("13.1.1.3", "x86_64")),
        ("nvidia_cublas-13.1.1.3-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl", ("13.1.1.3", "aarch64")),
        ("nvidia_cutlass-3.5.1.0-py3-none-any.whl", ("3.5.1.0", "any")),
        ("nvidia_cublas-13.1.1.3-py3-none-win_amd64.whl", ("", "")),
        ("nvidia_cublas-13.1.1.3-py3-none-musllinux_1_2_x86_64.whl", ("", "")),
        ("nvidia-cublas-0.0.1.dev5.tar.gz", ("", "")),
    ],
)
def test_wheels_for_machines(filename: str, found: tuple[str, str]) -> None:
    assert pin_wheels.machine(filename) == found
