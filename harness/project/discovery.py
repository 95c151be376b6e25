"""Discovery of a project's configuration file, in the current folder or above, and of its files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError

OWN, PYPROJECT = "cumatrix.toml", "pyproject.toml"
"""Configuration files: cumatrix's own, or the project's."""

VARIABLE = "CUMATRIX_CONFIG"
"""Environment variable with the path of the file, or ``none`` for no configuration."""

_FIRST = 1_000_000  # bytes that are searched of a pyproject.toml
# Possible starts of a table for cumatrix in any spelling; parsing the file excludes other matches.
_TABLE = re.compile(
    rb"""^(?:\xef\xbb\xbf)?[ \t]*\[{0,2}[ \t]*["']?tool["']?[ \t]*(?:\.[ \t]*["']?cumatrix\b|[\]=])""",
    re.MULTILINE,
)


def found(start: Path) -> Path | None:
    """Return the configuration file of `start` or of the nearest folder above it.

    The search ends at the top folder of a repository and at the home folder.

    Raises
    ------
    UsageError
        If ``CUMATRIX_CONFIG`` names no file, or a folder has two configurations.
    """
    named = os.environ.get(VARIABLE, "")
    if named:
        if named != "none" and not Path(named).is_file():
            raise UsageError(f"{VARIABLE} names {named}, and there is no such file")
        return None if named == "none" else Path(named).absolute()
    for folder in (start, *start.parents):
        own, shared = folder / OWN, folder / PYPROJECT
        has_own, has_shared = own.is_file(), _configures(shared)
        if has_own and has_shared:
            from harness.cases.toml import failure

            raise failure(
                os.path.relpath(shared, start),
                f"[tool.cumatrix] is here, and {OWN} is next to it: keep one of them",
            )
        if has_own or has_shared:
            return own if has_own else shared
        if (folder / ".git").exists() or folder == Path.home():
            break
    return None


def _configures(path: Path) -> bool:
    """Return whether a ``pyproject.toml`` has a table for cumatrix; other errors in the file are ignored."""
    try:
        with open(path, "rb") as file:
            data = file.read(_FIRST)
    except OSError:
        return False
    if not _TABLE.search(data):
        return False
    import tomllib

    try:
        tools = tomllib.loads(data.decode("utf-8-sig")).get("tool", {})
    except (ValueError, RecursionError):
        return b"[tool.cumatrix" in data  # the reader of the file reports the errors
    return isinstance(tools, dict) and "cumatrix" in tools


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]{1,300})"|<([^>\n]{1,300})>)', re.MULTILINE)

_SKIPPED = frozenset("node_modules __pycache__ site-packages dist venv".split())
_VENDORED = frozenset("third_party third-party thirdparty 3rdparty external extern vendor submodules _deps".split())
_MODULE = re.compile(r"^[ \t]*path[ \t]*=[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_MOST_FILES, _LARGEST = 50_000, 2_000_000
# System headers of the C standard and POSIX (https://pubs.opengroup.org/onlinepubs/9799919799/idx/head.html). Projects
# have files of these names for systems that lack them.
_SYSTEM = frozenset(
    f"{name}.h"
    for name in (
        "aio arpa/inet assert complex ctype dirent dlfcn errno fcntl fenv float fnmatch getopt glob grp iconv inttypes iso646 langinfo "
        "libgen limits locale malloc math memory monetary netdb netinet/in netinet/tcp nl_types poll pthread pwd regex sched search "
        "semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings sys/ipc "
        "sys/mman sys/resource sys/select sys/shm sys/socket sys/stat sys/statvfs sys/time sys/times sys/types sys/uio sys/un sys/wait "
        "syslog tar termios tgmath threads time uchar unistd utime utmpx wchar wctype wordexp"
    ).split()
)
_HEADERS = (".h", ".cuh", ".hpp", ".hh", ".inl")


@dataclass(frozen=True)
class ProjectFiles:
    """The files of a project, by names relative to its folder."""

    root: Path
    files: tuple[str, ...]

    def named(self, *suffixes: str) -> list[str]:
        """Return the files with these suffixes."""
        return [name for name in self.files if name.endswith(suffixes)]

    def text(self, name: str) -> str:
        """Return the text of a source; empty if it is too large."""
        path = self.root / name
        if path.stat().st_size > _LARGEST:
            return ""
        return path.read_text("utf-8", "replace")


def headers_of(project: ProjectFiles) -> dict[str, list[str]]:
    """Return the headers of a project by file name."""
    headers: dict[str, list[str]] = {}
    for name in project.named(*_HEADERS):
        headers.setdefault(os.path.basename(name), []).append(name)
    return headers


def files_in(root: Path, others: dict[str, str] | None = None) -> Iterator[str]:
    """Yield the project's own files.

    Hidden folders, builds, environments, cases and sources of other projects are skipped.

    Parameters
    ----------
    root : Path
        Folder of the project.
    others : dict, optional
        Receives the folders with sources of other projects, with reasons.
    """
    found = {} if others is None else others
    modules = _submodules(root)
    count = 0
    for folder, folders, names in os.walk(root):
        place = _place(folder, root)
        if place != "." and _is_project(names):
            found[place] = "another project, with a license and a build of its own"
            folders.clear()
            continue
        folders[:] = sorted(
            name for name in folders
            if not name.startswith(".") and name not in _SKIPPED and not name.startswith("build")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg")) and not os.path.exists(os.path.join(folder, name, "case.toml"))
        )  # fmt: skip
        for name in tuple(folders):
            inner = _place(os.path.join(folder, name), root)
            if name in _VENDORED or inner in modules:
                found[inner] = "a submodule" if name not in _VENDORED else "a folder for sources of other projects"
                folders.remove(name)
        for name in sorted(names):
            count += 1
            if count > _MOST_FILES:
                return
            if not os.path.isfile(os.path.join(folder, name)):
                continue  # reading a pipe may never end
            yield _place(os.path.join(folder, name), root)


def _place(path: str, root: Path) -> str:
    return Path(os.path.relpath(path, root)).as_posix()


def _submodules(root: Path) -> list[str]:
    try:
        return _MODULE.findall((root / ".gitmodules").read_text("utf-8", "replace"))
    except OSError:
        return []


def _is_project(names: Collection[str]) -> bool:
    licensed = any(name.startswith(("LICENSE", "COPYING")) for name in names)
    return licensed and not {"CMakeLists.txt", "setup.py", "pyproject.toml", "meson.build"}.isdisjoint(names)


def header_of(project: ProjectFiles, name: str, pair: tuple[str, str], headers: Mapping[str, list[str]]) -> str:
    """Return the project's file that an ``#include`` names; empty for a header from elsewhere."""
    quoted, pointed = pair
    wanted = quoted or pointed
    if pointed in _SYSTEM:
        return ""
    near = os.path.normpath(os.path.join(os.path.dirname(name), wanted))
    if quoted and (project.root / near).is_file():
        return near if not near.startswith("..") else ""
    of_name = headers.get(os.path.basename(wanted), ())
    return next((header for header in of_name if header == wanted or header.endswith(f"/{wanted}")), "")


def folder_of(
    project: ProjectFiles, name: str, pair: tuple[str, str], headers: Mapping[str, list[str]]
) -> Iterator[str]:
    """Yield the project's folder with a header, unless it is the program's own folder."""
    wanted = pair[0] or pair[1]
    if pair[0] and (project.root / os.path.dirname(name) / wanted).is_file():
        return
    header = header_of(project, name, pair, headers)
    if header == wanted or header.endswith(f"/{wanted}"):
        yield header.removesuffix(wanted).rstrip("/") or "."


def some(names: list[str]) -> str:
    """Return the first names and the number of further ones."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
