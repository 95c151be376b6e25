"""Logs that real tools printed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.diagnostics import fingerprint, parse_log

NVRTC = """\
kernel.cu(7): error: incomplete type is not allowed
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> acc;
                                                                        ^

kernel.cu(12): warning #177-D: variable "unused" was declared but never referenced
      int unused;
          ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

/some/home/include/crt/mma.h(91): error: name followed by "::" must be a class or namespace name

2 errors detected in the compilation of "kernel.cu".
"""
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'static_shared' for 'sm_80'
ptxas info    : Function properties for static_shared
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas error   : Entry function 'static_shared' uses too much shared data (0xc004 bytes, 0xc000 max)
"""
PTXAS_LINES = """\
ptxas /tmp/tmpab12cd34/kernel.ptx, line 4; error   : Not a name of any known instruction: 'bogus'
ptxas /tmp/tmpab12cd34/kernel.ptx, line 4; error   : Unknown symbol '%r1'
ptxas fatal   : Ptx assembly aborted due to errors
"""
PTXAS_FATAL = "ptxas fatal   : Value 'sm_50' is not defined for option 'gpu-name'\n"
NVJITLINK = """\
ERROR 4 in nvvmAddNVVMContainerToProgram, may need newer version of nvJitLink library
error   : Undefined reference to 'cudaCGGetIntrinsicHandle' in 'input'
"""
NVRTC_OPTION = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
NVRTC_HEADER = 'kernel.cu(1): catastrophic error: cannot open source file "missing.h"\n  #include <missing.h>\n                      ^\n\n1 catastrophic error detected in the compilation of "kernel.cu".\nCompilation terminated.\n'
NUMBA_LOWERING = """\
LoweringError: Failed in cuda mode pipeline (step: native lowering)
No definition for lowering <class 'numba.cuda.cg.GridGroup'>

File "kernel.py", line 6:
def assign_edges_kernel() -> None:
    gg = cuda.cg.this_grid()
    gg.sync()
    ^

During: lowering "$22call_method.4 = call $12load_method.3(func=$12load_method.3)" at kernel.py (6)
"""
NUMBA_TYPING = """\
TypingError: Failed in cuda mode pipeline (step: nopython frontend)
Unknown attribute 'nothing' of type array(float32, 1d, A)

File "kernel.py", line 7:
def scale(a):
    <source elided>
    if i < a.size:
        a[i] = a.nothing
        ^
"""
NUMBA_WARNING = (
    "NumbaPerformanceWarning: Grid size 1 will likely result in GPU under-utilization due to low occupancy.\n"
)


def heads(log: str) -> list[tuple[str, str, str, str, int | None]]:
    return [(d.severity, d.code, d.message, d.file, d.line) for d in parse_log(log, "kernel.cu")]


def test_nvrtc() -> None:
    assert heads(NVRTC)[:3] == [
        ("error", "", "incomplete type is not allowed", "kernel.cu", 7),
        ("error", "", 'name followed by "::" must be a class or namespace name', "mma.h", 91),
        ("warning", "177-D", 'variable "unused" was declared but never referenced', "kernel.cu", 12),
    ]


def test_a_missing_header_is_fatal() -> None:
    assert heads(NVRTC_HEADER) == [("fatal", "", 'cannot open source file "missing.h"', "kernel.cu", 1)]


def test_a_refused_option() -> None:
    assert heads(NVRTC_OPTION) == [("error", "", "nvrtc: invalid value for --gpu-architecture (-arch)", "", None)]


def test_ptxas() -> None:
    assert heads(PTXAS) == [
        (
            "error",
            "",
            "ptxas: Entry function 'static_shared' uses too much shared data (0xc004 bytes, 0xc000 max)",
            "",
            None,
        )
    ]
    assert heads(PTXAS_FATAL) == [("fatal", "", "ptxas: Value 'sm_50' is not defined for option 'gpu-name'", "", None)]


def test_ptxas_with_lines_of_a_temporary_file() -> None:
    found = heads(PTXAS_LINES)
    assert [(item[2], item[4]) for item in found] == [
        ("Not a name of any known instruction: 'bogus'", 4),
        ("Unknown symbol '%r1'", 4),
        ("ptxas: Ptx assembly aborted due to errors", None),
    ]
    assert all("/" not in item[3] for item in found)


def test_nvjitlink() -> None:
    assert ("error", "", "Undefined reference to 'cudaCGGetIntrinsicHandle' in 'input'", "", None) in heads(NVJITLINK)


