"""Runs the programs of programs.toml through real compilers: ``python tests/causes/provoke.py`` writes corpus/programs.log again.

The toolkits have to be installed (``cumatrix toolkits install``). What a release says does not change, so neither does the file,
but for the host compiler's words.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "programs.toml").read_text("utf-8"))
_RUN = "nvrtc 11.8 12.4 12.9 13.0"
_LINES, _WIDTH = 30, 900

_NVRTC = """
import ctypes, json, os, sys
root, jobs = sys.argv[1], json.load(sys.stdin)
lib = None
for name in ("libnvrtc-builtins.so", "libnvrtc.so"):
    found = [f for f in sorted(os.listdir(root + "/lib")) if f.startswith(name)]
    lib = ctypes.CDLL(root + "/lib/" + found[0], ctypes.RTLD_GLOBAL)
for name, source, options in jobs:
    sys.stdout.flush()
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.close(into)
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
        argv = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        code = lib.nvrtcCompileProgram(program, len(options), argv)
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value + 1)
        lib.nvrtcGetProgramLog(program, text)
        with os.fdopen(out, "w") as file:
            json.dump([code, text.value.decode(errors="replace")], file)
        os._exit(0)
    os.close(out)
    with os.fdopen(into) as file:
        said = file.read()
    os.waitpid(child, 0)
    print(json.dumps([name, *(json.loads(said) if said else [-1, "died"])]))
"""


def tools(program: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Tools and releases that a program is for: ``("nvrtc", "12.4")``."""
    for each in program.get("run", _RUN).split(";"):
        tool, *releases = each.split()
        yield from ((tool, release) for release in releases or [""])


def fixed(program: Mapping[str, Any]) -> Mapping[str, Any]:
    """The program as the remedy leaves it."""
    return {**program, **program["fixed"]}


def ask_nvrtc(home: Path, programs: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[bool, str]]:
    """Whether NVRTC built each program, and what it said."""
    jobs = []
    for name, program in programs.items():
        include = [] if program.get("no_include") else [f"-I{home}/include"]
        if include and (home / "include/cccl").is_dir():
            include.append(f"-I{home}/include/cccl")
        options = [f"-arch={program.get('arch', 'sm_80')}", *include, *program.get("options", "").split()]
        jobs.append((name, program["source"], options))
    done = subprocess.run(
        [sys.executable, "-c", _NVRTC, str(home)], input=json.dumps(jobs), capture_output=True, text=True, check=True
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: (code == 0, _plain(text, home)) for name, code, text in said}


def ask_tool(tool: str, home: Path, program: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a command-line tool built the program, and what it said."""
    arch, source = program.get("arch", "sm_80"), program["source"].strip("\n") + "\n"
    options = program.get("options", "").replace("$CUDA_HOME", str(home)).split()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.cu").write_text(source)
        nvcc = [str(home / "bin/nvcc"), f"-arch={arch}", *options]
        commands = {
            "nvcc": [[*nvcc, "-c", "kernel.cu"]],
            "nvcc-plain": [[nvcc[0], *options, "-c", "kernel.cu"]],
            "nvcc-file": [[*nvcc, "-c", "missing.cu"]],
            "nvcc-link": [[*nvcc, "kernel.cu", "-o", "a.out"]],
            "nvcc-twice": [[*nvcc, "-c", "kernel.cu"], ["cp", "kernel.cu", "other.cu"], [*nvcc, "-dlink", "kernel.cu", "other.cu", "-o", "d.o"]],
            "object-link": [[*nvcc, "-c", "kernel.cu"], ["g++", "kernel.o", "-o", "a.out", f"-L{home}/lib", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]],
            "object-link-rdc": [[*nvcc, "-rdc=true", "-c", "kernel.cu"], [*nvcc, "-dlink", "kernel.o", "-o", "d.o", "-lcudadevrt"], ["g++", "kernel.o", "d.o", "-o", "a.out", f"-L{home}/lib", *program.get("libraries", "").split(), "-lcudart_static", "-ldl", "-lrt", "-lpthread"]],
            "gcc": [["g++", "-x", "c++", "-c", *options, "kernel.cu"]],
            "gcc-link": [["g++", "-x", "c++", "kernel.cu", "-o", "a.out", *options]],
            "ptxas-text": [[str(home / "bin/ptxas"), f"-arch={arch}", "kernel.ptx"]],
            "ptxas": [[str(home / "bin/ptxas"), f"-arch={arch}", "kernel.ptx"]],
        }  # fmt: skip
        text = source if tool == "ptxas-text" else _EMPTY
        (folder / "kernel.ptx").write_text(text.lstrip())
        said, code = "", 0
        for argv in commands[tool]:
            done = subprocess.run(
                argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                env={**os.environ, "LC_ALL": "C", "TMPDIR": name},
            )  # fmt: skip
            said, code = said + done.stdout, done.returncode
            if code:
                break
        return code == 0, _plain(said.replace(f"{folder}/", "/tmp/"), home)


_EMPTY = ".version 6.4\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n"


def _plain(text: str, home: Path) -> str:
    """Without what differs from machine to machine; long logs are cut."""
    text = text.replace(str(home), "/usr/local/cuda").replace("\0", "")
    text = re.sub(r"tmpxft_[0-9a-f]{8}_[0-9a-f]{8}", "tmpxft_0000a1b2_00000000", text)
    text = re.sub(r"/tmp/cc\w{6}\.o", "/tmp/ccAbCdEf.o", text)
    lines = [line[:_WIDTH].rstrip() for line in text.splitlines()]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES // 2], "[...]", *lines[-_LINES // 2 :]]
    return "\n".join(lines).strip("\n")


def everything(
    homes: Mapping[str, Path], programs: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, str, bool, str]]:
    """Name, tool, release, whether it was built, and what was said."""
    for release, home in homes.items():
        wanted = {name: item for name, item in programs.items() if ("nvrtc", release) in tools(item)}
        if wanted:
            for name, (built, said) in ask_nvrtc(home, wanted).items():
                yield name, "nvrtc", release, built, said
    for name, program in programs.items():
        for tool, release in tools(program):
            if tool != "nvrtc" and (release or "13.0") in homes:
                yield name, tool, release, *ask_tool(tool, homes[release or "13.0"], program)


def write(folder: Path, homes: Mapping[str, Path]) -> None:
    """The corpus: the same words of several releases once."""
    said: dict[tuple[str, str], list[str]] = {}
    for name, tool, release, built, text in everything(homes, PROGRAMS):
        if built:
            print(f"{name}: built by {tool} {release}", file=sys.stderr)
        else:
            said.setdefault((name, text), []).append(f"{tool} {release}".strip())
    order = list(PROGRAMS)
    with (folder / "programs.log").open("w", encoding="utf-8") as file:
        for (name, text), by in sorted(said.items(), key=lambda item: order.index(item[0][0])):
            cause = PROGRAMS[name].get("told", {}).get(by[0], PROGRAMS[name]["cause"]) or "none"
            file.write(f"#### {cause} | {', '.join(by)} | {name}\n{text}\n")


if __name__ == "__main__":
    from harness.toolkits.store import data_folder

    homes = {
        path.name: path
        for path in sorted((data_folder() / "toolkits").iterdir())
        if re.fullmatch(r"\d+\.\d+", path.name)
    }
    (HERE / "corpus").mkdir(exist_ok=True)
    write(HERE / "corpus", homes)
