"""Development builds: ``--with "cupy @ git+https://…@main"``, ``-e ../numba-cuda``, ``cupy=../venv``."""

from __future__ import annotations

import configparser
import csv
import hashlib
import io
import json
import os
import re
import stat
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from harness.environments.releases import NAMES, Python
from harness.environments.requirements import companions
from harness.environments.store import MANIFEST, EnvironmentStore, Made
from harness.errors import PartUnavailable, UsageError, did_you_mean
from harness.libraries import LIBRARIES
from harness.process_locks import alone, work_folder
from harness.toolkits.download import run_uv
from harness.toolkits.header_sources import Repository, read_source
from harness.web.address import AddressError, redact, refuse_credentials

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_EXTRAS = r"(?:\[(?P<extras>[A-Za-z0-9._,\s-]+)\])?"
_AT = re.compile(
    rf"(?P<name>[A-Za-z0-9._-]+){_EXTRAS}(?:\s+@\s*|\s*@\s+|@(?=git\+|https?:|[./~]))(?P<target>.+)", re.DOTALL
)
_EDITABLE = re.compile(rf"(?:-e|--editable)(?:\s+|=)(?P<path>.+?){_EXTRAS}", re.DOTALL)
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
# Files that builds, Python and version control leave in a source tree.
_LEFT = re.compile(r"\.git|build|dist|__pycache__|\.venv|.*\.egg-info|\.(?:mypy|pytest|ruff)_cache|\.tox")


@dataclass(frozen=True, kw_only=True)
class Development:
    """A build that is not a release on the index, or an existing environment.

    Parameters
    ----------
    text : str
        The user's text.
    library : str
        Name of the library under test, whose backends run in its environment.
    distribution : str
        The distribution to install.
    requirement : str
        Requirement for uv: ``numba-cuda @ git+https://…@3f2a9c1…``; for an editable install, its folder.
    editable : bool
        Whether to install it in editable mode.
    python : str
        An interpreter that already has the library; then nothing is installed.
    identity : str
        Identifies the environment: a commit, the hash of a wheel, or the state of a folder.
    commit : str
        Full hash of the repository's commit; empty otherwise.
    number : int
        Number of commits in its history (`harness.git.number_of`); 0 if unknown.
    extras : tuple of str
        Extras of the distribution whose requirements are installed too.
    """

    text: str
    library: str
    distribution: str = ""
    requirement: str = ""
    editable: bool = False
    python: str = ""
    identity: str = ""
    commit: str = ""
    number: int = 0
    extras: tuple[str, ...] = ()

    @property
    def cuda(self) -> int:
        """The major CUDA release that the build loads; 0 for any."""
        return int((LIBRARIES[self.library].distributions.get(self.distribution) or "0").split(".")[0])


def split_with(texts: Sequence[str], base: Path, *, offline: bool = False) -> tuple[list[str], list[Development]]:
    """Split the values of ``--with`` into releases, unchanged, and development builds.

    A branch resolves to its current commit, a range of commits to one build per commit.

    Raises
    ------
    UsageError
        If a value is invalid, names a missing file or folder, or names a library that cumatrix does not know.
    PartUnavailable
        If a repository cannot be reached.
    """
    releases: list[str] = []
    builds: list[Development] = []
    for text in texts:
        stripped = text.strip()
        try:
            if found := _EDITABLE.fullmatch(stripped):
                made = [_editable(stripped, _path(found["path"].strip(), base))]
                builds += _with_extras(made, found["extras"])
            elif found := _AT.fullmatch(stripped):
                made = _at(stripped, found["name"], found["target"].strip(), base, offline=offline)
                builds += _with_extras(made, found["extras"])
            else:
                kept, there = _environments(stripped, base)
                releases += [kept] if kept else []
                builds += there
        except UsageError as error:
            raise UsageError(f"--with {redact(text)!r}: {error}") from None
    return releases, builds


def _with_extras(builds: Sequence[Development], text: str | None) -> list[Development]:
    extras = tuple(sorted({canonicalize_name(word.strip()) for word in (text or "").split(",") if word.strip()}))
    if not extras:
        return list(builds)
    return [replace(build, extras=extras, identity=f"{build.identity} [{','.join(extras)}]") for build in builds]


