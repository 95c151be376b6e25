"""Parts of the names of variants."""

from __future__ import annotations

from typing import Any

import pytest

from harness.matrix.axes import parameters, parameters_of


@pytest.mark.parametrize(
    ("variant", "found"),
    [
        ("", {}),
        ("bytes=49156", {"bytes": "49156"}),
        ("arch=given,fragment=half-8x32x16", {"arch": "given", "fragment": "half-8x32x16"}),
        ("cutlass=4.2.0,shape=16x16x8", {"cutlass": "4.2.0", "shape": "16x16x8"}),
        ("standard=c++17,empty=", {"standard": "c++17", "empty": ""}),
        # Options of a program without a case are no parameters, except a header library.
        ("-DN=4 -std=c++17", {}),
        ("-DN=4,M=5", {}),
        ("-DN=4 --library=cutlass=4.2.0 -Iinclude", {"cutlass": "4.2.0"}),
        ("--library=mine=1", {}),
    ],
)
def test_parameters_are_told_from_the_name_of_a_variant(variant: str, found: dict[str, str]) -> None:
    assert parameters_of(variant) == found


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        (["bytes=49156", "bytes=4096", "bytes=49152"], ("bytes", "number", ("4096", "49152", "49156"), False)),
        (["n=-1", "n=0.5", "n=1e3"], ("n", "number", ("-1", "0.5", "1e3"), False)),
        (["m=1", "m=a10", "m=a9"], ("m", "word", ("1", "a9", "a10"), False)),
        (["cutlass=4.10.0", "cutlass=4.2.0"], ("cutlass", "version", ("4.2.0", "4.10.0"), True)),
        (["cccl=3"], ("cccl", "version", ("3",), True)),
        (["of=1.10.0", "of=1.9.0"], ("of", "version", ("1.9.0", "1.10.0"), False)),
    ],
)
def test_their_values_have_an_order(variants: list[str], expected: tuple[Any, ...]) -> None:
    (found,) = parameters(variants)
    assert (found.key, found.kind, found.values, found.library) == expected


def test_header_libraries_come_first_and_are_spelled_as_releases() -> None:
    found = parameters(["bytes=1,cutlass=4.2.0", "arch=given", ""])
    assert [item.label(item.values[0]) for item in found] == ["cutlass 4.2.0", "arch=given", "bytes=1"]
