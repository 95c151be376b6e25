"""Kernels in texts: detected kernels, the kernels that a build must have, and reasons for having none."""

from __future__ import annotations

import pytest

from harness.cases.kernel_texts import Requirement, kernels_of, required_of, why_no_kernels

TEXT = """\
// __global__ void comment() {}
#include <cuda_fp16.h>
const char *text = "__global__ void text() {}"; /* __global__ void other() {} */
namespace ns { __launch_bounds__(256, 2) __global__ void first(float *x) { if (x) { x[0] = 1; } } }
template <class T, int N = 3> __global__ void __launch_bounds__(64) reduce(T *x) {}
template __global__ void reduce<float, 4>(float *);
template <> __global__ void reduce<double, 4>(double *x) {}
__global__ void later(float *);
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) hopper(float *x) {}
#else
__global__ void
older(float *x) {}
#endif
#ifdef FAST
__global__ void fast() {}
#endif
#define DECORATED(name) name##_kernel
#define KNOWN known_kernel
__global__ void DECORATED(scale)(float *y) {}
__global__ void KNOWN(float *y) {}
__global__ __attribute__((used)) void last() {}
"""


def test_kernels_are_seen_with_their_form_and_guard() -> None:
    assert [
        (each.line, each.name, str(each.form), each.live, each.guard)
        for each in kernels_of(TEXT, {"__CUDA_ARCH__": "800"}).kernels
    ] == [
        (4, "first", "defined", True, ""),
        (5, "reduce", "template", True, ""),
        (6, "reduce", "instance", True, ""),
        (7, "reduce", "defined", True, ""),
        (8, "later", "declared", True, ""),
        (10, "hopper", "defined", False, "#if __CUDA_ARCH__ >= 900"),
        (12, "older", "defined", True, ""),
        (16, "fast", "defined", False, "#ifdef FAST"),
        (20, "", "defined", True, ""),
        (21, "", "defined", True, ""),
        (22, "last", "defined", True, ""),
    ]


def test_only_what_every_build_has_is_required_by_name() -> None:
    assert required_of(TEXT, {}) == Requirement(names=("first", "reduce", "last"))
    assert required_of(TEXT, {"FAST": "1"}) == Requirement(names=("first", "reduce", "fast", "last"))


@pytest.mark.parametrize(
    ("text", "count", "comment"),
    [
        ("#ifdef FAST\n__global__ void k() {}\n#endif\n", 1, "the kernel in line 2 is behind `#ifdef FAST`"),
        ("#if __CUDA_ARCH__ >= 900\n__global__ void k() {}\n#endif\n", 1, "the kernel in line 2 is behind `#if __CUDA_ARCH__ >= 900`"),
        ("__global__ void NAME(k)(int) {}\n", 1, "the kernel in line 1 has its name from a macro"),
        ("template <class T> __global__ void k(T) {}\n", 0, "k in line 1 is a template: require by name what a run shows of it"),
        ("#if 0\n__global__ void k() {}\n#endif\n", 0, ""),
        ("// __global__ void k() {}\n", 0, ""),
        ("__global__ void k();\n", 0, ""),
        ("int f() { return 1; }\n", 0, ""),
    ],
)  # fmt: skip
def test_without_a_name_a_number_or_a_comment_is_left(text: str, count: int, comment: str) -> None:
    assert required_of(text, {}) == Requirement(count=count, comment=comment)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a.cu has no __global__ function"),
        ("#include <cuda_fp16.h>\n#include <vector>\n#include <cub/cub.cuh>\n", "a.cu has no __global__ function"),
        ('#include "kernels.cuh"\n', ""),
        ("#include <mine/kernels.cuh>\n", ""),
        ("#include <mine.h>\n", ""),
        ("#define KERNEL(n) __global__ void n() {}\nKERNEL(k)\n", ""),
        ("template <class T> __global__ void k(T) {}\n", "k (a.cu:1) is a template without an instance"),
        ("__global__ void k();\n", "k (a.cu:1) is declared, not defined"),
        ("__global__ void k();\n__global__ void k() {}\n", ""),
        ("__global__ void k() {}\n", ""),
        ("#if __CUDA_ARCH__ >= 900\n__global__ void k() {}\n#endif\n", "k (a.cu:2) is behind `#if __CUDA_ARCH__ >= 900`"),
        ("#if __CUDA_ARCH__ >= 700\n__global__ void k() {}\n#endif\n", ""),
        ("#ifdef A\n#else\n#ifdef B\n__global__ void k() {}\n#endif\n#endif\n", "k (a.cu:4) is behind `#ifdef B`"),
        ("#ifndef __CUDACC__\n#ifdef B\n__global__ void k() {}\n#endif\n#endif\n", "k (a.cu:3) is behind `#ifndef __CUDACC__`"),
        (
            "#ifdef A\n__global__ void a() {}\n__global__ void b() {}\n__global__ void c() {}\n__global__ void d() {}\n#endif\n",
            "a (a.cu:2) is behind `#ifdef A`; b (a.cu:3) is behind `#ifdef A`; c (a.cu:4) is behind `#ifdef A`; and 1 more",
        ),
    ],
)  # fmt: skip
def test_a_reason_is_given_where_the_text_tells_it(text: str, why: str) -> None:
    assert why_no_kernels({"a.cu": text}, {"__CUDA_ARCH__": "800", "__CUDACC__": "1"}) == why


def test_one_text_with_an_open_question_leaves_no_reason() -> None:
    assert why_no_kernels({"a.cu": "", "b.cu": '#include "x.h"\n'}, {}) == ""
    assert (
        why_no_kernels({"a.cu": "", "b.cu": ""}, {})
        == "a.cu has no __global__ function; b.cu has no __global__ function"
    )


@pytest.mark.parametrize(
    "text",
    [
        "#if A\n" * 50_000 + "__global__ void k() {}\n" * 20_000,
        "__global__ void k();\n" * 50_000,
        "__global__ void " + "__a__(" * 200_000 + "{",
        "__global__ > ( > ( > " * 50_000 + "{",
        "#if " + "A" * 100_000 + "\n" + "__global__ void k() {}\n" * 10_000,
    ],
    ids=["nested", "declared", "deep", "angles", "long"],
)
def test_hostile_texts_take_linear_time_and_room(text: str) -> None:
    assert len(why_no_kernels({"a.cu": text}, {})) < 2000