def _path(text: str, base: Path) -> Path:
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    return Path(os.path.normpath(base.absolute() / Path(text).expanduser()))


def _environments(text: str, base: Path) -> tuple[str, list[Development]]:
    """Split ``cupy=13,../venv`` into the text that names releases and the existing environments."""
    name, equals, spec = text.partition("=")
    words = [word.strip() for word in spec.split(",")]
    places = [word for word in words if "/" in word]
    if not equals or not places:
        return text, []
    library = _library(canonicalize_name(name.strip()))
    found = [Development(text=text, library=library, python=_interpreter(_path(word, base))) for word in places]
    rest = ",".join(word for word in words if word not in places)
    return f"{name}={rest}" if rest else "", found


def _interpreter(path: Path) -> str:
    python = path / "bin" / "python" if path.is_dir() else path
    if not os.access(python, os.X_OK) or python.is_dir():
        raise UsageError(f"there is no Python at {str(path)!r}: name an interpreter, or the folder of an environment")
    return str(python)


def _library(name: str) -> str:
    """Return the library of a name, which may be the name of one of its distributions."""
    found = next((own for own, library in LIBRARIES.items() if name in library.distributions and own in NAMES), name)
    if found not in NAMES:
        raise UsageError(f"unknown library {name!r}{did_you_mean(name, NAMES)}")
    return found


def _editable(text: str, folder: Path) -> Development:
    distribution, library = _project(folder)
    projects = [hashlib.sha256(path.read_bytes()).hexdigest() for path in _project_files(folder)]
    return Development(
        text=text, library=library, distribution=distribution, requirement=str(folder), editable=True,
        identity=f"editable {folder} {' '.join(projects)}",
    )  # fmt: skip


def _at(text: str, name: str, target: str, base: Path, *, offline: bool) -> list[Development]:
    library = _library(canonicalize_name(name))
    build = Development(text=text, library=library, distribution=_last(library, canonicalize_name(name)))
    if target.startswith(("https://", "http://")):
        try:
            refuse_credentials(target)
        except AddressError as error:
            raise UsageError(f"{redact(target)!r}: {error}") from None
        return [_of_wheel(build, target, unquote(urlsplit(target).path), identity=target)]
    path = None if target.startswith("git+") else _path(target, base)
    if path and path.is_file():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return [_of_wheel(build, path.as_uri(), path.name, identity=digest)]
    if path and path.suffix == ".whl":
        raise UsageError(f"there is no file {str(path)!r}")
    if path and path.is_dir():
        distribution, own = _project(path)
        if own != library:
            raise UsageError(f"the project in {str(path)!r} is {distribution}, not {name}")
        found = replace(build, distribution=distribution, requirement=f"{distribution} @ {path.as_uri()}")
        return [replace(found, identity=f"{path} {_state(path)}")]
    source = read_source(target if "/" in target else f"./{target}", base)
    below = f"#subdirectory={source.subfolder}" if source.subfolder else ""
    repository = Repository(source.url, offline=offline)
    return [
        replace(
            build,
            requirement=f"{build.distribution} @ git+{source.url}@{commit}{below}",
            identity=f"{source.url} {commit}{below}",
            commit=commit,
            number=repository.number(commit),
        )
        for commit in repository.commits(source.revision, source.last)
    ]


def _last(library: str, name: str) -> str:
    """Return the distribution that a source tree builds: the named one, or the one for any CUDA."""
    known = LIBRARIES[library].distributions
    return name if name in known else next(reversed(list(known)))


def _of_wheel(build: Development, address: str, name: str, *, identity: str) -> Development:
    try:
        own = str(parse_wheel_filename(name.rsplit("/", 1)[-1])[0])
    except InvalidWheelFilename:
        raise UsageError(f"{name.rsplit('/', 1)[-1]!r} is no wheel: name a .whl file, a folder, or git+ADDRESS@REVISION") from None  # fmt: skip
    if own not in LIBRARIES[build.library].distributions:
        raise UsageError(f"{name.rsplit('/', 1)[-1]!r} is a wheel of {own}, not of {build.library}")
    return replace(build, distribution=own, requirement=f"{own} @ {address}", identity=identity)


