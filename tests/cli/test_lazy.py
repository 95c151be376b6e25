"""Commands that are imported on first use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.cli import complete
from harness.cli.main import COMMANDS, cumatrix
from harness.environments.releases import NAMES
from harness.toolkits import LIBRARIES, RELEASES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_it_is_said_to_be(name: str) -> None:
    command = cumatrix.get_command(click.Context(cumatrix), name)
    assert isinstance(command, click.Command)
    assert command.name == name


def test_help_says_what_the_commands_say_of_themselves() -> None:
    shown = CliRunner().invoke(cumatrix, ["--help"], prog_name="cumatrix").output
    context = click.Context(cumatrix)
    for name in COMMANDS:
        command = cumatrix.get_command(context, name)
        assert command is not None
        first = command.get_short_help_str(60).removesuffix("...")
        assert f"  {name} " in shown
        assert first in " ".join(shown.split()), name


def _loaded(*arguments: str, **variables: str) -> set[str]:
    """Return the modules that a command loads."""
    code = "import sys; from click.testing import CliRunner; from harness.cli.main import cumatrix; "
    code += "done = CliRunner().invoke(cumatrix, sys.argv[1:], prog_name='cumatrix'); assert done.exit_code == 0, done; print(*sys.modules)"
    argv = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=True, timeout=60, env={**os.environ, **variables}, cwd=ROOT
    )
    return set(done.stdout.split())


def test_help_imports_no_command() -> None:
    loaded = _loaded("--help")
    assert not {module.partition(":")[0] for module in COMMANDS.values()} & loaded
    assert not {"pandas", "harness.engine", "harness.cases"} & loaded


@pytest.mark.parametrize("command", ["run", "try", "ask"])
def test_help_of_a_command_imports_nothing_that_compiles_or_answers(command: str) -> None:
    assert not {"rich", "harness.engine", "harness.cases", "harness.model", "harness.answers"} & _loaded(
        command, "--help"
    )


def test_every_command_tells_of_itself_without_the_extras() -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['distributed', 'jinja2', 'matplotlib', 'numpy', 'pandas', 'pyarrow']))\n"
        "import click\n"
        "from click.testing import CliRunner\n"
        "from harness.cli.main import cumatrix\n"
        "def ask(group, words):\n"
        "    for name in group.list_commands(click.Context(group)):\n"
        "        done = CliRunner().invoke(cumatrix, [*words, name, '--help'], prog_name='cumatrix')\n"
        "        assert done.exit_code == 0, (words, name, done.exception)\n"
        "        print(*words, name)\n"
        "        inner = group.get_command(click.Context(group), name)\n"
        "        isinstance(inner, click.Group) and ask(inner, [*words, name])\n"
        "ask(cumatrix, [])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert {*COMMANDS, "cases list", "bless"} <= {*done.stdout.splitlines()}


def test_a_command_that_is_none() -> None:
    done = CliRunner().invoke(cumatrix, ["runn"], prog_name="cumatrix")
    assert done.exit_code == 2
    assert "No such command 'runn'" in done.output


def test_what_a_shell_offers_is_what_the_tables_have() -> None:
    assert [*complete._toolkits()] == [*RELEASES, "all", "local"]
    assert [*complete._header_libraries()] == [f"{name}=" for name in LIBRARIES]
    assert [*complete._libraries()] == [f"{name}=" for name in NAMES]


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_compiled_modules_are_kept_where_none_may_lie_next_to_sources(tmp_path: Path, mode: int) -> None:
    installed, kept = tmp_path / "installed", tmp_path / "cumatrix" / "bytecode"
    for name in ("harness", "cumatrix"):
        shutil.copytree(ROOT / name, installed / name, ignore=shutil.ignore_patterns("__pycache__"))
    kept.mkdir(parents=True)
    kept.chmod(mode)
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(tmp_path)}
    argv = [sys.executable, "-P", "-m", "cumatrix", "--version"]
    subprocess.run(argv, env=env, cwd=tmp_path, check=True, timeout=800, stdout=subprocess.DEVNULL)
    assert not list(installed.rglob("*.pyc"))
    # The command executes no file that others can write.
    assert any(path.name.startswith("main.") for path in kept.rglob("*.pyc")) == (mode == 0o700)


def test_a_compiled_module_that_a_full_disk_cut_off_is_removed(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    for name in ("harness", "cumatrix"):
        shutil.copytree(ROOT / name, installed / name, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(tmp_path)}

    def listed() -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-P", "-m", "cumatrix", "cases", "list", "--cases", str(ROOT / "cases")]
        return subprocess.run(argv, env=env, cwd=tmp_path, timeout=800, capture_output=True, text=True)

    before = listed()
    (module,) = (tmp_path / "cumatrix" / "bytecode").rglob("cases/library.*.pyc")
    module.write_bytes(module.read_bytes()[:1500])
    damaged = listed()
    assert (damaged.returncode, damaged.stdout) == (1, "")
    assert "cumatrix: removed damaged compiled modules from " in damaged.stderr
    assert (listed().stdout, before.returncode) == (before.stdout, 0)
