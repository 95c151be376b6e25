"""The preloaded library that records reads, in real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from follow import Follow, python

from harness import native
from harness.engine.file_states import Files
from harness.engine.reads import LINK
from harness.protocol.reads import VARIABLE, paths_of, unique, without

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native.build(tmp_path_factory.mktemp("tools"), "cumatrix-reads.so", native.source("reads.c"))


@pytest.fixture
def follow(library: Path, tmp_path: Path) -> Follow:
    return Follow(library, tmp_path)


@pytest.mark.parametrize(
    "code",
    [
        "open('f.txt')", "import os; os.open('f.txt', os.O_RDONLY)", "import os; os.stat('f.txt')", "import os; os.lstat('f.txt')",
        "import os; os.access('f.txt', os.R_OK)", "import os; os.path.realpath('f.txt', strict=False); os.path.exists('f.txt')",
        "import os; d = os.open('.', os.O_RDONLY); os.open('f.txt', os.O_RDONLY, dir_fd=d)", "open('f.txt', 'r+')",
        "import os; d = os.open('.', os.O_RDONLY); os.stat('f.txt', dir_fd=d)", "import os; os.chdir('/'); open('{here}/f.txt')",
        "import subprocess; subprocess.run(['cat', 'f.txt'])", "import os; os.system('cat f.txt')",
        "import os; os.popen('cat f.txt').read()", "import subprocess; subprocess.run(['cat', 'f.txt'], env={{'PATH': '/bin'}})",
        "import os; os.posix_spawnp('cat', ['cat', 'f.txt'], {{}}); os.wait()",
        "import os; os.fork() or os.execlp('cat', 'cat', 'f.txt'); os.wait()",
        "import subprocess; subprocess.run(['sh', '-c', 'exec cat <f.txt'], close_fds=True)",
        "import threading; t = threading.Thread(target=open, args=['f.txt']); t.start(); t.join()",
        "import mmap; f = open('f.txt'); mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)", "import shutil; shutil.copyfile('f.txt', 'g.txt')",
    ],
)  # fmt: skip
def test_however_a_file_is_read(follow: Follow, tmp_path: Path, code: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text("text")
    os.utime(path)
    reads = follow(*python(f"import time; time.sleep(0.05)\n{code.format(here=tmp_path)}"))
    assert follow.done.returncode == 0, follow.done.stderr
    assert reads.unknown == ""
    assert reads.states[str(path)] == Files().current_state(str(path))[1]


@pytest.mark.parametrize("code", ["import os; os.path.exists('no.txt')", "try: open('no.txt')\nexcept OSError: pass"])
def test_what_is_missing(follow: Follow, tmp_path: Path, code: str) -> None:
    reads = follow(*python(code))
    assert reads.states[str(tmp_path / "no.txt")] is None


@pytest.mark.parametrize(
    "code", ["import os; os.listdir('d')", "import os; list(os.scandir('d'))", "import glob; glob.glob('d/*.txt')"]
)
def test_names_that_were_listed(follow: Follow, tmp_path: Path, code: str) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name in ("a.txt", "größer.txt", "x" * 200):
        (folder / name).touch()
    reads = follow(*python(code))
    assert str(folder) in reads.listed
    assert reads.states[str(folder)] == Files().current_state(str(folder), True)[1]


def test_what_is_only_written_is_no_input(follow: Follow, tmp_path: Path) -> None:
    reads = follow(*python("open('out.txt', 'w').write('x'); open('out.txt').read()"))
    assert str(tmp_path / "out.txt") not in reads.states


def test_imports_helpers_of_helpers_and_modules_that_are_not_there(follow: Follow, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import two\ntry:\n    import three\nexcept ImportError:\n    pass\n")
    (tmp_path / "two.py").touch()
    reads = follow(sys.executable, "-c", "import one")
    assert {str(tmp_path / "one.py"), str(tmp_path / "two.py")} <= set(reads.states)
    assert str(tmp_path) in reads.listed  # the place of a missing `three`


WALKS = {
    "glob": 'glob_t g; glob("d/*/*.txt", 0, 0, &g); printf("%zu\\n", g.gl_pathc); globfree(&g);',
    "glob64": 'glob64_t g = {0}; glob64("d/*/*.txt", GLOB_NOSORT, 0, &g); printf("%zu\\n", g.gl_pathc); globfree64(&g);',
    "glob-of-names": 'glob_t g; glob("d/deep/one.txt", 0, 0, &g); glob("d/deep/no.txt", GLOB_APPEND, 0, &g); printf("%zu\\n", g.gl_pathc);',
    "ftw": 'printf("%d\\n", ftw("d", each, 9) + count);',
    "nftw": 'printf("%d\\n", nftw("d", neach, 9, 0) + count);',
    "nftw64": 'printf("%d\\n", nftw64("d", (void *)neach, 9, FTW_PHYS) + count);',
    "nftw-depth": 'printf("%d\\n", nftw("d", neach, 9, FTW_DEPTH | FTW_CHDIR) + count);',
    "nftw-nested": 'printf("%d\\n", nftw("d", twice, 9, FTW_CHDIR) + count);',
}
WALK = """
#define _GNU_SOURCE
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
int count;
int each(const char *p, const struct stat *s, int k) { count++; return 0; }
int neach(const char *p, const struct stat *s, int k, struct FTW *f) { count++; return 0; }
int twice(const char *p, const struct stat *s, int k, struct FTW *f) { if (k == FTW_F) nftw("/nowhere", neach, 9, 0); count++; return 0; }
int main(void) { %s return 0; }
"""


@pytest.mark.parametrize("name", WALKS)
def test_what_the_c_library_walks_through(follow: Follow, tmp_path: Path, name: str) -> None:
    deep = tmp_path / "d" / "deep"
    deep.mkdir(parents=True)
    (deep / "one.txt").write_text("1")
    (tmp_path / "d" / "beside").touch()
    (tmp_path / "walk.c").write_text(WALK % WALKS[name])
    subprocess.run(["gcc", "-w", "-o", "walk", "walk.c"], cwd=tmp_path, check=True)
    plain = subprocess.run([tmp_path / "walk"], cwd=tmp_path, capture_output=True, text=True)
    time.sleep(0.05)  # or the new link counts as still changing
    reads = follow(tmp_path / "walk")
    assert (follow.done.returncode, follow.done.stdout) == (0, plain.stdout) and reads.unknown == ""
    if name == "glob-of-names":
        assert reads.states[str(deep / "one.txt")] and reads.states[str(deep / "no.txt")] is None
        return
    assert {str(tmp_path / "d"), str(deep)} <= {os.path.normpath(path) for path in reads.listed}
    if "ftw" in name:
        for path in (deep / "one.txt", tmp_path / "d" / "beside"):
            assert reads.states[str(path)] == Files().current_state(str(path))[1]


@pytest.mark.parametrize(
    "code", ["import os; os.readlink('l')", "import os; d = os.open('.', 0); os.readlink('l', dir_fd=d)", "import pathlib; pathlib.Path('l').readlink()"]
)  # fmt: skip
def test_where_a_link_leads(follow: Follow, tmp_path: Path, code: str) -> None:
    (tmp_path / "l").symlink_to("größer/nowhere")
    link = LINK + str(tmp_path / "l")
    reads = follow(*python(code))
    state, signature = Files().current_state(link)
    assert reads.states[link] == signature and reads.unknown == ""
    assert str(tmp_path / "l") not in reads.states, "what lies there was not asked for"
    (tmp_path / "l").unlink()
    (tmp_path / "l").symlink_to("größer/elsewhere")
    assert Files().current_state(link)[0] != state
    (tmp_path / "l").unlink()
    assert Files().current_state(link) == ("-", None)


def test_links_that_are_none_or_were_made_here(follow: Follow, tmp_path: Path) -> None:
    (tmp_path / "f.txt").touch()
    code = "import os\nfor p in ('f.txt', 'no.txt'):\n    try: os.readlink(p)\n    except OSError: pass\nos.symlink('a', 'own'); os.readlink('own'); os.unlink('own')"
    reads = follow(*python(f"import time; time.sleep(0.05)\n{code}"))
    assert follow.done.returncode == 0, follow.done.stderr
    assert reads.states[str(tmp_path / "f.txt")] and reads.states[str(tmp_path / "no.txt")] is None
    assert not [path for path in reads.states if "own" in path]


def test_where_the_dynamic_linker_looked(follow: Follow, tmp_path: Path) -> None:
    """RUNPATH, for dependencies of a program and a library, and for dlopen; through links."""
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()

    def gcc(*argv: str) -> None:
        subprocess.run(
            ["gcc", "-x", "c", "-", "-x", "none", *argv], cwd=tmp_path, check=True, input=b"int n(void) { return 1; }\n"
        )

    gcc("-shared", "-fPIC", "-o", "real.so")
    (tmp_path / "second" / "libn.so").symlink_to("../real.so")
    (tmp_path / "third" / "libm.so").symlink_to("../real.so")
    subprocess.run(
        ["gcc", "-x", "c", "-", "-o", "main", "-x", "none", "-Lsecond", "-ln", f"-Wl,-rpath,{tmp_path}/first:$ORIGIN/second"],
        cwd=tmp_path, check=True, input=b"int n(void); int main(void) { return n() - 1; }\n",
    )  # fmt: skip
    time.sleep(0.05)  # or the new link counts as still changing
    reads = follow(tmp_path / "main")
    assert (follow.done.returncode, reads.unknown) == (0, "")
    real = Files().current_state(str(tmp_path / "real.so"))[1]
    assert reads.states[str(tmp_path / "first" / "libn.so")] is None
    assert reads.states[str(tmp_path / "second" / "libn.so")] == real
    # dlopen: the caller is unknown, so LD_LIBRARY_PATH and the system's folders count.
    code = "import ctypes; ctypes.CDLL('libm.so'); f = ctypes.CDLL(None); f.cumatrix_note_libraries(0)"
    reads = follow(*python(code), LD_LIBRARY_PATH=f"{tmp_path}/first:{tmp_path}/third")
    assert follow.done.returncode == 0, follow.done.stderr
    assert reads.states[str(tmp_path / "first" / "libm.so")] is None
    assert reads.states[str(tmp_path / "third" / "libm.so")] == real


def test_a_cell_tells_of_the_libraries_that_it_loads_itself(follow: Follow, tmp_path: Path) -> None:
    """In a process like the fork server, and in its child; links to a library count, too."""
    for name in ("before", "after"):
        subprocess.run(
            ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", f"{name}.real"],
            cwd=tmp_path, check=True, input=f"int {name}(void) {{ return 1; }}\n".encode(),
        )  # fmt: skip
        (tmp_path / f"lib{name}.so").symlink_to(f"{name}.real")
    time.sleep(0.05)
    code = f"""
