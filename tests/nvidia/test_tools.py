"""The end of a tool: real processes that end in every way, and the last words of crashing compilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.nvidia.tools import Step, check, run
from harness.protocol.backend import Crashed, Ended, Job, Rejected, Unavailable


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(
        cell="x", source=tmp_path / "kernel.cu", entries={}, definitions={}, target="sm_80", options={}, include=[],
        scratch=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "program", "stage"),
    [
        ('"$CICC_PATH/cicc" -arch compute_80 "a b.ii" -o "k.ptx"', "cicc", "compile"),
        ('cudafe++ --gen_c_file_name "k.cpp" "k.ii"', "cudafe++", "compile"),
        ('ptxas -arch=sm_80 "k.ptx" -o "k.cubin"', "ptxas", "assemble"),
        ("fatbinary -64 --create=k.fatbin", "fatbinary", "assemble"),
        ('nvlink --arch=sm_80 "k.o" -o "l.cubin"', "nvlink", "link"),
        ('gcc -D__CUDA_ARCH__=800 -E -x c++ "k.cu" -o "k.ii"', "gcc", "preprocess"),
        ("/usr/bin/c++ -c main.cpp -o main.o", "c++", "compile"),
        ("c++ main.o k.o -shared -o k.so", "c++", "link"),
    ],
)
def test_a_line_names_its_program_and_stage(line: str, program: str, stage: str) -> None:
    step = Step.of_line(line, {"CICC_PATH": "/toolkit/nvvm/bin"})
    assert (step.program, step.stage) == (program, stage)


def test_words_are_what_the_shell_would_make_of_the_line() -> None:
    step = Step.of_line('"$CICC_PATH/cicc" "a b.ii" -o "k.ptx"', {"CICC_PATH": "/t"})
    assert step.words == ["/t/cicc", "a b.ii", "-o", "k.ptx"]
    assert step.output == "k.ptx"


def test_a_tool_that_ends_well(job: Job) -> None:
    assert run(job, Step.of_line("printf 'a remark\\n'")) == "a remark\n"
    assert job.logs == ["a remark"]


def test_a_tool_that_says_no(job: Job) -> None:
    with pytest.raises(Rejected, match="ended with exit code 3"):
        run(job, Step.of_line("sh -c 'echo kernel.cu: error: no >&2; exit 3'"))
    assert job.logs == ["kernel.cu: error: no"]


@pytest.mark.parametrize(("name", "number", "words"), [("SEGV", 11, "Segmentation fault"), ("ABRT", 6, "Aborted")])
def test_a_tool_that_is_ended_by_a_signal(job: Job, name: str, number: int, words: str) -> None:
    with pytest.raises(Crashed, match=rf"sh was ended by signal {number} \({words}\)") as caught:
        run(job, Step.of_line(f"sh -c 'echo before; kill -{name} $$'"))
    assert caught.value.signal == number
    assert job.logs == ["before"]


def test_a_tool_that_is_not_there(job: Job) -> None:
    with pytest.raises(Unavailable, match="no-such-tool is not there"):
        run(job, Step.of_line("no-such-tool -c x"))


@pytest.mark.parametrize(
    ("said", "kind", "signal"),
    [
        # Crash messages of gcc, cudafe++ and cicc: https://gcc.gnu.org/bugs/, https://github.com/Cytnx-dev/Cytnx/issues/1124
        ("c++: internal compiler error: Segmentation fault signal terminated program cc1plus", Crashed, 11),
        ("c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.", Crashed, 9),
        ("k.cpp:12:1: internal compiler error: Segmentation fault\n0x7f", Crashed, 11),
        ("k.cpp:12:1: internal compiler error: in tree_check, at tree.h:3\n", Crashed, None),
        ('a.hpp(767): internal error: assertion failed at: "decls.c", line 1', Crashed, None),
        ("k.cu(3): catastrophic error: out of memory", Crashed, None),
        ("cc1plus: out of memory allocating 65536 bytes after a total of 1", Crashed, None),
        ("k.cu(3): error: an internal linkage error message of the user's own", Rejected, None),
        ("ptxas k.ptx, line 23; fatal   : Parsing error near '{': memory exhausted", Rejected, None),
    ],
)
def test_words_that_tell_of_a_death(said: str, kind: type[Ended], signal: int | None) -> None:
    with pytest.raises(kind) as caught:
        check(Step.of_line("c++ -c k.cpp -o k.o"), 1, said)
    assert getattr(caught.value, "signal", None) == signal
    assert caught.value.stage == "compile"
