"""User errors: one plain sentence, and the exit code that callers rely on."""

from collections.abc import Iterable

_MANY = 60  # names that a sentence can list


class CumatrixError(Exception):
    """Base of every error that ends a command; the message is shown as it is.

    Attributes
    ----------
    exit_code : int
        2 bad usage or bad input, 3 nothing to run or no compiler answered, 4 a part asked for is unavailable.
    """

    exit_code = 2


class UsageError(CumatrixError):
    """Bad usage or bad input."""


class NothingToRun(CumatrixError):
    """A selection that is empty."""

    exit_code = 3


class LibraryMissing(NothingToRun):
    """A selection that is empty, since what it is for is not installed."""

    exit_code = 4


class PartUnavailable(CumatrixError):
    """A requested part cannot be used here."""

    exit_code = 4


def needs(what: str, extra: str, error: ImportError) -> PartUnavailable:
    """The error of a part that needs distributions of an extra of cumatrix, with the command that installs them."""
    return PartUnavailable(f"{what} needs {error.name}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """``python -m pip install 'pandas>=2.2' …``: what an extra of this cumatrix requires, wherever cumatrix itself was installed from.

    Environments of uv have no pip, but cumatrix requires uv.
    """
    import shlex  # which --help need not wait for
    import sys
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    # The distribution may have any name.
    installed = [command.dist for command in entry_points(group="console_scripts", name="cumatrix")]
    marked = [text.partition(";") for text in (installed[0].requires if installed and installed[0] else None) or ()]
    wanted = [name.strip() for name, _, marker in marked if f"extra == '{extra}'" in marker.replace('"', "'")]
    pip = ["pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([sys.executable, "-m", *pip, *wanted])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean "status"?)``, or the list of what is known where nothing is close; of a long one, where it begins and ends."""
    known = list(known)
    from difflib import get_close_matches  # which --help need not wait for

    close = get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f' (did you mean "{close[0]}"?)'
    if len(known) > _MANY:
        known = [*known[:3], "…", *known[-3:]]
    return f"; known are {', '.join(known)}" if known else ""
