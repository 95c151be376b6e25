"""A folder's configuration runs nothing without its user's consent. ``evil.sh`` leaves a mark wherever it runs."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command
from record_builders import cell, plan, record

import cumatrix as api
from harness.project.config import read_config
from harness.project.trust import needs_trust, programs_named
from harness.records import RecordWriter
from harness.toolkits import Installed

pytestmark = pytest.mark.called

KERNEL = 'extern "C" __global__ void k(int *x) { *x = 1; }\n'
TRY = ("try", "k.cu", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80", "--no-cache")


class Stranger:
    """A freshly cloned folder, with a program that shows whether it was run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, folder / "mark"
        (folder / ".git").mkdir()
        (folder / "k.cu").write_text(KERNEL)
        for name in ("evil.sh", "env/bin/python", "cuda/bin/nvcc"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"#!/bin/sh\ntouch '{self.mark}'\nexit 3\n")
            (folder / name).chmod(0o755)
        (folder / "cuda/version.json").write_text('{"cuda": {"version": "12.9.0"}}')

    def configure(self, text: str) -> None:
        (self.folder / "cumatrix.toml").write_text(text)

    def ran(self) -> bool:
        """Return whether the program was run since the last call."""
        there = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return there


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stranger:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUMATRIX_TRUST", raising=False)
    monkeypatch.chdir(tmp_path)
    return Stranger(tmp_path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('python = "./evil.sh"', "python"),
        ('host-compiler = ["my=./evil.sh"]', "host-compiler"),
        ('with = ["numba=./env"]', "with"),
    ],
)
def test_a_program_that_a_key_names_is_run_once_it_is_trusted(
    stranger: Stranger, cumatrix: Command, text: str, key: str
) -> None:
    stranger.configure(f'# ours\n{text}\nbackend = "nvrtc"\n')
    argv = [word for word in TRY if key != "with" or word not in ("-b", "nvrtc")]
    argv = [word.replace("nvrtc", "nvcc") for word in argv] if key == "host-compiler" else argv
    done = cumatrix(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"cumatrix: cumatrix.toml:2: {key}: ") and "`cumatrix trust`" in line
    assert not stranger.ran()
    assert cumatrix("trust").returncode == 0
    cumatrix(*argv)
    assert stranger.ran()


