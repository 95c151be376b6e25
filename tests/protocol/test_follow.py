"""Statically linked programs: their system calls show the files that they read."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from follow import Follow

from harness import native
from harness.engine.file_states import Files
from harness.engine.reads import LINK

# Runs each letter of its arguments: o opens, w writes, s stats, l reads a link, d lists, c changes the folder, t does the rest in a thread, x runs.
PROGRAM = r"""
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void *all(void *given)
{
    for (char **word = given; *word; word++) {
        struct stat found;
        char to[100], *path = *word + 1;
        if (**word == 'o') close(open(path, O_RDONLY));
        if (**word == 'w') close(open(path, O_WRONLY | O_CREAT, 0600));
        if (**word == 's') stat(path, &found);
        if (**word == 'l') readlink(path, to, sizeof to);
        if (**word == 'd') { DIR *folder = opendir(path); while (folder && readdir(folder)); }
        if (**word == 'c') chdir(path);
        if (**word == 't') { pthread_t it; pthread_create(&it, 0, all, word + 1); pthread_join(it, 0); return 0; }
        if (**word == 'x') { if (!fork()) execl("/bin/cat", "cat", path, NULL); wait(0); }
        if (**word == 'e') exit(atoi(path));
        if (**word == 'k') raise(atoi(path));
    }
    return 0;
}
int main(int count, char **words) { all(words + 1); return 0; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("static")
    (folder / "static.c").write_text(PROGRAM)
    argv = ["gcc", "-static", "-w", "-pthread", "static.c", "-o", "static"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no static C library here: {done.stderr[-200:]}")
    return str(folder / "static")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native.build_reads(tmp_path_factory.mktemp("tools"))


@pytest.fixture
def follow(library: Path, tmp_path: Path) -> Follow:
    made = Follow(library, tmp_path)
    (tmp_path / "d").mkdir()
    for name in ("f.txt", "d/g.txt"):
        (tmp_path / name).write_text("text")
    (tmp_path / "link").symlink_to("f.txt")
    for path in (tmp_path / "f.txt", tmp_path / "d" / "g.txt"):
        os.utime(path, (1e9, 1e9))
    return made


@pytest.mark.parametrize("words", ["of.txt", "sf.txt", "t of.txt", "cd o../f.txt", "xf.txt", "e0"])
def test_what_it_reads_is_known(follow: Follow, program: str, tmp_path: Path, words: str) -> None:
    reads = follow("env", program, *words.split())
    assert follow.done.returncode == 0, follow.done.stderr
    assert reads.unknown == "" and program in reads.states
    path = str(tmp_path / ("d/../f.txt" if words.startswith("cd") else "f.txt"))
    assert words == "e0" or reads.states[path] == Files().current_state(str(tmp_path / "f.txt"))[1]


def test_what_it_looks_for_lists_and_writes(follow: Follow, program: str, tmp_path: Path) -> None:
    reads = follow("env", program, "ono.txt", "sd/none", "dd", "llink", "wout.txt", "oout.txt")
    assert reads.unknown == ""
    assert [reads.states[str(tmp_path / name)] for name in ("no.txt", "d/none")] == [None, None]
    assert str(tmp_path / "d") in reads.listed
    assert reads.states[str(tmp_path / "d")] == Files().current_state(str(tmp_path / "d"), True)[1]
    assert LINK + str(tmp_path / "link") in reads.states
    assert str(tmp_path / "out.txt") not in reads.states


@pytest.mark.parametrize(("word", "code"), [("e3", 3), (f"k{int(signal.SIGABRT)}", -signal.SIGABRT)])
def test_it_ends_as_the_program_ends(follow: Follow, program: str, word: str, code: int) -> None:
    assert follow("env", program, word).unknown == ""
    assert follow.done.returncode == code


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_where_it_may_not_be_traced_it_runs_and_is_not_known(follow: Follow, program: str, tmp_path: Path) -> None:
    """A process can have only one tracer."""
    reads = follow("strace", "-f", "-o", "/dev/null", "sh", "-c", f"{program} wout.txt; exit 5")
    assert follow.done.returncode == 5, follow.done.stderr
    assert (tmp_path / "out.txt").exists()
    assert "linked statically" in reads.unknown
