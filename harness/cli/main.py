"""Top-level command, which turns errors into a sentence and an exit code."""

from __future__ import annotations

import ast
import contextlib
import errno
import gc
import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import __version__
from harness.cli.terminal import flush_streams, open_streams, say
from harness.errors import CumatrixError
from harness.protocol.text import clean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


COMMAND_GROUPS = {
    "Compile": ("try", "run", "bisect", "repro"),
    "Read binaries": ("wheel", "arch"),
    "Read results": ("ask", "explain", "report", "diff", "history", "merge", "publish", "annotate"),
    "Write cases": ("init", "cases", "bless"),
    "Set up": ("doctor", "toolkits", "libraries", "config", "trust", "cache", "help"),
}
"""Commands in the groups of the help."""


class LazyGroup(click.Group):
    """A group whose commands are imported on demand.

    Parameters
    ----------
    commands_in : Mapping of str to str
        Location of each command by name: ``package.module:function``.
    """

    def __init__(self, *args: Any, commands_in: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self.commands_in = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in alphabetical order."""
        return sorted(self.commands_in)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if the name is unknown."""
        if cmd_name not in self.commands_in:
            return None
        module, _, name = self.commands_in[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names with their help, and the group's own options, without importing a command."""
        from click.shell_completion import CompletionItem

        return [
            *(
                CompletionItem(
                    name, help=_Documented(name, help=_docstring(self.commands_in[name])).get_short_help_str()
                )
                for name in self.list_commands(ctx)
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, with the first sentence of their help, without importing them."""
        longest = max(map(len, self.commands_in))
        for title, names in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(longest), self._summary(name, formatter.width - 6 - longest)) for name in names]
                )

    def _summary(self, name: str, width: int) -> str:
        return _Documented(name, help=_docstring(self.commands_in[name])).get_short_help_str(width)


class _Documented(click.Command):
    """A command that only provides help."""


def _docstring(where: str) -> str:
    module, _, name = where.partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    return next(ast.get_docstring(node) or "" for node in tree.body if getattr(node, "name", None) == name)  # type: ignore[arg-type]


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; a termination request, for example by a cancelled CI job; and a closed terminal."""


def interrupted_once() -> None:
    """Turn the first of these signals into ``KeyboardInterrupt``, and ignore later ones.

    A second Ctrl-C would interrupt the shutdown, which ends processes and writes records within seconds, and leave
    parts of both behind. Signals that the parent ignores (``nohup``) stay ignored.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def undisturbed() -> None:
    """Ignore all of these signals from here on, since Python would restore their default actions during its exit."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: object) -> None:
    for each in ENDING:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _pass)
    raise KeyboardInterrupt


def _pass(_number: int, _frame: object) -> None:
    """Do nothing. Unlike ``SIG_IGN``, child processes do not inherit this handler."""


EXIT_CODES = """\b
Exit codes: 0 all as expected; 1 some cell is not as expected; 2 bad usage or bad input;
3 nothing to run, or no compiler answered; 4 a part asked for is unavailable;
130 interrupted (what finished is kept).
"""


COMMANDS = {
    "arch": "harness.cli.arch:arch",
    "annotate": "harness.cli.report:annotate",
    "ask": "harness.cli.ask:ask",
    "bisect": "harness.cli.bisect:bisect",
    "bless": "harness.cli.bless:bless",
    "cache": "harness.cli.doctor:cache",
    "cases": "harness.cli.cases:cases",
    "config": "harness.cli.config:config",
    "diff": "harness.cli.changes:diff",
    "doctor": "harness.cli.doctor:doctor",
    "explain": "harness.cli.explain:explain",
    "help": "harness.cli.command:help_",
    "history": "harness.cli.changes:history",
    "init": "harness.cli.config:init",
    "libraries": "harness.cli.libraries:libraries",
    "merge": "harness.cli.report:merge",
    "publish": "harness.cli.publish:publish",
    "repro": "harness.cli.repro:repro",
    "report": "harness.cli.report:report",
    "run": "harness.cli.run:run",
    "toolkits": "harness.cli.toolkits:toolkits",
    "trust": "harness.cli.config:trust",
    "try": "harness.cli.run:try_",
    "wheel": "harness.cli.wheel:wheel",
}
"""Module and function of each command."""


@click.group(
    cls=LazyGroup,
    commands_in=COMMANDS,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="cumatrix")
def cumatrix() -> None:
    """Report which CUDA code compiles where.

    cumatrix compiles declared cases with every backend (NVRTC, CuPy and its Jitify, Numba, nvcc, PyTorch) for every
    architecture and library version. The outcomes form a compatibility matrix. No GPU, driver or CUDA toolkit is
    needed.

    \b
    Start with:
      cumatrix doctor                      which backends work here?
      cumatrix try kernel.cu               where does this file compile?
      cumatrix try kernel.cu --with cupy=12,13,14    and in which releases of CuPy?
      cumatrix init && cumatrix run        configure and compile this project
      cumatrix cases copy                  copy the library of cases into this folder
      cumatrix ask "bf16 wmma sm_75"       answer from known results, without compiling
      cumatrix run && cumatrix report      compile the cases, and build the page
    """


def main() -> None:
    """Run the command line; every error is one plain sentence on stderr."""
    # Python searches for cycles after every 700 new objects. Few imported objects and records are garbage, and the
    # search took a fifth of the time.
    gc.set_threshold(50_000, 20, 100)
    open_streams()
    interrupted_once()
    code = _run()
    undisturbed()
    sys.exit(code if flush_streams() or code else 1)


def _run() -> int:
    if os.environ.get("_CUMATRIX_COMPLETE"):
        import harness.cli.complete  # noqa: F401 (the import registers its completion class)
    try:
        code = cumatrix.main(prog_name="cumatrix", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__context__, EOFError) and "marshal" in str(
            error.__context__
        ):  # click ends on any EOFError
            return _say(_damaged_bytecode(), 1)
        return _say("interrupted; what finished is kept", 130)
    except click.ClickException as error:
        where = f" (see {error.ctx.command_path} --help)" if isinstance(error, click.UsageError) and error.ctx else ""
        return _say(error.format_message() + where, 2)
    except CumatrixError as error:
        return _say(str(error), error.exit_code)
    except BrokenPipeError:
        return 1  # the reader of the output is gone
    except SystemExit:
        return 1  # rich raises it for the same reason
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _say(f"{error.strerror or error}{where}{_advice(error)}", 2)
    except Exception as error:  # noqa: BLE001 (no traceback reaches users)
        if os.environ.get("CUMATRIX_DEBUG"):
            import traceback

            traceback.print_exc()
        return _say(
            f"a fault of cumatrix's own: {type(error).__name__}: {error}; run again with CUMATRIX_DEBUG=1 and report it",
            1,
        )
    return code if isinstance(code, int) else 0


def _damaged_bytecode() -> str:
    """Remove the cache of compiled modules after a failed import from it, and return a remedy.

    Python 3.11 keeps the part of a module that fitted on a full disk (https://github.com/python/cpython/issues/126606).
    """
    folder = sys.pycache_prefix
    if not folder or os.path.basename(os.path.dirname(folder)) != "cumatrix":
        return "a compiled module of Python is damaged, as a full disk leaves it: install cumatrix again"
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    return f"removed damaged compiled modules from {folder}, as a full disk leaves them: run the command again"


def _advice(error: OSError) -> str:
    """Return advice on an error that can happen anywhere."""
    if error.errno == errno.EMFILE:
        return "; raise their number, as with `ulimit -n 1024`"
    if error.errno == errno.ENOSPC and not error.filename:
        import tempfile  # slow to load, and needed only on a full disk

        place = tempfile.gettempdir()
        return f": make room where the output goes, or in the temporary folder {place}, or set TMPDIR to another one"
    return ""


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):  # the stream is closed
        for line in clean(text).strip().splitlines():
            say(f"cumatrix: {line}", err=True)
    return code
