"""Installed and requested versions of an interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.engine.environment import look
from harness.engine.toolchain import clean_environment, one_name_of, plain_path
from harness.errors import PartUnavailable, UsageError


def test_this_interpreter() -> None:
    here = look(name="mine")
    assert (here.name, here.python) == ("mine", sys.executable)
    assert here.version == ".".join(map(str, sys.version_info[:3]))
    assert here.packages["python"] == here.version
    assert not here.broken


def test_the_name_of_the_environment_is_toxs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look().name == "local"
    monkeypatch.setenv("TOX_ENV_NAME", "numba059")
    assert look().name == "numba059"
    assert look(name="mine").name == "mine"


@pytest.mark.compilers
def test_another_interpreter(venv: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise SystemExit")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    there = look(venv("numba==0.59.1"))
    assert there.version_of("cupy", "numba") == ("numba", "0.59.1")
    assert there.packages["numba"] == "0.59.1"
    assert there.packages["numpy"] == "1.26.4"
    assert there.distributions["numba"].requires
    # The folder of a virtual environment is accepted.
    assert look(str(Path(there.python).parents[1])) == there


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("requirement", "reason"),
    [
        ("numba==0.59.1", None),
        ("numba==0.59.*", None),
        ("Numba>=0.59", None),
        ("numba==0.59.0", "asked for numba==0.59.0, but numba 0.59.1 is installed"),
        ("numba>=0.60", "asked for numba>=0.60, but numba 0.59.1 is installed"),
        ("cupy-cuda12x==13.*", "asked for cupy-cuda12x==13.*, but cupy-cuda12x is not installed"),
    ],
)
def test_requirements(venv: Callable[..., str], requirement: str, reason: str | None) -> None:
    assert list(look(venv("numba==0.59.1"), require=[requirement]).broken.values()) == ([reason] if reason else [])


@pytest.mark.parametrize("text", ["numba=0.59.1", "-r requirements.txt", "https://x.example/numba.whl", "./numba"])
def test_what_is_no_requirement(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a requirement such as numba==0.59.1"):
        look(require=[text])


def test_an_address_is_no_requirement() -> None:
    with pytest.raises(
        UsageError, match=r"is an address; a requirement is a name with versions, such as numba==0.59.1"
    ):
        look(require=["numba @ https://x.example/numba-0.59.1-py3-none-any.whl"])


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/true", "/etc/hostname"])
def test_what_is_no_interpreter(python: str) -> None:
    with pytest.raises(PartUnavailable, match=f"cannot list the packages of {python}"):
        look(python)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo '{\"python\": 3}'", "Interpreter.python: not str but 3"),
        ("echo '{\"python\": \"3.11\", \"distributions\": {\"numba\": {}}}'", "distributions.numba: version is missing"),
        ("echo hello", "Interpreter: not JSON"),
        ("echo too old >&2; exit 3", "its process ended with exit code 3: too old"),
        ("kill -11 $$", "its process ended with signal 11"),
    ],
)  # fmt: skip
def test_an_interpreter_that_answers_something_else(tmp_path: Path, script: str, words: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    with pytest.raises(PartUnavailable) as caught:
        look(str(python))
    assert str(caught.value).startswith(f"cannot list the packages of {python}: ")
    assert words in str(caught.value)


def test_nothing_of_the_users_reaches_a_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "CPATH",
        "NUMBA_DEBUG",
        "CUPY_CACHE_DIR",
        "PYTHONPATH",
        "CUDA_HOME",
        "CUPY_NVCC_GENERATE_CODE",
    ):
        monkeypatch.setenv(name, "/users/own")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "nvcc").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:/usr/local/cuda/bin::relative:/usr/bin")
    found = clean_environment("/the/toolkit")
    assert "/users/own" not in found.values()
    assert found["PATH"] == "/the/toolkit/bin:/usr/bin"
    assert plain_path("/the/toolkit") == "/the/toolkit/bin:/usr/local/bin:/usr/bin:/bin"
    assert found["CUDA_HOME"] == found["CUDA_PATH"] == "/the/toolkit"


def test_an_interpreter_has_one_name(tmp_path: Path) -> None:
    folder = tmp_path / "usr/bin"
    folder.mkdir(parents=True)
    (folder / "python3.11").touch()
    (folder / "python3").symlink_to("python3.11")
    (folder / "python").symlink_to("python3")
    (folder / "other").symlink_to("/opt/other/bin/python3.11")
    (folder / "round").symlink_to("round")
    names = {name: one_name_of(str(folder / name)) for name in ("python", "python3", "python3.11", "other", "round")}
    plain = str(folder / "python3.11")
    assert names == {"python": plain, "python3": plain, "python3.11": plain, "other": str(folder / "other"), "round": str(folder / "round")}  # fmt: skip
    # The first name in uv's virtual environments is another than in Python's own.
    (tmp_path / "usr/pyvenv.cfg").touch()
    assert {one_name_of(str(folder / name)) for name in ("python", "python3.11")} == {str(folder / "python")}
