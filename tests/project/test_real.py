"""Projects of others, as they are: `init` proposes, `try` compiles, and the outcome is nvcc's own. By hand, with folders that somebody has fetched.

CUMATRIX_PROJECTS=~/cuda-samples:~/llm.c pytest tests/project/test_real.py
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.project.files import INCLUDE, ProjectFiles, files_in, folder_of, headers_of
from harness.project.look import look
from harness.project.loose import kind_of
from harness.project.propose import proposal

ROOT = Path(__file__).parents[2]
FOLDERS = [Path(text) for text in os.environ.get("CUMATRIX_PROJECTS", "").split(os.pathsep) if text]
MOST = 12

pytestmark = [
    pytest.mark.compilers, pytest.mark.timeout(7200),
    pytest.mark.skipif(not FOLDERS, reason="by hand: CUMATRIX_PROJECTS names folders of projects, such as cuda-samples and llm.c"),
]  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS or [Path()], ids=lambda folder: folder.name)
def test_outcomes_are_nvcc_s_own(folder: Path, tmp_path: Path, toolkit: Callable[[str], object]) -> None:
    toolkit("13.0")
    found = look(folder)
    assert found.programs, found.left_out
    assert proposal(found, ())
    project = ProjectFiles(folder, tuple(files_in(folder)))
    names = [name for name in project.named(".cu") if kind_of(project.text(name)) != "torch"][:MOST]
    headers = headers_of(project)
    include = dict.fromkeys(
        place
        for name in names
        for pair in INCLUDE.findall(project.text(name))
        for place in folder_of(project, name, pair, headers)
    )
    out = tmp_path / "cells.csv"
    argv: list[str | Path] = [
        sys.executable, ROOT / "benchmarks" / "agreement.py", "nvcc", "13.0", "sm_90", out, "--device-only",
        *(f"-I{folder / place}" for place in include), *(folder / name for name in names),
    ]  # fmt: skip
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(argv, check=True, timeout=7000, env={**os.environ, "PATH": path})
    with out.open() as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == len(names) > 0
    # Cubins may differ from one run of nvcc to the next (docs/agreement.md); what happened, and registers, do not.
    answered = [cell for cell in cells if cell["verdict"] != "answered otherwise"]
    assert answered
    assert [cell for cell in answered if cell["cumatrix"] != cell["by hand"] or cell["registers"] != "True"] == []
