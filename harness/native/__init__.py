"""Small C libraries, built once with the machine's compiler and cached by the hash of their source."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from harness.protocol import process_output
from harness.protocol.backend import Unavailable


def build(
    tools: Path, name: str, source: str, flags: Sequence[str] = (), programs: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Build a shared library from C.

    Parameters
    ----------
    tools : Path
        Folder of the built libraries.
    name : str
        File name of the library, which is also its soname.
    source : str
        The program.
    flags : sequence of str
        Further options of the compiler.
    programs : Mapping[str, str]
        Programs to build next to it, by file name; a program that fails to build is skipped.

    Raises
    ------
    Unavailable
        If there is no C compiler, or it fails.
    """
    words = [name, source, *flags, *(text for pair in programs.items() for text in pair)]
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
    library = tools / digest / name
    if library.is_file():
        return library
    compiler = next(
        filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "cc", "gcc", "clang", "g++", "c++"))), None
    )
    if compiler is None:
        raise Unavailable(f"a C compiler is needed to build {name}: install gcc or set CC")
    library.parent.mkdir(parents=True, exist_ok=True)
    shared = ["-shared", "-fPIC", f"-Wl,-soname,{name}", *flags]
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        for each, text, options in (*((each, text, []) for each, text in programs.items()), (name, source, shared)):
            unit, out = Path(folder, "unit.c"), Path(folder, each)
            unit.write_text(text)
            argv = [compiler, "-x", "c", "-w", "-O1", "-fno-builtin", *options, "-o", str(out), str(unit), "-ldl"]
            done = process_output.run(argv, seconds=120)
            if done.code == 0:
                os.replace(out, library.with_name(each))
            elif each == name:
                raise Unavailable(f"{compiler} cannot build {each}: {done.output.strip()[-400:]}")
    return library


def build_reads(tools: Path) -> Path:
    """Build the library that follows reads, and the program that it starts in place of a statically linked one.

    Raises
    ------
    Unavailable
        As `build`.
    """
    return build(tools, "cumatrix-reads.so", source("reads.c"), programs={"cumatrix-follow": source("follow.c")})


def source(name: str) -> str:
    """Read a C file in this package."""
    return Path(__file__).with_name(name).read_text("utf-8")
