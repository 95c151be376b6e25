"""``cumatrix config``, ``init`` and ``trust``: the project's configuration."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from harness.cases.toml import read_toml_text
from harness.cli.command import Command
from harness.cli.terminal import console_for, say, say_json
from harness.diagnostics import one_line
from harness.errors import NothingToRun, PartUnavailable, UsageError
from harness.model import Case
from harness.project.commands import units_of
from harness.project.config import TABLE, Config, config_schema, read_config
from harness.project.current import here
from harness.project.detect import Found, look, of_database
from harness.project.discovery import OWN, PYPROJECT, found
from harness.project.init import TOOLKIT, proposal
from harness.project.keys import SETTINGS
from harness.project.programs import configured
from harness.project.trust import entries, is_trusted, line_of, needs_trust, revoke, shown
from harness.project.trust import trust as allow
from harness.protocol.text import counted
from harness.records.files import replace_files


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a setting and a program.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of cumatrix.toml, for editors.")
def config(*, as_json: bool, schema: bool) -> int:
    """Show the settings of this project and their sources.

    [tool.cumatrix] in pyproject.toml, or cumatrix.toml, in this folder or a parent gives the defaults. An environment variable overrides
    the file, and an option overrides both. docs/configuration.md lists every key.

    \b
    cumatrix init                        write the file for this project
    cumatrix config                      show settings and programs
    cumatrix config --schema > cumatrix.schema.json
    """
    from rich.table import Table  # this import takes a tenth of a second, which `init` and `trust` do not need
    from rich.text import Text

    if schema:
        say_json(config_schema())
        return 0
    project = here()
    programs = configured(project)
    settings = [_setting(project, name) for name in SETTINGS]
    if as_json:
        for each in settings:
            say_json(each)
        for case in programs:
            say_json({"program": case.name, "files": [str(path) for path in (*case.sources.values(), *case.together)]})
        return 0
    console = console_for(sys.stdout)
    say(f"configuration: {project.shown or 'none: `cumatrix init` writes one'}")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("key", "value", "from"):
        table.add_column(heading, overflow="fold")
    for each in settings:
        table.add_row(each["key"], Text(one_line(each["value"])), Text(each["from"]))
    console.print(table)
    if named := needs_trust(project):
        trusted = "trusted" if is_trusted(project, named) else "not trusted: `cumatrix trust` allows it"
        for value in named:
            say(f"line {value.line}: {line_of(value)} ({trusted})")
    for case in programs:
        console.print(Text(one_line(_program(case), 500)), soft_wrap=True)
    return 0


def _setting(project: Config, name: str) -> dict[str, Any]:
    setting = SETTINGS[name]
    if setting.variable and os.environ.get(setting.variable):
        return {"key": name, "value": os.environ[setting.variable], "from": setting.variable}
    if name in project.values:
        value = project.values[name]
        text = (
            ", ".join(value)
            if isinstance(value, list)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
        )
        return {"key": name, "value": text, "from": f"{project.shown}:{project.lines[name]}"}
    return {"key": name, "value": setting.default, "from": "default"}


def _program(case: Case) -> str:
    (language,) = case.sources
    parts = [
        f"program {case.name}: {'PyTorch' if language == 'torch' else 'CUDA C++' if language == 'cuda' else 'Python'}"
    ]
    if case.together:
        parts.append(f"{len(case.together) + 1} files")
    if len(case.variants) > 1:
        parts.append(f"{len(case.variants)} variants")
    rules = len(case.expectations) + len(case.unsupported)
    return ", ".join([*parts, *([f"{rules} expectations"] if rules else [])])


@click.command(cls=Command)
@click.argument("place", required=False, type=click.Path(path_type=Path, exists=True), metavar="[DIR|FILE]")
@click.option("--list", "listed", is_flag=True, help="List trusted configurations, and allow nothing.")
@click.option("--revoke", "revoked", is_flag=True, help="Revoke the trust in this folder's configuration.")
def trust(*, place: Path | None, listed: bool, revoked: bool) -> int:
    """Allow a folder's configuration to name programs.

    A configuration (cumatrix.toml, or [tool.cumatrix] in pyproject.toml) may name programs that cumatrix then runs with
    your rights: an interpreter (python), a compiler (host-compiler, toolkit), a build (with), compiler options that
    start programs (flags). In a freshly cloned folder, run, try and pytest therefore stop before they run any of these.
    Look at the file, then allow it once. If these values change, or the folder moves, the commands stop again. A
    configuration without such values needs no trust, and neither do your own command lines and environment variables.

    \b
    cumatrix trust                       allow the configuration of this folder
    cumatrix trust ../project            the same for another folder, or for a file
    cumatrix trust --list                list trusted configurations
    cumatrix trust --revoke              revoke the trust
    CUMATRIX_TRUST=1 cumatrix run        in CI, where only reviewed code runs; or folders, as in PATH
    cumatrix run --trust                 this time only
    """
    if listed and revoked:
        raise UsageError("--list and --revoke exclude each other")
    if listed:
        for entry in entries():
            say(shown(entry.file))
            for line in entry.named:
                say(f"  {shown(line)}")
        return 0
    file = _file(place or Path.cwd(), gone=revoked)
    if revoked:
        count = revoke(file)
        say(f"{shown(os.path.relpath(file))}: {'no longer trusted' if count else 'was not trusted'}")
        return 0
    config = read_config(file)
    named = allow(config)
    say(f"{shown(config.shown)}: {'trusted' if named else 'names nothing that needs trust'}")
    for each in named:
        say(f"  {line_of(each)}")
    return 0


def _file(place: Path, *, gone: bool) -> Path:
    """Return the configuration in a folder or file; a deleted one can still be revoked."""
    if place.is_file():
        return place.absolute()
    file = found(place.absolute())
    if file is None:
        if gone and (known := [e.file for e in entries() if Path(e.file).parent == place.resolve()]):
            return Path(known[0])
        raise UsageError(f"{place} has no configuration: neither {OWN}, nor {PYPROJECT} with [tool.cumatrix]")
    return file


def _toolkit_for_build(text: str, parts: Sequence[str]) -> Path:
    """Return the CUDA_HOME of a toolkit, installed if missing, with those requested parts of CUDA that wheels contain."""
    from harness.nvidia.nvcc import missing_from
    from harness.toolkits import RELEASES, parse_toolkits
    from harness.toolkits.releases import PARTS, parts_among
    from harness.toolkits.store import ToolkitStore

    refs = parse_toolkits(text)
    if len(refs) != 1 or refs[0].headers != refs[0].release:
        raise UsageError(f"--record takes one toolkit: -t {refs[-1].release}")
    (ref,) = refs
    if ref.home:
        return Path(ref.home)
    if why := missing_from(ref.release):
        raise PartUnavailable(f"-t {text}: {why}")
    store = ToolkitStore(tell=lambda sentence: say(sentence, err=True))
    wanted = [part for part in parts if ref.release in PARTS[part].wheels]
    there = store.find(ref.release)
    if there and set(wanted) <= set(parts_among(there.packages, ref.release)):
        return there.home
    return store.install(RELEASES[ref.release], wanted).home


def _packages_for_build(text: str) -> Path:
    """Return the folder of packages of an environment with a release of a library."""
    from harness.engine.environments import line_up  # imports the whole engine
    from harness.environments.store import EnvironmentStore

    found = line_up([text], None)
    if len(found) != 1 or found[0].resolved is None:
        raise UsageError(
            f"--with {text} names {len(found)} environments: the build takes one release, as in torch=2.9.1"
        )
    if why := next(iter(found[0].broken.values()), ""):
        raise PartUnavailable(why)
    made = EnvironmentStore().make(found[0].resolved)
    (site,) = Path(made.python).parent.parent.glob("lib/python3.*/site-packages")
    return site


def _recorded(
    root: Path, command: tuple[str, ...], toolkit: str, libraries: str | None, *, yes: bool
) -> tuple[Found, int]:
    """Run the build, and return the program table of its units."""
    from harness.project.recording import DATABASE, WITHOUT_GPU, record_build, write_database

    line = shlex.join(command)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"--record runs the project's code (`{line}`): confirm it with --yes")
        click.confirm(
            f"run `{line}` with a recording nvcc? It is the project's code and has your rights", abort=True, err=True
        )
    from harness.toolkits.releases import PARTS_OF_TORCH

    home = _toolkit_for_build(toolkit, PARTS_OF_TORCH if libraries else ())
    packages = _packages_for_build(libraries) if libraries else None
    recorded = record_build(command, root, home, packages)
    if not recorded.entries:
        why = (
            f"ended with {recorded.code} before it compiled any CUDA C++"
            if recorded.code
            else "compiled no CUDA C++ with the nvcc of PATH and CUDA_HOME: clean the build, or configure it in a new folder"
        )
        raise NothingToRun(f"`{line}` {why}")
    before = len(units_of(root / DATABASE)) if (root / DATABASE).is_file() else 0
    write_database(recorded, root)
    found = of_database(root, DATABASE)
    found.left_out += [f"{path}: it is not there after the build" for path in recorded.lost]
    if libraries and "TORCH_CUDA_ARCH_LIST" not in os.environ:
        say(f"TORCH_CUDA_ARCH_LIST is not set: the build made code for {WITHOUT_GPU['TORCH_CUDA_ARCH_LIST']}", err=True)
    say(f"{DATABASE}: {counted(len(recorded.entries), 'unit')} of `{line}`", err=True)
    if len(recorded.entries) < before:
        say(f"the recording before had {counted(before, 'unit')}: was this build up to date in part?", err=True)
    say("the objects of this build are empty: clean it before you build for use", err=True)
    if recorded.code:
        say(f"`{line}` ended with {recorded.code}: units that follow are missing", err=True)
    return found, recorded.code


def _count_kernels(root: Path, toolkit: str, targets: Sequence[str]) -> None:
    """Compile the recorded units for the build's first real architecture, and store their numbers of kernels."""
    from harness.project.recording import DATABASE, FOLDER, KERNELS, write_kernels
    from harness.records.store import read_records

    target = next((target for target in targets if target.startswith("sm_")), "")
    if not target:
        say("the build names no architecture (sm_80): the number of kernels is not recorded", err=True)
        return
    out = root / FOLDER / "kernels.jsonl"
    own = [sys.executable, "-P", "-m", "cumatrix", "run", "-b", "nvcc", "-t", toolkit, "-a", target]
    say(f"counting kernels: {target}, CUDA {toolkit} (Ctrl-C ends it; --no-kernels leaves it out)", err=True)
    process = subprocess.Popen([*own, "--trust", "--fresh", "--out", str(out)], cwd=root, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        with suppress(KeyboardInterrupt):  # the run ends by itself, and keeps its records
            process.wait()
    records = list(read_records([out]).records) if out.is_file() else []
    counts = write_kernels(records, root)
    say(
        f"{Path(DATABASE).with_name(KERNELS)}: {counted(sum(counts.values()), 'kernel')} in {counted(len(counts), 'unit')}",
        err=True,
    )
    for name in [record["case"] for record in records if record["status"] != "built"]:
        say(f"{shown(name)} does not build for {target}: its kernels are not counted", err=True)


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Show the configuration, and write nothing.")
@click.option("--own", is_flag=True, help=f"Write {OWN}. Default: into {PYPROJECT} if it exists, else {OWN}.")
@click.option("--record", is_flag=True, help="Run COMMAND, the project's build, and configure what it compiles.")
@click.option("--yes", is_flag=True, help="Do not ask before COMMAND runs.")
@click.option(
    "-t", "--toolkit", "toolkit", default=TOOLKIT, show_default=True, metavar="V",
    help="The CUDA release of the recorded build: 13.0, local, or a path.",
)  # fmt: skip
@click.option("--with", "libraries", metavar="torch=V", help="A release of PyTorch for the recorded build.")
@click.option(
    "--kernels/--no-kernels", "kernels", default=True,
    help="Compile the recorded units once, and require as many kernels as each has. Default: yes.",
)  # fmt: skip
@click.argument("command", nargs=-1, metavar="[-- COMMAND…]")
def init(
    *,
    dry_run: bool,
    own: bool,
    record: bool,
    yes: bool,
    toolkit: str,
    libraries: str | None,
    kernels: bool,
    command: tuple[str, ...],
) -> int:
    """Write a configuration for this project.

    init reads setup.py (CUDAExtension), compile_commands.json, other CUDA C++ files (.cu) with their include
    directories, and Python files with Numba kernels. It runs and copies nothing. It lists what it leaves out, with
    file, line and reason. It does not overwrite a configuration.

    --record runs the project's own build with a recording compiler in place of nvcc, which records each compilation of
    CUDA C++ and writes an empty object. The commands are stored in .cumatrix/compile_commands.json, and run compiles
    them with other versions. If a configuration already names them, --record only updates the recording. COMMAND runs
    the project's code with your rights.

    \b
    cumatrix init --dry-run
    cumatrix init && cumatrix run
    cumatrix init --record --yes -- pip install --no-build-isolation .
    cumatrix init --record -- sh -c 'cmake -B fresh && cmake --build fresh'
    """
    root = Path.cwd()
    there = found(root)
    again = bool(record and there and there.parent == root and _names_recording(there))
    if there and not again:
        raise UsageError(
            f"{os.path.relpath(there)} configures cumatrix already: `cumatrix config` shows what it says; --dry-run shows nothing new"
        )
    if bool(command) != record:
        raise UsageError("--record takes the command of the build: `cumatrix init --record -- make`")
    found_build, code = _recorded(root, command, toolkit, libraries, yes=yes) if record else (look(root), 0)
    for text in found_build.left_out:
        say(f"left out: {one_line(text, 500)}", err=True)
    if found_build.record:
        say(f"to compile with the options of the build, record it: {found_build.record}", err=True)
    if not found_build.programs:
        raise NothingToRun(
            "found no setup.py with a CUDAExtension, no compile_commands.json, no CUDA C++ (.cu) and no Python with typed Numba kernels here: "
            "name files in cumatrix.toml, or try one with `cumatrix try FILE`"
        )
    if again:
        if kernels and not dry_run:
            _count_kernels(root, toolkit, found_build.architectures)
        return 1 if code else 0
    shared = (root / PYPROJECT).is_file() and not own
    path = root / (PYPROJECT if shared else OWN)
    block = proposal(found_build, TABLE if shared else ())
    for line in block.rstrip().splitlines():
        say(line)
    if dry_run:
        return 1 if code else 0
    before = read_toml_text(path, path.name) if shared else ""
    text = f"{before.rstrip()}\n\n{block}" if before.strip() else block
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path.name} cannot take a table [tool.cumatrix] at its end ({error}): --own writes {OWN}"
        ) from None
    replace_files({path: text.encode()})
    programs = configured(read_config(path))
    say(
        f"{path.name}: {counted(len(programs), 'program')}; `cumatrix config` shows them, `cumatrix run` compiles them",
        err=True,
    )
    if record and kernels:
        _count_kernels(root, toolkit, found_build.architectures)
    return 1 if code else 0


def _names_recording(path: Path) -> bool:
    from harness.project.recording import DATABASE

    return any(table.get("commands") == DATABASE for table in read_config(path).tables)
