"""The container image and the conda package agree with pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import release
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness import __version__

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA = {"matplotlib": "matplotlib-base"}  # without Qt


def test_the_base_is_pinned_by_its_digest_and_has_a_python_that_is_tested() -> None:
    (base,) = (line for line in DOCKERFILE.splitlines() if line.startswith("FROM ") and "base AS" not in line and line != "FROM base")  # fmt: skip
    found = re.fullmatch(r"FROM docker\.io/library/python:(3\.\d+)-slim-\w+@sha256:[0-9a-f]{64} AS base", base)
    assert found is not None
    assert f"Programming Language :: Python :: {found[1]}" in PROJECT["classifiers"]


def test_everything_that_the_image_copies_or_reads_is_there() -> None:
    for name in re.findall(r"\.ci/requirements/\w+\.txt", DOCKERFILE):
        assert (ROOT / name).is_file(), name
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert not {"cases", "harness", "cumatrix", "pyproject.toml", ".ci"} & set(ignored)
    for source in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]:  # fmt: skip
        assert source not in ignored


def test_pins_of_the_image_fit_the_requirements_of_the_wheel() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==([\w.+]+)", (ROOT / ".ci/requirements/image.txt").read_text(), re.MULTILINE))
    for text in (*PROJECT["dependencies"], *EXTRAS["report"], *EXTRAS["cluster"]):
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text


def test_the_recipe_requires_what_the_wheel_does() -> None:
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    assert recipe["context"]["version"] == __version__
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["about"]["repository"] == f"https://github.com/{release.names_of().repository}"
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {of}" for name, of in PROJECT["scripts"].items()]
    wanted = [f"python {PROJECT['requires-python']}"]
    for text in (*PROJECT["dependencies"], *EXTRAS["report"]):
        requirement = Requirement(text)
        wanted.append(f"{CONDA.get(requirement.name, requirement.name)} {requirement.specifier}")
    assert recipe["requirements"]["run"] == [*wanted, "__linux"]
    assert recipe["requirements"]["run_constraints"] == [text.replace(">", " >", 1) for text in EXTRAS["cluster"]]
