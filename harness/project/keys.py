"""Keys of a project's configuration, each defined once for the reader, JSON Schema, command line and documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.cases.schema import CASE, OPTIONS
from harness.cases.values import Key


@dataclass(frozen=True, kw_only=True)
class Setting(Key):
    """A key with a command-line option.

    Parameters
    ----------
    parameter : str
        Name of the option in the code of commands.
    variable : str
        Environment variable that overrides the file; empty for none.
    default : str
        Default, as text for people.
    """

    parameter: str
    variable: str = ""
    default: str = ""


PLACES: Mapping[str, Setting] = {
    "cases": Setting(
        kind="files", parameter="cases", default="cases", help="folders of cases, relative to this file"
    ),
    "results": Setting(kind="line", parameter="results", default="reports", help="folder of the records of runs"),
    "page": Setting(
        kind="line", parameter="page", default="no page after a run; reports/html for cumatrix report",
        help="folder of the page, which a run then writes at its end",
    ),
    "artifacts": Setting(
        kind="line", parameter="artifacts", default="no artifacts",
        help="folder of artifacts, as for --keep-artifacts; pages then show PTX and SASS",
    ),
}  # fmt: skip

AXES: Mapping[str, Setting] = {
    "backend": Setting(
        kind="words", parameter="backends", variable="CUMATRIX_BACKEND", default="those that work here",
        help="backends, as for -b",
    ),
    "toolkit": Setting(
        kind="words", parameter="toolkits", variable="CUMATRIX_TOOLKIT", default="one that fits each backend",
        help='CUDA releases, as for -t: "12.4..13.0"',
    ),
    "target": Setting(
        kind="words", parameter="targets", variable="CUMATRIX_TARGET", default="one for each generation",
        help='architectures, as for -a: "sm_75..sm_120"',
    ),
    "with": Setting(
        kind="words", parameter="libraries", variable="CUMATRIX_WITH", default="the installed releases",
        help='releases of libraries under test, as for --with: "cupy=13,14"',
    ),
    "library": Setting(
        kind="words", parameter="header_libraries", default="those of the cases",
        help='header libraries, as for --library: "cutlass=4.2"',
    ),
    "host-compiler": Setting(
        kind="words", parameter="host_compilers", variable="CUMATRIX_HOST_COMPILER", default="those of the cases, else NVCC_CCBIN or gcc",
        help='host compilers for nvcc, as for --host-compiler: "gcc-11..gcc-14"',
    ),
    "where": Setting(kind="line", parameter="where", default="every cell", help="condition on the cells"),
    "device": Setting(
        kind="line", parameter="device", variable="CUMATRIX_DEVICE", default="auto", help="CUDA devices: auto, none, or numbers"
    ),
    "python": Setting(
        kind="line", parameter="python", variable="CUMATRIX_PYTHON", default="cumatrix's own",
        help="interpreter of the environment under test, or versions of Python with `with`",
    ),
    "environment": Setting(
        kind="line", parameter="environment", variable="CUMATRIX_ENVIRONMENT", default="local", help="name of the environment"
    ),
    "require": Setting(
        kind="words", parameter="require", variable="CUMATRIX_REQUIRE", default="nothing", help="requirements on the environment"
    ),
    "offline": Setting(kind="flag", parameter="offline", variable="CUMATRIX_OFFLINE", default="false", help="download nothing"),
    "jobs": Setting(kind="count", parameter="jobs", default="the number of cores", help="cells that compile at the same time"),
    "timeout": Setting(kind="seconds", parameter="timeout", default="300", help="time limit of a cell in seconds"),
    "memory": Setting(kind="size", parameter="memory", default="16G", help="address space of each process of a cell"),
}  # fmt: skip

SETTINGS: Mapping[str, Setting] = {**PLACES, **AXES}

WHEEL: Mapping[str, Setting] = {
    "files": Setting(kind="files", parameter="sources", help='wheels and libraries, or patterns of them ("dist/*.whl"), for cumatrix wheel without arguments'),
    "gpu": Setting(kind="words", parameter="gpus", help="GPUs to show, as for --gpu"),
    "require": Setting(kind="words", parameter="required", help='GPUs that every library must run on: "sm_75..sm_121", ["RTX 5090", "H100"]'),
    "native": Setting(kind="flag", parameter="native", help="true: compilation by the driver does not count for `require`"),
    "complete": Setting(kind="flag", parameter="complete", help="true: each fatbin of a library must run for `require`"),
}  # fmt: skip
"""Keys of the table ``wheel``."""

PROGRAM: Mapping[str, Key] = {
    "sources": Key(kind="files", help='programs: files, or patterns of them anywhere in the project ("csrc/**/*.cu")'),
    "exclude": Key(kind="files", help="files, or patterns of them, to exclude from `sources`"),
    "extension": Key(
        kind="line", help="a setup.py with a CUDAExtension, for sources, include directories and flags; it is parsed, never run"
    ),
    "commands": Key(
        kind="line",
        help="a compile_commands.json, such as that of cumatrix init --record: each unit of CUDA C++ is a program for nvcc, with its options",
    ),
    "language": Key(
        kind="choice", choices=("cuda", "torch", "python"),
        help="torch for CUDA C++ with PyTorch's headers; by default from the suffixes of the files",
    ),
    "together": Key(kind="flag", help="true if all files form one program, which is linked if rdc is true"),
    "include": Key(kind="files", help="include directories, relative to this file"),
    "define": Key(kind="definitions", help='macros or constants: ["N=4", "FAST"], or a table'),
    "std": OPTIONS["std"],
    "flags": Key(kind="options", help='options for the compilers; "nvcc:-O3" is for that backend only'),
    "device-only": Key(kind="flag", help="nvcc: skip the host pass"),
    "toolkit-first": Key(
        kind="flag", help="true: the toolkit's include directories precede `include` and header libraries"
    ),
    "backends": CASE["backends"],
    "signatures": Key(kind="signatures", help='signatures of Numba kernels: { axpy = "void(float32[:])" }'),
    "kernels": Key(
        kind="kernels_of",
        help='required kernels of a build: names, or their minimum number; or a table by file or pattern: { "csrc/*.cu" = 1 }',
    ),
    "features": CASE["features"],
    "links": CASE["links"],
    "libraries": CASE["libraries"],
    "parameters": CASE["parameters"],
    "options": CASE["options"],
    "unsupported": CASE["unsupported"],
    "expect": CASE["expect"],
}  # fmt: skip

NAMED: Mapping[str, Key] = {
    "name": Key(kind="program", help="prefix of the files' names in cells; required with `together`"),
    "title": Key(kind="line", help="one line on the purpose of the program"),
    **PROGRAM,
}  # fmt: skip
"""Keys of a ``[[programs]]`` table. The top level may set those of `PROGRAM` for all programs."""

CONFIG: Mapping[str, Key] = {
    **SETTINGS,
    "project": Key(
        kind="project",
        help="name of the project in results of several projects; by default `name` of `[project]`, or the name of git's remote",
    ),
    "wheel": Key(kind="tables", help="options of cumatrix wheel, a table"),
    **PROGRAM,
    "programs": Key(kind="tables", help="tables of programs with their own settings"),
}
