"""``cumatrix doctor`` and ``cumatrix cache``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from harness.backends import BACKENDS
from harness.cli.command import Command, CommandGroup
from harness.cli.options import Size
from harness.cli.terminal import console_for, printable, say, say_json
from harness.diagnostics import one_line
from harness.engine.cache import ResultCache
from harness.engine.environment import look
from harness.engine.fork_server import parent
from harness.engine.machine import find_devices
from harness.engine.plan import library_of, newest_for
from harness.engine.toolchain import PreparedToolchain
from harness.environments.store import EnvironmentStore
from harness.errors import NothingToRun, PartUnavailable, install_command
from harness.model import Toolchain
from harness.model.cell import named_toolkit
from harness.plugins import GROUPS, plugged
from harness.plugins import problems as plugin_problems
from harness.protocol.text import counted
from harness.toolkits import LIBRARIES, Installed, LibraryStore, ToolkitStore, parse_toolkits
from harness.toolkits.releases import parts_among
from harness.toolkits.store import borrowed, data_folder, not_pinned, problems
from harness.worker.sandbox import sandbox_restrictions


@click.command(cls=Command)
@click.option(
    "-t",
    "--toolkit",
    "toolkits",
    envvar="CUMATRIX_TOOLKIT",
    metavar="V,…",
    help="CUDA releases to try. Default: the newest installed one that each backend can use.",
)
@click.option(
    "--python",
    envvar="CUMATRIX_PYTHON",
    metavar="PATH",
    help="Interpreter of the environment. Default: this one.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Compare every file of installed toolkits and header libraries with its wheel, and nothing else.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also show versions, isolation, memory limits and plugins.")
def doctor(toolkits: str | None, python: str | None, verify: bool, verbose: bool) -> int:
    """Show which backends work here, and why others do not.

    doctor loads each backend in a separate process.

    \b
    cumatrix doctor
    cumatrix doctor -t 12.4,13.0 --python ../venv/bin/python
    cumatrix doctor --verify
    """
    if verify:
        return _verify(toolkits)
    environment = look(python)
    store = ToolkitStore()
    for each in (store, LibraryStore(), EnvironmentStore()):
        each.sweep()
    usable, console = 0, console_for(sys.stderr)
    refs = parse_toolkits(toolkits) if toolkits else ()
    for info in BACKENDS.values():
        own = refs or parse_toolkits(newest_for(info, environment, store, offline=True)[0])
        for ref in (each for each in own if each.rocm == info.rocm):
            toolchain = Toolchain(backend=info.name, library=library_of(info, environment, ref), toolkit=ref)
            prepared = PreparedToolchain.of(toolchain, environment, store, data_folder() / "tools")
            with (
                nullcontext()
                if prepared.problem
                else _telling(console, f"{info.name} with {named_toolkit(str(ref))}", info.startup)
            ):
                works, why = _try(prepared)
            usable += works
            shown = why if verbose or not works else ""
            say(
                f"{printable('✓', '+') if works else printable('✗', '-')} {info.name:11} {named_toolkit(str(ref))}{': ' if shown else ''}{one_line(shown)}"
            )
    say("")
    say(f"python      {environment.version} ({environment.python})")
    libraries = [
        f"{name} {environment.build_of(name)}" for name, found in environment.distributions.items() if found.root
    ]
    say(f"libraries   {', '.join(libraries) or 'none'}")
    say(f"toolkits    {', '.join(map(_described, store.installed())) or 'none'} in {store.root}")
    for line in _devices():
        say(f"GPU         {line}")
    if verbose:
        for line in _machine():
            say(line)
        for group in GROUPS:
            if names := ", ".join(plugged(group)):
                say(one_line(f"plugins     {group}: {names}"))
    else:
        say("`cumatrix doctor -v` shows versions, isolation and limits", err=True)
    for problem in plugin_problems():
        say(one_line(problem))
    return 0 if usable else 4


def _verify(toolkits: str | None) -> int:
    """Compare installed files with their wheels: all of them, or those of the named toolkits."""
    store, libraries, wrong = ToolkitStore(), LibraryStore(), False
    store.sweep()
    libraries.sweep()
    found = store.folders()
    if toolkits:
        there = {each.release: each for each in found}
        names = [ref.release for ref in parse_toolkits(toolkits) if not ref.local]
        if missing := [name for name in names if name not in there]:
            raise PartUnavailable(f"CUDA {missing[0]} is not installed: run `cumatrix toolkits install {missing[0]}`")
        found = [there[name] for name in names]
    else:
        found += libraries.folders()
    if not found:
        raise NothingToRun(
            "nothing is installed that could be verified; `cumatrix toolkits install` installs CUDA releases"
        )
    console = console_for(sys.stderr)
    for installed in found:
        with console.status(f"reading {installed.what}"):
            differing, unknown = problems(installed), not_pinned(installed)
        for problem in differing:
            say(one_line(f"{installed.what}: {problem}"))
        if differing:
            wrong = True
            again = installed.spelled if installed.library in ("", *LIBRARIES) else "--cases"
            say(f"{installed.what}: run `cumatrix toolkits install --force {again}`")
        else:
            note = f"; cumatrix does not know {', '.join(unknown)}, which came as the index had it" if unknown else ""
            say(one_line(f"{installed.what}: as its wheels have it{note}"))
    return 4 if wrong else 0


@contextmanager
def _telling(console: Console, what: str, why: str) -> Iterator[None]:
    """Print the toolchain under test on stderr, and the reason if it may take long."""
    text = f"trying {what}{f' ({why})' if why else ''}"
    if not console.is_terminal:
        console.print(text, soft_wrap=True, markup=False)
        yield
        return
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(text, total=None)
        yield


def _described(toolkit: Installed) -> str:
    """Return a toolkit with its further parts: ``12.0 (CCCL of 12.4; with nvtx)``."""
    others = dict.fromkeys(borrowed(toolkit.home).values())
    parts = parts_among(toolkit.packages, toolkit.release)
    words = [*(f"CCCL of {other}" for other in others), *([f"with {', '.join(parts)}"] if parts else [])]
    return f"{toolkit.release} ({'; '.join(words)})" if words else toolkit.release


def _try(prepared: PreparedToolchain) -> tuple[bool, str]:
    if prepared.problem:
        return False, prepared.problem.reason
    fork_server = prepared.fork_server()
    try:
        ready = fork_server.ready
        if ready.status:
            return False, ready.reason
        versions = [f"{name} {version}" for name, version in ready.observed.items() if isinstance(version, str)]
        return True, ", ".join(versions)
    finally:
        fork_server.close()


def _machine() -> Iterator[str]:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang", "g++", "c++"))), None)
    yield f"C compiler  {compiler or 'none: cupy-jitify, CuPy up to 12 and numba-cuda need one'}"
    missing = [name for name in ("pandas", "pyarrow", "jinja2") if not find_spec(name)]
    yield f"report      {'can be built' if not missing else 'needs ' + ', '.join(missing) + ': ' + install_command('report')}"
    kept, open_ = sandbox_restrictions()
    yield f"isolation   cells are kept from {', '.join(kept) or 'nothing but their own limits'}"
    if open_:
        yield f"            not from {', '.join(open_)}: Linux 6.12 with Landlock and seccomp does (see SECURITY.md)"
    group = parent()
    where = (
        f"the control group (version {group.version}) of a worker, below {group.path}"
        if group.path
        else "limits of each process"
    )
    yield f"memory      --memory is kept by {where}"
    if group.problem:
        yield f"            not for all processes of a cell together: {one_line(group.problem, 300)}"
    system = [name for name in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH") if os.environ.get(name)]
    folders = [str(path) for path in sorted(Path("/usr/local").glob("cuda*"))]
    if system or folders:
        yield f"note        a CUDA of this machine ({', '.join(system + folders)}) is kept out of every worker"


def _devices() -> Iterator[str]:
    found = find_devices()
    for device in found.items:
        facts = device.facts
        yield one_line(
            f"{device.name}, compute capability {device.capability}, driver {facts['driver'] or 'unknown'}, CUDA {facts['cuda']}"
        )
    if not found.items:
        yield f"none ({one_line(found.problem or 'the driver sees none')}): load, launch and verify are not run"


@click.group(cls=CommandGroup)
def cache() -> None:
    """Show or clear the outcomes of earlier runs.

    The outcomes are stored in the user's cache folder, or in CUMATRIX_CACHE. Any number of runs may use it at the same
    time. When it is full, the least recently used outcomes are deleted first.
    """


@cache.command("info")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(as_json: bool) -> int:
    """Show the folder, the number of entries, the size and the size limit."""
    store = ResultCache()
    folder, entries, used, limit = store.folder, store.entries, store.size, store.limit
    store.close()
    if as_json:
        say_json({"folder": str(folder), "entries": entries, "bytes": used, "limit_bytes": limit})
        return 0
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_row("folder", Text(str(folder)))
    table.add_row("entries", f"{entries}")
    table.add_row("size", f"{used / 2**20:.1f} MiB of {limit / 2**20:.0f} MiB")
    console_for(sys.stdout).print(table)
    return 0


@cache.command("prune")
@click.option(
    "--to",
    "most",
    type=Size(),
    default="0",
    show_default=True,
    metavar="SIZE",
    help="Keep the most recently used outcomes up to this size: 500M.",
)
def prune(most: int) -> int:
    """Delete outcomes: all of them, or the least recently used.

    Running processes continue, and compile deleted outcomes again.
    """
    store = ResultCache()
    before = store.size
    gone = store.prune(most)
    after, folder = store.size, Path(store.folder)
    store.close()
    say(
        f"{counted(gone, 'outcome')} forgotten, {(before - after) / 2**20:.1f} MiB; {after / 2**20:.1f} MiB are left in {folder}"
    )
    return 0
