#!/usr/bin/env python3
"""Build and rehearse releases.

`rehearse` builds a release of this commit and installs it from a local index, with uvx and with pipx. `check TAG` reports whether a tag
may be released. `make TAG` writes the files of a release. `names` copies the name of the distribution and the address of the repository
from pyproject.toml to all other files. Requires uv.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

LARGEST = 8_000_000
"""Maximum size of a wheel in bytes."""

PLACEHOLDER = "OWNER"
"""Owner of a repository without a public address."""


class Names(NamedTuple):
    """Names from pyproject.toml: the distribution, its extras, and the repository as ``owner/name``."""

    distribution: str
    extras: tuple[str, ...]
    repository: str


def names_of(root: Path = ROOT) -> Names:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    address = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", project["urls"]["Source"])
    if address is None:
        sys.exit("release.py: [project.urls] Source in pyproject.toml has the form https://github.com/OWNER/NAME")
    return Names(project["name"], tuple(project["optional-dependencies"]), address[1])


def renamed(text: str, names: Names) -> str:
    """Replace the names of the distribution and the repository in a text."""
    extras = "|".join(map(re.escape, names.extras))
    text = re.sub(rf"\b[\w-]*cumatrix(?=\[(?:{extras})(?:,(?:{extras}))*\])", names.distribution, text)
    text = re.sub(r"(?<=pypi\.org/p/)[\w-]*cumatrix\b", names.distribution, text)
    return re.sub(r"(?:(?<=github\.com/)|(?<=uses: ))[\w.-]+/[\w-]*cumatrix\b", names.repository, text)


def copies(root: Path = ROOT) -> Iterator[Path]:
    """Yield the tracked files that may name the distribution or the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = root / name
        # Cases are programs under test, and tests contain the unchanged output of compilers.
        if path.suffix in (".md", ".yml", ".yaml", ".toml", ".py", "") and not name.startswith(("cases/", "tests/")):
            yield path


def write_names(root: Path = ROOT) -> list[str]:
    """Write the names to all files; return the changed files."""
    names, changed = names_of(root), []
    for path in copies(root):
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if (new := renamed(text, names)) != text:
            path.write_text(new, "utf-8")
            changed.append(str(path.relative_to(root)))
    return changed


