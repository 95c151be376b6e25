"""The JSON Schema agrees with the loader within the limits of a schema."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from harness.cases.schema import FILE_NAME, case_schema, write_schema
from harness.cases.toml import CaseError

from .conftest import GOOD, Load
from .test_load import FULL

LIBRARY = Path(__file__).parents[2] / "cases"
VALIDATOR = jsonschema.Draft7Validator(case_schema())


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(case_schema())


def test_the_committed_file_is_current(tmp_path: Path) -> None:
    write_schema(tmp_path / FILE_NAME)
    assert (LIBRARY / FILE_NAME).read_text() == (tmp_path / FILE_NAME).read_text(), (
        "run: python -m harness.cases.schema"
    )


@pytest.mark.parametrize("path", sorted(LIBRARY.glob("*/*/case.toml")), ids=lambda path: path.parent.name)
def test_every_case_of_the_library_validates_and_refers_to_it(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("#:schema ../../case.schema.json\n")
    assert (path.parent / "../.." / FILE_NAME).resolve() == (LIBRARY / FILE_NAME).resolve()
    assert not [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("text", [GOOD, FULL])
def test_what_the_loader_takes_validates(load: Load, text: str) -> None:
    load(text)
    VALIDATOR.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        'title = "x"',
        'title = ""\n[source]\ncuda = "kernel.cu"',
        'title = "x"\n[source]',
        GOOD + "[unknown]",
        GOOD + "[[expect]]",
        GOOD + "[expect]\nstatus = 'built'",
        GOOD + "[[expect]]\nstatus = 'broken'",
        GOOD + "[[expect]]\nstatus = 'built'\nstage = 'run'",
        GOOD + "[[expect]]\nstatus = 'rejected'\ndiagnostic = ''",
        GOOD + "[[unsupported]]\nwhen = 'virtual'",
        GOOD + "[[options]]\narch = 'sm_80'",
        GOOD + "[[options]]\nstd = '17'",
        GOOD + "[[options]]\nflags = '-G'",
        GOOD + "[parameters]\nn = []",
        GOOD + "[parameters]\nn = [1, 1]",
        GOOD + "[parameters]\nn = ['a b']",
        GOOD + "[parameters]\n'a-b' = [1]",
        GOOD + "[parameters.n]\na = 1",
        GOOD + "[parameters.n]\na = { 'M N' = 1 }",
        'links = ["ftp://example.org"]\n' + GOOD,
        'features = ["Not Lower"]\n' + GOOD,
    ],
)
def test_what_the_schema_refuses_the_loader_refuses_too(load: Load, text: str) -> None:
    assert not VALIDATOR.is_valid(json.loads(json.dumps(tomllib.loads(text))))
    with pytest.raises(CaseError):
        load(text)
