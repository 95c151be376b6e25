#!/usr/bin/env python3
"""Generate the lines of tox.ini that follow from the tables of libraries and CUDA releases.

`.ci/tox_environments.py` writes the lines between the marks in tox.ini. `--check` writes nothing: it prints the difference and exits
with 1 if there is any.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.backends import BACKENDS  # noqa: E402 (any Python with only the standard library)
from harness.libraries import DEFAULT_TOOLKIT, LIBRARIES, Library, Release, label_of  # noqa: E402

# Cases of a library's environments: a description, the backends, and the targets if not all. Other libraries use their own backends.
WAYS = {
    "cupy": ("through CuPy, by NVRTC and by Jitify, and through NVRTC alone", "nvrtc,cupy-nvrtc,cupy-jitify", ""),
    "numba": ("through Numba's own CUDA target", "numba", ""),
    "torch": (
        "through PyTorch's extensions, with nvcc and NVRTC alone beside them, for six architectures",
        "torch-nvcc,nvcc,nvrtc",
        "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100",
    ),
    "cuda-core": ("through cuda.core's Program and Linker, and through NVRTC alone", "cuda-core,nvrtc", ""),
    "clang": ("through clang, and through NVRTC alone", "clang,nvrtc", ""),
}
RUNTIMES = {"cuda12x": "nvidia-cuda-runtime-cu12==12.9.*", "cuda13x": "nvidia-cuda-runtime==13.0.*"}
BEGIN, END = "# written by .ci/tox_environments.py from harness/libraries.py", "# up to here"


def way(name: str) -> tuple[str, str, str]:
    """Return description, backends and targets of a library's environments."""
    backends = ",".join(info.name for info in BACKENDS.values() if info.library == name and not info.rocm)
    return WAYS.get(name, (f"through {label_of(name)}", backends, ""))


def cuda_releases() -> list[str]:
    """Return the CUDA releases with a factor: all from 11.8 on."""
    text = (ROOT / "harness" / "toolkits" / "releases.toml").read_text("utf-8")
    return [release for release in tomllib.loads(text) if release != "11.7"]


def factor(release: str) -> str:
    """Return the factor of a CUDA release: ``cuda124``."""
    return "cuda" + release.replace(".", "")


def among(names: Iterable[str]) -> str:
    """Join factors with a common prefix, ``cupy{11,12}``; return a single factor unchanged."""
    found = list(names)
    if len(found) == 1:
        return found[0]
    stem = re.match(r"[a-z]*", found[0])
    assert stem is not None
    return f"{stem[0]}{{{','.join(name.removeprefix(stem[0]) for name in found)}}}"


def of_cuda(major: int, releases: Iterable[str]) -> list[str]:
    """Return the factors of a major release."""
    return [factor(release) for release in releases if release.split(".")[0] == str(major)]


def builds(library: Library, release: Release, cuda: list[str]) -> list[tuple[str, str]]:
    """Return condition and requirement of each build of a release.

    The first major release in `Release.cuda` applies if no factor names another.
    """
    if not release.cuda:
        return [(release.tox, f"{next(iter(library.distributions))}=={release.version}")]
    others = {major: names for major in sorted(release.cuda[1:]) if (names := of_cuda(major, cuda))}
    found = []
    for major in (release.cuda[0], *others):
        condition = f"-{among(others[major])}" if major in others else ""
        if not condition:
            condition = "".join(f"-!{name}" for names in others.values() for name in names)
        found.append((f"{release.tox}{condition}", f"{library.for_cuda(major)}=={release.version}"))
    return found


def env_list(libraries: Mapping[str, Library], _cuda: list[str]) -> list[str]:
    """Return the names of environments, as ``tox list`` shows them. Each name also accepts the factor of a CUDA release."""
    lines = []
    for library in libraries.values():
        lines.append(among(release.tox for release in library.releases))
        if both := [release.tox for release in library.releases if 13 in release.cuda]:
            lines.append(f"{among(both)}-wheels")
    return [*lines, "nvcc"]


def description(libraries: Mapping[str, Library], _cuda: list[str]) -> list[str]:
    """Return the descriptions of the environments."""
    return [
        f"{among(release.tox for release in library.releases)}: the cases {way(name)[0]}"
        for name, library in libraries.items()
    ]