def _project_files(folder: Path) -> list[Path]:
    return [folder / name for name in _PROJECT if (folder / name).is_file()]


def _project(folder: Path) -> tuple[str, str]:
    """Return the distribution and library of a source tree, from its project's name or the package in it."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {str(folder)!r}")
    if not _project_files(folder):
        raise UsageError(f"{str(folder)!r} holds no Python project: it has neither {' nor '.join(_PROJECT)}")
    name = canonicalize_name(_named(folder))
    for own in NAMES:
        library = LIBRARIES[own]
        if name in library.distributions:
            return name, own
        if not name and (folder / library.modules[0] / "__init__.py").is_file():
            return _last(own, ""), own
    raise UsageError(
        f"the project in {str(folder)!r} is {name or 'one without a name'}, and none of {', '.join(NAMES)}"
    )


def _named(folder: Path) -> str:
    try:
        table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
        name = table.get("project", {}).get("name")
        if isinstance(name, str):
            return name
    except OSError:
        pass
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{folder / 'pyproject.toml'} cannot be read: {error}") from None
    parser = configparser.RawConfigParser()
    try:
        parser.read(folder / "setup.cfg", "utf-8")
        return parser.get("metadata", "name", fallback="")
    except (configparser.Error, ValueError) as error:
        raise UsageError(f"{folder / 'setup.cfg'} cannot be read: {error}") from None


def _state(folder: Path) -> str:
    """Hash the names, sizes and modification times of the files of a source tree."""
    digest = hashlib.sha256()
    for path, status in _files(folder):
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _LEFT.fullmatch(name))
        for name in sorted(names):
            path = os.path.join(parent, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                yield path, status


def build(wanted: Development, python: Python, store: EnvironmentStore) -> Made:
    """Create the environment of a build, completely or not at all, unless it exists.

    An editable install is created once, and again if its project's files change: imports read its folder.

    Raises
    ------
    PartUnavailable
        If the build fails, or a dependency is unavailable; the message includes uv's output.
    """
    words = json.dumps([wanted.library, wanted.distribution, wanted.identity, python.path, python.version])
    key = f"{wanted.distribution}-build-python{python.minor}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
    store.ready()
    with alone(store.root, key, wanted.text, store.tell, store.wait):
        if found := store.read(key):
            return found
        if store.offline:
            raise PartUnavailable(f"{wanted.text} is not built, and --offline downloads nothing: run it once without")
        store.tell(f"building {wanted.text} for Python {python.minor}")
        with work_folder(store.root, key) as folder:
            home = folder / "home"
            run_uv(wanted.text, ["venv", "--relocatable", "--no-project", "--python", python.path, str(home)], folder)
            packages = _install(wanted, home, folder)
            manifest = {
                "library": wanted.library,
                "version": packages[wanted.distribution],
                "python": asdict(python),
                "packages": packages,
                "requirements": [wanted.requirement],
                "released": "",
            }
            (home / MANIFEST).write_text(json.dumps(manifest), "utf-8")
            os.replace(home, store.root / key)
    made = store.read(key)
    if made is None:
        raise PartUnavailable(f"{wanted.text}: {python.path} makes no environment that can be used")
    return made


def _install(wanted: Development, home: Path, folder: Path) -> dict[str, str]:
    """Build and install the distribution, then its dependencies; return the installed versions."""
    from packaging.requirements import (
        Requirement,  # a tenth of a run's import time
    )

    def pip(*words: str) -> None:
        install = ["pip", "install", "--python", str(home / "bin" / "python")]
        run_uv(wanted.text, [*install, *words], folder, built=True)

    # By default, uv considers an earlier build of a folder to be current.
    new = ["--no-deps", "--reinstall-package", wanted.distribution]
    pip(*new, *(["-e"] if wanted.editable else []), wanted.requirement)
    found = next((each for each in _there(home) if canonicalize_name(each.name) == wanted.distribution), None)
    if found is None:
        names = ", ".join(sorted(each.name for each in _there(home))) or "nothing"
        raise PartUnavailable(f"{wanted.text} was to build {wanted.distribution}, and built {names}")
    companions = _companions(wanted.library, found.version)
    requirements = folder / "requirements.txt"
    # Keep the existing packages, because they are the requested ones.
    kept = folder / "constraints.txt"
    kept.write_text(f"{wanted.distribution}=={found.version}\n", "utf-8")
    own = [*(found.requires or []), *_of_extras(map(Requirement, found.requires or []), wanted)]
    for attempt in (companions, [Requirement(text).name for text in companions]):
        requirements.write_text("".join(f"{text}\n" for text in [*own, *attempt]), "utf-8")
        try:
            pip("-c", str(kept), "-r", str(requirements))
            break
        except PartUnavailable:
            # A build newer than the table of libraries may need newer dependencies.
            if attempt != companions:
                raise
    return {canonicalize_name(each.name): each.version for each in _there(home)}


def _of_extras(requirements: Iterable[Requirement], wanted: Development) -> Iterator[str]:
    """Yield the requirements of a build's extras, without their markers."""
    for each in requirements:
        if each.marker and any(each.marker.evaluate({"extra": extra}) for extra in wanted.extras):
            each.marker = None
            yield str(each)