def version_of(root: Path) -> str:
    found = re.search(r'^__version__ = "([^"]+)"', (root / "harness" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        sys.exit("release.py: harness/__init__.py has no __version__")
    return found[1]


def problem(tag: str, root: Path = ROOT) -> str:
    """Return the reason against releasing a tag, in one sentence; empty if there is none."""
    version = version_of(root)
    if tag != f"v{version}":
        return f"the tag is {tag}, the version in harness/__init__.py is {version}: tag v{version}, or change it"
    if not notes(version, root):
        return f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD' with a text"
    return ""


def notes(version: str, root: Path = ROOT) -> str:
    """Return the changelog section of a version, without its title."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    title = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)"
    found = re.search(title, text, re.MULTILINE | re.DOTALL)
    return f"{found[1].strip()}\n" if found and found[1].strip() else ""


def make(tag: str, out: Path, root: Path = ROOT) -> Path:
    """Write source distribution, wheel, checksums and notes of a tag; return the wheel."""
    if message := problem(tag, root):
        sys.exit(f"release.py: {message}")
    if out.is_dir() and any(out.iterdir()):
        sys.exit(f"release.py: {out} is not empty")
    pins = root / ".ci" / "requirements" / "build.txt"
    dated = _run(["git", "log", "-1", "--format=%ct"], cwd=root, quiet=True).strip()
    build: list[str | Path] = [
        "uv",
        "build",
        "-q",
        "--build-constraints",
        pins,
        "--require-hashes",
        "--out-dir",
        out / "dist",
        root,
    ]
    # The commit's time makes the build reproducible.
    _run(build, SOURCE_DATE_EPOCH=dated)
    (out / "dist" / ".gitignore").unlink(missing_ok=True)
    files = sorted((out / "dist").iterdir())
    (wheel,) = [path for path in files if path.suffix == ".whl"]
    if (size := wheel.stat().st_size) > LARGEST:
        sys.exit(f"release.py: {wheel.name} has {size:,} bytes, more than {LARGEST:,}")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / "SHA256SUMS").write_text("".join(sums))
    (out / "notes.md").write_text(notes(tag.removeprefix("v"), root), "utf-8")
    for path in files:
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return wheel


def rehearse(place: Path) -> None:
    """Build a release of the commit, upload it to a local index, and install it with only that index and PyPI."""
    clone = place / "clone"
    _run(["git", "clone", "-q", "--no-hardlinks", ROOT, clone], quiet=True)
    version, distribution = version_of(clone), names_of(clone).distribution
    changelog = clone / "CHANGELOG.md"
    if not notes(version, clone):
        text = changelog.read_text("utf-8").replace(
            "## [Unreleased]", f"## [{version}] - {time.strftime('%Y-%m-%d')}", 1
        )
        changelog.write_text(text, "utf-8")
        _run(
            ["git", "-c", "user.name=rehearsal", "-c", "user.email=", "commit", "-qam", f"Release {version}"], cwd=clone
        )
    wheel = make(f"v{version}", place / "release", clone)
    with index(place / "index") as url:
        upload = ["uv", "publish", "-q", "--publish-url", f"{url}/", "--username", "a", "--password", "a"]
        _run([*upload, *sorted(wheel.parent.iterdir())])
        work = place / "work"
        work.mkdir()
        (work / "kernel.cu").write_text("__global__ void twice(float *a) { a[threadIdx.x] *= 2; }\n")
        (home := place / "home").mkdir()
        kept = ("PATH", "LANG", "SSL_CERT_FILE", "UV_PYTHON_DOWNLOADS")
        env = {**{name: os.environ[name] for name in kept if name in os.environ}, "HOME": str(home)}
        uvx = ["uvx", "-q", "--index", f"{url}/simple/", f"{distribution}=={version}"]
        said = _timed("uvx … ask", [*uvx, "ask", "bf16 wmma sm_75"], work, env)
        if "From the published matrix: " not in said:
            sys.exit("release.py: ask did not answer from the published matrix")
        _timed("uvx … try", [*uvx, "try", "kernel.cu", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80,sm_90"], work, env)
        pipx = ["uvx", "-q", "pipx"]
        install = [
            *pipx,
            "install",
            "-q",
            f"{distribution}=={version}",
            "--pip-args",
            f"--extra-index-url {url}/simple/",
        ]
        _timed("pipx install", install, work, env)
        _timed("pipx: --version", [home / ".local" / "bin" / "cumatrix", "--version"], work, env)
    print("rehearsed; nothing was published")


@contextmanager
def index(folder: Path) -> Iterator[str]:
    """Start a local index that stores uploads in a folder; yield its address."""
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = ["uvx", "-q", "--from", "pypiserver==2.4.2", "pypi-server", "run"]
    options = ["-i", "127.0.0.1", "-p", str(port), "-P", ".", "-a", ".", "--disable-fallback", str(folder)]
    process = subprocess.Popen([*server, *options], start_new_session=True)
    try:
        for _ in range(600):
            if process.poll() is not None:
                sys.exit("release.py: the index on this machine did not start")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 15)
        process.wait(30)


def _timed(what: str, argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> str:
    began = time.monotonic()
    said = _run(argv, cwd=cwd, env=env, quiet=True)
    print(f"{what}: {time.monotonic() - began:.1f} s")
    return said


def _run(
    argv: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None, *, quiet: bool = False, **more: str
) -> str:  # fmt: skip
    if not quiet:
        print(f"+ {shlex.join(map(str, argv))}", flush=True)
    done = subprocess.run(
        list(map(str, argv)), cwd=cwd, env={**(os.environ if env is None else env), **more}, capture_output=True, text=True, timeout=600
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}release.py: {argv[0]} ended with {done.returncode}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="release.py", description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="say why a tag may not be released").add_argument("tag")
    making = commands.add_parser("make", help="write distributions, checksums and notes")
    making.add_argument("tag")
    making.add_argument("--out", type=Path, default=Path("release"))
    commands.add_parser("names", help="write the names that pyproject.toml sets wherever they occur")
    commands.add_parser("rehearse", help="make a release, and install it from an index on this machine")
    asked = parser.parse_args()
    if asked.command == "check":
        message = problem(asked.tag)
        if not message and names_of().repository.startswith(f"{PLACEHOLDER}/"):
            message = f"the repository has the placeholder {PLACEHOLDER}: set [project.urls] Source in pyproject.toml, then run `.ci/release.py names`"
        if message:
            sys.exit(f"release.py: {message}")
    elif asked.command == "make":
        make(asked.tag, asked.out)
    elif asked.command == "names":
        for name in write_names():
            print(name)
    else:
        place = Path(tempfile.mkdtemp(prefix="cumatrix-release-"))
        try:
            rehearse(place)
        finally:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
