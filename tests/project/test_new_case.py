"""`cumatrix cases new`."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cases.library import check
from harness.cases.load import load_case
from harness.errors import UsageError
from harness.project.init import new_case

from .conftest import Configure


def test_a_case_of_its_own_is_right(project: Path) -> None:
    assert [path.name for path in new_case("demo/scale", Path("cases"))] == ["kernel.cu", "case.toml"]
    assert check(Path("cases")) == []


def test_a_case_about_a_program_of_the_project_names_it_where_it_lies(configure: Configure, project: Path) -> None:
    (path,) = new_case("csrc/plain", Path("cases"), Path("csrc/scale.cu"))
    case = load_case(path, Path("cases"))
    assert case.sources["cuda"] == Path("csrc/scale.cu") and list(case.entries["cuda"]) == ["scale"]
    assert [rule.values for rule in case.options] == [{"include": ["../../../include"]}]
    configure('sources = "csrc/*.cu"\ninclude = "include"\ndefine = ["N=4"]\nstd = "c++17"\nflags = ["nvcc:-O3"]\n')
    (path,) = new_case("csrc/same", Path("cases"), Path("csrc/scale.cu"))
    assert [(rule.when.text, dict(rule.values)) for rule in load_case(path, Path("cases")).options] == [
        ("", {"std": "c++17", "include": ["../../../include"]}),
        ('backend == "nvcc"', {"flags": ["-O3"]}),
        ("", {"flags": ["-DN=4"]}),
    ]


def test_kernels_of_numba_bring_their_types(project: Path) -> None:
    (project / "python" / "axpy.py").write_text(
        'from numba import cuda\n\n@cuda.jit("void(float32[:])")\ndef axpy(x):\n    x[0] = 1\n'
    )
    (path,) = new_case("python/axpy", Path("cases"), Path("python/axpy.py"))
    assert load_case(path, Path("cases")).entries == {"python": {"axpy": "void(float32[:])"}}


def test_what_cannot_be_a_case_is_refused_and_nothing_is_written(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "x.cu"
    elsewhere.write_text("")
    for name, origin, words in (
        ("Demo", None, "is not topic/name"),
        ("demo/x", elsewhere, "outside the project"),
        ("demo/x", Path("include/three.h"), "is neither CUDA C"),
        ("demo/x", Path("python/axpy.py"), "no kernel with types"),
    ):
        with pytest.raises(UsageError, match=words):
            new_case(name, Path("cases"), origin)
    assert not (project / "cases").exists()
    new_case("demo/x", Path("cases"))
    with pytest.raises(UsageError, match="is there already"):
        new_case("demo/x", Path("cases"))
