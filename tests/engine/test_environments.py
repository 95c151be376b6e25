"""Parallel environments: the cells of each, and the CUDA release of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment
from harness.engine.environments import default_toolkit, line_up, plan_environment, toolkit_of_time, toolkits_of
from harness.engine.plan import axes_of, choose_backends, plan
from harness.environments.requirements import Recipe
from harness.environments.store import EnvironmentStore, Resolved
from harness.errors import PartUnavailable, UsageError
from harness.model import Target, ToolkitRef
from harness.protocol.messages import Distribution
from harness.toolkits import ToolkitStore
from harness.toolkits.releases import release_of

from .test_plan import CASES, TARGETS, TOOLKITS, environment


def made(
    library: str, version: str, distribution: str = "", *, cuda: int = 0, released: str = "", **more: str
) -> Environment:
    recipe = Recipe(
        name=f"{library}-{version}", library=library, version=version, distribution=distribution or library,
        requirements=(), cuda=cuda, released=released,
    )  # fmt: skip
    packages: Mapping[str, str] = {
        recipe.distribution: version,
        **{name.replace("_", "-"): of for name, of in more.items()},
    }
    return Environment(
        name=recipe.name, python="", version="3.11.7", distributions={name: Distribution(of) for name, of in packages.items()},
        resolved=Resolved(recipe=recipe, lock=""),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("day", "majors", "toolkit"),
    [
        ("2023-12-07", [11, 12], "12.3"), ("2023-02-27", [11, 12], "12.0"), ("2026-11-01", [12, 13], "12.9"), ("2026-11-01", [13], "13.0"),
        ("2026-11-01", [11], "11.8"), ("2020-01-01", [12], "12.0"), ("2024-01-31", [], "12.3"), (None, [12, 13], "12.9"), (None, [11], "11.8"),
    ],
)  # fmt: skip
def test_a_release_is_tried_with_a_cuda_of_its_time(day: str | None, majors: list[int], toolkit: str) -> None:
    assert toolkit_of_time(date.fromisoformat(day) if day else None, majors) == toolkit


def test_releases_of_a_day_have_a_newest() -> None:
    assert [release_of(date(2025, 9, 1), (), newest) for newest in ("12.4", "13.0", "13.5")] == ["12.4", "13.0", "13.0"]


@pytest.mark.parametrize(
    ("of", "toolkit"),
    [
        (made("cupy", "12.3.0", "cupy-cuda12x", cuda=12, released="2023-12-07"), "12.1"), (made("cupy", "13.2.0", "cupy-cuda12x", cuda=12), "12.1"),
        (made("cupy", "13.3.0", "cupy-cuda12x", cuda=12, released="2024-08-22"), "12.6"), (made("cupy", "13.2.0", "cupy-cuda11x", cuda=11), "11.8"),
        (made("cupy", "14.0.0", "cupy-cuda13x", cuda=13, released="2026-02-17"), "13.0"), (made("numba", "0.59.1", released="2024-03-19"), "12.4"),
        (made("torch", "2.6.0", released="2025-01-29", nvidia_cuda_runtime_cu12="12.4.127"), "12.4"),
        (made("torch", "2.13.0", released="2026-07-08", nvidia_cuda_runtime="13.0.96"), "13.0"),
    ],
)  # fmt: skip
def test_what_a_library_carries_or_was_built_for_decides(of: Environment, toolkit: str) -> None:
    assert default_toolkit(of) == toolkit


def test_an_environment_is_tried_with_the_toolkits_that_it_is_for() -> None:
    refs = [ToolkitRef(release=name, headers=name) for name in ("11.8", "12.4", "13.0")]
    assert [ref.release for ref in toolkits_of(made("cupy", "13.6.0", "cupy-cuda12x", cuda=12), refs)] == ["12.4"]
    assert [ref.release for ref in toolkits_of(made("numba", "0.61.2"), refs)] == ["11.8", "12.4", "13.0"]


def test_only_the_backends_of_the_libraries_run_unless_others_are_named() -> None:
    here, others = (
        environment(numba="0.59.1", torch="2.11.0"),
        [made("cupy", "13.6.0", "cupy-cuda12x"), made("numba-cuda", "0.15.0")],
    )
    assert [info.name for info in choose_backends(None, here, others)] == ["cupy-nvrtc", "cupy-jitify", "numba-cuda"]
    named = choose_backends("nvrtc,numba-cuda,cupy-nvrtc", here, others)
    assert [info.name for info in named] == ["nvrtc", "numba-cuda", "cupy-nvrtc"]


def test_each_environment_has_cells_of_its_own() -> None:
    here = environment(numba="0.61.0")
    others = [
        replace(made("numba", "0.59.0"), toolkits=tuple(TOOLKITS[:1])),
        replace(made("numba", "0.59.1"), toolkits=tuple(TOOLKITS), mark="python3.9"),
    ]
    cells = plan(CASES[1:], choose_backends("nvrtc,numba", here, others), TOOLKITS, TARGETS[:1], here, others=others)
    assert [f"{cell.toolchain.environment} {cell.id}" for cell in cells if cell.variant.name == "size=1"] == [
        "e sync/grid[size=1] nvrtc cuda12.4 sm_80",
        "e sync/grid[size=1] nvrtc cuda13.0 sm_80",
        "numba-0.59.0 sync/grid[size=1] numba@0.59.0 cuda12.4 sm_80",
        "numba-0.59.1 sync/grid[size=1] numba@0.59.1+python3.9 cuda12.4 sm_80",
        "numba-0.59.1 sync/grid[size=1] numba@0.59.1+python3.9 cuda13.0 sm_80",
    ]
    chosen = plan(
        CASES[1:], choose_backends(None, here, others), TOOLKITS, TARGETS[:1], here, 'numba == "0.59.1"', others=others
    )
    assert {cell.toolchain.environment for cell in chosen} == {"numba-0.59.1"}


def asking(others: Sequence[Environment], **fields: str) -> RunContext:
    return RunContext(environment(), ToolkitStore(), None, RunRequest(**fields), others=tuple(others))  # type: ignore[arg-type]


def test_without_a_toolkit_the_others_say_which() -> None:
    others = [
        replace(made("numba", version), toolkits=(ref,))
        for version, ref in zip(("0.61.2", "0.59.0"), TOOLKITS[::-1], strict=True)
    ]
    _, toolkits, targets = axes_of(asking(others, targets="sm_80"))
    assert (toolkits, targets) == (TOOLKITS, [Target.parse("sm_80")])
    assert [ref.release for ref in axes_of(asking(others, toolkits="13.1"))[1]] == ["13.1"]


@pytest.mark.parametrize(
    ("python", "libraries", "versions", "own"),
    [("3.9,3.13", ("cupy=13",), "3.9,3.13", None), ("python3.9", (), None, "python3.9"), ("/usr/bin/python3", ("cupy=13",), None, "/usr/bin/python3"), (None, ("cupy=13",), None, None)],
)  # fmt: skip
def test_python_is_an_axis_beside_libraries_and_a_path_everywhere(
    python: str | None, libraries: tuple[str, ...], versions: str | None, own: str | None
) -> None:
    request = RunRequest(python=python, libraries=libraries)
    assert (request.python_versions, request.interpreter) == (versions, own)


@pytest.mark.parametrize(
    ("python", "libraries", "words"),
    [("3.12", (), "are for the environments of --with"), ("2.7", ("cupy=13",), "3.9 and later, not in 2.7"), ("3", ("cupy=13",), "no version")],
)  # fmt: skip
def test_a_version_of_python_that_is_for_nothing_is_refused(
    python: str, libraries: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        _ = RunRequest(python=python, libraries=libraries).interpreter


def test_without_the_network_all_that_is_not_known_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path))
    with pytest.raises(PartUnavailable) as caught:
        line_up(["numba=0.59.0", "cupy=13"], "12.4", "3.11", offline=True)
    assert "lacks numba=0.59.0, cupy=13" in str(caught.value)
    command = "`cumatrix libraries install numba=0.59.0 cupy=13 -t 12.4 --python 3.11`"
    assert str(caught.value).endswith(f"run {command}")


def test_what_cannot_be_made_is_broken_and_says_why(tmp_path: object) -> None:
    recipe = Recipe(
        name="e", library="numba", version="0.59.0", distribution="numba", requirements=(), problem="no wheel"
    )
    planned = plan_environment(recipe, EnvironmentStore(offline=True))
    assert (planned.broken, planned.version_of("numba"), planned.python) == (
        {"numba": "no wheel"},
        ("numba", "0.59.0"),
        "",
    )
