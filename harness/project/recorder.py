"""The recorder, which runs in place of the compilers of a project's build (`harness.project.recording`).

The recorder is a separate program in the build's environment, and imports only the standard library. It records each
compilation of CUDA C++ and writes an empty object. For host code of the project's shared libraries it writes an empty
object without a record. The real compilers do everything else: version queries, dry runs, preprocessing, the tests of
CMake, PTX and cubins, which a build may embed, and links.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

LOG, KEPT = "CUMATRIX_RECORD_LOG", "CUMATRIX_RECORD_FOLDER"
"""Environment variables with the file of records and the project's folder."""

LIBRARY = "cumatrix-recording.so"
"""Preloaded library that starts the recorder (``harness/native/recording.c``)."""

INCLUDE, SYSTEM = ("-I", "--include-path"), ("-isystem", "--system-include")
"""Options of include directories before and after those of the toolkit; `grouped` splits them from the directory."""

# Options of nvcc with a value as the next word (https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/#nvcc-command-options).
_VALUES = frozenset(
    """-o --output-file -I --include-path -isystem --system-include -D --define-macro -U --undefine-macro -L --library-path -l --library
    -include --pre-include -x --x -std --std -arch --gpu-architecture -code --gpu-code -gencode --generate-code -ccbin --compiler-bindir
    -odir --output-directory -MF --dependency-output -MT --dependency-target-name -MQ -Xcompiler --compiler-options -Xlinker --linker-options
    -Xptxas --ptxas-options -Xfatbin --fatbin-options -Xcudafe --cudafe-options -Xarchive --archive-options -Xnvlink --nvlink-options -maxrregcount --maxrregcount -m --machine -O
    --optimize -optf --options-file -t --threads -cudart --cudart -cudadevrt --cudadevrt -rdc --relocatable-device-code -ftz -fmad -prec-div
    -prec-sqrt --ftz --fmad --prec-div --prec-sqrt -default-stream --default-stream -Werror -diag-suppress --diag-suppress -diag-error
    -diag-warn -idp -ddp -dp -dbcond -split-compile --split-compile -jump-table-density -ident --keep-dir -keep-dir -target-dir -ldir
    """.split()
)
_OBJECTS = frozenset(("-c", "--compile", "-dc", "--device-c", "-dw", "--device-w"))
# Options that make nvcc compile nothing.
_QUERIES = re.compile(
    r"--?(?:version|help|dryrun|list-gpu-code|list-gpu-arch|preprocess|generate-dependencies|generate-nonsystem-dependencies|clean-targets)"
    r"|-[VhEM]|-MM"
)
# Options that write a file which the build may read.
_READ = re.compile(r"--?(?:cubin|ptx|fatbin|cuda|optix-ir|ltoir|lib|run)")
_WITH_DEPENDENCIES = re.compile(r"-MM?D|--generate-(?:nonsystem-)?dependencies-with-compile")
_SOURCES = (".cu", ".CU", ".cup")
_HOST_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".C", ".c++")
# Folders of compiler tests by CMake and autoconf, which inspect the output.
_TESTS = re.compile(
    r"/CMakeFiles/(?:[\d.]+(?:-\w+)?/CompilerId|CMakeTmp|CMakeScratch|ShowIncludes|_CMakeLTOTest)|/conftest\b|/meson-private/"
)


@dataclass(frozen=True)
class Command:
    """A command line of nvcc.

    Parameters
    ----------
    inputs : list of str
        Input files.
    output : str
        Value of ``-o``; empty for nvcc's default.
    objects : bool
        Whether the command creates objects instead of a program.
    device_link : bool
        Whether it links device code (``-dlink``).
    query : bool
        Whether it compiles nothing.
    read : bool
        Whether it creates PTX, a cubin or another file that the build may read.
    shared : bool
        Whether it links a shared library.
    language : str
        Value of ``-x``.
    depends : str
        File of dependencies; empty without one.
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
        """Input files of CUDA C++."""
        if self.language == "cu":
            return [name for name in self.inputs if not name.endswith((".o", ".obj", ".a", ".so"))]
        return [name for name in self.inputs if name.endswith(_SOURCES)] if not self.language else []


def read(words: Sequence[str]) -> Command:
    """Parse the arguments of nvcc."""
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


def grouped(words: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the words of a command line in groups.

    An option of an include directory is a group of one or two words, with the directory. Any other word is a group
    without a directory.
    """
    waiting = iter(words)
    for word in waiting:
        name, equals, value = word.partition("=")
        if word.startswith("-I") and word != "-I":
            yield [word], word[2:]
        elif name not in (*INCLUDE, *SYSTEM):
            yield [word], ""
        elif equals:
            yield [word], value
        else:
            value = next(waiting, "")
            yield [word, value] if value else [word], value


