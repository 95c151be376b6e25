"""Parallel development builds: each is a column of its own, and the cache never answers with another build's outcome or an outdated one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uv
from command import Command
from repositories import Repository

from harness.toolkits import Installed

pytestmark = pytest.mark.compilers

# The kernel's shared memory shows which build compiled it.
KERNEL = """
import numba_cuda
from numba import cuda, float32

SIZE = numba_cuda.BUILD

@cuda.jit("void(float32[:])")
def kernel(out):
    shared = cuda.shared.array(SIZE, float32)
    shared[cuda.threadIdx.x] = out[0]
    cuda.syncthreads()
    out[0] = shared[0]
"""
CUPY_KERNEL = 'extern "C" __global__ void kernel(float *x) { __shared__ float s[EDIT]; s[threadIdx.x] = *x; __syncthreads(); *x = s[0]; }\n'

PROJECT = """
[build-system]
requires = ["setuptools==80.9.0"]
build-backend = "setuptools.build_meta"

[project]
name = "numba-cuda"
version = "0.15.0"
dependencies = ["numba"]
"""
# numba-cuda comes with a .pth file that replaces numba.cuda, also in editable installs.
SETUP = """
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import _TopLevelFinder, editable_wheel

HOOK = "_numba_cuda_redirector.pth"

