"""How a child ended, held against what it left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cells import make_case, make_cell, make_exit, make_order

from harness.engine.collect import LOG_LIMIT, Remains, collect_outcome, leaked, lost_exit
from harness.model import Outcome

PTX = ".version 8.4\n.target sm_80\n.visible .entry scale()\n{ ret; }\n"


@pytest.fixture
def settled(tmp_path: Path) -> Callable[..., Outcome]:
    """Settle a child of a ``compute_80`` cell."""
    home, tools, scratch = tmp_path / "home", tmp_path / "tools", tmp_path / "cell-1"
    for folder in (home, tools, scratch):
        folder.mkdir()

    def run(reply: dict[str, Any] | str | None, *, stages: str = "compile", log: str = "", **ended: Any) -> Outcome:
        (tmp_path / "kernel.cu").touch()
        (scratch / "artifact.ptx").write_text(PTX)
        (scratch / "stages").write_text(stages.replace(" ", "\n"))
        (scratch / "log").write_bytes(log.encode("utf-8", "surrogateescape"))
        if reply is not None:
            (scratch / "reply.json").write_text(reply if isinstance(reply, str) else json.dumps(reply))
        cell = make_cell(make_case(tmp_path / "kernel.cu"), "nvrtc", "12.4", "compute_80")
        order = make_order(tmp_path / "kernel.cu", "compute_80", scratch, ["scale"])
        return collect_outcome(Remains.of(cell, order, make_exit(**ended), home, tools))

    return run


@pytest.fixture
def built(tmp_path: Path) -> dict[str, Any]:
    return {
        "status": "built",
        "stage": None,
        "reason": "",
        "artifact": {"path": str(tmp_path / "cell-1" / "artifact.ptx"), "format": "ptx"},
    }


REJECTED = {"status": "rejected", "stage": "compile", "reason": "it says no"}


def test_built(settled: Callable[..., Outcome], built: dict[str, Any]) -> None:
    outcome = settled(built)
    assert (outcome.status, outcome.stage, outcome.reason) == ("built", "compile", "")
    assert outcome.artifact is not None
    assert (outcome.artifact.target, outcome.artifact.bytes) == ("compute_80", len(PTX))


@pytest.mark.parametrize(
    ("ended", "words"),
    [({"exit": None, "signal": 11}, "was ended by signal 11"), ({"exit": 3}, "ended with exit code 3"), ({"exit": 0}, "without an answer")],
)  # fmt: skip
@pytest.mark.parametrize("reply", [None, "", "{", "[1"])
def test_a_child_without_an_answer_crashed(
    settled: Callable[..., Outcome], ended: dict[str, Any], words: str, reply: str | None
) -> None:
    outcome = settled(reply, stages="compile assemble", **ended)
    assert (outcome.status, outcome.stage, outcome.signal) == ("crashed", "assemble", ended.get("signal"))
    assert words in outcome.diagnostics[0].message


@pytest.mark.parametrize("seconds", [-1.0, 1e308])
def test_a_time_that_no_record_can_have_is_no_answer(
    settled: Callable[..., Outcome], built: dict[str, Any], seconds: float
) -> None:
    outcome = settled({**built, "seconds": seconds}, exit=0)
    assert outcome.status == "crashed"
    assert f"time ({seconds} s)" in outcome.diagnostics[0].message


def test_the_deadline_outweighs_an_answer(settled: Callable[..., Outcome], built: dict[str, Any]) -> None:
    outcome = settled(built, timed_out=True, exit=None, signal=9)
    assert (outcome.status, outcome.stage, outcome.signal, outcome.artifact) == ("timed_out", "compile", None, None)


@pytest.mark.parametrize(
    "change",
    [
        {"artifact": None},
        {"artifact": {"path": "/nowhere", "format": "ptx"}},
        {"artifact": {"path": "/dev/null", "format": "ptx"}},
        {"artifact": {"path": "/proc/kmsg", "format": "ptx"}},
    ],
)
def test_a_build_with_nothing_to_show_is_our_fault(
    settled: Callable[..., Outcome], built: dict[str, Any], change: dict[str, Any]
) -> None:
    outcome = settled({**built, **change})
    assert (outcome.status, outcome.stage, outcome.artifact) == ("harness_error", None, None)
    assert outcome.reason.startswith("what was built cannot be read")


def test_an_unknown_format_is_our_fault(settled: Callable[..., Outcome], built: dict[str, Any]) -> None:
    assert settled({**built, "artifact": {**built["artifact"], "format": "zip"}}).status == "harness_error"


def test_a_refusal_without_a_known_message_has_its_first_words(settled: Callable[..., Outcome]) -> None:
    log = "nvrtc: warning: old\n\nit broke\nhere\nand here\nlast words\n"
    assert settled(REJECTED, log=log).diagnostics[0].message == "it broke | here | and here"
    assert settled(REJECTED).diagnostics[0].message == "it says no"


def test_a_refusal_with_a_message_has_that(settled: Callable[..., Outcome]) -> None:
    outcome = settled(REJECTED, log="kernel.cu(3): error: bad\n1 error detected\n")
    assert [item.message for item in outcome.diagnostics] == ["bad"]


def test_notes_say_what_was_unusual(settled: Callable[..., Outcome]) -> None:
    notes = settled({**REJECTED, "notes": ["own"]}, leftovers=2, output="x", output_total=5_000_000).notes
    assert notes == (
        "own",
        "ended 2 process(es) that it left behind",
        "printed 5000000 bytes, of which the first and the last part are kept",
    )


def test_commands_of_any_length_are_read(settled: Callable[..., Outcome]) -> None:
    """Looking for the folder of packages at each slash took the square of the length."""
    outcome = settled(
        {
            **REJECTED,
            "command": ["/a" * 2_000_000, "nvcc -I/x/lib/site-packages/y/site-packages/z '/q/dist-packages/w'"],
        }
    )
    assert outcome.command[1] == "nvcc -I…/site-packages/z '…/dist-packages/w'"


@pytest.mark.parametrize("reply", [REJECTED, None])
def test_the_peak_is_what_the_fork_server_saw(settled: Callable[..., Outcome], reply: dict[str, Any] | None) -> None:
    assert settled(reply, peak_bytes=123_456).peak_bytes == 123_456


def test_a_log_is_cut_and_made_harmless(settled: Callable[..., Outcome]) -> None:
    outcome = settled(REJECTED, log="\x1b[31m" + "x" * 1_000_000 + "end\x00\udcff")
    assert len(outcome.log) == LOG_LIMIT == 65_536
    assert "characters left out" in outcome.log
    assert "\x1b" not in outcome.log
    assert outcome.log.endswith("end��")
    json.dumps(outcome.to_json(), allow_nan=False).encode()


def test_temporary_names_do_not_get_into_a_record(settled: Callable[..., Outcome], tmp_path: Path) -> None:
    scratch = tmp_path / "cell-1"
    outcome = settled(
        {**REJECTED, "command": [f"ptxas {scratch}/a.ptx"]},
        log=f"{scratch}/a.cu(1): error: in {scratch}/tmpab12cd3_/x.cu",
    )
    assert str(scratch) not in json.dumps(outcome.to_json())
    assert outcome.command == ("ptxas ./a.ptx",)
    assert outcome.diagnostics[0].message == "in x.cu"


def test_a_command_names_no_folder_of_the_machine(settled: Callable[..., Outcome], tmp_path: Path) -> None:
    home, site = tmp_path / "home", "/home/somebody/.venv/lib/python3.11/site-packages"
    command = [
        f"nvrtcCompileProgram -I{home}/include -I{home}-other/include -I{site}/cupy/_core/include -DX=1",
        f"cupy.RawModule(code=…, options=('-I{tmp_path}/libraries/cutlass-4.2.0/include', '-I{home}'))",
        f"{home}/bin/ptxas -arch=sm_80",
    ]
    assert settled({**REJECTED, "command": command}).command == (
        "nvrtcCompileProgram -I$CUDA_HOME/include -I$CUMATRIX_HOME/home-other/include -I…/site-packages/cupy/_core/include -DX=1",
        "cupy.RawModule(code=…, options=('-I$CUMATRIX_HOME/libraries/cutlass-4.2.0/include', '-I$CUDA_HOME'))",
        "$CUDA_HOME/bin/ptxas -arch=sm_80",
    )


def test_libraries_from_elsewhere_are_leaks(
    settled: Callable[..., Outcome], built: dict[str, Any], tmp_path: Path
) -> None:
    own = [
        str(tmp_path / "home" / "lib64" / "libnvrtc.so.12"),
        str(tmp_path / "tools" / "x" / "libcudart.so.12"),
        "/usr/lib/libcuda.so.1",
    ]
    assert settled({**built, "libraries": own}).status == "built"
    outcome = settled({**built, "libraries": [*own, "/usr/local/cuda/lib64/libnvvm.so.4"]})
    assert (outcome.status, outcome.artifact) == ("unavailable", None)
    assert "/usr/local/cuda/lib64/libnvvm.so.4" in outcome.reason
    assert settled({**REJECTED, "libraries": ["/opt/libnvrtc.so.12"]}).status == "unavailable"


def test_a_folder_that_begins_alike_is_elsewhere(tmp_path: Path) -> None:
    assert leaked([f"{tmp_path}/home2/libnvrtc.so.12"], tmp_path / "home", tmp_path / "tools")


@pytest.mark.parametrize("reply", [None, {**REJECTED}])
def test_a_full_folder_is_not_the_programs_fault(settled: Callable[..., Outcome], reply: dict[str, Any] | None) -> None:
    words = "cc1plus: fatal error: error writing to ./x.s: No space left on device\ncompilation terminated."
    outcome = settled(reply, log=words)
    assert outcome.status == "harness_error"
    assert "temporary folder" in outcome.reason
    assert "TMPDIR" in outcome.reason


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize(
    ("ended", "status", "words"),
    [
        ({"machine_full": True}, "harness_error", "the machine ran out of memory"),
        ({"no_memory": True}, "crashed", "took more memory than they may (see --memory)"),
        (
            {"machine_full": True, "no_memory": True, "timed_out": True},
            "harness_error",
            "the machine ran out of memory",
        ),
        ({"no_memory": True, "timed_out": True}, "crashed", "took more memory than they may (see --memory)"),
    ],
)
def test_a_lack_of_memory_outweighs_an_answer(
    settled: Callable[..., Outcome],
    built: dict[str, Any],
    answers: bool,
    ended: dict[str, Any],
    status: str,
    words: str,
) -> None:
    outcome = settled(built if answers else None, stages="compile assemble", **ended)
    assert (outcome.status, outcome.artifact) == (status, None)
    assert words in outcome.reason
    said = [item.message for item in outcome.diagnostics]
    assert said == ([f"out of memory: {outcome.reason}"] if status == "crashed" else [])
    assert outcome.stage == ("assemble" if status == "crashed" else None)


def test_nothing_is_believed_where_the_fork_server_was_lost(tmp_path: Path, built: dict[str, Any]) -> None:
    source, scratch = tmp_path / "kernel.cu", tmp_path / "cell-1"
    scratch.mkdir()
    source.touch()
    (scratch / "reply.json").write_text(json.dumps(built))
    (scratch / "stages").write_text("compile\nlink")
    order = replace(make_order(source, "compute_80", scratch, ["scale"]), device={"virtual": True})
    cell = make_cell(make_case(source), "nvrtc", "12.4", "compute_80")
    outcome = collect_outcome(
        Remains.of(cell, order, lost_exit(2.5), tmp_path / "home", tmp_path / "tools" / "bin", lost="signal 9")
    )
    assert (outcome.status, outcome.stage, outcome.signal, outcome.seconds) == ("crashed", "link", None, 2.5)
    assert outcome.reason == "the worker process was lost while this cell ran: signal 9"
    assert [item.message for item in outcome.diagnostics] == [outcome.reason]
    assert outcome.device == {"virtual": True}
    assert outcome.notes == ()


@pytest.mark.parametrize("lives", [True, False])
def test_what_a_python_program_prints_counts_once_it_is_dead(tmp_path: Path, lives: bool) -> None:
    source, scratch = tmp_path / "program.py", tmp_path / "cell-1"
    scratch.mkdir()
    source.write_text("import numba")
    if lives:
        (scratch / "reply.json").write_text(json.dumps(REJECTED))
    (scratch / "log").write_text('kernel.cu(1): error: identifier "told" is undefined\n')
    ended = make_exit(output='kernel.cu(2): error: identifier "printed" is undefined\n')
    cell = make_cell(make_case(source), "numba", "12.4", "sm_80")
    order = make_order(source, "sm_80", scratch)
    outcome = collect_outcome(Remains.of(cell, order, ended, tmp_path / "home", tmp_path / "tools"))
    said = " ".join(item.message for item in outcome.diagnostics)
    assert ("told" in said, "printed" in said) == (True, not lives)


def test_the_signal_that_ended_a_compiler_is_kept(settled: Callable[..., Outcome]) -> None:
    outcome = settled({"status": "crashed", "stage": "assemble", "reason": "ptxas was ended", "signal": 11})
    assert (outcome.status, outcome.stage, outcome.signal) == ("crashed", "assemble", 11)
    assert (outcome.reason, outcome.diagnostics[0].message) == ("ptxas was ended", "ptxas was ended")
