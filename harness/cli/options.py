"""Options that commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from harness.backends import BACKENDS, HOST_COMPILERS
from harness.cli import complete
from harness.cli.complete import EXAMPLE, where_option
from harness.libraries import with_releases
from harness.protocol.limits import RLIMITS
from harness.tables import read_table

ORDERS = ("plan", "reverse", "random")
"""Orders that cells can be run in (`harness.engine.request`)."""

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Size(click.ParamType):  # type: ignore[type-arg]  # generic in new releases of click only
    """A number of bytes with an optional unit: ``8G``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+)\s*([kKmMgG]?)(?:i?[bB])?", value.strip())
        if not match:
            self.fail(f"{value!r} is not a size such as 8G", param, ctx)
        return int(match[1]) * _UNITS[match[2].lower()]


class Seconds(click.FloatRange):
    """A number of seconds within a range; that ``nan`` is outside of any, no comparison tells."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return number


class Rlimit(click.ParamType):  # type: ignore[type-arg]  # as above
    """A limit of ulimit's by name: ``stack=64M``."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, _, number = value.partition("=")
        if name not in RLIMITS:
            self.fail(f"{name!r} is no limit; known are {', '.join(RLIMITS)}", param, ctx)
        return name, Size().convert(number, param, ctx)


# `harness.cli.config_defaults.check_trust` reads it.
trust_option = click.option("--trust", is_flag=True, help="Let the project's configuration name programs, this time (cumatrix trust: from now on).")  # fmt: skip


