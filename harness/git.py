"""Git checkouts, and version numbers of unreleased builds."""

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
# Files that Python and installers create next to sources do not make a checkout dirty.
_PASSED_OVER = (":(exclude,glob)**/__pycache__/**", ":(exclude,glob)**/*.egg-info/**")
# Settings of a repository must not start programs.
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class GitError(Exception):
    """A git command failed; the message is git's own, on one line."""


@dataclass(frozen=True)
class Checkout:
    """The state of a work tree.

    Parameters
    ----------
    root : Path
        The top folder.
    commit : str
        Full hash of the checked-out commit; empty before the first commit.
    dirty : bool
        Whether a file differs from the commit or is untracked. Files that ``.gitignore`` names do not count.
    number : int
        Number of commits in the history (`number_of`).
    """

    root: Path
    commit: str
    dirty: bool
    number: int = 0


def git(
    *arguments: str | Path, folder: Path | None = None, seconds: float = _SECONDS, index: Path | None = None
) -> str:
    """Run a git command and return its output.

    Parameters
    ----------
    *arguments : str or Path
        The arguments of git.
    folder : Path, optional
        The working directory.
    seconds : float
        Time limit in seconds.
    index : Path, optional
        Index file to use instead of the repository's own.

    Raises
    ------
    GitError
        If git is missing, fails, or takes longer than `seconds`.
    """
    # Git's variables may name another repository; hooks of pre-commit run with such variables.
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
        raise GitError("git is not installed, or the folder is missing") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git did not answer within {seconds:.0f} s") from None
    except (OSError, ValueError) as error:
        raise GitError(str(error)) from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        errors = [line.removeprefix("fatal: ") for line in words if line.startswith(("fatal: ", "error: "))]
        raise GitError(redact((errors or words or [f"exit code {done.returncode}"])[0]))
    return done.stdout.decode("utf-8", "surrogateescape")


def checkout_of(path: Path) -> Checkout | None:
    """Return the checkout that tracks a file, or any file below a folder; None if there is none.

    An untracked folder inside a checkout, such as a virtual environment, does not belong to it.

    Raises
    ------
    GitError
        If git is not installed or does not trust the folder's owner.
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
    """Count the commits in a commit's history, including the commit: every commit has a higher count than its ancestors.

    Parameters
    ----------
    commit : str
        The commit.
    *repository : str
        Git options that name the repository.
    folder : Path, optional
        A folder of the checkout, instead of `repository`.

    Returns
    -------
    int
        The number of commits; 0 in a shallow clone, whose history is incomplete.
    """
    if git(*repository, "rev-parse", "--is-shallow-repository", folder=folder).strip() != "false":
        return 0
    return int(git(*repository, "rev-list", "--count", commit, "--", folder=folder))


def build_of(
    version: str, *, commit: str = "", number: int = 0, dirty: bool = False, place: str = "", digest: str = "", digits: int = 0
) -> str:  # fmt: skip
    """Return the version of an unreleased build, with a unique local part (PEP 440).

    Builds of one version sort by history: PEP 440 compares the number of commits as a number.

    Parameters
    ----------
    version : str
        Version that the build reports: ``0.15.0``.
    commit : str
        Commit that the build was made from: ``0.15.0+git.3f2a9c1``.
    number : int
        Number of commits in its history (`number_of`): ``0.15.0+git.1234.3f2a9c1``; 0 if unknown.
    dirty : bool
        Whether the build differs from `commit`. The local part then contains a hash of `place`, ``0.15.0+git.3f2a9c1.dirty.8c1d``, and
        none of the content, so the build stays in one column after further edits.
    place : str
        Folder of the build: ``0.15.0+local.8c1d4e`` without a known commit.
    digest : str
        Hash of a wheel's files: ``0.15.0+build.5b0c11f``.
    digits : int
        Length of the commit in the local part; 0 for git's default of seven digits.
    """
    where = hashlib.sha256(os.fsencode(place)).hexdigest()
    if commit:
        short = commit[: digits or _DIGITS]
        # The version may contain the commit already, as setuptools-scm's versions do.
        named = re.search(rf"\+.*{short}", version)
        count = [str(number)] if number else []
        words = [*([] if named else ["git", *count, short]), *(["dirty", where[:4]] if dirty else [])]
    elif digest:
        words = ["build", digest[:_DIGITS]]
    else:
        words = ["local", where[: _DIGITS - 1]]
    return with_local(version, words)


def with_local(version: str, words: Iterable[str]) -> str:
    """Append words to the local part of a version."""
    return "".join(
        [version, *(f"{'.' if number or '+' in version else '+'}{word}" for number, word in enumerate(words))]
    )
