"""The end of a child, compared with the files that it left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cells import make_case, make_cell, make_exit, make_order
from code_objects import KERNEL, code_object

from harness.engine import collect
from harness.engine.collect import (
    LOG_LIMIT,
    Places,
    Remains,
    check_product,
    collect_outcome,
    leaked,
    lost_exit,
)
from harness.model import Artifact, Outcome, Target
from harness.protocol.messages import Product
from harness.records.files import ArtifactFolder
from harness.records.record import LONGEST
from harness.toolkits import Installed

PTX = ".version 8.4\n.target sm_80\n.visible .entry scale()\n{ ret; }\n"


@pytest.fixture
def settled(tmp_path: Path) -> Callable[..., Outcome]:
    """Settle a child of a ``compute_80`` cell."""
    home, tools, scratch = tmp_path / "home", tmp_path / "tools", tmp_path / "cell-1"
    for folder in (home, tools, scratch):
        folder.mkdir()

    def run(
        reply: dict[str, Any] | str | None,
        *,
        stages: str = "compile",
        log: str = "",
        root: Path | None = None,
        keep: ArtifactFolder | None = None,
        target: str = "compute_80",
        ptx: str = PTX,
        entries: Sequence[str] = ("scale",),
        **ended: Any,
    ) -> Outcome:
        (tmp_path / "kernel.cu").touch()
        (scratch / "artifact.ptx").write_text(ptx)
        (scratch / "stages").write_text(stages.replace(" ", "\n"))
        (scratch / "log").write_bytes(log.encode("utf-8", "surrogateescape"))
        if reply is not None:
            (scratch / "reply.json").write_text(reply if isinstance(reply, str) else json.dumps(reply))
        cell = make_cell(replace(make_case(tmp_path / "kernel.cu"), root=root), "nvrtc", "12.4", target)
        order = make_order(tmp_path / "kernel.cu", target, scratch, entries)
        return collect_outcome(Remains.of(cell, order, make_exit(**ended), home, tools), keep)

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
    [({"exit": None, "signal": 11}, "was ended by signal 11"), ({"exit": 3}, "ended with exit code 3"), ({"exit": 0}, "ended with exit code 0 and without an answer")],
)  # fmt: skip
@pytest.mark.parametrize("reply", [None, "", "{", "[1"])
def test_a_child_without_an_answer_crashed(
    settled: Callable[..., Outcome], ended: dict[str, Any], words: str, reply: str | None
) -> None:
    for stage, who in (("assemble", "compiler"), ("load", "program"), ("verify", "program")):
        outcome = settled(reply, stages=f"compile {stage}", **ended)
        assert (outcome.status, outcome.stage, outcome.signal) == ("crashed", stage, ended.get("signal"))
        assert outcome.diagnostics[0].message.startswith(f"the {who}'s process {words}")
        assert outcome.diagnostics[0].fingerprint == "crash"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"signal": 1}, "rejected"),
        ({"signal": signal.NSIG - 1}, "rejected"),
        ({"signal": 0}, "crashed"),
        ({"signal": signal.NSIG}, "crashed"),
        ({"seconds": 0.0}, "rejected"),
        ({"seconds": LONGEST}, "rejected"),
    ],
)
def test_limits_of_signals_and_times(settled: Callable[..., Outcome], change: dict[str, Any], status: str) -> None:
    assert settled({**REJECTED, **change}).status == status


def test_an_outcome_has_what_the_reply_tells(settled: Callable[..., Outcome]) -> None:
    told = {"observed": {"nvrtc": "12.4.127"}, "device": {"virtual": True}, "signal": 11, "stage": "assemble"}
    outcome = settled(
        {**REJECTED, **told, "seconds": 0.123456, "shared_steps": ["a\nb"]}, stages="compile compile link"
    )
    assert (outcome.observed, outcome.device, outcome.signal) == (told["observed"], told["device"], 11)
    assert (outcome.stage, outcome.stages, outcome.seconds) == ("assemble", ("compile", "link"), 0.1235)
    assert outcome.shared_steps == ("a b",)


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
    assert outcome.notes == ("ended at the deadline, after 1 s",)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (None, "nothing came out"),
        ("/nowhere", "nowhere lies outside of the cell's folder"),
        ("/dev/null", "null lies outside of the cell's folder"),
        ("kernel.cu", "kernel.cu lies outside of the cell's folder"),
        ("cell-1", "directory"),
        ("cell-1/none", "No such file"),
    ],
)
def test_a_build_with_nothing_to_show_is_our_fault(
    settled: Callable[..., Outcome], built: dict[str, Any], tmp_path: Path, place: str | None, words: str
) -> None:
    outcome = settled({**built, "artifact": place and {"path": str(tmp_path / place), "format": "ptx"}})
    assert (outcome.status, outcome.stage, outcome.artifact) == ("harness_error", None, None)
    assert outcome.reason.startswith("what was built cannot be read: ") and words in outcome.reason


def test_only_what_was_asked_for_is_kept(
    settled: Callable[..., Outcome], built: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = ArtifactFolder(tmp_path / "kept")
    keep.open()
    part = built["artifact"]
    several = {**built, "artifact": {**part, "parts": [part, part]}}
    assert settled({**built, "artifact": {**part, "names": {"scale": "other"}}}, keep=keep).status == "harness_error"
    assert list(keep.path.iterdir()) == []
    artifacts = [settled(reply, keep=keep).artifact for reply in (built, several)]
    assert [artifact and artifact.bytes for artifact in artifacts] == [len(PTX), 2 * len(PTX)]
    assert sorted(path.stat().st_size for path in keep.path.iterdir()) == [len(PTX), 2 * len(PTX)]
    monkeypatch.setattr(collect, "_MOST", 2 * len(PTX) - 1)  # for all of them together
    assert settled(several).status == "harness_error"


@pytest.mark.parametrize(
    ("by_driver", "target", "status", "note"),
    [
        (False, "sm_90", "built", ""),
        (False, "sm_90a", "unavailable", ""),
        (True, "sm_90", "built", ""),
        (True, "sm_90a", "built", "the driver's own linker made sm_90a of it"),
        (True, "sm_80", "unavailable", ""),
    ],
)
def test_a_product_is_for_the_target(by_driver: bool, target: str, status: str, note: str) -> None:
    artifact = Artifact(format="cubin", target=target, bytes=1, sha256="", kernels=())
    product = Product(path="", format="cubin", by_driver=by_driver)
    found = check_product(Target.parse("sm_90"), product, artifact, ())
    assert (found[0], bool(found[1]), found[2]) == (status, status != "built", note)


@pytest.mark.compilers
@pytest.mark.parametrize("release", ["12.4", "13.0"])
@pytest.mark.parametrize("suffix", ["", "a"])
def test_cubins_are_told_apart_by_their_suffix(
    settled: Callable[..., Outcome], toolkit: Callable[[str], Installed], tmp_path: Path, release: str, suffix: str
) -> None:
    text = f".version 8.0\n.target sm_90{suffix}\n.address_size 64\n.visible .entry scale() {{ ret; }}\n"
    (tmp_path / "k.ptx").write_text(text)
    product = tmp_path / "cell-1" / "k.cubin"
    reply = {"status": "built", "artifact": {"path": str(product), "format": "cubin"}}
    for options in ([], ["-c"]):
        ptxas = [
            str(toolkit(release).home / "bin" / "ptxas"),
            *options,
            f"-arch=sm_90{suffix}",
            "k.ptx",
            "-o",
            str(product),
        ]
        subprocess.run(ptxas, cwd=tmp_path, check=True)
        for asked in ("", "a"):
            outcome = settled(reply, target=f"sm_90{asked}")
            assert outcome.status == ("built" if asked == suffix else "unavailable"), outcome.reason
            assert outcome.artifact and outcome.artifact.target == f"sm_90{suffix}"
            assert outcome.artifact.format == ("object" if options else "cubin")
            unlinked = ("not linked: what came out is relocatable device code",) if options else ()
            assert outcome.notes == unlinked
    assert settled({**reply, "notes": ["not linked, as asked"]}, target=f"sm_90{suffix}").notes == (
        "not linked, as asked",
    )


@pytest.mark.compilers
def test_a_cubin_that_does_not_say_its_suffix_is_what_was_asked_for(
    settled: Callable[..., Outcome], toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """The ABI of CUDA 13 has no flag for it, and the note that quotes the command line may be missing."""
    (tmp_path / "k.ptx").write_text(PTX.replace(".target sm_80", ".target sm_90a\n.address_size 64"))
    product = tmp_path / "cell-1" / "k.cubin"
    ptxas = [str(toolkit("13.0").home / "bin" / "ptxas"), "-arch=sm_90a", "k.ptx", "-o", str(product)]
    subprocess.run(ptxas, cwd=tmp_path, check=True)
    product.write_bytes(product.read_bytes().replace(b".note.nv.tkinfo", b".note.nv.hidden"))
    reply = {"status": "built", "artifact": {"path": str(product), "format": "cubin"}}
    for target, status in (("sm_90", "built"), ("sm_90a", "built"), ("sm_80", "unavailable")):
        assert settled(reply, target=target).status == status


@pytest.mark.compilers
def test_a_cubin_that_no_block_has_room_for_says_so(
    settled: Callable[..., Outcome], toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    (tmp_path / "k.ptx").write_text(
        ".version 8.4\n.target sm_86\n.address_size 64\n.shared .align 4 .b8 tile[102400];\n"
        ".visible .entry scale(.param .u64 out) {\n.reg .u32 %r;\n.reg .u64 %p;\n"
        "ld.param.u64 %p, [out];\nld.shared.u32 %r, [tile + 102396];\nst.u32 [%p], %r;\nret;\n}\n"
    )
    product = tmp_path / "cell-1" / "k.cubin"
    ptxas = [str(toolkit("12.4").home / "bin" / "ptxas"), "-arch=sm_86", "k.ptx", "-o", str(product)]
    subprocess.run(ptxas, cwd=tmp_path, check=True)
    outcome = settled({"status": "built", "artifact": {"path": str(product), "format": "cubin"}}, target="sm_86")
    assert outcome.status == "built"
    assert outcome.notes == (
        "cannot launch: scale has 102400 bytes of static shared memory; a block can have 101376 on compute capability 8.6",
    )


def test_a_code_object_is_for_the_processor_that_was_asked_for(settled: Callable[..., Outcome], tmp_path: Path) -> None:
    product = tmp_path / "cell-1" / "k.hsaco"
    product.write_bytes(code_object(KERNEL))
    reply = {"status": "built", "artifact": {"path": str(product), "format": "hsaco"}}
    for target, status in (("gfx942", "built"), ("gfx90a", "unavailable")):
        outcome = settled(reply, target=target, entries=("dot",))
        assert outcome.status == status, outcome.reason
        assert outcome.artifact and (outcome.artifact.format, outcome.artifact.target) == ("hsaco", "gfx942")


def test_an_unknown_format_is_our_fault(settled: Callable[..., Outcome], built: dict[str, Any]) -> None:
    assert settled({**built, "artifact": {**built["artifact"], "format": "zip"}}).status == "harness_error"


def test_a_refusal_without_a_known_message_has_its_first_words(settled: Callable[..., Outcome]) -> None:
    log = "nvrtc: warning: old\n\nit broke\nhere\nand here\nlast words\n"
    assert settled(REJECTED, log=log).diagnostics[0].message == "it broke | here | and here"
    assert settled(REJECTED).diagnostics[0].message == "it says no"
    crashed = {"status": "crashed", "reason": ""}
    assert settled(crashed).diagnostics[0].message == "the compiler crashed"


@pytest.mark.parametrize("status", ["built", "unsupported", "unavailable", "harness_error"])
def test_what_is_printed_without_a_refusal_is_no_error(
    settled: Callable[..., Outcome], built: dict[str, Any], status: str
) -> None:
    outcome = settled({**built, "status": status, "reason": "why"}, log="ptxas info: one line\nanother\n")
    assert (outcome.status, outcome.diagnostics) == (status, ())


def test_a_refusal_with_a_message_has_that(settled: Callable[..., Outcome]) -> None:
    outcome = settled(REJECTED, log="kernel.cu(3): error: bad\n1 error detected\n")
    assert [item.message for item in outcome.diagnostics] == ["bad"]


def test_a_build_without_kernels_says_why(settled: Callable[..., Outcome], built: dict[str, Any]) -> None:
    outcome = settled(built, ptx=".version 8.4\n.target sm_80\n", entries=())
    assert outcome.artifact is not None
    assert (outcome.status, outcome.artifact.kernels) == ("built", ())
    assert [note for note in outcome.notes if "has no __global__ function" in note]
    assert not [note for note in settled(built).notes if "__global__" in note]


def test_a_kernel_that_only_traps_is_remarked(settled: Callable[..., Outcome], built: dict[str, Any]) -> None:
    outcome = settled(built, ptx=PTX.replace("{ ret; }", "{\ntrap;\nexit;\n}"))
    remark = "remark: scale does nothing but trap: it may be compiled out here"
    assert (outcome.status, outcome.notes) == ("built", (remark,))


def test_notes_say_what_was_unusual(settled: Callable[..., Outcome]) -> None:
    usual = settled(REJECTED, output="x", output_total=101)
    assert (usual.notes, usual.log) == ((), "x")
    notes = settled({**REJECTED, "notes": ["own"]}, leftovers=2, output="x", output_total=5_000_000).notes
    assert notes == (
        "own",
        "ended 2 process(es) that it left behind",
        "printed 5000000 bytes, of which the first and the last part are kept",
    )


def test_commands_of_any_length_are_read(settled: Callable[..., Outcome]) -> None:
    """A search for the folder of packages at each slash was quadratic in the length."""
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
    ours = settled({"status": "harness_error", "reason": "ours", "libraries": ["/opt/libnvrtc.so.12"]})
    assert (ours.status, ours.reason) == ("harness_error", "ours")


def test_a_folder_that_begins_alike_is_elsewhere(tmp_path: Path) -> None:
    assert leaked([f"{tmp_path}/home2/libnvrtc.so.12"], tmp_path / "home", tmp_path / "tools")


@pytest.mark.parametrize("reply", [None, {**REJECTED}])
def test_a_full_folder_is_not_the_programs_fault(settled: Callable[..., Outcome], reply: dict[str, Any] | None) -> None:
    words = "cc1plus: fatal error: error writing to ./x.s: No space left on device\ncompilation terminated."
    outcome = settled(reply, log=words)
    assert outcome.status == "harness_error"
    assert "temporary folder" in outcome.reason
    assert "TMPDIR" in outcome.reason


@pytest.mark.parametrize(
    ("blocks", "files", "left", "full"),
    [
        (16, 10, 1, False),
        (15, 10, 1, True),
        (16, 10, 0, True),
        (16, 1, 0, True),
        (16, 0, 0, False),
        (None, 0, 0, False),
    ],
)
def test_a_folder_is_full_without_blocks_or_files(
    settled: Callable[..., Outcome], built: dict[str, Any], monkeypatch: pytest.MonkeyPatch, blocks: int | None,
    files: int, left: int, full: bool,
) -> None:  # fmt: skip
    def room(_path: Path) -> SimpleNamespace:
        """A fake: blocks of 4 KiB, and remaining files."""
        if blocks is None:
            raise OSError(38, "Function not implemented")
        return SimpleNamespace(f_bavail=blocks, f_frsize=4096, f_files=files, f_favail=left)

    monkeypatch.setattr(os, "statvfs", room)
    assert settled(REJECTED).status == ("harness_error" if full else "rejected")
    assert settled(built).status == "built"


@pytest.mark.parametrize("linked", [False, True])
def test_files_are_named_as_seen_from_the_project(tmp_path: Path, linked: bool) -> None:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    if linked:
        (tmp_path / "link").symlink_to(root)
    named = tmp_path / "link" if linked else root
    places = Places(tmp_path / "cell", named / "src/kernel.cu", tmp_path / "cuda", tmp_path / "kept", named)
    for folder in (named, root):
        assert places.in_log(f"{folder}/src/kernel.cu(1): error: no") == "src/kernel.cu(1): error: no"
        kept = f"-I{folder}-2/include -I/x{folder}/y"
        command = f"nvcc -I{folder} -I{folder}/include {kept} -I{tmp_path}/kept/a {folder}/src/kernel.cu"
        assert places.in_command(command) == f"nvcc -I. -Iinclude {kept} -I$CUMATRIX_HOME/a src/kernel.cu"
    assert places.in_log(f"{tmp_path}/cuda/a.h {tmp_path}/cuda-2/a.h") == f"$CUDA_HOME/a.h {tmp_path}/cuda-2/a.h"
    for source, root_of_names, name in (
        (root / "src/kernel.cu", root, "src/kernel.cu"),
        (root / "src/kernel.cu", tmp_path / "other", "kernel.cu"),
        (root / "src/kernel.cu", None, "kernel.cu"),
        (root / "program.py", root, "made-by-cupy.cu"),
    ):
        places = replace(places, source=source, root=root_of_names)
        assert places.in_log(f"{'0a' * 16}.cubin.cu(1): error: no") == f"{name}(1): error: no"


def test_a_program_below_two_names_of_its_folder_is_named_by_the_longer_one(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    places = Places(tmp_path / "cell", tmp_path / "src/../kernel.cu", tmp_path / "cuda", tmp_path / "kept")
    assert places.in_log(f"{tmp_path}/src/../kernel.cu(1): error: no") == "kernel.cu(1): error: no"
    assert places.in_log(f"{tmp_path}/own.h(1): error: no") == "own.h(1): error: no"


def test_a_folder_is_removed_without_a_word(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    collect.remove(tmp_path / "none")
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell" / "file").touch()
    collect.remove(tmp_path / "cell")
    assert not (tmp_path / "cell").exists()
    assert capfd.readouterr() == ("", "")


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
    assert lost_exit(2.5) == make_exit(exit=None, wall=2.5)
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
    assert "\n--- printed while program.py ran, by the program or by what it called ---\n" in outcome.log
    silent = make_exit(output="\n")
    silent_outcome = collect_outcome(Remains.of(cell, order, silent, tmp_path / "home", tmp_path / "tools"))
    assert silent_outcome.log == 'kernel.cu(1): error: identifier "told" is undefined'


def test_the_signal_that_ended_a_compiler_is_kept(settled: Callable[..., Outcome]) -> None:
    outcome = settled({"status": "crashed", "stage": "assemble", "reason": "ptxas was ended", "signal": 11})
    assert (outcome.status, outcome.stage, outcome.signal) == ("crashed", "assemble", 11)
    assert (outcome.reason, outcome.diagnostics[0].message) == ("ptxas was ended", "ptxas was ended")