import ctypes, os, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from harness.protocol import reads
os.environ["{VARIABLE}"] = {str(tmp_path / "records")!r}
ctypes.CDLL("{tmp_path}/libbefore.so")
own = reads.own_records(Path({str(tmp_path / "records")!r}))
child = os.fork()
if not child:
    reads.send_to(Path("of-the-child"))
    ctypes.CDLL("{tmp_path}/libafter.so")
    reads.note_mapped(reads.mapped())
    os._exit(0)
os.waitpid(child, 0)
reads.send_to(Path("of-another"))
reads.note_mapped(reads.mapped())
print(Path("of-another").read_bytes().count(b"libbefore"))
Path("own").write_text("\\n".join(own))
"""
    (tmp_path / "of-the-child").touch()
    (tmp_path / "of-another").touch()
    follow(*python(code))
    assert follow.done.returncode == 0, follow.done.stderr

    def told(records: list[str]) -> set[str]:
        found = (Path(path) for path in paths_of("\0".join(records).encode()))
        return {path.name for path in found if path.parent == tmp_path and path.suffix in (".so", ".real")}

    assert told((tmp_path / "own").read_text().split("\n")) == {"libbefore.so", "before.real"}
    assert told(unique((tmp_path / "of-the-child").read_bytes())) == {"libafter.so", "after.real"}
    assert follow.done.stdout == "0\n"


def test_a_compiler_with_all_that_it_runs(follow: Follow, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        '#include "a.h"\n#if __has_include("late.h")\n#endif\n#include <stdio.h>\n__asm__(".incbin \\"data.bin\\"");\n'
    )
    (tmp_path / "a.h").touch()
    (tmp_path / "data.bin").write_text("data")
    (tmp_path / "later").mkdir()
    reads = follow("gcc", "-c", "a.c", "-o", "a.o", "-I", "later")
    assert follow.done.returncode == 0, follow.done.stderr
    names = {Path(path).name: value for path, value in reads.states.items()}
    assert {"a.c", "a.h", "data.bin", "stdio.h", "cc1", "as"} <= {name for name, value in names.items() if value}
    assert reads.states[f"{tmp_path}/late.h"] is None
    assert reads.states[f"{tmp_path}/later/stdio.h"] is None


def test_a_program_on_the_path_counts_with_the_places_where_it_was_not(follow: Follow, tmp_path: Path) -> None:
    reads = follow(*python("import subprocess; subprocess.run(['true'])"), PATH=f"{tmp_path}:/usr/bin:/bin")
    assert reads.states[str(tmp_path / "true")] is None
    assert reads.states["/usr/bin/true"]


def test_a_static_program_is_not_known(follow: Follow, tmp_path: Path) -> None:
    (tmp_path / "static.c").write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["gcc", "-static", "static.c", "-o", "static"], cwd=tmp_path, capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"no static C library here: {built.stderr[-200:]}")
    assert "linked statically" in follow(*python("import subprocess; subprocess.run(['./static'])")).unknown


FIND = "import ctypes.util; print(ctypes.util.find_library('c'))"


def ldconfig(argv: str, env: str) -> str:
    return f"import subprocess; subprocess.run(['/sbin/ldconfig', {argv}], env={env})"


@pytest.mark.skipif(not os.access("/sbin/ldconfig", os.X_OK), reason="no ldconfig here")
@pytest.mark.parametrize("code", [FIND, ldconfig("'-p'", "{'LC_ALL': 'C'}")])
def test_of_ldconfig_it_is_known_what_it_reads(follow: Follow, code: str) -> None:
    reads = follow(*python(code))
    assert follow.done.stdout.strip() not in ("", "None")
    assert reads.unknown == ""
    assert reads.states["/etc/ld.so.cache"] == Files().current_state("/etc/ld.so.cache")[1]
    assert "/sbin/ldconfig" in reads.states


@pytest.mark.skipif(not os.access("/sbin/ldconfig", os.X_OK), reason="no ldconfig here")
@pytest.mark.parametrize(
    "code",
    [
        ldconfig("'-p'", "{'LC_ALL': 'de_DE.UTF-8'}"),
        ldconfig("'-p'", "{}"),
        ldconfig("'-V'", "{'LC_ALL': 'C'}"),
        ldconfig("'-p', '-C', 'other'", "{'LC_ALL': 'C'}"),
    ],
)
def test_of_other_words_to_ldconfig_it_is_not(follow: Follow, code: str) -> None:
    with open("/sbin/ldconfig", "rb") as file:
        if file.read(4) != b"\x7fELF":
            pytest.skip("a script here, which is followed")
    assert "linked statically" in follow(*python(code)).unknown


def test_a_file_that_changes_while_it_is_read_is_seen(follow: Follow, tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("text")
    reads = follow(
        *python(
            "import time; time.sleep(0.05); open('f.txt').read(); open('f.txt', 'a').write('x'); time.sleep(0.05); open('f.txt').read()"
        )
    )
    assert reads.states[str(tmp_path / "f.txt")] != Files().current_state(str(tmp_path / "f.txt"))[1]


def test_who_closes_every_descriptor_is_followed_all_the_same(follow: Follow, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).touch()
    code = "import os, time; time.sleep(0.05); open('a.txt'); os.closerange(3, 4096); keep = [os.open('/dev/null', 0) for _ in range(300)]; open('b.txt')"
    reads = follow(*python(code))
    assert {str(tmp_path / "a.txt"), str(tmp_path / "b.txt")} <= set(reads.states)


def test_a_programs_answer_is_the_same(follow: Follow, tmp_path: Path) -> None:
    code = "import os\nfor p in ('/', '/nowhere', '/etc/passwd/x', ''):\n    try: print(os.stat(p).st_ino)\n    except OSError as e: print(e.errno)\nprint(os.path.realpath('/bin/sh'), sorted(os.listdir('/'))[:3])"
    follow(*python(code))
    plain = subprocess.run(python(code), cwd=tmp_path, capture_output=True, text=True)
    assert follow.done.stdout == plain.stdout
    assert follow.done.stderr == plain.stderr == ""


def test_what_lies_in_a_folder_can_be_left_out() -> None:
    inside, beside, itself = (f"R 1 2 3 4 5 {path}".encode() for path in ("/a/b/c", "/a/bc", "/a/b"))
    assert without(b"\0".join([inside, beside, itself]), [Path("/a/b")]) == beside + b"\0"


def test_who_reads_takes_a_part_at_a_time(library: Path, tmp_path: Path) -> None:
    """Endless writers must not delay it."""
    code = (
        "import os\n"
        "from harness.protocol import reads\n"
        "reads._AT_ONCE, follower = 1 << 17, reads.Follower()\n"
        "os.write(os.open(follower.path, os.O_WRONLY | os.O_NONBLOCK), bytes(1 << 19))\n"
        "for _ in range(2): follower.drain(); print(len(follower._data))\n"
    )
    env = {**os.environ, "LD_PRELOAD": str(library), VARIABLE: str(tmp_path / "records"), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"{1 << 17}\n{1 << 18}\n", "")
