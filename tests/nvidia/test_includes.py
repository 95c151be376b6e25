"""The includes at the beginning of a program, and the macros after them."""

from __future__ import annotations

import pytest

from harness.nvidia.includes import Words, defined, first_includes, words_of

WORDS = Words([b"size_t _CCCL_STD // N of them"])


def test_includes_before_which_nothing_but_comments_stands() -> None:
    text = "// one\n/* two\nthree */\n#include <cuda_fp16.h> // half\n\n # include <cuda/std/tuple>\nint a;\n#include <mma.h>\n"
    found = first_includes(text)
    assert found is not None
    assert found.names == ("cuda_fp16.h", "cuda/std/tuple")
    assert text[found.end :].startswith("int a;")
    assert found.lines == 6
    assert found.text == "#include <cuda_fp16.h>\n#include <cuda/std/tuple>\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#define N 1\n#include <mma.h>\n",
        "#pragma once\n#include <mma.h>\n",
        "#ifdef A\n#include <mma.h>\n#endif\n",
        '#include "mma.h"\n',
        "#include MMA\n",
        "#include <../mma.h>\n",
        "#include </dev/zero>\n",
        "#inc\\\nlude <mma.h>\n",
        "// one \\\n#include <mma.h>\n",
        "#include <mma.h>\r\n",
        "#include <mma.h>",
        "#include <mma.h> int a;\n",
        "\ufeff#include <mma.h>\n",
        "/" * 70000,
    ],
)
def test_anything_else_is_not_looked_at(text: str) -> None:
    assert first_includes(text) is None


def test_macros_as_the_command_line_has_them() -> None:
    asked = ["-DN=16", "-DTYPE=unsigned int", "-DFLAG", "-DNOTHING="]
    assert defined(asked, WORDS) == "#define N 16\n#define TYPE unsigned int\n#define FLAG 1\n#define NOTHING \n"
    assert defined([], Words([])) == ""


@pytest.mark.parametrize("macro", ["-Dsize_t=int", "-D__CUDA_ARCH__=1", "-DF(x)=x", "-DN=1 // one", "-DN=a\\", "-DN=1\n#error", "-DÉ=1"])  # fmt: skip
def test_a_macro_that_could_mean_something_else_there(macro: str) -> None:
    assert defined([macro], WORDS) is None


def test_a_macro_that_is_given_twice_or_of_headers_that_are_not_known() -> None:
    assert defined(["-DN=1", "-DN=2"], WORDS) is None
    assert defined(["-DN=1"], Words([])) is None


def test_words_are_what_a_macro_could_change() -> None:
    text = b"""\
// a comment's N, and /* M */
#define TWICE(x, N) ((N) + x \\
    + other)
#ifdef FLAG /* of
several lines */
const char *kept = "// in quotes"; int c = '"'; // gone
#endif
"""
    names = {"TWICE", "other", "ifdef", "FLAG", "endif", "const", "char", "kept", "in", "quotes", "int", "c"}
    assert words_of(text) == {name.encode() for name in names}
    words = Words([b"", text])
    assert b"FLAG" in words
    assert b"N" not in words
    assert b"M" not in words


@pytest.mark.parametrize("text", [b"M", b"x M", b"M+1", b"(M)", b"N\nM\n", b"xM M", b"// M\nM"])
def test_a_word_is_found_wherever_it_stands(text: bytes) -> None:
    assert b"M" in Words([b"other", text])


@pytest.mark.parametrize("text", [b"", b"xM", b"MM", b"M1 _M M_", b"1M", b"// M", b"/* M */ x"])
def test_a_word_that_only_seems_to_be_there(text: bytes) -> None:
    assert b"M" not in Words([b"other", text])
