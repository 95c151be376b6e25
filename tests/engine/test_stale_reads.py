"""Questions of programs to the machine, in real processes: if the answer changes, the key changes or there is none."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from follow import Follow, python

from harness import native
from harness.engine import file_states
from harness.engine.cache import ResultCache
from harness.engine.file_states import Files
from harness.engine.fingerprints import Answers

FIRST = "the first key"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native.build(tmp_path_factory.mktemp("tools"), "cumatrix-reads.so", native.source("reads.c"))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "f.txt").write_text("text")
    (folder / "f.txt").chmod(0o644)
    return folder


@pytest.fixture
def follow(library: Path, here: Path) -> Follow:
    return Follow(library, here)


@pytest.fixture
def cache(tmp_path: Path) -> ResultCache:
    return ResultCache(tmp_path / "cache")


def _run_now(path: Path) -> None:
    path.chmod(0o755)


def _into_link(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other)


def _write(path: Path) -> None:
    path.write_text("more")


def _older(path: Path) -> None:
    os.utime(path, (1, 1))


def _into_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES: dict[str, tuple[list[str], Callable[[Path], None]]] = {
    "which": (python("import shutil; shutil.which('f.txt', path='.')"), _run_now),
    "access": (python("import os; os.access('f.txt', os.X_OK)"), _run_now),
    "test -x": (["sh", "-c", "test -x f.txt"], _run_now),
    "islink": (python("import os; os.path.islink('f.txt')"), _into_link),
    "realpath": (python("import os; os.path.realpath('f.txt')"), _into_link),
    "type": (python("import os; os.path.isfile('f.txt')"), _into_fifo),
    "stat -c %Y": (["stat", "-c", "%Y", "f.txt"], _older),
    "find -newer": (["find", "f.txt", "-newermt", "2001-01-01"], _older),
    "test -nt": (["bash", "-c", "test f.txt -nt /bin/sh"], _older),
    "open by number": (
        python("import ctypes; ctypes.CDLL(None).syscall(2, b'f.txt', 0)"),
        _write,
    ),
    "openat2": (
        python("import ctypes; ctypes.CDLL(None).syscall(437, -100, b'f.txt', (ctypes.c_uint64 * 3)(), 24)"),
        _write,
    ),
    "/proc/self/root": (
        python("import os; open('/proc/self/root' + os.path.abspath('f.txt'))"),
        _write,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_key_changes(name: str, follow: Follow, here: Path, cache: ResultCache) -> None:
    words, change = CHANGES[name]
    key = Answers(cache).key_of(FIRST, follow(*words))
    assert key.key, key.problem
    assert list(Answers(cache).keys(FIRST)) == [key.key]
    change(here / "f.txt")
    assert key.key not in list(Answers(cache).keys(FIRST))


def test_a_compiler_and_python_do_not_depend_on_times(follow: Follow, here: Path, cache: ResultCache) -> None:
    (here / "one.c").write_text('#include "f.h"\n')
    (here / "f.h").touch()
    (here / "module.py").touch()
    for words in (["gcc", "-E", "one.c"], [sys.executable, "-c", "import module"]):
        key = Answers(cache).key_of(FIRST + words[0], follow(*words))
        assert key.key, key.problem
        for path in here.iterdir():
            os.utime(path, (1, 1))
        assert list(Answers(cache).keys(FIRST + words[0])) == [key.key]


UNKNOWN = {
    "attributes": python("import os\ntry: os.getxattr('f.txt', 'user.x')\nexcept OSError: pass"),
    "socket": python("import socket; socket.socket(socket.AF_UNIX).connect_ex('f.txt')"),
    "nice": ["nice"],
    "processors": ["nproc"],
    "dynamic linker": ["/lib64/ld-linux-x86-64.so.2", "/bin/cat", "f.txt"],
    "/proc/self/cwd": ["cat", "/proc/self/cwd/f.txt"],
    "/proc/1/root": python("import os; os.path.exists('/proc/1/root/etc')"),
    "/dev/fd": python("import os; os.open('.', 0); os.path.exists('/dev/fd/3/f.txt')"),
    "attributes by number": python("import ctypes; ctypes.CDLL(None).syscall(191, b'f.txt', b'user.x', None, 0)"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_there_is_no_key(name: str, follow: Follow) -> None:
    assert follow(*UNKNOWN[name]).unknown


@pytest.mark.parametrize(
    "code", ["import os; print(os.uname().nodename)", "import socket; print(socket.gethostname())"]
)
def test_the_name_of_the_machine_is_hidden(follow: Follow, code: str) -> None:
    follow(*python(code))
    assert follow.done.stdout == "localhost\n"


def test_a_library_that_is_closed_again_and_one_that_is_missing(follow: Follow, here: Path) -> None:
    def build(name: str, *words: str) -> None:
        (here / "e.c").write_text("int e;")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", name, "e.c", *words], cwd=here, check=True)

    build("libinner.so")
    build("libouter.so", "-Wl,--no-as-needed", "-L.", "-linner", f"-Wl,-rpath,{here}")
    main = '#include <dlfcn.h>\nint main() { void *l = dlopen("libouter.so", 2); dlopen("libnone.so", 2); return !l || dlclose(l); }'
    (here / "main.c").write_text(main)
    subprocess.run(["gcc", "-o", "main", "main.c", "-ldl", f"-Wl,-rpath,{here}"], cwd=here, check=True)
    reads = follow(here / "main")
    assert follow.done.returncode == 0, "the program's own RUNPATH counts"
    assert {str(here / "libouter.so"), str(here / "libinner.so")} <= {str(Path(path)) for path in reads.states}
    assert reads.states[str(here / "libnone.so")] is None


def test_bytecode_counts_where_python_does_not_check_it(follow: Follow, here: Path, cache: ResultCache) -> None:
    (here / "module.py").write_text("print(1)")
    words = [sys.executable, "-c", "import module"]

    def compile_as(mode: str, text: str) -> None:
        source = (here / "module.py").read_text()
        (here / "module.py").write_text(text)
        code = f"import py_compile; py_compile.compile('module.py', invalidation_mode=py_compile.PycInvalidationMode.{mode})"
        subprocess.run([sys.executable, "-c", code], cwd=here, check=True)
        (here / "module.py").write_text(source)

    compile_as("CHECKED_HASH", "print(1)")
    key = Answers(cache).key_of(FIRST, follow(*words)).key
    shutil.rmtree(here / "__pycache__")
    assert list(Answers(cache).keys(FIRST)) == [key]
    compile_as("UNCHECKED_HASH", "print(2)")
    assert follow(*words) and follow.done.stdout == "2\n"
    assert key not in list(Answers(cache).keys(FIRST))
    key = Answers(cache).key_of(FIRST, follow(*words)).key
    assert key in list(Answers(cache).keys(FIRST))
    compile_as("UNCHECKED_HASH", "print(3)")
    assert key not in list(Answers(cache).keys(FIRST))


def test_a_folder_called_pycache_holds_files_as_any_other(follow: Follow, here: Path) -> None:
    header = here / "__pycache__" / "own.h"
    header.parent.mkdir()
    header.touch()
    assert str(header) in follow("cat", header).states


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_a_file_that_another_user_may_not_read(here: Path) -> None:
    path = here / "f.txt"
    for folder in (here, *list(here.parents)[:-2]):
        folder.chmod(0o755)
    files = Files()
    allowed = files.state(str(path))
    assert allowed.startswith("f:")
    path.chmod(0o600)
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.setgroups([])
            os.setresuid(65534, 65534, 65534)
            _as_other(files)
            os.write(writer, files.current_state(str(path))[0].encode())
        finally:
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 100) == b"e:13"
    os.close(reader)
    os.wait()


def _as_other(files: Files) -> None:
    from harness.engine import file_states as module

    module._USER = os.getuid()


def test_what_is_written_through_a_mapping(here: Path) -> None:
    path = here / "f.txt"
    files = Files()
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:4] = b"once"
        before, state = os.stat(path), files.current_state(str(path))
        mapped[0:4] = b"more"
        assert os.stat(path).st_ctime_ns == before.st_ctime_ns, "this kernel shows every write in the time of change"
        files._brief.clear()  # two seconds later
        assert files.hashes == {}
        assert files.current_state(str(path)) != state


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount read-only images with a file each; the files have equal devices, inodes, sizes and times."""
    if os.getuid() or not shutil.which("mkfs.ext4") or not shutil.which("losetup"):
        pytest.skip("mounts file systems as root")
    place, source = tmp_path / "mounted", tmp_path / "source"
    place.mkdir()
    source.mkdir()

    def make(text: str) -> Path:
        subprocess.run(["umount", place], capture_output=True)
        (source / "f.txt").write_text(text)
        os.utime(source / "f.txt", (1, 1))
        (tmp_path / "image").unlink(missing_ok=True)
        subprocess.run(["mkfs.ext4", "-q", "-d", source, tmp_path / "image", "1M"], check=True, capture_output=True)
        words = "sif /f.txt ctime 19990101000000\nsif /f.txt ctime_extra 0\n"
        subprocess.run(
            ["debugfs", "-w", "-f", "-", tmp_path / "image"], input=words, text=True, check=True, capture_output=True
        )
        done = subprocess.run(
            ["mount", "-o", "loop,ro,noload", tmp_path / "image", place], capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"mounts no image here: {done.stderr}")
        return place / "f.txt"

    yield make
    subprocess.run(["umount", place], capture_output=True)


def test_a_read_only_image_that_is_replaced(image: Callable[[str], Path]) -> None:
    path = image("one")
    before, files = os.stat(path), Files()
    state = files.current_state(str(path))
    path = image("two")
    after = os.stat(path)
    assert (before.st_ino, before.st_size, before.st_ctime_ns) == (after.st_ino, after.st_size, after.st_ctime_ns)
    assert files.hashes == {}
    files._brief.clear()  # two seconds later
    assert files.current_state(str(path))[0] != state[0]


def test_timestamps_of_a_disk_are_trusted_after_a_minute(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(here / "f.txt")
    assert Files().current_state(path) and not file_states.Timestamps().hold(
        path, (os.stat(path).st_dev, 0, 4, 0, os.stat(path).st_ctime_ns)
    )
    old = (os.stat(path).st_dev, 0, 4, 0, 1)
    assert file_states.Timestamps().hold(path, old)
    monkeypatch.setattr(file_states, "_statfs", lambda path: (0x65735546, False))  # FUSE
    assert not file_states.Timestamps().hold(path, old)
