"""Headers that are not a release: a folder, a checkout, a git revision or a range of commits."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from harness.diagnostics import one_line
from harness.errors import PartUnavailable, UsageError
from harness.git import GitError, build_of, checkout_of, git, number_of
from harness.model import HeaderLibrary, Headers
from harness.process_locks import alone, sweep_installs, work_folder
from harness.toolkits.header_libraries import version_in_headers
from harness.toolkits.store import data_folder, say
from harness.web.address import AddressError, redact, refuse_credentials

EXAMPLES = "./cutlass, ../cutlass@v4.2.0, git+https://github.com/NVIDIA/cutlass@main"
_SCHEMES = ("file", "https", "http", "ssh", "git")
# Accepts names, hashes and their ancestors, but no other revisions, and nothing that git could parse as an option.
_REVISION = re.compile(r"[A-Za-z0-9_][\w./+~^-]*")
_SHOWN = 80
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, kw_only=True)
class HeaderSource:
    """A source of headers that are not a release.

    Parameters
    ----------
    text : str
        The user's text.
    folder : Path or None
        A folder, used unchanged; None if the source is a repository.
    url : str
        The repository's address for git.
    revision : str
        A commit, tag or branch; the first of a range; empty for the repository's HEAD.
    last : str
        The last commit of a range; empty for a single revision.
    subfolder : str
        The library's folder in the repository; empty for the repository's root.
    """

    text: str
    folder: Path | None = None
    url: str = ""
    revision: str = ""
    last: str = ""
    subfolder: str = ""


def read_source(text: str, base: Path) -> HeaderSource:
    """Read a folder, a revision or a range of commits.

    Examples are ``./cutlass``, ``../cutlass@v4.2.0``, ``git+https://…@main`` and ``…@v4.1.0..main``.

    Raises
    ------
    UsageError
        If the text has another form, or the folder does not exist; the message is one sentence that follows the key.
    """
    if text.startswith("git+") and not _CONTROL.search(text):
        return _repository(text)
    if re.match(r"(https?|ssh|git|file)://|[\w.-]+@[\w.-]+:", text):
        raise UsageError(
            f"{redact(text)[:_SHOWN]!r} is not a version such as 3.5.1; of a repository write git+https://…@REVISION or git+ssh://git@HOST/…"
        )
    if _CONTROL.search(text) or not (text.startswith(("/", "./", "../", "~/")) or text in (".", "..")):
        raise UsageError(
            f"{redact(text)[:_SHOWN]!r} is not a version such as 3.5.1, nor a folder or revision such as {EXAMPLES}"
        )
    folder = _absolute(text, base)
    if folder.is_dir():
        return HeaderSource(text=text, folder=folder)
    path, at, revision = text.rpartition("@")
    if not at or not _absolute(path, base).is_dir():
        raise UsageError(f"there is no folder {str(_absolute(path if at else text, base))[:300]!r}")
    first, last = _revisions(revision, text)
    return HeaderSource(text=text, url=_absolute(path, base).as_uri(), revision=first, last=last)


def _absolute(text: str, base: Path) -> Path:
    return Path(os.path.normpath(base.absolute() / Path(text).expanduser()))


def _repository(text: str) -> HeaderSource:
    address, _, fragment = text.removeprefix("git+").partition("#")
    try:
        refuse_credentials(address)
        parts = urlsplit(address)
    except AddressError as error:
        raise UsageError(f"{redact(text)!r}: {error}") from None
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


_SECONDS = 1800.0
_HASH = re.compile(r"[0-9a-f]{7,40}")
# A longer range is likely a typing error.
MOST_COMMITS = 500


class Repository:
    """A repository with a copy in ``$CUMATRIX_HOME/repositories``.

    Parameters
    ----------
    url : str
        The repository's address for git.
    tell : callable
        Receives a sentence before a long step.
    offline : bool
        Whether to use only the local copy, without contacting another machine.
    """

    def __init__(self, url: str, tell: Callable[[str], None] = say, *, offline: bool = False) -> None:
        self.url = url
        self.tell = tell
        self.offline = offline and not url.startswith("file:")
        self._root = data_folder() / "repositories"
        self._name = hashlib.sha256(os.fsencode(url)).hexdigest()[:16]
        self.path = self._root / self._name
        self._fetched = False

    def commits(self, revision: str, last: str = "") -> list[str]:
        """Return the commit of a revision, or all commits of a range.

        A range runs from `revision` to `last` along first parents and includes both.

        Raises
        ------
        UsageError
            If the repository has no such revision, or `last` is not a descendant of `revision`, or the range is too
            long.
        PartUnavailable
            If the repository is unreachable.
        """
        first = self._resolve(revision or "HEAD")
        if not last:
            return [first]
        end = self._resolve(last)
        line = self._git("rev-list", "--first-parent", "--reverse", f"{first}..{end}").split()
        try:
            self._git("merge-base", "--is-ancestor", first, end)
        except GitError:
            raise UsageError(f"{revision}..{last} is no range: {last} does not come after {revision}") from None
        if len(line) >= MOST_COMMITS:
            raise UsageError(
                f"{revision}..{last} has {len(line) + 1} commits, and a range may have {MOST_COMMITS}: name some of them"
            )
        return list(dict.fromkeys([first, *line]))

    def subjects(self, commits: Sequence[str]) -> dict[str, str]:
        """Describe commits that `commits` returned by short hash and subject: ``3f2a9c14 (Fix the cast)``."""
        output = self._git("log", "--no-walk=unsorted", "--format=%H%x09%s", *commits)
        rows = [line.partition("\t") for line in output.splitlines()]
        return {commit: f"{commit[:8]} ({one_line(subject, 72)})" for commit, _, subject in rows}

    def number(self, commit: str) -> int:
        """Return the number of commits in a commit's history (`harness.git.number_of`)."""
        return number_of(commit, f"--git-dir={self.path}")

    def has(self, commit: str, folder: str) -> bool:
        """Return whether a commit contains a folder."""
        try:
            return self._git("cat-file", "-t", f"{commit}:{folder.strip('./')}").strip() == "tree"
        except GitError:
            return False

    def tagged(self, commit: str) -> str:
        """Return the version of the nearest tag before a commit: ``4.2.0`` for ``v4.2.0``; empty without a tag."""
        try:
            tag = self._git("describe", "--tags", "--abbrev=0", "--match", "*[0-9].[0-9]*", commit).strip()
        except GitError:
            return ""
        found = re.fullmatch(r"[A-Za-z_/-]*(\d+(?:\.\d+)+)", tag)
        return found[1] if found else ""

    def check_out(self, commit: str, folders: Sequence[str], home: Path) -> Path:
        """Check out folders of a commit below `home`, completely or not at all, and keep them for later calls.

        Raises
        ------
        PartUnavailable
            If the repository does not respond: a copy without blobs has to fetch them.
        """
        key = hashlib.sha256("\0".join(folders).encode()).hexdigest()[:8]
        place = home / f"{commit}-{key}"
        home.mkdir(parents=True, exist_ok=True)
        sweep_installs(home)
        with alone(home, place.name, place.name, self.tell, _SECONDS):
            if place.is_dir():
                return place
            with work_folder(home, place.name) as work:
                tree = work / "tree"
                tree.mkdir()
                try:
                    git(
                        f"--git-dir={self.path}", f"--work-tree={tree}", "checkout", "--force", commit, "--",
                        *(folder or "." for folder in folders), folder=tree, seconds=_SECONDS, index=work / "index",
                    )  # fmt: skip
                except GitError as error:
                    raise PartUnavailable(f"{self.url}: cannot check out {commit[:12]}: {error}") from None
                os.replace(tree, place)
        return place

    def _resolve(self, revision: str) -> str:
        settled = bool(_HASH.fullmatch(revision)) or re.fullmatch(r"v?\d[\w.]*", revision)
        if settled and (found := self._known(revision)):
            return found
        self._fetch()
        found = self._known(revision)
        if not found:
            raise UsageError(f"{self.url} has no commit, tag or branch {revision!r}")
        return found

    def _known(self, revision: str) -> str:
        try:
            return self._git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()
        except GitError:
            return ""

    def _fetch(self) -> None:
        """Clone the repository, or fetch new commits, once per process."""
        if self._fetched or (self.offline and self.path.is_dir()):
            return
        if self.offline:
            raise PartUnavailable(f"{self.url} is not copied, and --offline downloads nothing: run it once without")
        self._root.mkdir(parents=True, exist_ok=True)
        sweep_installs(self._root)
        with alone(self._root, self._name, self.url, self.tell, _SECONDS):
            try:
                if self.path.is_dir():
                    self._git("fetch", "--quiet", "--prune", "--tags", "--force", "origin", seconds=_SECONDS)
                else:
                    self.tell(f"copying {self.url} to {self.path}")
                    with work_folder(self._root, self._name) as work:
                        # A server that supports filters sends the files only when a commit is checked out.
                        git("clone", "--quiet", "--mirror", "--filter=blob:none", "--", self.url, work / "copy", seconds=_SECONDS)  # fmt: skip
                        os.replace(work / "copy", self.path)
            except GitError as error:
                raise PartUnavailable(f"{self.url} cannot be copied: {error}") from None
        self._fetched = True

    def _git(self, *arguments: str, seconds: float = 60.0) -> str:
        return git(f"--git-dir={self.path}", *arguments, seconds=seconds)


