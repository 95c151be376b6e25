"""Programs without their code, for which NVRTC reports missing files."""

from __future__ import annotations

import ctypes

import pytest

from harness import native


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source = native.source("nvrtc_tap.c") + "char *skimmed(const char *text) { return skim(text); }\n"
    made = ctypes.CDLL(str(native.build(tmp_path_factory.mktemp("tools"), "libtap.so", source)))
    made.skimmed.restype = ctypes.c_char_p
    return made


def skimmed(library: ctypes.CDLL, text: str) -> str:
    found: bytes = library.skimmed(text.encode())
    return found.decode()


def test_directives_stay_on_their_lines_and_all_else_goes(library: ctypes.CDLL) -> None:
    text = '#include <a.h> // first\nint a = 1; /* b */ char c[] = "x";\n  # if A\r\n/* x */ #include "b.h"\n'
    assert skimmed(library, text).replace("\r", "").split("\n") == [
        "#include <a.h> // first",
        "",
        "# if A",
        '#include "b.h"',
        "",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "/*\n#include <a.h>\n*/\n",
        "int a; // it goes on \\\n#include <a.h>\n",
        "int a = 1 \\\n#include <a.h>\n",
        "int a = 1'000; /* and\n#include <a.h>\n*/ char c = 'x';\n",
        "char c = '\"'; /* \"\n#include <a.h>\n*/\n",
        'const char *a = "/*"; // */\nint b; /*\n#include <a.h>\n*/\n',
        'const char *a = "x\\\n#include <a.h>";\n',
    ],
)
def test_what_looks_like_a_directive_and_is_none_goes_too(library: ctypes.CDLL, text: str) -> None:
    assert not skimmed(library, text).strip()


def test_a_directive_goes_on_where_its_line_does(library: ctypes.CDLL) -> None:
    text = "#define A(x) \\\n  x + /* of two\n lines */ 1\nint a;\n"
    assert skimmed(library, text) == text.replace("int a;", "")


def test_a_text_with_a_raw_string_stays_whole(library: ctypes.CDLL) -> None:
    text = 'const char *a = R"(\n#include <a.h>\n)";\n'
    assert skimmed(library, text) == text
