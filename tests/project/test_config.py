"""Reading a configuration: content, discovery, and errors."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from harness.cases.toml import CaseError
from harness.errors import UsageError
from harness.project.config import config_schema, read_config
from harness.project.current import here
from harness.project.discovery import found
from harness.project.keys import CONFIG

from .conftest import Configure


def test_both_files_say_the_same(configure: Configure, project: Path) -> None:
    keys = 'toolkit = ["12.4", "13.0"]\ntarget = "sm_75..sm_90"\nwith = ["cupy=13", "numba=0.59"]\ncases = ["cases", "more"]\n'
    own = read_config(configure(keys))
    shared = read_config(configure(f'[project]\nname = "x"\n[tool.cumatrix]\n{keys}', "pyproject.toml"))
    assert own.values == shared.values
    assert own.option("toolkit") == "12.4,13.0"
    assert own.option("with") == ("cupy=13", "numba=0.59")
    assert own.option("cases") == (Path("cases"), Path("more"))
    assert own.option("backend") is None
    assert (own.lines["target"], shared.lines["target"]) == (2, 5)


def test_it_is_found_from_a_folder_below_and_its_paths_are_seen_from_there(
    configure: Configure, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure('results = "out"\n')
    monkeypatch.chdir(project / "csrc")
    assert here().option("results") == Path("../out")


def test_it_is_not_looked_for_above_a_repository(configure: Configure, project: Path) -> None:
    configure('target = "sm_80"\n')
    (project / "csrc" / ".git").mkdir()
    assert found(project / "csrc") is None
    assert found(project / "include") == project / "cumatrix.toml"


@pytest.mark.parametrize(
    "text",
    [
        '[tool.cumatrix]\ntarget = "sm_80"\n',
        '  [ tool . cumatrix ]  # ours\ntarget = "sm_80"\n',
        '["tool"."cumatrix"]\ntarget = "sm_80"\n',
        "[tool]\ncumatrix.target = 'sm_80'\n",
        "tool.cumatrix.target = 'sm_80'\n",
        "tool = { cumatrix = { target = 'sm_80' } }\n",
        "tool.ruff = { line-length = 100 }\n[tool.'cumatrix']\ntarget = 'sm_80'\n",
        "[[tool.cumatrix.programs]]\nsources = ['a.cu']\n",
        "\ufeff[tool.cumatrix]\r\ntarget = 'sm_80'\r\n",
    ],
)
def test_every_spelling_of_the_table_is_found(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text, encoding="utf-8", newline="")
    assert found(project) == project / "pyproject.toml"


def test_a_pyproject_without_the_table_is_none_of_ours(configure: Configure, project: Path) -> None:
    configure("[tool.other]\ncumatrix = 1\n", "pyproject.toml")
    assert found(project) is None


def test_two_configurations_in_a_folder_are_refused(configure: Configure, project: Path) -> None:
    configure("")
    configure("[tool.cumatrix]\n", "pyproject.toml")
    with pytest.raises(CaseError, match="keep one of them"):
        found(project)


def test_the_variable_names_the_file_or_none(
    configure: Configure, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure('target = "sm_80"\n')
    other = configure('target = "sm_90"\n', "other.toml")
    monkeypatch.setenv("CUMATRIX_CONFIG", str(other))
    assert here().option("target") == "sm_90"
    monkeypatch.setenv("CUMATRIX_CONFIG", "none")
    assert here().file is None
    monkeypatch.setenv("CUMATRIX_CONFIG", "missing.toml")
    with pytest.raises(UsageError, match=r"missing\.toml"):
        here()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('\nbackends = ["nvrtx"]\nsources = "csrc/*.cu"\n', ""),
        ('tolkit = "13.0"\n', 'cumatrix.toml:1: tolkit: unknown key (did you mean "toolkit"?)'),
        ('\nbackend = ["nvrtx"]\n', "cumatrix.toml:2: backend: unknown backend 'nvrtx' (did you mean \"nvrtc\"?)"),
        ('toolkit = "13.99"\n', "cumatrix.toml:1: toolkit: "),
        ('target = "sm_81"\n', "cumatrix.toml:1: target: no CUDA release knows sm_81"),
        ('with = "cuppy=13"\n', "cumatrix.toml:1: with: unknown library 'cuppy'"),
        ('with = "cupy"\n', "cumatrix.toml:1: with: must name versions"),
        ('library = "cutless=4.2"\n', "cumatrix.toml:1: library: unknown library 'cutless'"),
        ("jobs = 0\n", "cumatrix.toml:1: jobs: must be a whole number from 1 to 256"),
        ("timeout = true\n", "cumatrix.toml:1: timeout: must be a number of seconds"),
        ('define = ["4=N"]\n', "cumatrix.toml:1: define: entry 1 must be a definition"),
        ("define = { N = [4] }\n", "cumatrix.toml:1: define: N must be a text"),
        ('signatures = { axpy = "float" }\n', "cumatrix.toml:1: signatures: axpy must be a signature"),
        ("[programs]\nname = 1\n", "cumatrix.toml:1: programs: write [[programs]]"),
        ('[[programs]]\nname = "a"\nsauces = "x"\n', "cumatrix.toml:3: programs.sauces: unknown key"),
        ("[\n", "cumatrix.toml"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_key(configure: Configure, text: str, words: str) -> None:
    path = configure(text)
    if not words:
        read_config(path)  # the files of programs are checked later
        return
    with pytest.raises(CaseError) as caught:
        read_config(path)
    assert str(caught.value).startswith(words)


def test_keys_of_a_pyproject_are_told_in_full(configure: Configure) -> None:
    path = configure('[tool.cumatrix]\ntarget = "sm_1"\n', "pyproject.toml")
    with pytest.raises(CaseError, match=r"^pyproject\.toml:2: tool\.cumatrix\.target: "):
        read_config(path)


def test_the_schema_knows_every_key_and_refuses_others() -> None:
    schema = config_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    assert set(schema["properties"]) == set(CONFIG)
    good = {"sources": ["csrc/*.cu"], "define": {"N": 4}, "programs": [{"name": "x", "expect": [{"status": "built"}]}]}
    jsonschema.validate(good, schema)
    for bad in ({"tolkit": "13.0"}, {"jobs": 0}, {"programs": [{"sauces": "x"}]}, {"expect": [{"status": "fine"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)