_LONGER = 16


def headers_of(
    library: HeaderLibrary, source: HeaderSource, tell: Callable[[str], None] = say, *, offline: bool = False
) -> dict[str, Headers]:
    """Return the headers by build number; for a range, one build per commit in order.

    A folder is used unchanged when a compiler reads it. cumatrix keeps a copy of a repository, and the include
    directories of each commit.

    Raises
    ------
    UsageError
        If there is no such revision, or the source has no header of the library.
    PartUnavailable
        If a repository is unreachable.
    """
    if source.folder:
        return dict([_in_folder(library, source.folder)])
    repository = Repository(source.url, tell, offline=offline)
    commits = repository.commits(source.revision, source.last)
    for digits in (0, _LONGER):
        found = [_at_commit(library, repository, source, commit, digits) for commit in commits]
        if len(dict(found)) == len(commits):
            break
    return dict(found)


def _in_folder(library: HeaderLibrary, folder: Path) -> tuple[str, Headers]:
    include = [
        folder / name for name in _include(library, lambda name: (folder / name).is_dir(), f"the folder {folder}")
    ]
    version = version_in_headers(library, include)
    origin = {"headers": version, "path": str(folder)}
    commit, number, dirty = "", 0, False
    try:
        if checkout := checkout_of(include[0]):
            commit, number, dirty = checkout.commit, checkout.number, checkout.dirty
            origin["commit"] = f"{commit}+dirty" if dirty else commit
    except GitError as error:
        origin["problem"] = str(error)
    build = build_of(version or "0", commit=commit, number=number, dirty=dirty, place=str(folder))
    return build, Headers(include=tuple(include), origin={key: text for key, text in origin.items() if text})