@pytest.mark.parametrize(
    ("log", "code", "words"),
    [
        (NUMBA_LOWERING, "LoweringError", "No definition for lowering <class 'numba.cuda.cg.GridGroup'>"),
        (NUMBA_TYPING, "TypingError", "Unknown attribute 'nothing' of type array(float32, 1d, A)"),
        ("AttributeError: module 'numpy' has no attribute 'row_stack'\n", "AttributeError", "has no attribute 'row_stack'"),
        ("numba.core.errors.UnsupportedError: Failed\nno try here\n", "UnsupportedError", "no try here"),
    ],
)  # fmt: skip
def test_numba(log: str, code: str, words: str) -> None:
    first = parse_log(log, "kernel.py")[0]
    assert (first.severity, first.code) == ("error", code)
    assert words in first.message
    assert first.message.startswith(f"{code}: ")


def test_a_warning_of_numba_is_no_error() -> None:
    assert [d.severity for d in parse_log(NUMBA_WARNING)] == ["warning"]


def test_errors_come_before_warnings_and_repetitions_go() -> None:
    log = "kernel.cu(1): warning: first\n" + "kernel.cu(2): error: second\n" * 3 + "kernel.cu(3): error: third\n"
    assert [d.message for d in parse_log(log)] == ["second", "third", "first"]


def test_a_log_of_thousands_of_errors_gives_a_readable_number() -> None:
    assert len(parse_log("".join(f"kernel.cu({n}): error: number {n}\n" for n in range(5000)))) == 40


def test_what_is_no_message_is_none() -> None:
    assert parse_log("ptxas info    : Used 8 registers\nerror\nerrors: none\nall fine\n") == ()


def test_escape_sequences_do_not_get_through() -> None:
    (found,) = parse_log("\x1b[31mkernel.cu(3): error: \x1b]0;title\x07bad \N{RIGHT-TO-LEFT OVERRIDE}name\x1b[0m\n")
    assert (found.file, found.line, found.message) == ("kernel.cu", 3, "bad �name")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("uses too much shared data (0xc004 bytes, 0xc000 max)", "uses too much shared data (0x10000 bytes, 0xc000 max)"),
        ('identifier "a" is undefined', 'identifier "b" is undefined'),
        ("cannot open /one/place/x.h", "cannot open /another/x.h"),
        ("line 12 is bad", "line 7 is bad"),
        ("unknown 'x'", "unknown 'yz'"),
    ],
)  # fmt: skip
def test_fingerprints_do_not_depend_on_names_numbers_and_folders(one: str, other: str) -> None:
    assert fingerprint("error", one) == fingerprint("error", other)


def test_fingerprints_tell_messages_apart() -> None:
    texts = ["incomplete type is not allowed", "name must be a namespace name", "uses too much shared data"]
    assert len({fingerprint(severity, text) for severity in ("error", "warning") for text in texts}) == 6


@given(st.binary(max_size=400))
def test_random_bytes_never_raise(data: bytes) -> None:
    json.dumps([asdict(item) for item in parse_log(data.decode("utf-8", "replace"))])


