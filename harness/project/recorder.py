"""A compiler that records: a substitute for nvcc in a project's own build (`harness.project.recording`).

It runs as a program of its own, in whatever the build makes of the environment, and imports nothing but the standard library. A compilation
of CUDA C++ is noted and gives an empty object; the real nvcc does everything else: versions, dry runs, preprocessing, the tests of
CMake, PTX and cubins, which a build may embed, and links.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

LOG, KEPT = "CUMATRIX_RECORD_LOG", "CUMATRIX_RECORD_FOLDER"
"""Variables: the file of records, and the project's folder."""

# Options of nvcc with a value as the next word (https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/#nvcc-command-options).
_VALUES = frozenset(
    """-o --output-file -I --include-path -isystem --system-include -D --define-macro -U --undefine-macro -L --library-path -l --library
    -include --pre-include -x --x -std --std -arch --gpu-architecture -code --gpu-code -gencode --generate-code -ccbin --compiler-bindir
    -odir --output-directory -MF --dependency-output -MT --dependency-target-name -MQ -Xcompiler --compiler-options -Xlinker --linker-options
    -Xptxas --ptxas-options -Xcudafe -Xarchive --archive-options -Xnvlink --nvlink-options -maxrregcount --maxrregcount -m --machine -O
    --optimize -optf --options-file -t --threads -cudart --cudart -cudadevrt --cudadevrt -rdc --relocatable-device-code -ftz -fmad -prec-div
    -prec-sqrt --ftz --fmad --prec-div --prec-sqrt -default-stream --default-stream -Werror -diag-suppress --diag-suppress -diag-error
    -diag-warn -idp -ddp -dp -dbcond -split-compile --split-compile -jump-table-density -ident --keep-dir -keep-dir -target-dir -ldir
    """.split()
)
_OBJECTS = frozenset(("-c", "--compile", "-dc", "--device-c", "-dw", "--device-w"))
# With one of these, nvcc compiles nothing.
_QUERIES = re.compile(
    r"--?(?:version|help|dryrun|list-gpu-code|list-gpu-arch|preprocess|generate-dependencies|generate-nonsystem-dependencies|clean-targets)"
    r"|-[VhEM]|-MM"
)
# With one of these, it makes something that the build may read.
_READ = re.compile(r"--?(?:cubin|ptx|fatbin|cuda|optix-ir|ltoir|lib|run)")
_WITH_DEPENDENCIES = re.compile(r"-MM?D|--generate-(?:nonsystem-)?dependencies-with-compile")
_SOURCES = (".cu", ".CU", ".cup")
# Folders of tests of a compiler, by CMake and by autoconf, which look at what was made.
_TESTS = re.compile(
    r"/CMakeFiles/(?:[\d.]+(?:-\w+)?/CompilerId|CMakeTmp|CMakeScratch|ShowIncludes|_CMakeLTOTest)|/conftest\b"
)


@dataclass(frozen=True)
class Command:
    """A command line of nvcc.

    Parameters
    ----------
    inputs : list of str
        Files that it names.
    output : str
        After ``-o``; empty for nvcc's choice.
    objects : bool
        Whether it makes objects, and no program.
    device_link : bool
        Whether it links device code (``-dlink``).
    query : bool
        Whether it compiles nothing.
    read : bool
        Whether it makes PTX, a cubin or another file that the build may read.
    shared : bool
        Whether it links a shared library.
    language : str
        After ``-x``.
    depends : str
        The file of dependencies; empty if none is made.
    """

    inputs: list[str]
    output: str = ""
    objects: bool = False
    device_link: bool = False
    query: bool = False
    read: bool = False
    shared: bool = False
    language: str = ""
    depends: str = ""

    @property
    def sources(self) -> list[str]:
        """Files of CUDA C++."""
        if self.language == "cu":
            return [name for name in self.inputs if not name.endswith((".o", ".obj", ".a", ".so"))]
        return [name for name in self.inputs if name.endswith(_SOURCES)] if not self.language else []