def expanded(words: Sequence[str], folder: str) -> list[str]:
    """Expand options files, which a build may delete, and remove include directories that do not exist."""
    kept: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if name not in ("-optf", "--options-file"):
            kept.append(word)
            continue
        files = value if equals else waiting.pop(0) if waiting else ""
        for file in files.split(","):
            with open(os.path.join(folder, file), encoding="utf-8", errors="surrogateescape") as text:
                kept += expanded(shlex.split(text.read()), folder)
    return [
        each
        for group, include in grouped(kept)
        if not include or os.path.isdir(os.path.join(folder, include))
        for each in group
    ]


def record(words: Sequence[str], command: Command, folder: str) -> None:
    """Record the compilation of each source. A source outside the project is copied, since a build may delete it."""
    words = expanded(words, folder)
    for source in command.sources:
        path = os.path.realpath(os.path.join(folder, source))
        entry = {"directory": folder, "file": source, "arguments": ["nvcc", *words], "output": command.output}
        if not path.startswith(os.path.realpath(os.environ[KEPT]) + "/") and os.path.isfile(path):
            copies = os.path.join(os.path.dirname(os.environ[LOG]), "sources")
            os.makedirs(copies, exist_ok=True)
            entry["copy"] = os.path.join(tempfile.mkdtemp(dir=copies), os.path.basename(source))
            shutil.copyfile(path, str(entry["copy"]))
        line = json.dumps(entry) + "\n"
        # One write keeps the lines of parallel builds whole.
        log = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(log, line.encode("utf-8", "surrogateescape"))
        finally:
            os.close(log)


def make_empty_objects(command: Command) -> int:
    """Write the files that the build expects: an empty object per source, and the file of dependencies."""
    for source in command.sources or [""]:
        stem = os.path.splitext(os.path.basename(source))[0] or "a_dlink"
        output = command.output if command.output and len(command.sources) < 2 else f"{stem}.o"
        if code := _make_empty_object(_compiler(), output, source, command.depends):
            return code
    return 0


def _make_empty_object(compiler: Sequence[str], output: str, source: str, depends: str) -> int:
    done = subprocess.run([*compiler, "-fPIC", "-x", "c", "-c", os.devnull, "-o", output], check=False)
    if depends and not done.returncode:
        with open(depends, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{output}: {source}\n".replace("\\", "/"))
    return done.returncode


def stub_host_object(real: str, words: Sequence[str], folder: str) -> int | None:
    """Write an empty object for the project's own host code; return None if the real compiler must run."""
    sources = [word for word in words if word.endswith(_HOST_SOURCES) and not word.startswith("-")]
    output = words[words.index("-o") + 1] if "-o" in words[:-1] else ""
    if len(sources) != 1 or not output:
        return None
    path = os.path.realpath(os.path.join(folder, sources[0]))
    own = path.startswith(os.path.realpath(os.environ[KEPT]) + "/") and os.path.isfile(path)
    if not own or any(_TESTS.search(place) for place in (f"{folder}/", path, os.path.join(folder, output))):
        return None
    depends = words[words.index("-MF") + 1] if "-MF" in words[:-1] else ""
    if not depends and any(word in ("-MD", "-MMD") for word in words):
        depends = os.path.splitext(output)[0] + ".d"
    return _make_empty_object([real], output, sources[0], depends)


def main(argv: Sequence[str]) -> int:
    """Record the command, or execute the real compiler, whose path is the first argument."""
    real, words, folder = argv[1], argv[2:], os.getcwd()
    # The recorder must not load into children of the compiler.
    preloaded = os.environ.pop("LD_PRELOAD", "").split(":")
    if others := [each for each in preloaded if each and os.path.basename(each) != LIBRARY]:
        os.environ["LD_PRELOAD"] = ":".join(others)
    if LOG not in os.environ:
        return os.execv(real, [real, *words])  # noqa: S606
    if os.path.basename(real) != "nvcc":
        code = stub_host_object(real, words, folder)
        return os.execv(real, [real, *words]) if code is None else code  # noqa: S606
    command = read(words)
    if is_recorded(command, folder):
        record(words, command, folder)
        if command.objects and not command.read:
            return make_empty_objects(command)
        if not command.read:
            # One command compiles and links a program: its sources are empty.
            linked = [*_compiler(), *(["-shared", "-fPIC"] if command.shared else []), "-x", "c", "-"]
            text = b"int main(void) { return 0; }\n"
            return subprocess.run([*linked, "-o", command.output or "a.out"], input=text, check=False).returncode
    elif command.device_link and not command.query and not command.read:
        return make_empty_objects(command)
    return os.execv(real, [real, *words])  # noqa: S606


def _compiler() -> list[str]:
    return (os.environ.get("CC") or "cc").split()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