class Build(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            shutil.copy(HOOK, self.build_lib)

class Finder(_TopLevelFinder):
    def get_implementation(self):
        yield from super().get_implementation()
        yield HOOK, Path(HOOK).read_text()

class Editable(editable_wheel):
    def _select_strategy(self, name, tag, build_lib):
        return Finder(self.distribution, name)

setup(
    packages=["numba_cuda"],
    package_data={"numba_cuda": ["**/*"]},
    py_modules=["_numba_cuda_redirector"],
    cmdclass={"build_py": Build, "editable_wheel": Editable},
)
"""


def site_of(python: str) -> Path:
    """Return the folder of an environment's packages."""
    (site,) = Path(python).parent.parent.glob("lib/python3.*/site-packages")
    return site


@pytest.fixture
def home(tmp_path: Path, toolkit: Callable[[str], Installed]) -> dict[str, str]:
    """Return variables for a data folder of the test, with CUDA 12.4 and a cache."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "toolkits").symlink_to(toolkit("12.4").home.parent)
    return {"CUMATRIX_HOME": str(folder), "CUMATRIX_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def numba_cuda(tmp_path: Path, venv: Callable[..., str]) -> Repository:
    """Return a repository of numba-cuda 0.15.0."""
    site, folder = site_of(venv("numba-cuda==0.15.0")), tmp_path / "numba-cuda"
    shutil.copytree(site / "numba_cuda", folder / "numba_cuda", ignore=shutil.ignore_patterns("__pycache__", "tests"))
    for name in ("_numba_cuda_redirector.pth", "_numba_cuda_redirector.py"):
        shutil.copy(site / name, folder)
    repository = Repository(folder)
    repository.write({"pyproject.toml": PROJECT, "setup.py": SETUP, ".gitignore": "build/\n*.egg-info/\n"})
    return repository


def build(repository: Repository, number: int) -> dict[str, str]:
    """Return the library's file that differs between builds."""
    kept = (repository.folder / "numba_cuda" / "__init__.py").read_text().partition("\nBUILD")[0]
    return {"numba_cuda/__init__.py": f"{kept}\nBUILD = {number}\n"}


def shown(records: list[dict[str, Any]]) -> dict[str, tuple[int, bool]]:
    """Return, by column, the build that answered, and whether the cache answered."""
    for record in records:
        assert record["status"] == "built", (record["reason"], record["log"])
    return {
        record["library"]: (record["artifact"]["kernels"][0]["shared_bytes"] // 4, record["cached"])
        for record in records
    }


@pytest.mark.slow
def test_builds_of_one_version_are_columns_of_their_own(
    cumatrix: Command, tmp_path: Path, home: dict[str, str], numba_cuda: Repository, venv: Callable[..., str]
) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    wheels = tmp_path / "wheels"
    numba_cuda.commit(build(numba_cuda, 32))
    subprocess.run(
        [uv.find_uv_bin(), "build", "--quiet", "--wheel", "--python", sys.executable, "-o", wheels, numba_cuda.folder], check=True
    )  # fmt: skip
    (wheel,) = wheels.glob("*.whl")
    revision = numba_cuda.commit(build(numba_cuda, 16), tag="v16")
    head = numba_cuda.commit(build(numba_cuda, 8))
    numba_cuda.write(build(numba_cuda, 64))
    wanted = [
        "--with", "-e ./numba-cuda",
        "--with", f"numba-cuda @ git+{numba_cuda.folder.as_uri()}@v16",
        "--with", f"numba-cuda @ ./wheels/{wheel.name}",
    ]  # fmt: skip
    arguments = ["try", "kernel.py", "-b", "numba-cuda", "-t", "12.4", "-a", "sm_80", *wanted]
    first = cumatrix.records(*arguments, env=home)
    columns = {record["library"]: record["toolchain"]["observed"]["builds"]["numba-cuda"] for record in first}
    edited, tagged, packed = (
        next(name for name in columns if words in name) for words in (".dirty.", f"+git.2.{revision[:7]}", "+build.")
    )
    assert shown(first) == {edited: (64, False), tagged: (16, False), packed: (32, False)}
    assert columns[edited] == {
        "version": "0.15.0", "commit": f"{head}+dirty", "editable": True,
        "path": str(numba_cuda.folder / "numba_cuda"), "url": numba_cuda.folder.as_uri(),
    }  # fmt: skip
    assert columns[tagged]["commit"] == revision
    assert columns[packed]["url"] == wheel.as_uri()
    assert len({record["fingerprint"] for record in first}) == len({record["cell"] for record in first}) == 3
    # The next edit leads to a compilation of that build only.
    numba_cuda.write(build(numba_cuda, 128))
    assert shown(cumatrix.records(*arguments, env=home)) == {
        edited: (128, False),
        tagged: (16, True),
        packed: (32, True),
    }
    # Reverting the edit gives the build at its commit, which was not tried yet.
    numba_cuda.git("checkout", "--quiet", ".")
    clean = f"0.15.0+git.3.{head[:7]}"
    after = cumatrix.records(*arguments[:-4], env=home)
    assert shown(after) == {clean: (8, False)}
    assert after[0]["toolchain"]["observed"]["builds"]["numba-cuda"]["commit"] == head


@pytest.mark.slow
def test_an_environment_that_is_there_counts_with_what_its_path_leads_to(
    cumatrix: Command, tmp_path: Path, home: dict[str, str], venv: Callable[..., str]
) -> None:
    (tmp_path / "kernel.cu").write_text(CUPY_KERNEL)
    site, mine = site_of(venv("cupy-cuda12x==13.6.0")), tmp_path / "mine"
    for name in ("cupy", "cupyx", "cupy_backends"):
        shutil.copytree(
            site / name, mine / name, copy_function=linked, ignore=shutil.ignore_patterns("__pycache__", "tests")
        )
    # The environment contains only a .pth file for the edited CuPy and its dependencies.
    python = Path(venv()).resolve()
    subprocess.run([uv.find_uv_bin(), "venv", "--quiet", "--python", python, tmp_path / "env"], check=True)
    own = tmp_path / "env" / "bin" / "python"
    (site_of(str(own)) / "mine.pth").write_text(f"{mine}\n{site}\n")
    compiler = mine / "cupy" / "cuda" / "compiler.py"
    original = compiler.read_text()

    def edit(number: int) -> None:
        compiler.unlink()  # a link to the environment of the tests
        line = "        prog = _NVRTCProgram(source, cu_path"
        assert line in original
        compiler.write_text(original.replace(line, f"        options += ('-DEDIT={number}',)\n{line}", 1))

    arguments = ["try", "kernel.cu", "-b", "cupy-nvrtc", "-t", "12.4", "-a", "sm_80", "--with", f"cupy={own}"]
    edit(16)
    first = cumatrix.records(*arguments, env=home)
    ((column, seen),) = shown(first).items()
    assert column.startswith("13.6.0+local.") and seen == (16, False)
    told = first[0]["toolchain"]["observed"]["builds"]["cupy-cuda12x"]
    assert told == {"version": "13.6.0", "path": str(mine / "cupy")}
    assert shown(cumatrix.records(*arguments, env=home)) == {column: (16, True)}
    edit(32)
    assert shown(cumatrix.records(*arguments, env=home)) == {column: (32, False)}
    # --python gives the same column; its keys name the folder differently, so the cell is compiled again.
    assert shown(cumatrix.records(*arguments[:-2], "--python", own, env=home)) == {column: (32, False)}


def linked(source: str, target: str) -> None:
    """Create a hard link if possible, else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.mark.slow
def test_commits_of_a_range_are_columns_in_the_order_of_history(
    cumatrix: Command, tmp_path: Path, home: dict[str, str], numba_cuda: Repository
) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    commits = [numba_cuda.commit(build(numba_cuda, number)) for number in (8, 16, 32)]
    while commits[2] > commits[0]:  # otherwise the order of hashes could equal that of history
        numba_cuda.git("commit", "--quiet", "--amend", f"--message={commits[2]}")
        commits[2] = numba_cuda.git("rev-parse", "HEAD")
    wanted = ("--with", f"numba-cuda @ ./numba-cuda@{commits[0]}..main")
    done = cumatrix("try", "kernel.py", "-t", "12.4", "-a", "sm_80", *wanted, "--out", "records.jsonl", env=home)
    assert done.returncode == 0, done.stderr
    columns = [f"0.15.0+git.{number}.{commit[:7]}" for number, commit in enumerate(commits, 1)]
    assert re.findall(r"^ +numba-cuda (\S+)", done.stderr, re.MULTILINE) == columns
    cumatrix("report", "records.jsonl", "--out", "page")
    table = (tmp_path / "page" / "matrix.csv").read_text()
    assert list(dict.fromkeys(re.findall(r"0\.15\.0\+git\.[\w.]+", table))) == columns


@pytest.mark.slow
def test_bisect_finds_the_commit_of_a_library_in_both_forms(
    cumatrix: Command, tmp_path: Path, home: dict[str, str], numba_cuda: Repository
) -> None:
    """Each commit reports another version, and builds of one version differ only in their hash."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    commits = []
    for number in range(1, 8):
        text = PROJECT.replace("0.15.0", f"0.15.{number // 2}")
        # More shared memory than CUDA allows: ptxas rejects it.
        files = build(numba_cuda, 64 if number < 4 else 1 << 20)
        commits.append(numba_cuda.commit({**files, "pyproject.toml": text}))
    common = ("bisect", "kernel.py", "-t", "12.4", "-a", "sm_80", "--json")
    forms: tuple[tuple[str, ...], ...] = (
        ("--over", "git:numba-cuda", "--good", commits[0], "--with", "-e ./numba-cuda"),
        ("--over", "numba-cuda", "--with", f"numba-cuda @ ./numba-cuda@{commits[0]}..main"),
    )
    for form in forms:
        done = cumatrix(*common, *form, env=home)
        assert done.returncode == 0, done.stderr
        (border,) = json.loads(done.stdout)["borders"]
        ends = (border["before"], border["after"])
        assert [wanted.startswith(found) for wanted, found in zip(commits[2:4], ends, strict=True)] == [True, True]
        assert border["kind"] == "broke"
    without = (
        (*forms[0], "--bad", commits[2]),
        (*forms[1][:-1], f"numba-cuda @ ./numba-cuda@{commits[0]}..{commits[2]}"),
    )
    for form in without:
        done = cumatrix(*common, *form, env=home)
        assert (done.returncode, json.loads(done.stdout)["borders"]) == (3, [])
        assert "changes an outcome that both ends have" in done.stderr


@pytest.mark.slow
def test_the_repro_of_a_checkout_has_its_wheel(
    cumatrix: Command, tmp_path: Path, home: dict[str, str], numba_cuda: Repository
) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    commit = numba_cuda.commit(build(numba_cuda, 64))
    numba_cuda.write(build(numba_cuda, 1 << 20))  # more shared memory than CUDA allows: ptxas rejects it
    forms = {
        "edited": ("-e ./numba-cuda", "rejected"),
        "clean": (f"numba-cuda @ ./numba-cuda@{commit}", "built"),
    }
    for name, (wanted, status) in forms.items():
        (of,) = cumatrix.records(
            "try", "kernel.py", "-t", "12.4", "-a", "sm_80", "--with", wanted, "--out", f"{name}.jsonl", env=home
        )
        assert of["status"] == status, of["log"]
        done = cumatrix("repro", "kernel.py", "--results", f"{name}.jsonl", "--out", name, env=home)
        assert done.returncode == 0, done.stderr
    numba_cuda.git("checkout", "--quiet", ".")
    done = cumatrix("repro", "kernel.py", "--results", "edited.jsonl", "--out", "other", env=home)
    assert done.returncode == 2 and "its checkout has changed since" in done.stderr
    # The folders need neither the checkout nor cumatrix.
    shutil.rmtree(numba_cuda.folder)
    shutil.rmtree(tmp_path / "home" / "environments")
    for name, (_, status) in forms.items():
        folder = tmp_path / name
        readme = (folder / "README.md").read_text()
        (wheel,) = folder.glob("*.whl")
        assert f"`{wheel.name}` is a build of commit `{commit}`" in readme
        assert ("The checkout had changes" in readme) is (name == "edited")
        commands = re.search(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        assert commands
        done = subprocess.run(
            ["sh", "-e"], cwd=folder, input=commands[1], capture_output=True, text=True,
            env={**os.environ, "PATH": f"{Path(uv.find_uv_bin()).parent}:{os.environ['PATH']}"},
        )  # fmt: skip
        assert (done.returncode == 0) is (status == "built"), done.stdout + done.stderr
        assert ("built" in done.stdout, "uses too much shared data" in done.stdout + done.stderr) == (
            status == "built",
            status != "built",
        )
