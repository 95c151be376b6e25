"""Common parts of messages of one kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bless.evidence import core, pattern_of, same_kind
from harness.regex import pattern


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("incomplete type is not allowed", 'incomplete type "nvcuda::wmma::fragment<int>" is not allowed'),
        (
            "ptxas: Entry function 'a' uses too much shared data (0xc004 bytes, 0xc000 max)",
            "nvlink: Entry function 'b' uses too much shared data (0x10000 bytes, 0xc000 max)",
        ),
        (
            "CUDA_ERROR_INVALID_VALUE: invalid argument (cuLaunchKernel)",
            "CUDADriverError: CUDA_ERROR_INVALID_VALUE: invalid argument",
        ),
    ],
)
def test_one_kind(one: str, other: str) -> None:
    assert same_kind(core(one), core(other))
    found = pattern(pattern_of([one, other]))
    assert found.found_in(one) and found.found_in(other)
    assert not found.found_in("something else")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("support for exception handling is disabled", "device code does not support exception handling"),
        ("name must be a namespace name", 'name followed by "::" must be a class or namespace name'),
        ("ValueError: In function 'f', line 3", "AssertionError: In function 'f', line 3"),
    ],
)
def test_two_kinds(one: str, other: str) -> None:
    assert not same_kind(core(one), core(other))


def test_what_differs_is_left_open() -> None:
    told = [
        f"ptxas: Entry function 'f' uses too much shared data ({size} bytes, 0xc000 max)"
        for size in ("0xc004", "0x10000")
    ]
    assert pattern_of(told) == r"ptxas: Entry function 'f' uses too much shared data \(0x[0-9a-f]+ bytes, 0xc000 max\)"
    assert pattern_of(["bad input: $CUDA_HOME/lib64/libcudadevrt.a"]) == r"bad input: \S+"


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1), min_size=1, max_size=6
    )
)
def test_an_expression_finds_its_message(words: list[str]) -> None:
    message = " ".join(words)
    assert pattern(pattern_of([message])).found_in(message)
