"""The value of a macro reaches the compiler unchanged, and no shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cells import Place, make_case, run_all

from harness.engine.context import RunContext
from harness.model import Status
from harness.nvidia.tools import Hidden, Step
from harness.toolkits import Installed, ToolkitStore

# Each word is the content of a C++ string literal; {} is a file that a shell would create.
TEXTS = [
    "$(touch {})",
    "`touch {}`",
    "; touch {};",
    "&& touch {}",
    "| tee {}",
    "> {}",
    "'$(touch {})'",
    r"\\$(touch {})",
    "${{HOME}} $HOME $$ $CICC_PATH",
    r"a\\b",
    r"a\tb",
    r"say \"hello\"",
    "it's",
    "a  b",
    "*?[a-z]~#%s!",
    "a,b,c=d",
]
CALL = 'static_assert(CALL == 3 && A == 1 && B == 2, "");\n'
SAME = """
constexpr bool same(const char *a, const char *b) { return *a == *b && (!*a || same(a + 1, b + 1)); }
static_assert(same(TEXT, "%s"), "");
"""
KERNEL = 'extern "C" __global__ void scale(float *a) { *a = sizeof(TEXT); }\n'


@pytest.mark.slow
@pytest.mark.compilers
@pytest.mark.parametrize("depth", ["unit", "device"])
def test_a_macro_is_what_the_program_sees(
    store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path, depth: str
) -> None:
    """As a parameter of a case and as an option of the user, in the host pass and in the device pass."""
    toolkit("13.0")
    place = Place(None, store)
    cells = []
    for number, template in enumerate(TEXTS):
        text = template.format(tmp_path / f"made-{number}")
        source = tmp_path / str(number) / "kernel.cu"
        source.parent.mkdir()
        source.write_text(SAME % text + KERNEL)
        quoted = f'"{text}"'
        one = make_case(source, f"parameter/{number}", options={"depth": depth}, definitions={"TEXT": quoted})
        two = make_case(source, f"flag/{number}", options={"depth": depth, "flags": [f"-DTEXT={quoted}"]})
        cells += [place.cell(case, "nvcc", "13.0", "sm_80") for case in (one, two)]
    (tmp_path / "call.cu").write_text(
        "constexpr int sum(int a, int b) { return a + b; }\n" + CALL + "__global__ void k() {}\n"
    )
    options = {"depth": depth, "flags": ["-DA=1,B=2"]}  # nvcc's own list
    case = make_case(tmp_path / "call.cu", "made/call", options=options, definitions={"CALL": "sum(1,2)"})
    cells.append(place.cell(case, "nvcc", "13.0", "sm_80"))
    records = run_all(cells, RunContext(place.environment, store, None), jobs=2)
    assert {name: record["log"] for name, record in records.items() if record["status"] != Status.BUILT} == {}
    assert not list(tmp_path.glob("made-*"))


@pytest.mark.parametrize("word", ["-DA=$(b)", "-I$(touch x)", "-DA=`b`", r'-DA="\$x\\"', "-Xcompiler=-DA=$x,-DB"])
def test_what_is_hidden_comes_back(word: str) -> None:
    hidden = Hidden()
    shown = hidden.hide(word)
    assert not set(shown) & set("$`")
    assert Step.of_line(f'cicc "{shown}" $A', {"A": "b"}, hidden).words == ["cicc", word, "b"]
