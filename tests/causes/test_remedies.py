"""Programs that are refused, and what the remedy makes of them: both with real compilers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.causes import explain_log

from .provoke import PROGRAMS, ask_nvrtc, ask_tool, fixed, tools

FIXED = {name: program for name, program in PROGRAMS.items() if "fixed" in program}
# One program of nvcc and one of gcc for the first tier: each is compiled twice, with all passes.
QUICK = ("gencode_mismatch", "cuda_runtime_gcc")
# What NVRTC refuses too is fixed there, in a tenth of the time.
BY_TOOL = [
    pytest.param(name, tool, release or "13.0", marks=() if name in QUICK else pytest.mark.slow)
    for name, program in FIXED.items()
    for tool, release in tools(program)
    if "nvrtc" not in program.get("run", "nvrtc")
]


@pytest.fixture(scope="session")
def home(toolkit: Callable[[str], Any]) -> Callable[[str], Path]:
    return lambda release: toolkit(release).home


@pytest.mark.slow
@pytest.mark.parametrize("release", ["12.4", "13.0"])
def test_nvrtc(release: str, home: Callable[[str], Path]) -> None:
    wanted = {name: program for name, program in FIXED.items() if ("nvrtc", release) in tools(program)}
    assert len(wanted) > 20
    for name, (built, said) in ask_nvrtc(home(release), wanted).items():
        assert not built, name
        told = [match.cause.name for match in explain_log(said).matches if not match.of_warning]
        expected = wanted[name].get("told", {}).get(f"nvrtc {release}", wanted[name]["cause"]) or "none"
        assert (told or ["none"])[0] == expected, said
    after = ask_nvrtc(home(release), {name: fixed(program) for name, program in wanted.items()})
    assert {name: said for name, (built, said) in after.items() if not built} == {}


@pytest.mark.parametrize(("name", "tool", "release"), BY_TOOL)
def test_other_tools(name: str, tool: str, release: str, home: Callable[[str], Path]) -> None:
    program = FIXED[name]
    built, said = ask_tool(tool, home(release), program)
    assert not built
    told = [match.cause.name for match in explain_log(said).matches if not match.of_warning]
    assert told[0] == program["cause"], said
    built, said = ask_tool(tool, home(release), fixed(program))
    assert built, said
