"""Repositories of git that headers are checked out of: a copy of each is kept, and the include directories of each commit."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.checkouts import GitError, git
from harness.errors import PartUnavailable, UsageError
from harness.toolkits.leftovers import alone, sweep, work_folder
from harness.toolkits.store import data_folder, say

_SECONDS = 1800.0
_HASH = re.compile(r"[0-9a-f]{7,40}")
# More commits than this in a range are a slip of the pen.
MOST_COMMITS = 500


class Repository:
    """A repository, of which a copy is kept in ``$CUMATRIX_HOME/repositories``.

    Parameters
    ----------
    url : str
        As git takes it.
    tell : callable
        Is told what takes long before it begins.
    offline : bool
        Ask no other machine: what is in the copy counts.
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
        """The commit of a revision; with `last` all from the first to the last one, both among them, along first parents.

        Raises
        ------
        UsageError
            When the repository has no such revision, or the range is none.
        PartUnavailable
            When it cannot be reached.
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

    def has(self, commit: str, folder: str) -> bool:
        """Whether a commit has a folder."""
        try:
            return self._git("cat-file", "-t", f"{commit}:{folder.strip('./')}").strip() == "tree"
        except GitError:
            return False

    def tagged(self, commit: str) -> str:
        """The version of the nearest tag before a commit, such as ``4.2.0`` for ``v4.2.0``; empty without one."""
        try:
            tag = self._git("describe", "--tags", "--abbrev=0", "--match", "*[0-9].[0-9]*", commit).strip()
        except GitError:
            return ""
        found = re.fullmatch(r"[A-Za-z_/-]*(\d+(?:\.\d+)+)", tag)
        return found[1] if found else ""

    def check_out(self, commit: str, folders: Sequence[str], home: Path) -> Path:
        """Folders of a commit, below `home`; they are kept there, complete or not at all.

        Raises
        ------
        PartUnavailable
            When they cannot be had: the repository has to be asked for files again, where it was copied without them.
        """
        key = hashlib.sha256("\0".join(folders).encode()).hexdigest()[:8]
        place = home / f"{commit}-{key}"
        home.mkdir(parents=True, exist_ok=True)
        sweep(home)
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
        """Copy the repository, or what is new in it: once in a process."""
        if self._fetched or (self.offline and self.path.is_dir()):
            return
        if self.offline:
            raise PartUnavailable(f"{self.url} is not copied, and --offline downloads nothing: run it once without")
        self._root.mkdir(parents=True, exist_ok=True)
        sweep(self._root)
        with alone(self._root, self._name, self.url, self.tell, _SECONDS):
            try:
                if self.path.is_dir():
                    self._git("fetch", "--quiet", "--prune", "--tags", "--force", "origin", seconds=_SECONDS)
                else:
                    self.tell(f"copying {self.url} to {self.path}")
                    with work_folder(self._root, self._name) as work:
                        # Files come when a commit is checked out, where the server can leave them out here.
                        git("clone", "--quiet", "--mirror", "--filter=blob:none", "--", self.url, work / "copy", seconds=_SECONDS)  # fmt: skip
                        os.replace(work / "copy", self.path)
            except GitError as error:
                raise PartUnavailable(f"{self.url} cannot be copied: {error}") from None
        self._fetched = True

    def _git(self, *arguments: str, seconds: float = 60.0) -> str:
        return git(f"--git-dir={self.path}", *arguments, seconds=seconds)