@pytest.mark.slow
@pytest.mark.compilers
def test_what_the_user_names_needs_no_trust_and_is_all_that_runs(
    stranger: Stranger, cumatrix: Command, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.9")
    stranger.configure('python = "./evil.sh"\n')
    assert cumatrix(*TRY, "--python", sys.executable).returncode == 0
    assert cumatrix(*TRY, env={"CUMATRIX_PYTHON": sys.executable}).returncode == 0
    assert not stranger.ran()
    cumatrix("try", "k.cu", "--python", "./evil.sh")
    assert stranger.ran()


@pytest.mark.slow
def test_a_change_of_what_is_named_and_another_place_ask_again(
    stranger: Stranger, cumatrix: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger.configure('python = "./evil.sh"\n')
    cumatrix("trust")
    stranger.configure('target = "sm_90"\npython = "./evil.sh"\n')
    cumatrix(*TRY)
    assert stranger.ran()  # the rest of the file does not matter
    stranger.configure('python = "./env"\n')
    assert cumatrix(*TRY).returncode == 2
    stranger.configure('python = "./evil.sh"\n')
    moved = tmp_path_factory.mktemp("moved") / "copy"
    shutil.copytree(stranger.folder, moved)
    assert Command(moved)(*TRY).returncode == 2
    link = moved.parent / "link"
    link.symlink_to(stranger.folder)
    assert not stranger.ran()
    Command(link)(*TRY)
    assert stranger.ran()  # trust applies to the folder
    assert str(stranger.folder / "cumatrix.toml") in cumatrix("trust", "--list").stdout
    cumatrix("trust", "--revoke")
    assert cumatrix(*TRY).returncode == 2
    assert cumatrix("trust", "--list").stdout == ""
    assert not stranger.ran()


@pytest.mark.parametrize(
    ("variable", "runs"), [("1", True), ("0", False), ("{folder}", True), ("/nowhere:{folder}/..", True), ("/nowhere", False)]
)  # fmt: skip
def test_ci_trusts_by_a_variable(stranger: Stranger, cumatrix: Command, variable: str, runs: bool) -> None:
    stranger.configure('python = "./evil.sh"\n')
    done = cumatrix(*TRY, env={"CUMATRIX_TRUST": variable.format(folder=stranger.folder)})
    assert stranger.ran() is runs and (done.returncode == 2) is not runs
    assert cumatrix("trust", "--list").stdout == ""


def test_ci_trusts_by_an_option_and_a_relative_folder_is_refused(stranger: Stranger, cumatrix: Command) -> None:
    stranger.configure('python = "./evil.sh"\n')
    cumatrix(*TRY, "--trust")
    assert stranger.ran()
    done = cumatrix(*TRY, env={"CUMATRIX_TRUST": "project"})
    assert done.returncode == 2 and "CUMATRIX_TRUST: project" in done.stderr and not stranger.ran()


@pytest.mark.parametrize(("answer", "runs"), [("y", True), ("n", False), ("", False)])
def test_a_terminal_is_asked_once(stranger: Stranger, cumatrix: Command, answer: str, runs: bool) -> None:
    stranger.configure('python = "./evil.sh"\n')
    said = _on_a_terminal(cumatrix, answer)
    assert "runs ./evil.sh" in said and "python, line 1" in said
    assert stranger.ran() is runs
    cumatrix(*TRY)
    assert stranger.ran() is runs


def _on_a_terminal(cumatrix: Command, answer: str) -> str:
    """Run with stdin and stderr on a terminal, answer the question, and return the output."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        cumatrix.argv(*TRY), cwd=cumatrix.folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ):
        os.close(theirs)
        said, answered = b"", False
        while select.select([ours], [], [], 120)[0]:
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
            if b"[y/N]" in said and not answered:
                answered = bool(os.write(ours, f"{answer}\n".encode()))
    os.close(ours)
    assert answered
    return said.decode()


def test_pytest_stops_too(stranger: Stranger, cumatrix: Command) -> None:
    stranger.configure('python = "./evil.sh"\nsources = ["k.cu"]\nbackend = "nvrtc"\ntoolkit = "12.9"\n')
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "cumatrix.toml"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*argv, *more], cwd=stranger.folder, capture_output=True, text=True)

    done = run()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "`cumatrix trust`" in done.stdout + done.stderr
    assert not stranger.ran()
    run("--cumatrix-trust")
    assert stranger.ran()


def test_python_raises_and_asks_nobody(stranger: Stranger) -> None:
    stranger.configure('python = "./evil.sh"\n')
    with pytest.raises(api.UsageError, match="cumatrix trust"):
        api.try_("k.cu", backend="nvrtc")
    assert not stranger.ran()
    with pytest.raises(api.PartUnavailable):
        api.try_("k.cu", backend="nvrtc", trust=True)
    assert stranger.ran()


@pytest.mark.slow
def test_what_runs_nothing_needs_no_trust(stranger: Stranger, cumatrix: Command) -> None:
    stranger.configure(
        'python = "./evil.sh"\nwith = ["numba=./env"]\nflags = ["nvcc:-ccbin=./evil.sh"]\nsources = ["k.cu"]\n'
    )
    of = cell()
    for name in ("one", "two"):
        with RecordWriter(stranger.folder / f"{name}.jsonl", plan(of)) as writer:
            writer.append(record(of))
    (stranger.folder / "log.txt").write_text('k.cu(1): error: identifier "missing" is undefined\n')
    for argv in (
        ("ask", "wmma"),
        ("report", "one.jsonl", "--out", "page"),
        ("merge", "one.jsonl", "two.jsonl", "--out", "merged.jsonl"),
        ("diff", "one.jsonl", "two.jsonl"),
        ("history", "add", "one.jsonl"),
        ("explain", "log.txt"),
        ("annotate", "one.jsonl"),
        ("config",),
        ("cases", "list"),
        ("cases", "check"),
        ("doctor",),
        ("trust", "--list"),
        ("try", "--help"),
    ):
        done = cumatrix(*argv)
        assert "trusted:" not in done.stderr and done.returncode in (0, 1, 3, 4), (argv, done.stderr)
    assert not stranger.ran()
    assert "python: runs ./evil.sh (not trusted" in cumatrix("config").stdout


def test_run_and_bisect_stop_at_options_that_start_programs(stranger: Stranger, cumatrix: Command) -> None:
    stranger.configure('flags = ["nvcc:-ccbin=./evil.sh"]\nsources = ["k.cu"]\n')
    for argv in (TRY, ("run", "-t", "12.9"), ("bisect", "k.cu", "--over", "cuda", "-b", "nvrtc")):
        done = cumatrix(*argv)
        assert done.returncode == 2 and "cumatrix.toml:1: flags: " in done.stderr, argv
    assert not stranger.ran()


def test_repro_stops_at_options_that_start_programs(stranger: Stranger, cumatrix: Command) -> None:
    stranger.configure('flags = ["nvcc:-ccbin=./evil.sh"]\nsources = ["k.cu"]\n')
    with RecordWriter(stranger.folder / "one.jsonl", plan()):
        pass
    argv = ("repro", "wmma", "--results", "one.jsonl", "--out", "made")
    more: tuple[str, ...]
    for more in (("--check",), ("--reduce",)):
        done = cumatrix(*argv, *more)
        assert (done.returncode, "cumatrix.toml:1: flags: " in done.stderr) == (2, True), more
    for more in ((), ("--check", "--trust")):
        assert "flags" not in cumatrix(*argv, *more).stderr, more
    assert not stranger.ran()


@pytest.mark.parametrize(
    "text",
    [
        'python = "evil"',
        'python = "3.12,./evil.sh"',
        'toolkit = "./cuda"',
        'toolkit = ["12.9", "/opt/cuda"]',
        'with = ["cupy @ git+https://example.org/cupy@main"]',
        'library = "cutlass=git+ssh://git@example.org/cutlass@main"',
        'results = "../elsewhere"',
        'page = "/srv/www"',
        'artifacts = "link/kept"',
        'flags = ["-ccbin", "evil"]',
        'flags = ["nvcc:--compiler-bindir=evil"]',
        'flags = ["-Xcompiler", "-fplugin=evil.so"]',
        'flags = ["-Xcompiler=-O2,-B../tools"]',
        'flags = ["-Xcompiler", "-wrapper,sh,-c"]',
        'flags = ["-Xcompiler", "@options"]',
        'flags = ["-Xcompiler", "cupy-nvrtc:-I", "@/tmp/options"]',
        'flags = ["-optf", "options"]',
        'options = [{ flags = ["-run"] }]',
        'options = [{ depth = "extension" }]',
        '[[programs]]\nsources = ["k.cu"]\nflags = ["--options-file=options"]',
        '[[programs]]\nsources = ["k.cu"]\nlibraries.mine = { versions = ["git+https://example.org/x@main"], include = "." }',
        'extension = "setup.py"',
    ],
)
def test_every_value_that_runs_fetches_or_writes_elsewhere_is_found(stranger: Stranger, text: str) -> None:
    (stranger.folder / "link").symlink_to("/tmp")
    (stranger.folder / "setup.py").write_text(
        "from torch.utils.cpp_extension import CUDAExtension\n"
        "CUDAExtension('x', ['k.cu'], extra_compile_args={'nvcc': ['-ccbin', './evil.sh']})\n"
    )
    stranger.configure(text + "\n")
    (named, *_) = programs_named(read_config(stranger.folder / "cumatrix.toml"))
    assert named.key.split(".")[-1] in text.splitlines()[named.line - 1]


@pytest.mark.parametrize(
    "text",
    [
        'python = "3.9..3.13"\nwith = ["cupy=13.0,13.1..14", "numba=all"]\nlibrary = ["cutlass=4.0..4.2"]',
        'python = "python3.12"\nhost-compiler = ["gcc-11..gcc-14", "all"]\ntoolkit = "12.4..13.0,local,12.4@local"',
        'results = "out"\npage = "out/page"\nartifacts = "out/kept"',
        'flags = ["nvcc:-O3", "-Xcompiler", "-fPIC,-Wall", "--expt-relaxed-constexpr", "-lineinfo", "-Xptxas=-v"]',
        'flags = ["-I/opt/x/include", "-isystem", "/opt/y", "-DX=a/b", "-diag-suppress", "177,20012", "--threads=4"]',
        'define = ["N=$(id)"]\ninclude = ["/usr/include"]\nsources = ["k.cu"]\nwhere = \'backend == "nvcc"\'',
    ],
)
def test_a_configuration_that_names_no_program_needs_no_trust(stranger: Stranger, text: str) -> None:
    stranger.configure(text + "\n")
    assert needs_trust(read_config(stranger.folder / "cumatrix.toml")) == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_configuration_above_that_is_another_users_is_trusted_as_a_whole(
    stranger: Stranger, cumatrix: Command
) -> None:
    (stranger.folder / ".git").rmdir()
    stranger.configure('sources = ["deep/*.py"]\n')
    deep = stranger.folder / "deep"
    deep.mkdir()
    os.chown(stranger.folder / "cumatrix.toml", 12345, -1)
    (deep / "a.py").write_text("")
    done = Command(deep)("run")
    assert done.returncode == 2 and "user 12345" in done.stderr
    assert (
        cumatrix("run").returncode != 2 or "12345" not in cumatrix("run").stderr
    )  # the configuration applies in its own folder
