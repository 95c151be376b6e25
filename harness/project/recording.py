"""Record a project's own build and keep its compile commands as ``compile_commands.json``."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import native
from harness.errors import PartUnavailable, UsageError
from harness.process_locks import HeldFolder
from harness.project import recorder
from harness.project.recorder import KEPT, LIBRARY, LOG
from harness.protocol import process_output
from harness.protocol.backend import Unavailable
from harness.protocol.process_output import run_to_end
from harness.records.files import replace_files
from harness.toolkits.store import data_folder

FOLDER = ".cumatrix"
DATABASE = f"{FOLDER}/compile_commands.json"
KERNELS = "kernels.json"
"""Path of the recorded commands in a project, and the adjacent file with the number of kernels of each unit."""

WITHOUT_GPU = {"FORCE_CUDA": "1", "TORCH_CUDA_ARCH_LIST": "8.0;9.0"}
"""Variables that builds of PyTorch's extensions need on a machine without a GPU, with their defaults."""


@dataclass(frozen=True)
class Recorded:
    """The compilations of a build.

    Parameters
    ----------
    entries : list of dict
        Entries of a compilation database, in the order of the build.
    code : int
        Exit code of the build.
    lost : list of str
        Sources that the build deleted and that the recorder has no copy of.
    """

    entries: list[dict[str, Any]]
    code: int
    lost: list[str]


def record_build(argv: Sequence[str], root: Path, home: Path, packages: Path | None = None) -> Recorded:
    """Run a build and record its compilations.

    Parameters
    ----------
    argv : sequence of str
        The command and its arguments.
    root : Path
        Folder of the project, the working directory of the build.
    home : Path
        CUDA toolkit of the build.
    packages : Path, optional
        Further folder of Python packages, for example with PyTorch.

    Raises
    ------
    UsageError
        If the command does not exist.
    PartUnavailable
        If the toolkit has no nvcc.
    """
    if not (home / "bin" / "nvcc").is_file():
        raise PartUnavailable(f"{home} has no nvcc: name a toolkit that has one with -t")
    place = root / FOLDER
    place.mkdir(exist_ok=True)
    try:
        library = native.build(data_folder() / "tools", LIBRARY, native.source("recording.c"))
    except Unavailable as error:
        raise PartUnavailable(str(error)) from None
    with HeldFolder(place, "log-") as scratch:
        log = Path(scratch, "log.jsonl")
        linker = _linker(Path(scratch, "ld"))
        stubs = _libraries(Path(scratch, "lib"))
        env = _environment(os.environ, home, library, linker, stubs, packages) | {LOG: str(log), KEPT: str(root)}
        try:
            code = run_to_end(list(argv), cwd=root, env=env)
        except OSError as error:
            raise UsageError(f"cannot run {argv[0]}: {error.strerror}") from None
        lines = log.read_text("utf-8", "surrogateescape").splitlines() if log.exists() else []
        return _kept(list(map(json.loads, lines)), root, home, code)


def _linker(folder: Path) -> Path:
    """Create a folder with a linker that ignores undefined functions of empty objects."""
    folder.mkdir()
    if linker := shutil.which("ld"):
        # Tests of a build system must still fail as without the recorder.
        tests, plain = "*CMakeTmp*|*CMakeScratch*|*TryCompile-*|*conftest*", shlex.quote(linker)
        _script(
            folder / "ld",
            f'case "$PWD $*" in {tests}) exec {plain} "$@";; esac\nexec {plain} --unresolved-symbols=ignore-all "$@"',
        )
    return folder


def _libraries(folder: Path) -> Path:
    """Create a folder with an empty libcuda if the machine has none: extensions link it, and only a driver installs it."""
    folder.mkdir()
    compiler = [*(os.environ.get("CC") or "cc").split(), "-shared", "-x", "c", os.devnull]
    if process_output.run([*compiler, "-o", os.devnull, "-lcuda"], seconds=60).code:
        process_output.run([*compiler, "-o", str(folder / "libcuda.so")], seconds=60)
    return folder


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)


