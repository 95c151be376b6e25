"""``cumatrix doctor``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from harness.backends import BACKENDS
from harness.cli.command import Command
from harness.diagnostics import one_line
from harness.engine.bench import Bench
from harness.engine.devices import find_devices
from harness.engine.environment import look
from harness.engine.session import default_toolkit
from harness.model import Toolchain
from harness.toolkits import ToolkitStore, parse_toolkits
from harness.toolkits.store import data_folder


@click.command(cls=Command)
@click.option(
    "-t",
    "--toolkit",
    "toolkits",
    envvar="CUMATRIX_TOOLKIT",
    metavar="V,…",
    help="CUDA releases to try. Default: the one that fits.",
)
@click.option(
    "--python",
    envvar="CUMATRIX_PYTHON",
    metavar="PATH",
    help="Interpreter of the environment to look at. Default: this one.",
)
def doctor(toolkits: str | None, python: str | None) -> int:
    """Say what can be used here, what can't, and why.

    Every backend is loaded for real, in a process of its own, with each toolkit.
    """
    environment = look(python)
    store = ToolkitStore()
    click.echo(f"python      {environment.version} ({environment.python})")
    libraries = [f"{name} {entry['version']}" for name, entry in environment.distributions.items() if entry["root"]]
    click.echo(f"libraries   {', '.join(libraries) or 'none: only nvrtc can be used'}")
    click.echo(f"toolkits    {', '.join(toolkit.release for toolkit in store.installed()) or 'none'} in {store.root}")
    for line in _machine():
        click.echo(line)
    usable = 0
    for ref in parse_toolkits(toolkits or default_toolkit(environment)):
        for info in BACKENDS.values():
            found = environment.version_of(*info.distributions)
            toolchain = Toolchain(backend=info.name, library=found[1] if found else "", toolkit=ref)
            word, why = _try(Bench.of(toolchain, environment, store, data_folder() / "tools"))
            usable += word == "usable"
            click.echo(f"{info.name:11} cuda {ref}: {word}{': ' if why else ''}{one_line(why)}")
    return 0 if usable else 4


def _try(bench: Bench) -> tuple[str, str]:
    if bench.problem:
        return bench.problem.status.value, bench.problem.reason
    zygote = bench.zygote()
    try:
        if not zygote.ready:
            return zygote.hello["status"], zygote.hello["reason"]
        observed = zygote.hello["observed"]
        return "usable", ", ".join(
            f"{name} {version}" for name, version in observed.items() if isinstance(version, str)
        )
    finally:
        zygote.close()


def _machine() -> Iterator[str]:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang", "g++", "c++"))), None)
    yield f"C compiler  {compiler or 'none: cupy-jitify, CuPy up to 12 and numba-cuda need one'}"
    missing = [name for name in ("pandas", "pyarrow", "jinja2") if not find_spec(name)]
    yield f"report      {'can be built' if not missing else 'needs ' + ', '.join(missing) + ': pip install cumatrix[report]'}"
    for line in _devices():
        yield f"GPU         {line}"
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
