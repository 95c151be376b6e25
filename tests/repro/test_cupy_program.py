"""The script's handling of a CuPy program that fails, with a fake CuPy of a few lines that compiles nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.repro import script

_START = """\
import sys, types
cupy, cuda, compiler, virtual_gpu = map(types.ModuleType, ("cupy", "cupy.cuda", "cupy.cuda.compiler", "virtual_gpu"))
def compile_it(fails):
    if fails:
        raise RuntimeError("identifier is undefined")
compiler._compile_module_with_cache = compile_it
cuda.compiler = compiler
virtual_gpu.loaded, virtual_gpu.lacking = LOADED, []
sys.modules.update({"cupy": cupy, "cupy.cuda": cuda, "cupy.cuda.compiler": compiler, "virtual_gpu": virtual_gpu})
import cupy_program
with cupy_program.watched():
"""


@pytest.mark.parametrize(
    ("program", "loaded", "said"),
    [
        ("compiler._compile_module_with_cache(False)", {1: b""}, ""),
        ("try: compiler._compile_module_with_cache(True)\n    except RuntimeError: pass", {1: b""}, "RuntimeError: identifier is undefined"),
        ("assert 1 == 2", {1: b""}, ""),
        ("assert 1 == 2", {}, "AssertionError"),
        ("sys.exit(3)", {}, "SystemExit: -c ended itself with exit code 3"),
        ("sys.exit()", {}, ""),
        ("virtual_gpu.lacking.append('twice<int>')", {1: b""}, "named symbol not found: twice<int>"),
    ],
    ids=["to its end", "it catches", "nothing was computed", "without a kernel", "it exits", "it ends early", "no such kernel"],
)  # fmt: skip
def test_the_first_refusal_counts(program: str, loaded: dict[int, bytes], said: str) -> None:
    text = _START.replace("LOADED", repr(loaded)) + f"    {program}\nprint('built')\n"
    folder = Path(script.__file__).with_name("files")
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, said in done.stderr) == (1 if said else 0, True), done.stdout + done.stderr
    assert (done.stdout.splitlines()[-1:] == ["built"]) is not bool(said)