PIECES = st.sampled_from(
    [
        "kernel.cu(1)",
        "kernel.cu:1:2",
        ": ",
        "error",
        "warning #1-D",
        "ptxas ",
        "a.ptx, line 4; ",
        "fatal   : ",
        "\n",
        "TypingError: ",
        "^~~",
        "#",
        "\x1b[",
        "0x",
        "(",
        "99999999999999999999",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_random_pieces_of_messages_never_raise(log: str) -> None:
    for item in parse_log(log, "kernel.cu"):
        assert item.severity in ("fatal", "error", "warning", "remark", "note")


@pytest.mark.parametrize(
    "line",
    ["a" * 2_000_000, "(" * 2_000_000, "error " * 300_000, "error#" + "1-" * 500_000, "ptxas " + "x, line 1; " * 200_000,
     "A" + "a.A" * 500_000 + "Error", "\x1b]" * 500_000, "\x1b[" + "0;" * 500_000, "kernel.cu(" + "1" * 1_000_000, "'" * 1_000_001,
     "error: " + "/a" * 500_000, "Error: x\n" * 100_000, "x(1): error : " * 100_000],
    ids=lambda line: line[:12].encode("unicode_escape").decode(),
)  # fmt: skip
def test_pathological_lines_end(line: str) -> None:
    """In a separate process: a backtracking expression cannot be interrupted."""
    code = "import sys; from harness.diagnostics import parse_log; parse_log(sys.stdin.read(), 'kernel.cu')"
    subprocess.run([sys.executable, "-c", code], input=line.encode(), check=True, timeout=800)


@pytest.mark.parametrize(
    ("exception", "before"),
    [("nvJitLinkError: ", "nvJitLink error log: "), ("error: nvJitLinkError: ", "Linker error log: ")],
    ids=["cuda.core 1", "numba-cuda 0.21"],
)
def test_the_linker_s_log_inside_an_exception_of_cuda_core(exception: str, before: str) -> None:
    log = (
        f"{exception}ERROR_PTX_COMPILE (4)\n"
        f"{before}ptxas error   : Entry function 'k' uses too much shared data (0xc004 bytes, 0xc000 max)\n"
        "ERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX (ltoPtx)\n"
    )
    first = parse_log(log)[0]
    assert first.message == "ptxas: Entry function 'k' uses too much shared data (0xc004 bytes, 0xc000 max)"


@pytest.mark.parametrize(
    ("log", "headline"),
    [
        (
            ("ptxas application ptx input, line 32; error   : Feature 'cp.async' requires .target sm_80 or higher\n"
            "ptxas fatal   : Ptx assembly aborted due to errors\n"),
            "Feature 'cp.async' requires .target sm_80 or higher",
        ),
        (
            "nvlink error   : Multiple definition of '_Z1kPi' in 'b.o', first defined in 'a.o'\nnvlink fatal   : merge_elf failed\n",
            "nvlink: Multiple definition of '_Z1kPi' in 'b.o', first defined in 'a.o'",
        ),
        (
            ("/usr/bin/ld: k.o: in function `main':\nk.cpp:(.text+0x8b): undefined reference to `helper()'\n"
            "collect2: error: ld returned 1 exit status\n"),
            "undefined reference to `helper()'",
        ),
        (
            ('a.cu(1): warning #177-D: variable "u" was declared but never referenced\n'
            'a.cu(2): error: identifier "x" is undefined\na.cu(3): catastrophic error: cannot open source file "y.h"\n'
            "Compilation terminated.\n"),
            'identifier "x" is undefined',
        ),
        (
            "RuntimeError: Error building extension 'e': [1/2] nvcc e.cu\ne.cu(2): error: expected a \";\"\n",
            'expected a ";"',
        ),
        ("kernel.cu(2): Error: Formal parameter space overflowed (40008 bytes required)\n", "Formal parameter space overflowed (40008 bytes required)"),
        ("Broken module found, compilation aborted!\nptr @_ZTI6Square\n", "Broken module found, compilation aborted!"),
        ("cc1plus: fatal error: k.cu: No such file or directory\ncompilation terminated.\n", "k.cu: No such file or directory"),
        ('At end of source: error: expected a "}"\n', 'expected a "}"'),
        ("/bin/sh: 1: nvcc: not found\n", "/bin/sh: 1: nvcc: not found"),
        ("CMake Error at CMakeLists.txt:3 (project):\n  CMAKE_CUDA_ARCHITECTURES must be\n  non-empty if set.\n\n\n-- Configuring incomplete\n",
         "CMAKE_CUDA_ARCHITECTURES must be non-empty if set."),
    ],
)  # fmt: skip
def test_the_first_error_is_the_headline(log: str, headline: str) -> None:
    first = parse_log(log, "kernel.cu")[0]
    assert (first.severity in ("error", "fatal"), first.message) == (True, headline)


def test_the_types_beneath_a_message_belong_to_it() -> None:
    log = (
        'k.cu(1): error: no instance of overloaded function "atomicAdd" matches the argument list\n'
        "            argument types are: (double *, double)\n  atomicAdd(d, 1.0);\n  ^\n"
        'k.cu(2): error: more than one operator "*" matches these operands:\n            built-in operator "a * b"\n'
        '            function "operator*(const __half &, const __half &)"\n/usr/cuda_fp16.hpp(200): here\n'
        "            operand types are: __half * float\n"
    )
    first, second = parse_log(log)
    assert first.message.endswith('"atomicAdd" matches the argument list; argument types are: (double *, double)')
    assert second.message.endswith("; operand types are: __half * float")
    assert first.fingerprint == fingerprint(
        "error", 'no instance of overloaded function "atomicAdd" matches the argument list'
    )


def test_msbuild_puts_the_column_after_the_line() -> None:
    (diagnostic,) = parse_log("C:\\CUDA v12.5\\include\\cub\\util_ptx.cuh(90,29): error C2059: syntax error: ':'\n")
    assert (diagnostic.file, diagnostic.line) == ("C:\\CUDA v12.5\\include\\cub\\util_ptx.cuh", 90)
    assert diagnostic.message == "syntax error: ':'"