def base_python(libraries: Mapping[str, Library], _cuda: list[str]) -> list[str]:
    """Return the interpreter of each library."""
    return [f"{among(release.tox for release in library.releases)}: python3.11" for library in libraries.values()]


def wheels(libraries: Mapping[str, Library]) -> list[tuple[str, str]]:
    """Return condition and requirement of each build for the environments with CUDA's headers from wheels, of 12.9 and 13.0."""
    return [
        (condition.replace(release.tox, f"{release.tox}-wheels", 1), requirement)
        for library in libraries.values()
        for release in library.releases
        if 13 in release.cuda
        for condition, requirement in builds(library, release, ["13.0"])
    ]


def deps(libraries: Mapping[str, Library], _cuda: list[str]) -> list[str]:
    """Return the requirements of the environments with CUDA's headers from wheels: CuPy, and the wheel with all headers of cupy-cuda12x[ctk]."""
    return [
        f"{condition}: {requirement}"
        for condition, build in wheels(libraries)
        for requirement in (build, RUNTIMES[build.partition("==")[0].removeprefix("cupy-")])
    ]


def set_env(libraries: Mapping[str, Library], cuda: list[str]) -> list[str]:
    """Return the variables of the environments: toolkits, libraries, targets, backends and requirements."""
    newest = max(cuda, key=lambda release: tuple(map(int, release.split("."))))
    toolkits, lines = [f"nvcc: CUMATRIX_TOOLKIT = {{env:CUMATRIX_TOOLKIT:{newest}}}"], []
    for name, library in libraries.items():
        for release in library.releases:
            found = builds(library, release, cuda)
            fits = release.toolkit or library.distributions[found[0][1].partition("==")[0]]
            if fits not in ("", DEFAULT_TOOLKIT):
                toolkits.append(f"{release.tox}: CUMATRIX_TOOLKIT = {{env:CUMATRIX_TOOLKIT:{fits}}}")
            without = "-!wheels" if 13 in release.cuda else ""
            lines.append(f"{release.tox}{without}: CUMATRIX_WITH = {name}={release.version.removesuffix('.*')}")
        every, (_, backends, targets) = among(release.tox for release in library.releases), way(name)
        lines += [f"{every}: CUMATRIX_TARGET = {{env:CUMATRIX_TARGET:{targets}}}"] if targets else []
        lines.append(f"{every}: CUMATRIX_BACKEND = {backends}")
    lines += [f"{condition}: CUMATRIX_REQUIRE = {requirement}" for condition, requirement in wheels(libraries)]
    # tox uses the last matching line: factors of CUDA releases come after the defaults.
    return [*toolkits, *(f"{factor(release)}: CUMATRIX_TOOLKIT = {release}" for release in cuda), *lines]


def between(lines: str) -> Callable[[re.Match[str]], str]:
    """Return a substitution that replaces the lines between the marks."""
    return lambda found: found[1] + lines + found[3]


def written(text: str, libraries: Mapping[str, Library] = LIBRARIES, cuda: list[str] | None = None) -> str:
    """Return the text of tox.ini with the lines that follow from the tables."""
    tested = {name: library for name, library in libraries.items() if library.releases}
    releases = cuda_releases() if cuda is None else cuda
    for setting in (env_list, description, base_python, deps, set_env):
        pattern = rf"(?m)(^{setting.__name__} =\n(?:[ #].*\n)*?    {re.escape(BEGIN)}\n)((?:    .*\n)*?)(    {re.escape(END)}\n)"
        lines = "".join(f"    {line}\n" for line in setting(tested, releases))
        text, count = re.subn(pattern, between(lines), text)
        if count != 1:
            sys.exit(f"tox_environments.py: tox.ini has no lines {BEGIN!r} and {END!r} under {setting.__name__}")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="print what would change, and write nothing")
    path = ROOT / "tox.ini"
    before = path.read_text("utf-8")
    after = written(before)
    if not parser.parse_args().check:
        path.write_text(after, "utf-8")
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(before.splitlines(True), after.splitlines(True), "tox.ini", "tox.ini as it should be")
    )
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main())
