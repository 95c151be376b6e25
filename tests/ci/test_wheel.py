"""The wheel, as the release's workflow builds and tries it."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest
import release
import uv

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.compilers


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    # Through the source distribution, as the workflow does.
    argv = [uv.find_uv_bin(), "build", "--quiet", "--out-dir", str(folder), str(ROOT)]
    subprocess.run(argv, check=True, timeout=800)
    (found,) = folder.glob("*.whl")
    return found


def test_it_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size <= release.LARGEST


def test_the_library_of_cases_is_in_it(wheel: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "cases"], cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("harness/case_library/")}
    assert {name.replace("cases/", "harness/case_library/", 1) for name in listed.stdout.split("\0") if name} <= inside
    assert not [name for name in inside if "__pycache__" in name]


def test_the_published_matrix_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name.rpartition("/")[2] for name in archive.namelist() if name.startswith("harness/matrix_library/")}
    assert {"results.parquet", "answers.json.gz", "manifest.json"} <= inside


@pytest.mark.slow
def test_it_can_be_used_in_an_empty_folder(wheel: Path) -> None:
    env = {**os.environ, "PATH": os.pathsep.join([str(Path(uv.find_uv_bin()).parent), os.environ["PATH"]])}
    done = subprocess.run([ROOT / ".ci" / "try_wheel", wheel], capture_output=True, text=True, timeout=800, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed in " in done.stdout