def _at_commit(
    library: HeaderLibrary, repository: Repository, source: HeaderSource, commit: str, digits: int
) -> tuple[str, Headers]:
    below = f"{source.subfolder}/" if source.subfolder else ""
    what = f"{repository.url} at {commit[:12]}" + (f", below {source.subfolder}," if below else "")
    named = partial(build_of, commit=commit, number=repository.number(commit), digits=digits)
    try:
        names = _include(library, lambda name: repository.has(commit, below + name), what)
    except UsageError as error:
        if not source.last:
            raise
        # The other commits of a range are still tried.
        return named("0"), Headers(problem=str(error))
    try:
        tree = repository.check_out(
            commit, [below + name for name in names], data_folder() / "checkouts" / library.name
        )
    except PartUnavailable as error:
        return named("0"), Headers(problem=str(error))
    include = [tree / (below + name) for name in names]
    version = version_in_headers(library, include)
    origin = {"headers": version, "commit": commit, "url": repository.url}
    build = named(version or repository.tagged(commit) or "0")
    return build, Headers(include=tuple(include), origin={key: text for key, text in origin.items() if text})


def _include(library: HeaderLibrary, has: Callable[[str], bool], what: str) -> list[str]:
    """Return the include directories of a checkout, an unpacked wheel, or a plain include directory."""
    own = library.header.partition("/")[0] if "/" in library.header else ""

    def right(names: Sequence[str]) -> bool:
        return bool(names) and (not own or any(has(f"{name}/{own}") for name in names))

    for names in (library.checkout, *([name] for name in library.include), ["include"], ["."]):
        there = [name for name in names if has(name)]
        if right(there):
            return there
    raise UsageError(f"{what} has no headers of {library.name}: there is no folder {own} in it, nor below include")
