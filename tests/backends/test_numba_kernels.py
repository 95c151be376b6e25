"""Programs with several kernels, each with its own requirements and outcome, compiled by the real Numba."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.compilers
RunCell = Callable[..., dict[str, Any]]
LIBRARIES = [
    pytest.param(("numba==0.59.1", "numba"), id="numba"),
    pytest.param(("numba-cuda==0.24.0", "numba-cuda"), id="bindings-0.24"),
    pytest.param(("numba-cuda==0.30.4", "numba-cuda"), id="bindings-0.30", marks=pytest.mark.slow),
]

HEAD = "import numpy as np\nfrom numba import cuda\n"
SCALE = "@cuda.jit\ndef scale(a):\n    a[cuda.grid(1)] *= 2\n"
ADD = "@cuda.jit\ndef add(a, b):\n    a[cuda.grid(1)] += b[cuda.grid(1)]\n"
EMPTY = "@cuda.jit\ndef empty():\n    pass\n"
DECLARED = '@cuda.jit("void(float64[:])")\ndef declared(a):\n    a[0] = 1\n'
BAD = "@cuda.jit\ndef bad(a):\n    a[0] = a.nothing\n"
LAUNCH = "scale[1, 32](np.ones(32, np.float32))\n"
TYPES = {"scale": "void(float32[:])", "add": "void(float32[:], float32[:])"}


@pytest.fixture(params=LIBRARIES)
def compiled(request: pytest.FixtureRequest, run_cell: RunCell) -> RunCell:
    """Compile a program, named axpy.py, with one of three libraries."""
    requirement, backend = request.param

    def run(*parts: str, entries: Any = None, target: str = "sm_80", **more: Any) -> dict[str, Any]:
        text = HEAD + "".join(parts)
        return run_cell(requirement, backend, "12.9", text, target, entries or {}, {}, name="axpy", **more)

    return run


def kernels(reply: dict[str, Any]) -> list[str]:
    """Return the names of functions that an artifact contains."""
    names = ("scale", "add", "empty", "declared", "bad", "inner", "used")
    return [name for kernel in reply["artifact"]["kernels"] for name in names if f"{len(name)}{name}" in kernel["name"]]


@pytest.mark.parametrize("target", ["sm_80", "compute_80"])
def test_all_kernels_are_in_what_was_built(compiled: RunCell, target: str) -> None:
    reply = compiled(SCALE, ADD, EMPTY, DECLARED, LAUNCH, entries=TYPES, target=target)
    assert reply["status"] == "built", reply
    assert sorted(kernels(reply)) == ["add", "declared", "empty", "scale", "scale"]  # launched with an array of kind C
    assert reply["artifact"]["target"] == target
    assert [note for note in reply["notes"] if "left out, since" in note] == []


def test_one_kernel_more_makes_the_artifact_larger(compiled: RunCell) -> None:
    one, two = compiled(SCALE, ADD, entries={"scale": TYPES["scale"]}), compiled(SCALE, ADD, entries=TYPES)
    assert (kernels(one), sorted(kernels(two))) == (["scale"], ["add", "scale"])
    assert one["artifact"]["bytes"] < two["artifact"]["bytes"]
    assert one["artifact"]["sha256"] != two["artifact"]["sha256"]
    assert one["notes"] == ["left out, since nothing gives the types of its arguments: add"]
    assert two["notes"] == []


def test_what_was_launched_counts_and_what_was_not_is_left_out(compiled: RunCell) -> None:
    reply = compiled(SCALE, ADD, LAUNCH)
    assert (reply["status"], kernels(reply)) == ("built", ["scale"])
    assert "left out, since nothing gives the types of its arguments: add" in reply["notes"]
    assert "1 launch was left out: the device is virtual" in reply["notes"]


def test_one_refused_kernel_refuses_the_program_and_the_others_are_tried(compiled: RunCell) -> None:
    entries = {"bad": "void(float32[:])", **TYPES}
    reply = compiled(BAD, SCALE, ADD, entries=entries)
    assert (reply["status"], reply["stage"]) == ("rejected", "compile")
    assert "Unknown attribute 'nothing'" in reply["diagnostics"][0]["message"]
    assert reply["notes"] == ["refused: bad; built: scale, add"]


def test_every_refusal_is_told(compiled: RunCell) -> None:
    other = BAD.replace("bad", "worse").replace("nothing", "something")
    reply = compiled(BAD, other, entries={"bad": "void(float32[:])", "worse": "void(float32[:])"})
    told = " ".join(item["message"] for item in reply["diagnostics"])
    assert "'nothing'" in told
    assert "'something'" in told
    assert reply["notes"] == ["refused: bad, worse; built: none"]


@pytest.mark.parametrize(
    "launch",
    ["bad[1, 1](np.ones(3))\n", "try:\n    bad[1, 1](np.ones(3))\nexcept Exception:\n    pass\n" + LAUNCH],
    ids=["seen", "hidden"],
)
def test_a_refused_launch_refuses_the_program(compiled: RunCell, launch: str) -> None:
    reply = compiled(BAD, SCALE, launch, entries={"scale": TYPES["scale"]})
    assert reply["status"] == "rejected"
    assert "refused: bad; built: scale" in reply["notes"]


def test_a_kernel_is_found_wherever_it_is(compiled: RunCell) -> None:
    reply = compiled(
        "import pack.deep\nfrom helper import used\nused[1, 1](np.ones(3))\n"
        "def main():\n    @cuda.jit\n    def inner(a):\n        a[0] = 1\n    inner[1, 1](np.ones(3))\n"
        "if __name__ == '__main__':\n    main()\nKERNELS = {'one': cuda.jit(pack.deep.plain)}\n",
        beside={
            "helper.py": HEAD + "@cuda.jit\ndef used(a):\n    a[0] = 1\n",
            "pack/__init__.py": "",
            "pack/deep.py": HEAD + ADD + "def plain(a):\n    a[0] = 1\n",
        },
    )
    assert (reply["status"], sorted(kernels(reply))) == ("built", ["inner", "used"])
    assert "left out, since nothing gives the types of its arguments: plain, add" in reply["notes"]


def test_a_kernel_may_be_asked_for_by_the_programs_name_for_it(compiled: RunCell) -> None:
    made = "def make(n):\n    @cuda.jit\n    def inner(a):\n        a[0] = n\n    return inner\none = make(1)\ntwo = make(2)\n"
    reply = compiled(made, entries={"two": "void(float32[:])"})
    assert (reply["status"], kernels(reply)) == ("built", ["inner"]), reply
    assert kernels(compiled(made, entries={"inner": "void(float32[:])"})) == ["inner", "inner"]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"scalee": "void(float32[:])"}, "axpy.py has no CUDA kernel scalee: it has scale, declared"),
        ({"np": "void(float32[:])"}, "axpy.py has no CUDA kernel np: it has scale, declared"),
        ({"scale": "void(flot32[:])"}, "the signature 'void(flot32[:])' of scale is not one that Numba knows"),
        ({"scale": "void(float32["}, "the signature 'void(float32[' of scale is not one that Numba knows"),
        ({"scale": "float32(float32[:])"}, "of scale has a result: a kernel returns nothing"),
        ({"scale": "void(float32[:], int32)"}, "the signature of scale has 2 arguments, and scale takes 1"),
        ({"declared": "void(float32[:])"}, "declared declares its signature itself"),
    ],
)
def test_a_wrong_signature_is_the_users_error(compiled: RunCell, entries: dict[str, str], words: str) -> None:
    reply = compiled(SCALE, DECLARED, entries=entries)
    assert reply["status"] == "unavailable"
    assert words in reply["reason"]


def test_without_types_there_is_nothing_to_compile(compiled: RunCell) -> None:
    reply = compiled(SCALE, ADD)
    assert reply["status"] == "unsupported"
    assert reply["reason"].startswith("nothing in axpy.py gives the types of the arguments of the kernels scale, add")
    assert '--signature "scale=void(float32[:])"' in reply["reason"]


def test_without_a_kernel_there_is_nothing_to_compile(compiled: RunCell) -> None:
    reply = compiled("@cuda.jit(device=True)\ndef one():\n    return 1\n")
    assert (reply["status"], reply["reason"]) == ("unsupported", "axpy.py defines no CUDA kernel")


@pytest.mark.parametrize("launch", [LAUNCH, ""], ids=["launched", "declared"])
@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("np.testing.assert_allclose(np.ones(1), 2)\n", "AssertionError: Not equal to tolerance"),
        ("raise SystemExit(1)\n", "SystemExit: axpy.py ended itself with exit code 1"),
        ("input()\n", "EOFError: EOF when reading a line (it asks for input, and there is none here)"),
    ],
)
def test_a_program_that_stumbles_was_compiled(compiled: RunCell, launch: str, end: str, words: str) -> None:
    reply = compiled(SCALE, DECLARED, launch, end)
    assert reply["status"] == "built", reply
    (note,) = [note for note in reply["notes"] if "ended early" in note]
    assert words in note
    assert (", after launches that computed nothing: " in note) == bool(launch)


def test_a_program_that_ends_before_its_kernels_is_refused(compiled: RunCell) -> None:
    reply = compiled("raise KeyError('early')\n", SCALE, entries={"scale": TYPES["scale"]})
    assert (reply["status"], reply["diagnostics"][0]["message"]) == (
        "rejected", "KeyError: 'early' axpy.py:3: raise KeyError('early')",
    )  # fmt: skip


def test_what_a_program_needs_comes_before_what_it_compiled(compiled: RunCell) -> None:
    reply = compiled(SCALE, LAUNCH, "import no_such_module\n")
    assert reply["status"] == "unavailable"
    assert "no module no_such_module is there" in reply["reason"]


def test_what_the_library_lacks_is_its_refusal(compiled: RunCell) -> None:
    reply = compiled("from numba import no_such_name\n")
    assert reply["status"] == "rejected"
    assert "cannot import name 'no_such_name' from 'numba'" in reply["diagnostics"][0]["message"]


def test_what_the_program_prints_is_kept_apart(compiled: RunCell) -> None:
    noise = "print('kernel.cu(3): error: made up', flush=True)\nprint('TypingError: made up')\n"
    reply = compiled(noise, BAD, entries={"bad": "void(float32[:])"})
    assert [item for item in reply["diagnostics"] if "made up" in item["message"]] == []
    said, label, printed = reply["log"].partition(
        "--- printed while axpy.py ran, by the program or by what it called ---\n"
    )
    assert "TypingError: Failed in" in said
    assert label
    assert printed.startswith("kernel.cu(3): error: made up\nTypingError: made up")


def test_places_are_in_the_users_files(compiled: RunCell, tmp_path: Path) -> None:
    reply = compiled("from lib.part import bad\n", entries={"bad": "void(float32[:])"},
                     beside={"lib/part.py": HEAD + BAD})  # fmt: skip
    assert reply["status"] == "rejected"
    assert 'File "lib/part.py", line 5:' in reply["log"]
    assert str(tmp_path) not in reply["log"]


def test_a_cache_lies_in_the_cell(compiled: RunCell, tmp_path: Path) -> None:
    cached = SCALE.replace("jit", "jit(cache=True)")
    reply = compiled("from helper import N\n", cached, LAUNCH, beside={"helper.py": "N = 1\n"})
    assert reply["status"] == "built", reply
    assert sorted(path.name for path in (tmp_path / "program").iterdir()) == ["axpy.py", "helper.py"]
    assert list(tmp_path.glob("cell-*/numba-cache/**/*.nbi"))
