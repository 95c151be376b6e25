"""aarch64: system call numbers compared with the kernel's headers, and the C libraries, built for aarch64 and run by qemu-user."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.native import source
from harness.worker.system_calls import _NUMBERS, ABSENT, number_of

CROSS, EMULATOR, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
"""Requires Debian's packages gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user."""

cross = pytest.mark.skipif(not shutil.which(CROSS), reason=f"there is no {CROSS}")
emulated = pytest.mark.skipif(not shutil.which(CROSS) or not shutil.which(EMULATOR), reason=f"there is no {CROSS}, or no {EMULATOR}")  # fmt: skip


@pytest.mark.parametrize(("machine", "compiler"), [("x86_64", "gcc"), pytest.param("aarch64", CROSS, marks=cross)])
def test_numbers_of_system_calls_are_the_kernels(machine: str, compiler: str) -> None:
    text = "#include <sys/syscall.h>\n" + "".join(f"@ {name} __NR_{name}\n" for name in _NUMBERS)
    argv = [compiler, "-E", "-P", "-"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True, timeout=800)
    if machine not in subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, timeout=800).stdout:
        pytest.skip(f"{compiler} compiles for another machine")
    said = dict(re.findall(r"^@ (\w+) (\w+)$", done.stdout, re.MULTILINE))
    assert said.keys() == _NUMBERS.keys()
    # Older headers do not define every name, and such a name stays unreplaced.
    newest = {"fchmodat2", "setxattrat", "removexattrat"}
    for name, value in said.items():
        if value.isdigit():
            assert number_of(name, machine) == int(value), name
        else:
            assert number_of(name, machine) == ABSENT or name in newest, name


def built(folder: Path, name: str, text: str, flags: Sequence[str]) -> Path:
    unit, out = folder / f"{name}.c", folder / name
    unit.write_text(text)
    argv = [CROSS, "-w", "-O1", "-fno-builtin", "-o", str(out), str(unit), *flags, "-ldl"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    return out


def emulate(*words: str | Path) -> str:
    done = subprocess.run([EMULATOR, "-L", ROOT, *words], capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cross
@pytest.mark.parametrize("name", ["libcuda.c", "nvrtc_tap.c", "reads.c", "follow.c", "recording.c"])
def test_every_library_is_built(tmp_path: Path, name: str) -> None:
    built(tmp_path, "library.so", source(name), ["-shared", "-fPIC"])


@emulated
def test_the_virtual_driver_has_the_device_that_it_is_given(tmp_path: Path) -> None:
    library = built(tmp_path, "libcuda.so.1", source("libcuda.c"), ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"])
    program = """
    #include <stdint.h>
    #include <stdio.h>
    void virtual_configure(int, int, int, void *);
    int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
    int main(void) {
        int (*init)(unsigned), (*count)(int *), (*attribute)(int *, int, int), devices = 0, major = 0, status;
        virtual_configure(12090, 9, 0, 0);
        if (cuGetProcAddress_v2("cuInit", (void **)&init, 12000, 0, &status) || init(0)) return 1;
        if (cuGetProcAddress_v2("cuDeviceGetCount", (void **)&count, 12000, 0, &status) || count(&devices)) return 2;
        if (cuGetProcAddress_v2("cuDeviceGetAttribute", (void **)&attribute, 12000, 0, &status) || attribute(&major, 75, 0)) return 3;
        printf("%d of %d\\n", devices, major);
    }
    """
    main = built(tmp_path, "main", program, [f"-Wl,-rpath,{tmp_path}", str(library)])
    assert emulate(main) == "1 of 9\n"


@emulated
def test_the_interposer_tells_what_is_read(tmp_path: Path) -> None:
    library = built(tmp_path, "reads.so", source("reads.c"), ["-shared", "-fPIC"])
    program = """
    #include <stdio.h>
    #include <sys/stat.h>
    #include <sys/syscall.h>
    #include <fcntl.h>
    #include <unistd.h>
    int main(int count, char **words) {
        struct stat found;
        FILE *file = fopen(words[1], "r");
        return !file || stat(words[2], &found) == 0 || syscall(SYS_openat, AT_FDCWD, words[3], O_RDONLY) < 0;
    }
    """
    main = built(tmp_path, "main", program, [])
    for name in ("opened", "by-number"):
        (tmp_path / name).write_text("text")
    (log := tmp_path / "log").touch()
    variables = ["-E", f"CUMATRIX_READS={log}", "-E", f"LD_PRELOAD={library}"]
    emulate(*variables, main, *(tmp_path / name for name in ("opened", "absent", "by-number")))
    said = log.read_bytes()
    assert all(path in said for path in (str(tmp_path / n).encode() for n in ("opened", "absent", "by-number")))
