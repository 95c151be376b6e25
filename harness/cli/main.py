"""The group of commands, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

import click

from harness import __version__
from harness.cli.lazy import LazyGroup
from harness.cli.signals import interrupted_once, undisturbed
from harness.cli.terminal import flush_streams, open_streams, say
from harness.errors import CumatrixError
from harness.protocol.text import clean

EXIT_CODES = """\b
Exit codes: 0 all as expected; 1 some cell is not as expected; 2 bad usage or bad input;
3 nothing to run, or no compiler answered; 4 a part asked for is unavailable;
130 interrupted (what finished is kept).
"""


COMMANDS = {
    "annotate": "harness.cli.annotate:annotate",
    "ask": "harness.cli.ask:ask",
    "bisect": "harness.cli.bisect:bisect",
    "bless": "harness.cli.bless:bless",
    "cache": "harness.cli.cache:cache",
    "cases": "harness.cli.cases:cases",
    "config": "harness.cli.config:config",
    "diff": "harness.cli.diff:diff",
    "doctor": "harness.cli.doctor:doctor",
    "explain": "harness.cli.explain:explain",
    "history": "harness.cli.history:history",
    "init": "harness.cli.init:init",
    "libraries": "harness.cli.libraries:libraries",
    "merge": "harness.cli.report:merge",
    "publish": "harness.cli.publish:publish",
    "repro": "harness.cli.repro:repro",
    "report": "harness.cli.report:report",
    "run": "harness.cli.run:run",
    "toolkits": "harness.cli.toolkits:toolkits",
    "trust": "harness.cli.trust:trust",
    "try": "harness.cli.try_:try_",
}
"""Where each command is: a module and what it is called there."""


@click.group(
    cls=LazyGroup,
    commands_in=COMMANDS,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="cumatrix")
def cumatrix() -> None:
    """Tells what CUDA code compiles where.

    Declared cases go through every backend (NVRTC, CuPy and its Jitify, Numba, nvcc, PyTorch) for every architecture and library
    version; what happened becomes a compatibility matrix. No GPU, driver or CUDA toolkit is needed.

    \b
    Start with:
      cumatrix doctor                      what can be used here
      cumatrix try kernel.cu               where does this file compile?
      cumatrix try kernel.cu --with cupy=12,13,14    and in which releases of CuPy?
      cumatrix init && cumatrix run        what this project has, and what of it compiles where
      cumatrix cases copy                  the library of cases, into this folder
      cumatrix ask "bf16 wmma sm_75"       what is known already, without compiling
      cumatrix run && cumatrix report      the cases, and the page
    """


def main() -> None:
    """Run the command line; every error is one plain sentence on stderr."""
    open_streams()
    interrupted_once()
    code = _run()
    undisturbed()
    sys.exit(code if flush_streams() or code else 1)


def _run() -> int:
    if os.environ.get("_CUMATRIX_COMPLETE"):
        import harness.cli.fish  # noqa: F401 (its class is registered where it is defined)
    try:
        code = cumatrix.main(prog_name="cumatrix", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _say("interrupted; what finished is kept", 130)
    except click.ClickException as error:
        where = f" (see {error.ctx.command_path} --help)" if isinstance(error, click.UsageError) and error.ctx else ""
        return _say(error.format_message() + where, 2)
    except CumatrixError as error:
        return _say(str(error), error.exit_code)
    except BrokenPipeError:
        return 1  # whoever read the output has gone; nothing more can be said to them
    except SystemExit:
        return 1  # rich's way to say the same
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


def _advice(error: OSError) -> str:
    """What to do about an error that anything may meet."""
    if error.errno == errno.EMFILE:
        return "; raise their number, as with `ulimit -n 1024`"
    if error.errno == errno.ENOSPC and not error.filename:
        import tempfile  # with much of the standard library, for which nobody waits whose disk has room

        place = tempfile.gettempdir()
        return f": make room where the output goes, or in the temporary folder {place}, or set TMPDIR to another one"
    return ""


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):  # nobody reads it
        for line in clean(text).strip().splitlines():
            say(f"cumatrix: {line}", err=True)
    return code