def _companions(library: str, version: str) -> list[str]:
    try:
        return list(companions(library, Version(version), dated=False))
    except InvalidVersion:
        return []


def _there(home: Path) -> list[Distribution]:
    return list(distributions(path=list(map(str, (home / "lib").glob("python3.*/site-packages")))))


# Files that an installer adds to a wheel's files.
_INSTALLERS = re.compile(r"__pycache__/|\.dist-info/(?:RECORD|INSTALLER|REQUESTED|direct_url\.json)$|^(?:\.\./)+bin/")
_MOST_PACKED = 2 << 30


def pack(home: Path, name: str, folder: Path) -> Path:
    """Pack a distribution of an environment, with its installed files, into a wheel.

    Parameters
    ----------
    home : Path
        The environment.
    name : str
        The distribution, not in editable mode.
    folder : Path
        The folder to write the wheel to.

    Raises
    ------
    PartUnavailable
        If the environment does not list the distribution's files, or the files exceed the size limit.
    """
    found = next((each for each in _there(home) if canonicalize_name(each.name) == name), None)
    files = [file for file in (found.files or [] if found else []) if not _INSTALLERS.search(file.as_posix())]
    tags = re.findall(r"^Tag: *(\S+)", (found.read_text("WHEEL") or "") if found else "", re.MULTILINE)
    information = next((file.parts[0] for file in files if file.match("*.dist-info/METADATA")), "")
    if not found or not tags or not information:
        raise PartUnavailable(f"{home} has no list of the files of {name}")
    if sum(os.stat(file.locate()).st_size for file in files) > _MOST_PACKED:
        raise PartUnavailable(
            f"{name} has more than {_MOST_PACKED >> 30} GiB of files, too much for a folder to be handed on"
        )
    tag = "-".join(".".join(dict.fromkeys(words)) for words in zip(*(tag.split("-") for tag in tags), strict=True))
    wheel = folder / f"{information.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        lines = []
        for file in sorted(files):
            # Data files are outside site-packages.
            place = re.sub(r"^(?:\.\./)+", f"{information.removesuffix('.dist-info')}.data/data/", file.as_posix())
            data = file.read_binary()
            entry = zipfile.ZipInfo(place)  # dated 1980: the same files make the same wheel
            entry.external_attr = os.stat(file.locate()).st_mode << 16
            packed.writestr(entry, data, zipfile.ZIP_DEFLATED)
            digest = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append([place, f"sha256={digest}", len(data)])
        record = io.StringIO()
        csv.writer(record, lineterminator="\n").writerows([*lines, [f"{information}/RECORD", "", ""]])
        packed.writestr(zipfile.ZipInfo(f"{information}/RECORD"), record.getvalue(), zipfile.ZIP_DEFLATED)
    return wheel
