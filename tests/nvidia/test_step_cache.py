"""The step cache: equal input runs a step once, different input runs it again, and a cached step gives the same messages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.nvidia.nvcc import StepCache
from harness.nvidia.tools import Step
from harness.protocol.backend import Job, Rejected

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

Compile = Callable[..., tuple[Job, bytes | None]]


@pytest.fixture
def compile_in_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Compile a text in a cell's own folder; return the cell and the object."""
    (tmp_path / "steps").mkdir()
    count = 0

    def compile_(text: str, *options: str, out: str = "unit.o") -> tuple[Job, bytes | None]:
        nonlocal count
        count += 1
        scratch = tmp_path / f"cell{count}"
        scratch.mkdir()
        monkeypatch.chdir(scratch)
        (scratch / "unit.cpp").write_text(text)
        job = Job(
            cell=str(count), source=scratch / "unit.cpp", entries={}, definitions={}, target="sm_80", options={},
            include=[], scratch=scratch, steps=str(tmp_path / "steps"),
        )  # fmt: skip
        kind = "-c" if out == "unit.o" else "-S"
        line = " ".join(["c++", *options, kind, str(scratch / "unit.cpp"), "-o", out])
        StepCache(job).compile(Step.of_line(line))
        return job, Path(out).read_bytes() if os.path.exists(out) else None

    return compile_


def test_the_same_text_is_compiled_once(compile_in_a_cell: Compile) -> None:
    first, made = compile_in_a_cell("int one() { return 1; }\n")
    second, taken = compile_in_a_cell("int one() { return 1; }\n")
    assert (first.shared_steps, second.shared_steps, second.notes) == ([], ["c++"], [])
    assert made and made == taken


@pytest.mark.parametrize(
    ("text", "options"), [("int one() { return 2; }\n", ()), ("int one() { return 1; }\n", ("-O2",))]
)
def test_another_text_or_option_is_compiled(compile_in_a_cell: Compile, text: str, options: tuple[str, ...]) -> None:
    compile_in_a_cell("int one() { return 1; }\n")
    assert not compile_in_a_cell(text, *options)[0].shared_steps


def test_a_macro_counts_where_it_changes_the_text(compile_in_a_cell: Compile) -> None:
    text = "int one() { return N; }\n"
    assert not compile_in_a_cell(text, "-DN=1")[0].shared_steps
    assert not compile_in_a_cell(text, "-DN=2")[0].shared_steps
    assert compile_in_a_cell(text, "-DN=2", "-DUNUSED=3")[0].shared_steps


def test_a_refusal_is_taken_with_its_words(compile_in_a_cell: Compile, tmp_path: Path) -> None:
    text = "int one() { return missing; }\n"
    said = []
    for number in (1, 2):
        with pytest.raises(Rejected) as caught:
            compile_in_a_cell(text)
        log = (tmp_path / f"cell{number}" / "log").read_text()
        said.append((log.replace(f"cell{number}", "cell"), caught.value.reason, caught.value.stage))
    assert said[0] == said[1]
    assert "missing" in said[0][0]


NAMESPACES = """namespace cub { inline namespace CUB_300001_SM_%s { int one(int *a) { return a[0] + sizeof "CUB"; } } }
namespace thrust { inline namespace THRUST_300001_SM_%s_NS { struct S { S(); int n; }; S::S() : n(cub::one(nullptr)) {} } }
int all() { return thrust::S().n; }
const char *mangled = "_ZN3cub17CUB_300001_SM_%s3oneE";
"""


def test_a_namespace_that_is_named_after_the_architectures_is_renamed(compile_in_a_cell: Compile) -> None:
    first, _ = compile_in_a_cell(NAMESPACES % (("800",) * 3), out="unit.s")
    second, taken = compile_in_a_cell(NAMESPACES % (("900",) * 3), out="unit.s")
    assert (first.shared_steps, second.shared_steps) == ([], ["c++"])
    subprocess.run(["c++", "-S", "unit.cpp", "-o", "itself.s"], check=True)
    assert taken == Path("itself.s").read_bytes() and b"SM_900" in taken
    assert not compile_in_a_cell(NAMESPACES % (("1000",) * 3), out="unit.s")[
        0
    ].shared_steps  # mangled names contain its length


def test_objects_and_mixed_names_are_not_renamed(compile_in_a_cell: Compile) -> None:
    compile_in_a_cell(NAMESPACES % (("800",) * 3))
    assert not compile_in_a_cell(NAMESPACES % (("900",) * 3))[0].shared_steps
    compile_in_a_cell(NAMESPACES % ("800", "900", "800"), out="unit.s")
    assert not compile_in_a_cell(NAMESPACES % ("900", "800", "900"), out="unit.s")[0].shared_steps
