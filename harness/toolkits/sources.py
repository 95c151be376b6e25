"""What names headers that are no release: a folder, a checkout, a revision of a repository, a range of commits."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from harness.errors import UsageError

EXAMPLES = "./cutlass, ../cutlass@v4.2.0, git+https://github.com/NVIDIA/cutlass@main"
_SCHEMES = ("file", "https", "http", "ssh", "git")
# Of what git takes for a revision, names, hashes and their ancestors; nothing that git could take for an option.
_REVISION = re.compile(r"[A-Za-z0-9_][\w./+~^-]*")
_SHOWN = 80
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, kw_only=True)
class HeaderSource:
    """Where headers come from that are no release.

    Parameters
    ----------
    text : str
        As it was written.
    folder : Path or None
        A folder that is used as it stands; None where a repository is named.
    url : str
        The repository, as git takes it.
    revision : str
        A commit, tag or branch; of a range the first; empty for what the repository itself has checked out.
    last : str
        The last commit of a range; empty for a single revision.
    subfolder : str
        Where in the repository the library lies; empty for its top.
    """

    text: str
    folder: Path | None = None
    url: str = ""
    revision: str = ""
    last: str = ""
    subfolder: str = ""


def read_source(text: str, base: Path) -> HeaderSource:
    """Read a folder (``./cutlass``), a revision (``../cutlass@v4.2.0``, ``git+https://…@main``) or a range of commits (``…@v4.1.0..main``).

    Parameters
    ----------
    text : str
        As it stands in a case or on the command line.
    base : Path
        The folder that relative paths start from.

    Raises
    ------
    UsageError
        On anything else, and on a folder that is not there; the message is one sentence that follows the key.
    """
    if text.startswith("git+") and not _CONTROL.search(text):
        return _repository(text)
    if re.match(r"(https?|ssh|git|file)://|[\w.-]+@[\w.-]+:", text):
        raise UsageError(
            f"{text[:_SHOWN]!r} is not a version such as 3.5.1; of a repository write git+https://…@REVISION or git+ssh://git@HOST/…"
        )
    if _CONTROL.search(text) or not (text.startswith(("/", "./", "../", "~/")) or text in (".", "..")):
        raise UsageError(
            f"{text[:_SHOWN]!r} is not a version such as 3.5.1, nor a folder or revision such as {EXAMPLES}"
        )
    folder = _absolute(text, base)
    if folder.is_dir():
        return HeaderSource(text=text, folder=folder)
    path, at, revision = text.rpartition("@")
    if not at or not _absolute(path, base).is_dir():
        raise UsageError(f"there is no folder {str(_absolute(path if at else text, base))[:_SHOWN]!r}")
    first, last = _revisions(revision, text)
    return HeaderSource(text=text, url=_absolute(path, base).as_uri(), revision=first, last=last)


def _absolute(text: str, base: Path) -> Path:
    return Path(os.path.normpath(base.absolute() / Path(text).expanduser()))


def _repository(text: str) -> HeaderSource:
    address, _, fragment = text.removeprefix("git+").partition("#")
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise UsageError(f"{text!r} is no address: {error}") from None
    if parts.scheme not in _SCHEMES or not (parts.netloc or parts.scheme == "file") or not parts.path.strip("/"):
        raise UsageError(f"{text!r} is no address of a repository such as git+https://github.com/NVIDIA/cutlass@v4.2.0")
    path, at, revision = parts.path.rpartition("@")
    first, last = _revisions(revision, text) if at else ("", "")
    subfolder = fragment.removeprefix("subdirectory=").strip("/")
    if fragment and (not fragment.startswith("subdirectory=") or ".." in subfolder.split("/") or not subfolder):
        raise UsageError(f"{text!r}: what follows # must be subdirectory=FOLDER")
    url = parts._replace(path=path if at else parts.path, query="", fragment="").geturl()
    if parts.scheme == "file" and not url.startswith("file://"):
        url = url.replace("file:", "file://", 1)
    return HeaderSource(text=text, url=url, revision=first, last=last, subfolder=subfolder)


def _revisions(text: str, whole: str) -> tuple[str, str]:
    first, dots, last = text.partition("..")
    for revision in (first, last) if dots else (first,):
        if not _REVISION.fullmatch(revision) or ".." in revision:
            raise UsageError(f"{whole!r}: {revision!r} is no commit, tag or branch (a range is FIRST..LAST)")
    return first, last
