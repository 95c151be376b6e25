"""Options that commands share: cells, records and axes, and nvcc's options for other compilers (``try``)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.backends import BACKENDS, HOST_COMPILERS
from harness.cli import complete
from harness.cli.command import Command
from harness.cli.complete import EXAMPLE, where_option
from harness.cli.terminal import say
from harness.errors import UsageError, did_you_mean
from harness.libraries import with_releases
from harness.protocol.messages import RLIMITS
from harness.tables import read_table

if TYPE_CHECKING:
    from harness.records import Record

ORDERS = ("plan", "reverse", "random")
"""Orders of cells (`harness.engine.context`)."""

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
    """A number of seconds within a range. ``nan`` passes every range comparison, so it is refused separately."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return number


class Rlimit(click.ParamType):  # type: ignore[type-arg]  # as above
    """A ulimit by name: ``stack=64M``."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, _, number = value.partition("=")
        if name not in RLIMITS:
            self.fail(f"{name!r} is no limit; known are {', '.join(RLIMITS)}", param, ctx)
        return name, Size().convert(number, param, ctx)


def _executor(_context: click.Context, _param: click.Parameter, name: str) -> str:
    if name:
        from harness.engine.executor import executor_named  # imports the engine

        executor_named(name)
    return name


# `harness.cli.config_defaults.check_trust` reads it.
trust_option = click.option("--trust", is_flag=True, help="Trust the project's configuration in this run. `cumatrix trust` does so permanently.")  # fmt: skip


def axes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the axes, limits and output options of ``run`` and ``try``."""
    options = [
        click.option(
            "-b", "--backend", "backends", envvar="CUMATRIX_BACKEND", metavar="B,…", shell_complete=complete.backends,
            help=f"Backends, or all. They are {', '.join(BACKENDS)}. Default: nvrtc, nvcc if the toolkit has one, and those whose library is installed.",
        ),
        click.option(
            "-t", "--toolkit", "toolkits", envvar="CUMATRIX_TOOLKIT", metavar="V,…", shell_complete=complete.toolkits,
            help="CUDA releases: 12.4, 11.8,12.4..13.0, all. 13.5+headers13.0 pairs a compiler with the headers of another release. local, or a path, is a CUDA of this machine. Default for run: 12.9, or the release that CuPy or PyTorch was built for. Default for try: the newest that each backend can use.",
        ),
        click.option(
            "-a", "--target", "targets", envvar="CUMATRIX_TARGET", metavar="T,…", shell_complete=complete.targets,
            help="Architectures: sm_80, sm_75..sm_120, all. Also sm_90a, compute_80, and native for this machine's devices. Default: one per generation from sm_50 to sm_120.",
        ),
        click.option(
            "--library", "header_libraries", multiple=True, metavar="NAME=VERSIONS", shell_complete=complete.header_libraries,
            help=f"Header libraries: cutlass=3.5.1,4.0..4.2. They are {', '.join(read_table('toolkits/libraries.toml'))}; each version is a column or row. A version may be a folder (cutlass=../cutlass), a revision or a range of commits (cutlass=../cutlass@v4.1.0..main, git+https://…@main). Replaces the versions that cases name.",
        ),
        click.option(
            "--host-compiler", "host_compilers", multiple=True, envvar="CUMATRIX_HOST_COMPILER", metavar="C,…", shell_complete=complete.host_compilers,
            help=f"Host compilers of nvcc and torch-nvcc. Each is a column: {HOST_COMPILERS}. gcc-13 is g++-13 on the path, all is every one there; a path may have a name. Replaces the compilers that cases name. Default: NVCC_CCBIN, or gcc.",
        ),
        where_option(EXAMPLE, "Run only cells for which this holds"),
        click.option("-j", "--jobs", type=click.IntRange(1, 256), help="Cells that compile at once. Default: the number of available cores."),
        click.option("--no-cache", is_flag=True, help="Compile everything and keep nothing."),
        click.option(
            "--from", "earlier", multiple=True, envvar="CUMATRIX_FROM", metavar="RESULTS",
            help="Reuse outcomes from other results. An outcome counts if program, options, versions and every file that was read are the same. RESULTS is results.parquet, a .jsonl, a folder of either, or the address of a published page. May be given several times.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print records, one JSON object per line."),
        click.option(
            "--with", "libraries", multiple=True, envvar="CUMATRIX_WITH", metavar="NAME=V,…", shell_complete=complete.libraries,
            help=f"Library releases: cupy=12,13.0,13.1..14. Libraries are {', '.join(with_releases())}. cumatrix creates an environment for each release. 13 is the newest 13.*, 13.1..14 every release from 13.1 to the newest 14.*, all every release; pre adds pre-releases. May be given several times. Runs the libraries' backends, unless -b names others.",
        ),
        click.option(
            "--offline", is_flag=True, envvar="CUMATRIX_OFFLINE",
            help="Download nothing. Missing parts are listed with the command that installs them. Without it, cumatrix first installs what the chosen cells need.",
        ),
        click.option(
            "--python", envvar="CUMATRIX_PYTHON", metavar="PATH|V,…",
            help="Interpreter of the environment under test. Default: this one. With --with, versions of Python for the environments: 3.9,3.13.",
        ),
        trust_option,
        click.option("--environment", envvar="CUMATRIX_ENVIRONMENT", metavar="NAME", help="Name of the environment. Default: tox's name, or local."),
        click.option(
            "--require", multiple=True, envvar="CUMATRIX_REQUIRE", metavar="REQ",
            help="Requirement on the environment: cupy-cuda12x==13.*. Any other version of that library is unavailable.",
        ),
        click.option(
            "--device", envvar="CUMATRIX_DEVICE", default="auto", show_default=True, metavar="D",
            help="CUDA devices: auto, none, or numbers (0,1). Cells of a device's own target are also loaded, launched and verified on it.",
        ),
        click.option("--sanitize", is_flag=True, help="Repeat launches under compute-sanitizer."),
        click.option("--timeout", type=Seconds(0.1, 7 * 86400), metavar="S", help="Time limit of a cell in seconds. Default: 300, longer for cells that took long before, and on a busy machine."),
        click.option("--memory", type=Size(), default="16G", show_default=True, help="Memory limit of a cell. It limits the address space of each process, and the memory of all together if a control group can (see doctor). 0 is no limit."),
        click.option(
            "--limit", "rlimits", type=Rlimit(), multiple=True, metavar="NAME=SIZE",
            help="A ulimit of each process: stack=64M, cpu=600. Also data, fsize, nofile and nproc.",
        ),
        click.option(
            "--trace", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
            help="Write a trace for https://ui.perfetto.dev. It shows what each runner did when.",
        ),
        click.option(
            "--keep-artifacts", "artifacts", type=click.Path(path_type=Path), metavar="DIR",
            help="Keep PTX, cubins and objects in DIR. Each file is named by its SHA-256; cumatrix report --artifacts DIR shows it. A cell whose artifact DIR lacks is compiled again. About 10 kB per cell; nothing is ever removed from DIR.",
        ),
        click.option(
            "--executor", envvar="CUMATRIX_EXECUTOR", default="", metavar="NAME", callback=_executor,
            help="Where cells compile. Default: threads, on this machine. Other distributions add others.",
        ),
        click.option(
            "--total-memory", type=Size(), default="0", metavar="SIZE",
            help="Memory for all cells at once. Default: the free memory.",
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
        help="Compile on a Dask cluster: tcp://host:8786. Also a scheduler's file (scheduler.json), or local:4, which starts four workers on this machine. Each worker installs what its cells need. See docs/cluster.md.",
    )(command)


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for programs."""
    options = [
        click.option(
            "-I", "include", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
            help="An include directory.",
        ),
        click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help="A macro, or a constant of a Python module."),
        click.option("--std", "-std", metavar="STD", help="C++ dialect, such as c++17."),
        click.option(
            "--option", "extra", multiple=True, metavar="[BACKEND:]OPTION",
            help="An option for the compilers, or for one backend. --option=-default-device, --option nvcc:-lineinfo.",
        ),
        click.option(
            "--compile-commands", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="JSON",
            help="A build's compile_commands.json. Each file is compiled with its own command line (-I, -D, -std and other compiler options). cumatrix lists what it leaves out.",
        ),
        click.option("--device-only", is_flag=True, help="nvcc: skip the host pass."),
        click.option("--toolkit-first", is_flag=True, help="Search the toolkit's headers first. They come before -I and --library, as with nvcc's -isystem; by default they come after."),
        click.option("--signature", multiple=True, metavar="NAME=SIG", help="A kernel: 'axpy=void(float32[:])', 'dot=*fp16'."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


Decorated = Callable[[Callable[..., Any]], Callable[..., Any]]

RESULTS = Path("reports")
"""Default folder of records."""


def results_argument(*, required: bool = True) -> Decorated:
    """Return the argument RESULTS…: existing files and folders of records."""
    return click.argument(
        "results", nargs=-1, required=required, type=click.Path(path_type=Path, exists=True),
        metavar="RESULTS…" if required else "[RESULTS…]",
    )  # fmt: skip


def cases_option(words: str = "Folder of cases", name: str = "cases") -> Decorated:
    """Return the option --cases DIR for one folder; `words` states its use."""
    return click.option(
        "--cases", name, type=click.Path(path_type=Path), default=Path("cases"), show_default=True, metavar="DIR", help=f"{words}.",
    )  # fmt: skip


def all_cases_option(words: str = "Folder of cases", name: str = "cases") -> Decorated:
    """Return the repeatable option --cases DIR."""
    return click.option(
        "--cases", name, type=click.Path(path_type=Path), default=[Path("cases")], multiple=True, metavar="DIR",
        help=f"{words}. May be given several times. Default: cases.",
    )  # fmt: skip


def out_folder(default: str, words: str) -> Decorated:
    """Return the option --out DIR for an output folder."""
    return click.option(
        "--out", type=click.Path(path_type=Path, file_okay=False), default=Path(default), show_default=True, metavar="DIR", help=f"{words}.",
    )  # fmt: skip


NVCC = tuple(info.name for info in BACKENDS.values() if info.nvcc)
"""Backends that run nvcc."""


@dataclass(frozen=True)
class Habit:
    """An option of nvcc that other compilers also get.

    Parameters
    ----------
    names : tuple of str
        Spellings; compilers get the last one.
    form : str
        Prefix of the value in the option for compilers, if not ``NAME=``; empty for a flag or ``NAME=VALUE``.
    value : str
        Placeholder of the value; empty for a flag.
    host : bool
        Whether the option affects only host code, which only nvcc compiles.
    """

    names: tuple[str, ...]
    value: str = ""
    form: str = ""
    host: bool = False

    @property
    def key(self) -> str:
        """Name of click's parameter."""
        return "habit_" + re.sub(r"\W", "_", self.names[-1].strip("-"))

    def flags(self, given: Any) -> list[str]:
        """Return the options for compilers."""
        if not self.value:
            return [self.names[-1]] if given else []
        return [f"{self._form}{item}" for item in given]

    def says(self, flag: str) -> bool:
        """Return whether compilers receive `flag` for this option."""
        return flag.startswith(self._form) if self.value else flag == self.names[-1]

    @property
    def _form(self) -> str:
        return self.form or f"{self.names[-1]}="


HABITS = (
    Habit(("--device-debug", "-G")),
    Habit(("--generate-line-info", "-lineinfo")),
    Habit(("-use_fast_math", "--use_fast_math")),
    Habit(("-maxrregcount", "--maxrregcount"), "N"),
    Habit(("-ftz", "--ftz"), "BOOL"),
    Habit(("-prec-div", "--prec-div"), "BOOL"),
    Habit(("-prec-sqrt", "--prec-sqrt"), "BOOL"),
    Habit(("-fmad", "--fmad"), "BOOL"),
    Habit(("-Xptxas", "--ptxas-options"), "OPTIONS"),
    Habit(("-U", "--undefine-macro"), "NAME", "-U"),
    Habit(("--disable-warnings", "-w")),
    Habit(("-O", "--optimize"), "LEVEL", "-O", host=True),
    Habit(("--debug", "-g"), host=True),
    Habit(("-Xcompiler", "--compiler-options"), "OPTIONS", host=True),
    Habit(("-expt-relaxed-constexpr", "--expt-relaxed-constexpr"), host=True),
    Habit(("-expt-extended-lambda", "--expt-extended-lambda"), host=True),
    Habit(("-extended-lambda", "--extended-lambda"), host=True),
)
_RELOCATABLE = ("-rdc", "--rdc", "--relocatable-device-code")


def habits(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add nvcc's options."""
    more = [
        click.option(*habit.names, habit.key, hidden=True, multiple=True)
        if habit.value
        else click.option(*habit.names, habit.key, hidden=True, is_flag=True)
        for habit in HABITS
    ]
    more += [
        click.option(*_RELOCATABLE, "habit_rdc", type=click.Choice(["true", "false"]), hidden=True),
        click.option("-dc", "--device-c", "habit_dc", is_flag=True, hidden=True),
        click.option("-arch", "--gpu-architecture", "habit_arch", hidden=True),
        click.option("-gencode", "--generate-code", "habit_gencode", multiple=True, hidden=True),
    ]
    for option in more:
        command = option(command)
    return command


class TryCommand(Command):
    """A command that accepts ``--rdc`` without a value, as nvcc's users write it, and ``-rdc=true``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        words = [
            f"{word}=true" if word in _RELOCATABLE and after not in ("true", "false") else word
            for word, after in zip(args, [*args[1:], ""], strict=False)  # without words, nothing follows the last one
        ]
        return super().parse_args(ctx, words)


def targets_of(options: Mapping[str, Any]) -> str | None:
    """Return the targets of ``-a``, ``-arch`` and ``-gencode``; None without any."""
    lists = [options["targets"], options["habit_arch"]] if options["habit_arch"] else [options["targets"]]
    lists += [code for text in options["habit_gencode"] for code in _codes(text)]
    return ",".join(filter(None, lists)) or None


def _codes(text: str) -> list[str]:
    """Return the targets in ``arch=compute_80,code=[sm_80,compute_80]``."""
    found = re.fullmatch(r"arch=(compute_\w+),code=(?:\\?\"|\[)?([\w,]+?)(?:\\?\"|\])?", text.replace(" ", ""))
    if not found:
        raise UsageError(f"-gencode {text!r} is not arch=compute_XY,code=sm_XY")
    from harness.model.target import TargetError, parse_targets  # this import would slow down completion

    try:
        (virtual,), codes = parse_targets(found[1]), parse_targets(found[2])
    except TargetError as error:
        raise UsageError(f"-gencode {text!r}: {error}") from None
    for code in codes:
        if code.as_virtual != virtual:
            raise UsageError(
                f"-gencode {text!r}: cumatrix compiles {code} from {code.as_virtual} alone; write arch={code.as_virtual}, or leave -gencode out"
            )
    return [str(code) for code in codes]


def rules_of(options: Mapping[str, Any], extra: Sequence[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return a case's options by backends; options for all backends have an empty key.

    Parameters
    ----------
    options : Mapping
        Options that click has parsed.
    extra : sequence of str
        Values of ``--option``: ``-lineinfo``, or ``nvcc:-O3`` for one backend.
    """
    common: dict[str, Any] = {"flags": []}
    if options["std"]:
        common["std"] = options["std"].removeprefix("-std=").removeprefix("--std=")
    if options["habit_dc"] or options["habit_rdc"] == "true":
        common["rdc"] = True
    if options["device_only"]:
        common["depth"] = "device"
    if options["toolkit_first"]:
        common["toolkit_first"] = True
    rules: dict[tuple[str, ...], dict[str, Any]] = {(): common}
    given: Iterable[tuple[tuple[str, ...], list[str]]] = [
        *((NVCC if habit.host else (), habit.flags(options[habit.key])) for habit in HABITS),
        *(_one_backend(text) for text in extra),
    ]
    for backends, flags in given:
        if flags:
            rules.setdefault(backends, {"flags": []})["flags"] += flags
    return rules


def _one_backend(text: str) -> tuple[tuple[str, ...], list[str]]:
    found = re.fullmatch(r"([A-Za-z][\w-]*):(-.*)", text, re.DOTALL)
    if not found:
        return (), [text]
    if found[1] not in BACKENDS:
        raise UsageError(f"--option {text!r}: unknown backend {found[1]!r}{did_you_mean(found[1], BACKENDS)}")
    return (found[1],), [found[2]]


def spell(rules: Mapping[tuple[str, ...], Mapping[str, Any]]) -> list[str]:
    """Return options as words of `try` in a canonical spelling, which identifies a program."""
    words = []
    for backends, values in rules.items():
        words += [f"-std={values['std']}"] if "std" in values else []
        words += ["-rdc=true"] if values.get("rdc") else []
        words += ["--device-only"] if values.get("depth") == "device" else []
        words += ["--toolkit-first"] if values.get("toolkit_first") else []
        flags = values["flags"]
        known = [backends == NVCC or (not backends and _says(flag)) for flag in flags]
        if all(known):
            # Only the order of an option's own values matters to a compiler. An unknown word may be a value itself.
            words += sorted(flags, key=lambda flag: flag.partition("=")[0])
        else:
            prefix = "".join(f"{name}:" for name in backends)
            words += [flag if plain else f"--option={prefix}{flag}" for flag, plain in zip(flags, known, strict=True)]
    return words


def _says(flag: str) -> bool:
    return any(habit.says(flag) for habit in HABITS if not habit.host)


_SHOWN = 4
_PROGRAM_MARK = re.compile(r"@[0-9a-f]{6}(?=[\[ :]|$)")  # of a program outside the folder
_OF_PROJECT = re.compile(r"^([^\s\[@]+)@[^\s\[]+")


def cells_in(results: Sequence[Path], where: str | None = None) -> dict[str, Record]:
    """Return the merged records of several runs by cell id; problems of the files go to stderr.

    Parameters
    ----------
    results : sequence of Path
        Files of records, including ``results.parquet``, or folders of records; by default `RESULTS`.
    where : str, optional
        Condition that selects records.
    """
    from harness.records import merge, read_records  # help and completion do not need this import
    from harness.records.record_names import choose

    if any(path.suffix == ".parquet" for path in results):
        # Only the report extra installs pyarrow.
        from harness.report.inputs import read_results

        read = read_results(results)
    else:
        read = read_records(results or [RESULTS])
    for warning in read.incomplete:
        say(f"cumatrix: {warning}", err=True)
    merged = merge(read.records, read.plans)
    if where:
        merged = choose(replace(merged, missing=()), where)
    return {record["cell"]: record for record in merged.records}


class NoSuchCell(UsageError):
    """No cell matches."""


def one_cell(what: str, ids: Sequence[str], *, who: str = "no cell") -> str:
    """Find an id by `what`: the id, a part of it, a pattern (``*`` matches anything), or all of its words.

    Parameters
    ----------
    what : str
        Text of the user; the empty text is a part of every id.
    ids : sequence of str
        Ids of known cells.
    who : str
        Start of the message if no cell matches.

    Raises
    ------
    NoSuchCell
        If no cell matches.
    UsageError
        If several cells match.
    """
    # A run names its cells without the project; ids from several runs contain it.
    plain = {each: _OF_PROJECT.sub(r"\1", each) for each in ids}
    found = (
        [each for each in ids if what in (each, plain[each])]
        or [each for each in ids if what in each or what in plain[each]]
        or [each for each in ids if "*" in what and any(map(_like(what).search, (each, plain[each])))]
        or [each for each in ids if all(word in each for word in what.split())]
        or [each for each in ids if _PROGRAM_MARK.sub("", what, count=1) in plain[each]]
    )
    if len(found) == 1:
        return found[0]
    if not found:
        like = f"; ids look like {ids[0]}" if ids else ""
        raise NoSuchCell(f"{who} of {len(ids)} has {what!r} in its id{like}")
    several = f"{len(found)} cells have {what!r} in their ids" if what else f"there are {len(found)} such cells"
    shown = "; ".join([*found[:_SHOWN], *(["…"] if len(found) > _SHOWN else [])])
    raise UsageError(f"{several}, say more, as with --where: {shown}")


def _like(pattern: str) -> re.Pattern[str]:
    # Brackets belong to variants, not to the pattern. Each star matches as little as possible.
    parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    return re.compile(".*?".join(parts), re.DOTALL)
