"""Real projects: `init` proposes, `try` compiles, and the outcome equals nvcc's or NVRTC's. Run it by hand on folders that you have fetched.

CUMATRIX_PROJECTS=~/cuda-samples:~/llm.c:~/numba-cuda CUMATRIX_PROJECTS_OUT=cells.csv pytest -n 0 tests/project/test_real.py
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command

from harness.toolkits import Installed

ROOT = Path(__file__).parents[2]
FOLDERS = [Path(text) for text in os.environ.get("CUMATRIX_PROJECTS", "").split(os.pathsep) if text]
MOST = int(os.environ.get("CUMATRIX_PROJECTS_MOST", "12"))
OUT = os.environ.get("CUMATRIX_PROJECTS_OUT", "")
TARGET, RELEASE = "sm_90", "13.0"

pytestmark = [
    pytest.mark.compilers, pytest.mark.timeout(7200),
    pytest.mark.skipif(not FOLDERS, reason="by hand: CUMATRIX_PROJECTS names folders of projects, such as cuda-samples and llm.c"),
]  # fmt: skip


def _proposed(project: Path) -> dict[str, dict[str, Any]]:
    """Return the CUDA C++ programs that `init` has written, each with its table."""
    own = project / "cumatrix.toml"
    if own.is_file():
        config = tomllib.loads(own.read_text())
    else:
        config = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["cumatrix"]
    tables = config.get("programs", [config])
    return {
        file.relative_to(project).as_posix(): table
        for table in tables
        for pattern in table.get("sources", ())
        for file in sorted(project.glob(pattern))
        if file.suffix == ".cu" and table.get("language") != "torch"
    }


def _options(project: Path, table: dict[str, Any], backend: str) -> Iterator[str]:
    """Return the keys of a table as nvcc's and NVRTC's own options."""
    for folder in table.get("include", ()):
        yield f"-I{project / folder}"
    for macro in table.get("define", ()):
        yield f"-D{macro}"
    if "std" in table:
        yield f"-std={table['std']}"
    if {"rdc": True} in table.get("options", ()):
        yield "-rdc=true"
    for flag in table.get("flags", ()):
        whose, colon, option = flag.partition(":")
        if not colon or whose == backend:
            yield option if colon else flag


def _by_hand(
    home: Path, project: Path, name: str, table: dict[str, Any], backend: str
) -> tuple[str, str, dict[str, int]]:
    """Compile in a separate process, since a compiler can crash and a process loads only one NVRTC; return status, SHA-256 of the cubin, and registers."""
    words = [backend, str(home), str(project / name), TARGET, *_options(project, table, backend)]
    script = ROOT / "benchmarks" / "agreement.py"
    done = subprocess.run([sys.executable, script, "by-hand", *words], capture_output=True, text=True, timeout=900)
    if not done.stdout:
        return "crashed", "", {}
    status, cubin, registers = json.loads(done.stdout)
    return status, cubin, registers


@pytest.mark.parametrize("folder", FOLDERS or [Path()], ids=lambda folder: folder.name)
def test_outcomes_are_the_compilers_own(
    folder: Path, tmp_path: Path, cumatrix: Command, toolkit: Callable[[str], Installed]
) -> None:
    home = toolkit(RELEASE).home
    project = tmp_path / "project"
    shutil.copytree(folder, project, ignore=shutil.ignore_patterns(".git"))
    cumatrix.folder = project
    done = cumatrix("init")
    assert done.returncode == 0, done.stderr
    every = _proposed(project)
    found = {path.relative_to(project).as_posix() for path in project.rglob("*.cu")}
    print(f"{folder.name}: {len(found)} files, {len(every)} proposed")
    names = sorted(every)[:: max(1, len(every) // MOST)]
    rows = []
    for name in names:
        table = every[name]
        backends = table.get("backends") or ["nvcc", "nvrtc"]
        said = cumatrix("try", name, "-b", ",".join(backends), "-t", RELEASE, "-a", TARGET, "--json", timeout=1800)
        records = {record["backend"]: record for record in map(json.loads, said.stdout.splitlines())}
        assert records.keys() == set(backends), said.stderr
        for backend, record in records.items():
            status, cubin, registers = _by_hand(home, project, name, table, backend)
            artifact = record["artifact"] or {"kernels": [], "sha256": ""}
            kernels = {each["name"]: each["num_regs"] for each in artifact["kernels"]}
            same = not registers or all(kernels.get(kernel) == number for kernel, number in registers.items())
            why = record["reason"] or next((each["message"] for each in record["diagnostics"]), "")
            rows.append(
                [
                    folder.name,
                    name,
                    backend,
                    record["status"],
                    status,
                    same,
                    artifact["sha256"] == cubin,
                    len(kernels),
                    why,
                ]
            )
    if OUT:
        with open(OUT, "a", newline="") as file:
            csv.writer(file).writerows(rows)
    # Direct calls reject missing parts of CUDA, too, and options that a backend does not support.
    alike = {"unavailable": "rejected", "unsupported": "rejected"}
    assert rows
    assert [row for row in rows if alike.get(row[3], row[3]) != row[4] or not row[5]] == []
