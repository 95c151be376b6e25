"""Where the libraries of an environment come from: a release of an index, or a build that is told from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.checkouts import GitError, build_of, checkout_of
from harness.protocol.probes import Distribution


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Of a development build, all that is known of where it comes from.

    Parameters
    ----------
    version : str
        What it says itself.
    path : str
        The folder that the package is imported from, where that is no place of installers'.
    commit : str
        What it was built from, in full; empty where it is not known.
    dirty : bool
        Whether its checkout differs from that.
    url : str
        Where it was installed from; empty where nothing tells.
    editable : bool
        Whether it was installed in editable mode.
    digest : str
        Hash of the files that were installed; empty for a checkout.
    problem : str
        Why the commit is not known, where git does not tell.
    """

    version: str
    path: str = ""
    commit: str = ""
    dirty: bool = False
    url: str = ""
    editable: bool = False
    digest: str = ""
    problem: str = ""

    @property
    def build(self) -> str:
        """Its version as cells and columns have it, by which it is told from a release: ``0.15.0+git.3f2a9c1``."""
        return build_of(self.version, commit=self.commit, dirty=self.dirty, place=self.path, digest=self.digest)

    def told(self) -> dict[str, str | bool]:
        """What records say of it (``toolchain.observed.builds``)."""
        commit = f"{self.commit}+dirty" if self.dirty else self.commit
        told = {"version": self.version, "commit": commit, "path": self.path, "url": self.url, "digest": self.digest}
        told["problem"] = self.problem
        kept: dict[str, str | bool] = {name: value for name, value in told.items() if value}
        return {**kept, "editable": True} if self.editable else kept


def origins_of(distributions: Mapping[str, Distribution]) -> dict[str, Origin]:
    """Origins of the distributions that did not come from an index, by normalized name; git is asked for checkouts."""
    return {name: _origin(found) for name, found in distributions.items() if found.apart or found.url}


def _origin(found: Distribution) -> Origin:
    commit, dirty, problem = found.commit, False, ""
    path = found.folder if found.apart else _place(found.url) if found.editable else ""
    if path:
        # What lies there now counts, whatever it was when it was installed.
        commit = ""
        try:
            if checkout := checkout_of(Path(path)):
                commit, dirty = checkout.commit, checkout.dirty
        except GitError as error:
            problem = str(error)
    return Origin(
        version=found.version, path=path, commit=commit, dirty=dirty, url=found.url,
        editable=found.editable, digest="" if path else found.digest, problem=problem,
    )  # fmt: skip


def _place(url: str) -> str:
    """The folder that a ``file:`` address names."""
    return unquote(urlsplit(url).path)
