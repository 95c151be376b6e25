"""Small C libraries, built once with the machine's compiler and cached by the hash of their source."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.protocol import process_output
from harness.protocol.backend import Unavailable


def build(tools: Path, name: str, source: str, flags: Sequence[str] = ()) -> Path:
    """Build a shared library from C.

    Parameters
    ----------
    tools : Path
        Where libraries are kept.
    name : str
        File name of the library, which is also its soname.
    source : str
        The program.
    flags : sequence of str
        Further options of the compiler.

    Raises
    ------
    Unavailable
        When there is no C compiler, or it fails.
    """
    digest = hashlib.sha256("\0".join([name, source, *flags]).encode()).hexdigest()[:16]
    library = tools / digest / name
    if library.is_file():
        return library
    compiler = next(
        filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "cc", "gcc", "clang", "g++", "c++"))), None
    )
    if compiler is None:
        raise Unavailable(f"a C compiler is needed to build {name}: install gcc or set CC")
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        unit, out = Path(folder, "unit.c"), Path(folder, name)
        unit.write_text(source)
        argv = [compiler, "-x", "c", "-w", "-O1", "-shared", "-fPIC", "-fno-builtin", f"-Wl,-soname,{name}", *flags]
        done = process_output.run([*argv, "-o", str(out), str(unit), "-ldl"], seconds=120)
        if done.code:
            raise Unavailable(f"{compiler} cannot build {name}: {done.output.strip()[-400:]}")
        os.replace(out, library)
    return library


def source(name: str) -> str:
    """Text of a C file next to this module."""
    return Path(__file__).with_name(name).read_text("utf-8")
