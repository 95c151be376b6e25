"""A release: reasons against it, its files, and the names that are set once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import release

from harness import __version__

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness/__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-21\n\nA kind of cell.\n\n## [1.2.2] - 2026-11-20\n\nOld.\n")  # fmt: skip
    return tmp_path


def test_a_release_needs_the_same_version_everywhere(project: Path) -> None:
    assert release.problem("v1.2.3", project) == ""
    assert release.notes("1.2.3", project) == "A kind of cell.\n"
    assert "the tag is v1.2.4" in release.problem("v1.2.4", project)
    (project / "CHANGELOG.md").write_text("## [Unreleased]\n\nSomething.\n")
    assert "has no section" in release.problem("v1.2.3", project)


def test_a_repository_without_an_address_is_not_released(tmp_path: Path) -> None:
    """`check` reads its own tree."""
    for name in (".ci/release.py", "pyproject.toml", "harness/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(f"## [{__version__}] - 2026-11-21\n\nText.\n")
    setting = (tmp_path / "pyproject.toml").read_text()

    def check() -> tuple[int, str]:
        argv = [sys.executable, str(tmp_path / ".ci/release.py"), "check", f"v{__version__}"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=800)
        return done.returncode, done.stderr

    (tmp_path / "pyproject.toml").write_text(setting.replace(release.names_of().repository, "OWNER/cumatrix"))
    assert "placeholder OWNER" in check()[1]
    (tmp_path / "pyproject.toml").write_text(setting.replace(release.names_of().repository, "somebody/cumatrix"))
    assert check() == (0, "")


def test_names_are_those_that_pyproject_sets() -> None:
    """`.ci/release.py names` fixes it."""
    names = release.names_of()
    other = [
        str(path.relative_to(ROOT))
        for path in release.copies()
        if path.suffix and (text := path.read_text("utf-8")) != release.renamed(text, names)
    ]
    assert other == []


def test_another_name_is_written_everywhere() -> None:
    names = release.Names("cuda-cumatrix", ("report", "cluster"), "somebody/matrix-cumatrix")
    given = "uses: OWNER/cumatrix@C\nhttps://github.com/OWNER/cumatrix/issues\npip install 'cumatrix[report,cluster]' cumatrix.toml cumatrix[0]\nhttps://pypi.org/p/cumatrix\n"
    new = release.renamed(given, names)
    assert new == (
        "uses: somebody/matrix-cumatrix@C\nhttps://github.com/somebody/matrix-cumatrix/issues\n"
        "pip install 'cuda-cumatrix[report,cluster]' cumatrix.toml cumatrix[0]\nhttps://pypi.org/p/cuda-cumatrix\n"
    )
    assert release.renamed(new, names) == new


@pytest.mark.slow
def test_a_release_is_made_uploaded_and_installed_from_an_index(tmp_path: Path) -> None:
    argv = [sys.executable, str(ROOT / ".ci" / "release.py"), "rehearse"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=880)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("rehearsed; nothing was published\n")