def read(words: Sequence[str]) -> Command:
    """Make sense of the arguments of nvcc."""
    inputs: list[str] = []
    given: dict[str, str] = {}
    objects = device_link = query = makes = shared = depends = False
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        name, equals, value = word.partition("=")
        if name in ("-Xcompiler", "--compiler-options") or (name in _VALUES and not equals):
            if not equals and place < len(words):
                value, place = words[place], place + 1
        elif word in _OBJECTS:
            objects = True
        elif word in ("-dlink", "--device-link"):
            device_link = True
        elif word in ("-shared", "--shared"):
            shared = True
        elif _WITH_DEPENDENCIES.fullmatch(word):
            depends = True
        elif _QUERIES.fullmatch(word):
            query = True
        elif _READ.fullmatch(word):
            makes = True
        elif not word.startswith("-") and not word.startswith("@"):
            inputs.append(word)
        given[name] = value
    output = given.get("-o") or given.get("--output-file") or ""
    default = os.path.splitext(output or os.path.basename(inputs[0] if inputs else "a"))[0] + ".d"
    return Command(
        inputs,
        output=output,
        objects=objects,
        device_link=device_link,
        query=query,
        read=makes,
        shared=shared,
        language=given.get("-x") or given.get("--x") or "",
        depends=given.get("-MF") or given.get("--dependency-output") or (default if depends else ""),
    )


def is_recorded(command: Command, folder: str) -> bool:
    """Return whether a command is a compilation of the project's own CUDA C++."""
    places = [os.path.join(folder, name) for name in (*command.inputs, command.output)]
    return (
        bool(command.sources)
        and not command.query
        and not any(_TESTS.search(place) for place in (f"{folder}/", *places))
    )


def record(argv: Sequence[str], command: Command, folder: str) -> None:
    """Note the compilation of each source; a source outside of the project is copied, since a build may delete it."""
    for source in command.sources:
        path = os.path.realpath(os.path.join(folder, source))
        entry = {"directory": folder, "file": source, "arguments": ["nvcc", *argv[2:]], "output": command.output}
        if not path.startswith(os.path.realpath(os.environ[KEPT]) + "/") and os.path.isfile(path):
            copies = os.path.join(os.path.dirname(os.environ[LOG]), "sources")
            os.makedirs(copies, exist_ok=True)
            entry["copy"] = os.path.join(tempfile.mkdtemp(dir=copies), os.path.basename(source))
            shutil.copyfile(path, str(entry["copy"]))
        line = json.dumps(entry) + "\n"
        # One write, so that lines of parallel builds stay whole.
        log = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(log, line.encode("utf-8", "surrogateescape"))
        finally:
            os.close(log)


def make_empty_objects(command: Command) -> int:
    """Make what the build expects: an empty object for each source, and the file of dependencies."""
    for source in command.sources or [""]:
        stem = os.path.splitext(os.path.basename(source))[0] or "a_dlink"
        output = command.output if command.output and len(command.sources) < 2 else f"{stem}.o"
        done = subprocess.run([*_compiler(), "-fPIC", "-x", "c", "-c", os.devnull, "-o", output], check=False)
        if done.returncode:
            return done.returncode
        if command.depends:
            with open(command.depends, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(f"{output}: {source}\n".replace("\\", "/"))
    return 0


def main(argv: Sequence[str]) -> int:
    """Record, or become the real nvcc, whose path is the first argument, as always once the recording has ended."""
    real, folder = argv[1], os.getcwd()
    command = read(argv[2:])
    if LOG in os.environ and is_recorded(command, folder):
        record(argv, command, folder)
        if command.objects and not command.read:
            return make_empty_objects(command)
        if not command.read:
            # A program that is compiled and linked at once: its sources are empty.
            words = [*_compiler(), *(["-shared", "-fPIC"] if command.shared else []), "-x", "c", "-"]
            text = b"int main(void) { return 0; }\n"
            return subprocess.run([*words, "-o", command.output or "a.out"], input=text, check=False).returncode
    elif LOG in os.environ and command.device_link and not command.query and not command.read:
        return make_empty_objects(command)
    return os.execv(real, [real, *argv[2:]])  # noqa: S606


def _compiler() -> list[str]:
    return (os.environ.get("CC") or "cc").split()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
