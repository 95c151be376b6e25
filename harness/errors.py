"""User errors, each with a one-sentence message and a stable exit code."""

from collections.abc import Iterable

_MANY = 60  # names that a sentence lists in full


class CumatrixError(Exception):
    """Base class of every error that ends a command; the command prints the message unchanged.

    Attributes
    ----------
    exit_code : int
        2 for bad usage or bad input, 3 if there is nothing to run or no compiler answered, 4 if a requested part is unavailable.
    """

    exit_code = 2


class UsageError(CumatrixError):
    """Bad usage or bad input."""


class NothingToRun(CumatrixError):
    """An empty selection."""

    exit_code = 3


class LibraryMissing(NothingToRun):
    """An empty selection because the library under test is not installed."""

    exit_code = 4


class PartUnavailable(CumatrixError):
    """A requested part cannot be used here."""

    exit_code = 4


def needs(what: str, extra: str, error: ImportError) -> PartUnavailable:
    """Return the error for a missing distribution of one of cumatrix's extras, with the command that installs it."""
    return PartUnavailable(f"{what} needs {error.name}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs the requirements of an extra: ``python -m pip install 'pandas>=2.2' …``.

    The command names the requirements, not cumatrix, because cumatrix may have been installed from anywhere. Environments that uv
    creates have no pip; there the command uses uv, a requirement of cumatrix.
    """
    import shlex  # imported late: --help does not use it
    import sys
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    # The distribution can have any name: find it by its command.
    installed = [command.dist for command in entry_points(group="console_scripts", name="cumatrix")]
    marked = [text.partition(";") for text in (installed[0].requires if installed and installed[0] else None) or ()]
    wanted = [name.strip() for name, _, marker in marked if f"extra == '{extra}'" in marker.replace('"', "'")]
    pip = ["pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([sys.executable, "-m", *pip, *wanted])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean "status"?)``, or the list of known words if none is close. A list of more than 60 is shortened to both ends."""
    known = list(known)
    from difflib import get_close_matches  # imported late: --help does not use it

    close = get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f' (did you mean "{close[0]}"?)'
    if len(known) > _MANY:
        known = [*known[:3], "…", *known[-3:]]
    return f"; known are {', '.join(known)}" if known else ""
