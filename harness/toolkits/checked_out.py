"""Headers of no release: from what names them to numbers and include directories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.checkouts import GitError, build_of, checkout_of
from harness.errors import PartUnavailable, UsageError
from harness.model import HeaderLibrary, Headers
from harness.toolkits.libraries import version_told
from harness.toolkits.repositories import Repository
from harness.toolkits.sources import HeaderSource
from harness.toolkits.store import data_folder, say

_LONGER = 16


def headers_of(
    library: HeaderLibrary, source: HeaderSource, tell: Callable[[str], None] = say, *, offline: bool = False
) -> dict[str, Headers]:
    """Headers by their numbers: of a range one for each commit, in their order.

    A folder is used as it stands, whatever is in it when a compiler reads it. Of a repository a copy is kept, and the
    include directories of each commit.

    Parameters
    ----------
    library : HeaderLibrary
        What they are headers of.
    source : HeaderSource
        What names them.
    tell : callable
        Is told what takes long before it begins.
    offline : bool
        Ask no other machine.

    Raises
    ------
    UsageError
        Where there is no such revision, or no header of the library.
    PartUnavailable
        Where a repository cannot be reached.
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
    version = version_told(library, include)
    told = {"headers": version, "path": str(folder)}
    commit, dirty = "", False
    try:
        if checkout := checkout_of(include[0]):
            commit, dirty = checkout.commit, checkout.dirty
            told["commit"] = f"{commit}+dirty" if dirty else commit
    except GitError as error:
        told["problem"] = str(error)
    build = build_of(version or "0", commit=commit, dirty=dirty, place=str(folder))
    return build, Headers(include=tuple(include), told={key: text for key, text in told.items() if text})


def _at_commit(
    library: HeaderLibrary, repository: Repository, source: HeaderSource, commit: str, digits: int
) -> tuple[str, Headers]:
    below = f"{source.subfolder}/" if source.subfolder else ""
    what = f"{repository.url} at {commit[:12]}" + (f", below {source.subfolder}," if below else "")
    try:
        names = _include(library, lambda name: repository.has(commit, below + name), what)
    except UsageError as error:
        if not source.last:
            raise
        # Of a range the others are tried all the same.
        return build_of("0", commit=commit, digits=digits), Headers(problem=str(error))
    try:
        tree = repository.check_out(
            commit, [below + name for name in names], data_folder() / "checkouts" / library.name
        )
    except PartUnavailable as error:
        return build_of("0", commit=commit, digits=digits), Headers(problem=str(error))
    include = [tree / (below + name) for name in names]
    version = version_told(library, include)
    told = {"headers": version, "commit": commit, "url": repository.url}
    build = build_of(version or repository.tagged(commit) or "0", commit=commit, digits=digits)
    return build, Headers(include=tuple(include), told={key: text for key, text in told.items() if text})


def _include(library: HeaderLibrary, has: Callable[[str], bool], what: str) -> list[str]:
    """Include directories, by what a checkout, a wheel that was unpacked, or a plain include directory has."""
    own = library.header.partition("/")[0] if "/" in library.header else ""

    def right(names: Sequence[str]) -> bool:
        return bool(names) and (not own or any(has(f"{name}/{own}") for name in names))

    for names in (library.checkout, *([name] for name in library.include), ["include"], ["."]):
        there = [name for name in names if has(name)]
        if right(there):
            return there
    raise UsageError(f"{what} has no headers of {library.name}: there is no folder {own} in it, nor below include")
