"""Detection of host programs, compared with NVRTC, which rejects these and builds the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.cases.preprocessor import host_signs
from harness.model import Outcome, Status

KERNEL = "__global__ void k(int *a) { *a = 1; }\n"

HOST = {
    "main": (KERNEL + "int main() { return 0; }", ["main() in line 2"]),
    "main over several lines": (KERNEL + "int\nmain(int argc,\n     char **argv)\n{\n  return 0;\n}", ["main() in line 5"]),
    "main in C": (KERNEL + 'extern "C" {\nint main(void) { return 0; }\n}', ["main() in line 3"]),
    "a launch": (KERNEL + "void go(int *a) {\n  k<<<1, 32>>>(a);\n}", ["a launch in line 3"]),
    "a launch by a template": (
        "template <class T> __global__ void t(T *a) {}\ntemplate <class T> void go(T *a) { t<T><<<1, 1>>>(a); }\ntemplate void go(int *);",
        ["a launch in line 2"],
    ),
    "a launch in a method": (
        KERNEL + "struct Runner { int *a; void go() { if (a) { k<<<1, 1>>>(a); } } };",
        ["a launch in line 2"],
    ),
    "a call": (KERNEL + "void *get() { void *p = 0; cudaMalloc(&p, 4); return p; }", ["cudaMalloc in line 2"]),
    "a header": ("#include <vector>\n" + KERNEL, ["<vector> in line 1"]),
    "behind a comment that ends": ("/* // */ int main() { return 0; } // */\n" + KERNEL, ["main() in line 1"]),
    "behind an apostrophe in a number": (KERNEL + "int main() { return 1'000 / 1'000; }", ["main() in line 2"]),
    "behind a guard of its own": (
        "#ifndef MINE_CU\n#define MINE_CU\n" + KERNEL + "int main() { return 0; }\n#endif",
        ["main() in line 4"],
    ),
    "behind a condition that holds": (
        "#define WITH_MAIN 2\n" + KERNEL + "#if defined(WITH_MAIN) && WITH_MAIN > 1\nint main() { return 0; }\n#endif",
        ["main() in line 4"],
    ),
    "in the branch for NVRTC": (
        KERNEL + "#ifndef __CUDACC_RTC__\nvoid other();\n#else\nint main() { return 0; }\n#endif",
        ["main() in line 5"],
    ),
    "the most telling first": (
        "#include <iostream>\n" + KERNEL + "int main() { k<<<1, 1>>>(0); cudaSetDevice(0); }",
        ["main() in line 3", "a launch in line 3", "cudaSetDevice in line 3", "<iostream> in line 1"],
    ),
}  # fmt: skip

DEVICE = {
    "a kernel": KERNEL,
    "in comments": "// int main() {}  k<<<1, 1>>>()\n/* int main() {\n k<<<1, 1>>>(); } */\n" + KERNEL,
    "in a comment that is continued": "// all of this \\\nint main() { return 0; }\n" + KERNEL,
    "in texts": '__global__ void k(const char **a) { *a = "int main() { k<<<1, 1>>>(); }"; }',
    "in a raw text": '__global__ void k(const char **a) { *a = R"x(\n#include <vector>\n} int main() { )" \')x"; }',
    "in a character": "__global__ void k(char *a) { *a = '\"'; *a = '{'; }\n",
    "behind #if 0": "#if 0\n#include <vector>\nint main() { k<<<1, 1>>>(); }\n#endif\n" + KERNEL,
    "for nvcc alone": "#ifndef __CUDACC_RTC__\n#include <vector>\nint main() { return 0; }\n#endif\n" + KERNEL,
    "for nvcc alone, too": "#if !defined(__CUDACC_RTC__) && 1\nint main() { return 0; }\n#endif\n" + KERNEL,
    "for the host alone": "#if defined(__CUDACC_RTC__)\n" + KERNEL + "#else\nint main() { return 0; }\n#endif\n",
    "for the host pass": "#ifndef __CUDA_ARCH__\nint main() { return 0; }\n#endif\n" + KERNEL,
    "for another system": "#ifdef _WIN32\n#include <vector>\nint main() { return 0; }\n#endif\n" + KERNEL,
    "for who asks": "#ifdef WITH_MAIN\nint main() { return 0; }\n#elif WITH_MAIN > 3\nvoid g();\n#endif\n" + KERNEL,
    "in a macro": "#define GO(a) k<<<1, 1>>>(a); \\\n  cudaMalloc(&a, 4); int main() {}\n" + KERNEL,
    "a kernel's own main": "namespace n { struct S { __device__ int main() { return 1; } }; }\n" + KERNEL,
    "main as a name": "__global__ void k(int *main) { main[0] = 1; }",
    "an operator": (
        "struct S {};\ntemplate <class T> __device__ int operator<<(S, T) { return 1; }\n"
        "__device__ int go() { return operator<<<int>(S{}, 1); }\n" + KERNEL
    ),
    "brackets": "__constant__ int table[] = {1, 2};\nenum E { A, B };\nstruct alignas(16) S { int a; };\n" + KERNEL,
}  # fmt: skip


@pytest.mark.parametrize("name", HOST)
def test_programs_of_the_host(name: str) -> None:
    text, signs = HOST[name]
    assert [str(sign) for sign in host_signs(text)] == signs


@pytest.mark.parametrize("name", DEVICE)
def test_device_code(name: str) -> None:
    assert host_signs(DEVICE[name]) == []


def test_a_launch_by_the_device() -> None:
    kernel = (
        "#define KERNEL __global__\nKERNEL void a(int *p) {}\nKERNEL void b(int *p) { for (;;) { a<<<1, 1>>>(p); } }"
    )
    assert host_signs(kernel) == []


def test_what_hangs_on_unknown_names_is_left_out() -> None:
    text = (
        KERNEL + "#if __GNUC__ > 4 && CUDA_VERSION\nint main() {\n#else\nint main(int n) {\n#endif\n  k<<<1, 1>>>(0); }"
    )
    assert [sign.kind for sign in host_signs(text)] == ["launch"], "the launch is in main either way"


def test_macros_of_the_command_line() -> None:
    text = KERNEL + "#if MODE == 3\nint main() { return 0; }\n#endif"
    assert not host_signs(text)
    assert not host_signs(text, {"MODE": "2"})
    assert host_signs(text, {"MODE": "3"})


@pytest.mark.parametrize("text", ["", "}", "}}}{{{((", '"', "'", "/*", 'R"(', "#if", "#else\n#endif\n#elif 1", "#if ((\nint main() {\n#endif", "\x00"])  # fmt: skip
def test_text_that_is_no_program(text: str) -> None:
    assert host_signs(text) == []


@pytest.mark.compilers
@pytest.mark.parametrize("name", [*HOST, *DEVICE])
def test_nvrtc_says_the_same(name: str, run_cell: Callable[..., Outcome]) -> None:
    text = HOST[name][0] if name in HOST else DEVICE[name]
    outcome = run_cell("", "nvrtc", "12.9", text, "sm_80", options={"std": "c++17"})
    assert (outcome.status is Status.REJECTED) == (name in HOST), outcome.log