def _environment(
    given: Mapping[str, str], home: Path, library: Path, linker: Path, stubs: Path, packages: Path | None
) -> dict[str, str]:
    nvcc = str(home / "bin" / "nvcc")

    def first(name: str, value: Path, separator: str = os.pathsep) -> dict[str, str]:
        return {name: separator.join(filter(None, [str(value), given.get(name, "")]))}

    found = {
        **given,
        **first("PATH", home / "bin"),
        **dict.fromkeys(
            ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDAToolkit_ROOT", "CUDA_TOOLKIT_ROOT_DIR"), str(home)
        ),
        **dict.fromkeys(("CUDACXX", "PYTORCH_NVCC", "CMAKE_CUDA_COMPILER"), nvcc),
        **first("LD_PRELOAD", library, ":"),
        "CUMATRIX_RECORD_PYTHON": sys.executable,
        "CUMATRIX_RECORD_SCRIPT": str(Path(recorder.__file__).resolve()),
        # gcc searches these folders for its linker (https://gcc.gnu.org/onlinedocs/gcc/Environment-Variables.html).
        **first("COMPILER_PATH", linker),
        **first("LIBRARY_PATH", stubs),
        **{name: given.get(name, value) for name, value in WITHOUT_GPU.items()},
    }
    # A launcher such as ccache would bypass the compiler.
    found.pop("CMAKE_CUDA_COMPILER_LAUNCHER", None)
    if packages:
        found |= first("PYTHONPATH", packages)
    return found


def _kept(entries: Sequence[dict[str, Any]], root: Path, home: Path, code: int) -> Recorded:
    """Return the entries with paths that outlast the build."""
    found: dict[str, dict[str, Any]] = {}
    lost: list[str] = []
    of_toolkit = re.compile(rf"{re.escape(str(home))}/(?:targets/[\w-]+/)?include(?:/cccl)?/?")
    for entry in entries:
        copy = entry.pop("copy", "")
        path = Path(entry["directory"], entry["file"])
        if not path.is_file():
            if not copy:
                lost.append(str(path))
                continue
            kept = root / FOLDER / "sources" / str(len(found)) / Path(copy).name
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy, kept)
            entry["arguments"] = [str(kept) if word == entry["file"] else word for word in entry["arguments"]]
            entry["file"] = str(kept)
        entry["arguments"] = ["nvcc", *_without(entry["arguments"][1:], of_toolkit)]
        # A repeated build compiles a unit again with the same words.
        found.setdefault(json.dumps(entry, sort_keys=True), entry)
    return Recorded(list(found.values()), code, lost)


def _without(words: Sequence[str], of_toolkit: re.Pattern[str]) -> list[str]:
    """Remove the include directories of the build's toolkit, since each cell has its own toolkit."""
    return [word for group, folder in recorder.grouped(words) if not of_toolkit.fullmatch(folder) for word in group]


def write_database(recorded: Recorded, root: Path) -> Path:
    """Write the commands as a compilation database, and exclude it from the project's repository."""
    text = json.dumps(recorded.entries, indent=1)
    replace_files({root / DATABASE: text.encode("utf-8", "surrogateescape"), root / FOLDER / ".gitignore": b"*\n"})
    return root / DATABASE


def write_kernels(records: Iterable[Mapping[str, Any]], root: Path) -> dict[str, int]:
    """Write the number of kernels of each built unit by name, and return the numbers."""
    counts = {record["case"]: len(record["artifact"]["kernels"]) for record in records if record["status"] == "built"}
    text = json.dumps(counts, indent=1, sort_keys=True)
    replace_files({(root / DATABASE).with_name(KERNELS): f"{text}\n".encode("utf-8", "surrogateescape")})
    return counts


def read_kernels(database: Path) -> dict[str, int]:
    """Return the recorded numbers of kernels for a database; empty without any.

    Raises
    ------
    UsageError
        If the file is no table of numbers.
    """
    path = database.with_name(KERNELS)
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes()[: 1 << 24])
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{os.path.relpath(path)} cannot be read: {str(error)[:100]}") from None
    if not isinstance(found, dict) or not all(type(count) is int and count >= 0 for count in found.values()):
        raise UsageError(f"{os.path.relpath(path)}: a table from units to numbers of kernels is expected")
    return found
