"""Checkouts of git, and how builds that no release is are numbered."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.web.address import redact

_SECONDS = 60.0
_DIGITS = 7
# Files that Python and installers put next to sources are no change of theirs.
_PASSED_OVER = (":(exclude,glob)**/__pycache__/**", ":(exclude,glob)**/*.egg-info/**")
# A repository's own settings start no programs here, and git asks for no password.
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class GitError(Exception):
    """git could not do it; the message is its own, on one line."""


@dataclass(frozen=True)
class Checkout:
    """The state of a work tree.

    Parameters
    ----------
    root : Path
        Its top folder.
    commit : str
        What is checked out, in full; empty before the first commit.
    dirty : bool
        Whether a file differs from that, or is there and not in it; what ``.gitignore`` names does not count.
    number : int
        How many commits its history has (`number_of`).
    """

    root: Path
    commit: str
    dirty: bool
    number: int = 0


def git(
    *arguments: str | Path, folder: Path | None = None, seconds: float = _SECONDS, index: Path | None = None
) -> str:
    """Output of a git command.

    Parameters
    ----------
    *arguments : str or Path
        Its words.
    folder : Path, optional
        Where it runs.
    seconds : float
        How long it may take.
    index : Path, optional
        Another file than the repository's own for its index.

    Raises
    ------
    GitError
        When there is no git, it says no, or takes longer than `seconds`.
    """
    # Variables of git's that name a repository (a hook of pre-commit sets them) are those of another one.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {"GIT_INDEX_FILE": str(index)} if index else {}
    kept = {name: os.environ[name] for name in ("GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_NO_VERIFY") if name in os.environ}  # fmt: skip
    try:
        done = subprocess.run(
            ["git", *_SETTINGS, *map(str, arguments)],
            cwd=folder, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False,
            env={**environ, **kept, **settings, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
    except FileNotFoundError:
        raise GitError("git is not installed, or the folder is gone") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"no answer of git within {seconds:.0f} s") from None
    except (OSError, ValueError) as error:
        raise GitError(str(error)) from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        errors = [line.removeprefix("fatal: ") for line in words if line.startswith(("fatal: ", "error: "))]
        raise GitError(redact((errors or words or [f"exit code {done.returncode}"])[0]))
    return done.stdout.decode("utf-8", "surrogateescape")


def checkout_of(path: Path) -> Checkout | None:
    """The checkout that has a file, or files below a folder, in its index; None where none has.

    A virtual environment within a checkout is no part of it.

    Raises
    ------
    GitError
        When git does not tell: it is not installed, or does not trust the folder's owner.
    """
    if not any((folder / ".git").exists() for folder in (path, *path.parents)):
        return None
    folder = path if path.is_dir() else path.parent
    if not git("ls-files", "-z", "--", path if path != folder else ".", folder=folder):
        return None
    root = Path(git("rev-parse", "--show-toplevel", folder=folder).rstrip("\n"))
    try:
        commit = git("rev-parse", "--verify", "HEAD", folder=root).strip()
    except GitError:
        commit = ""
    dirty = bool(git("status", "--porcelain", "-z", "--", ".", *_PASSED_OVER, folder=root))
    return Checkout(root, commit, dirty, number_of(commit, folder=root) if commit else 0)


def number_of(commit: str, *repository: str, folder: Path | None = None) -> int:
    """Count the commits of a commit's history, itself included: a later commit has more than those before it.

    Parameters
    ----------
    commit : str
        The commit.
    *repository : str
        Options of git that name the repository.
    folder : Path, optional
        A folder of its checkout, in place of these.

    Returns
    -------
    int
        0 where the history is not all there: in a shallow clone.
    """
    if git(*repository, "rev-parse", "--is-shallow-repository", folder=folder).strip() != "false":
        return 0
    return int(git(*repository, "rev-list", "--count", commit, "--", folder=folder))


def build_of(
    version: str, *, commit: str = "", number: int = 0, dirty: bool = False, place: str = "", digest: str = "", digits: int = 0
) -> str:  # fmt: skip
    """Version of a build that is no release: with a local part (PEP 440), which separates it from all others.

    Builds of one version sort by history: PEP 440 compares the number of commits as a number.

    Parameters
    ----------
    version : str
        What the build says itself: ``0.15.0``.
    commit : str
        What it was built from: ``0.15.0+git.3f2a9c1``.
    number : int
        How many commits its history has (`number_of`): ``0.15.0+git.1234.3f2a9c1``; 0 where that is not known.
    dirty : bool
        Whether it differs from that commit. Then it also matters where it lies (``0.15.0+git.3f2a9c1.dirty.8c1d``), and not how it
        differs: after the next edit it is still the same column.
    place : str
        Its folder: ``0.15.0+local.8c1d4e`` without a known commit.
    digest : str
        Hash of its files, of a wheel: ``0.15.0+build.5b0c11f``.
    digits : int
        How many of the commit's; seven, which git shows, when 0.
    """
    where = hashlib.sha256(os.fsencode(place)).hexdigest()
    if commit:
        short = commit[: digits or _DIGITS]
        # setuptools-scm and others number a build by its commit already.
        named = re.search(rf"\+.*{short}", version)
        count = [str(number)] if number else []
        words = [*([] if named else ["git", *count, short]), *(["dirty", where[:4]] if dirty else [])]
    elif digest:
        words = ["build", digest[:_DIGITS]]
    else:
        words = ["local", where[: _DIGITS - 1]]
    return with_local(version, words)


def with_local(version: str, words: Iterable[str]) -> str:
    """A version with words at the end of its local part."""
    return "".join(
        [version, *(f"{'.' if number or '+' in version else '+'}{word}" for number, word in enumerate(words))]
    )