def axes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the axes, limits and output options of ``run`` and ``try``."""
    options = [
        click.option(
            "-b", "--backend", "backends", envvar="CUMATRIX_BACKEND", metavar="B,…", shell_complete=complete.backends,
            help=f"Backends: {', '.join(BACKENDS)}, or all. Default: nvrtc, nvcc where the toolkit has one, and those whose library is installed.",
        ),
        click.option(
            "-t", "--toolkit", "toolkits", envvar="CUMATRIX_TOOLKIT", metavar="V,…", shell_complete=complete.toolkits,
            help="CUDA releases: 12.4, 11.8,12.4..13.0, all; 13.5+headers13.0 pairs a compiler with headers of another release; local, or a path, is a CUDA of this machine. Default: of run 12.9, or what CuPy's or PyTorch's build is for; of try the newest that each backend can use.",
        ),
        click.option(
            "-a", "--target", "targets", envvar="CUMATRIX_TARGET", metavar="T,…", shell_complete=complete.targets,
            help="Architectures: sm_80, sm_75..sm_120, sm_90a, compute_80, native (those of this machine's devices), all. Default: one for each generation from sm_50 to sm_120.",
        ),
        click.option(
            "--library", "header_libraries", multiple=True, metavar="NAME=VERSIONS", shell_complete=complete.header_libraries,
            help=f"Header libraries ({', '.join(read_table('toolkits/libraries.toml'))}), each version a column or row of its own: cutlass=3.5.1,4.0..4.2, a folder (cutlass=../cutlass), a revision or range of commits (cutlass=../cutlass@v4.1.0..main, git+https://…@main). In the place of what the cases name.",
        ),
        click.option(
            "--host-compiler", "host_compilers", multiple=True, envvar="CUMATRIX_HOST_COMPILER", metavar="C,…", shell_complete=complete.host_compilers,
            help=f"What nvcc and torch-nvcc hand the host's half of a program to, each a column of its own: {HOST_COMPILERS}. gcc-13 is the g++-13 on the path, all every one there; a path may have a name. In the place of what the cases name. Default: NVCC_CCBIN, or gcc.",
        ),
        where_option(EXAMPLE, "Only cells for which this holds; the others are not run"),
        click.option("-k", "words", metavar="EXPR", help="Old spelling of --where for words of a cell's id; it goes with the next release."),
        click.option("-j", "--jobs", type=click.IntRange(1, 256), help="Cells that compile at the same time. Default: the number of cores that may be used."),
        click.option("--no-cache", is_flag=True, help="Compile everything, and keep nothing for later runs."),
        click.option(
            "--from", "earlier", multiple=True, envvar="CUMATRIX_FROM", metavar="RESULTS",
            help="Results of others, whose outcomes are taken where program, options, versions and every file that was read are the same: results.parquet, a .jsonl, a folder of either, or the address of a published page. May be given several times.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print records, one JSON object a line, on stdout and nothing else there."),
        click.option(
            "--with", "libraries", multiple=True, envvar="CUMATRIX_WITH", metavar="NAME=V,…", shell_complete=complete.libraries,
            help=f"Releases of a library ({', '.join(with_releases())}), each in an environment of its own that is made where it is missing: cupy=12,13.0,13.1..14. 13 is the newest 13.*, 13.1..14 all from 13.1 to the newest 14.*, all every one; pre takes pre-releases too. Several times for several libraries. Their backends are what runs then, unless -b names others.",
        ),
        click.option(
            "--offline", is_flag=True, envvar="CUMATRIX_OFFLINE",
            help="Download nothing: what is missing is told, with the command that installs it. Without it, what the chosen cells need is installed first.",
        ),
        click.option(
            "--python", envvar="CUMATRIX_PYTHON", metavar="PATH|V,…",
            help="Interpreter of the environment under test. Default: this one. With --with, versions of Python for its environments: 3.9,3.13.",
        ),
        trust_option,
        click.option("--environment", envvar="CUMATRIX_ENVIRONMENT", metavar="NAME", help="What to call the environment. Default: tox's name of it, or local."),
        click.option(
            "--require", multiple=True, envvar="CUMATRIX_REQUIRE", metavar="REQ",
            help="What the environment was made for, such as cupy-cuda12x==13.*; a library that is something else is unavailable.",
        ),
        click.option(
            "--device", envvar="CUMATRIX_DEVICE", default="auto", show_default=True, metavar="D",
            help="CUDA devices that cells of their own target go on to load, launch and verify on: auto, none, or numbers such as 0,1.",
        ),
        click.option("--sanitize", is_flag=True, help="Run every launch once more under compute-sanitizer."),
        click.option("--timeout", type=Seconds(0.1, 7 * 86400), default=300.0, show_default=True, metavar="S", help="Seconds that a cell may take."),
        click.option("--memory", type=Size(), default="16G", show_default=True, help="Address space that each process of a cell may use, and memory of all together where a control group can limit that (see doctor); 0 for no limit."),
        click.option(
            "--limit", "rlimits", type=Rlimit(), multiple=True, metavar="NAME=SIZE",
            help="A further limit of each process, as ulimit sets it: stack=64M, cpu=600, nproc=200; also data, fsize, nofile.",
        ),
        click.option(
            "--trace", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
            help="Write what every runner did when, as a trace that https://ui.perfetto.dev opens.",
        ),
        click.option(
            "--keep-artifacts", "keep_artifacts", type=click.Path(path_type=Path), metavar="DIR",
            help="Keep what was built (PTX, cubins, relocatable objects) in DIR, each file under its SHA-256; cumatrix report --artifacts DIR shows it. A cell that an earlier run has answered is compiled again where DIR does not have its artifact yet. Some 10 kB a cell; nothing is ever removed from DIR.",
        ),
        click.option(
            "--executor", envvar="CUMATRIX_EXECUTOR", default="", metavar="NAME",
            help="Where cells are compiled. Default: threads, on this machine; others come with other distributions.",
        ),
        click.option(
            "--total-memory", type=Size(), default="0", metavar="SIZE",
            help="What the cells that run at the same time may need together. Default: what the machine has free.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def dask_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--dask``."""
    return click.option(
        "--dask",
        metavar="ADDRESS",
        help="Compile on the workers of a Dask cluster: tcp://host:8786, a scheduler's file (scheduler.json), or local:4, which starts four worker processes on this machine. Each worker installs what its cells need. See docs/cluster.md.",
    )(command)


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    options = [
        click.option(
            "-I", "include", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
            help="A further include directory.",
        ),
        click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help="A macro, or a constant of a Python module."),
        click.option("--std", "-std", metavar="STD", help="C++ dialect, such as c++17."),
        click.option(
            "--option", "extra", multiple=True, metavar="[BACKEND:]OPTION",
            help="An option for the compilers, as it is, or for one backend alone: --option=-default-device, --option nvcc:-lineinfo.",
        ),
        click.option(
            "--compile-commands", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="JSON",
            help="A build's compile_commands.json: each file is compiled with its own command line in there (-I, -D, -std, what else compilers know). What is left out is said.",
        ),
        click.option("--device-only", is_flag=True, help="nvcc: leave the host pass out."),
        click.option("--toolkit-first", is_flag=True, help="The toolkit's include directories in front of -I and --library, as with nvcc's -isystem; else they stand behind."),
        click.option("--signature", multiple=True, metavar="NAME=SIG", help="Signature of a Numba kernel: 'axpy=void(float32[:])'."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


Decorated = Callable[[Callable[..., Any]], Callable[..., Any]]

RESULTS = Path("reports")
"""The default folder of records."""


def results_argument(*, required: bool = True) -> Decorated:
    """RESULTS…: files and folders of records that are there."""
    return click.argument(
        "results", nargs=-1, required=required, type=click.Path(path_type=Path, exists=True),
        metavar="RESULTS…" if required else "[RESULTS…]",
    )  # fmt: skip


def cases_option(words: str = "Folder of cases", name: str = "cases") -> Decorated:
    """--cases DIR, one folder; `words` says what for."""
    return click.option(
        "--cases", name, type=click.Path(path_type=Path), default=Path("cases"), show_default=True, metavar="DIR", help=f"{words}.",
    )  # fmt: skip


def all_cases_option(words: str = "Folder of cases", name: str = "cases") -> Decorated:
    """--cases DIR, any number of times."""
    return click.option(
        "--cases", name, type=click.Path(path_type=Path), default=[Path("cases")], multiple=True, metavar="DIR",
        help=f"{words}; several times for several folders. Default: cases.",
    )  # fmt: skip


def out_folder(default: str, words: str) -> Decorated:
    """--out DIR, a folder that is written."""
    return click.option(
        "--out", type=click.Path(path_type=Path, file_okay=False), default=Path(default), show_default=True, metavar="DIR", help=f"{words}.",
    )  # fmt: skip
