"""The origin of an environment's libraries, from real interpreters with handmade distributions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uv
from repositories import Repository

from harness.backends import BACKENDS
from harness.engine.environment import Environment, look
from harness.engine.plan import library_of
from harness.model import ToolkitRef

TOOLKIT = ToolkitRef(release="12.4", headers="12.4")


class Made:
    """An empty environment of the test."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, folder], check=True)
        self.python = folder / "bin" / "python"
        (self.site,) = folder.glob("lib/python3.*/site-packages")

    def distribution(
        self,
        name: str,
        version: str,
        *,
        direct: dict[str, Any] | None = None,
        record: str = "",
        site: Path | None = None,
    ) -> None:
        """Write metadata as installers do."""
        folder = (site or self.site) / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (folder / "RECORD").write_text(record)
        if direct:
            (folder / "direct_url.json").write_text(json.dumps(direct))

    def package(self, name: str, site: Path | None = None, version: str = "") -> Path:
        """Write a package of one file, and a package with its version."""
        folder = (site or self.site) / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise RuntimeError('nothing may be imported to ask where it is')\n")
        if version:
            (folder / "_version.py").write_text(f"__version__ = '{version}'\n")
        return folder

    def look(self) -> Environment:
        return look(str(self.python))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return an empty environment."""
    return Made(tmp_path / "env")


def column(environment: Environment, backend: str = "numba-cuda") -> str:
    """Return the library's version in the form of columns."""
    return library_of(BACKENDS[backend], environment, TOOLKIT)


def test_a_release_of_an_index_is_its_version(made: Made) -> None:
    made.package("numba_cuda")
    made.distribution("numba-cuda", "0.15.0")
    found = made.look()
    assert (column(found), found.origins, found.builds) == ("0.15.0", {}, {})


def test_an_editable_install_is_what_its_folder_holds_now(made: Made, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "sources")
    folder = made.package("numba_cuda", site=repository.folder, version="0.16.0")
    commit = repository.commit()
    made.distribution(
        "numba-cuda", "0.15.0", direct={"url": repository.folder.as_uri(), "dir_info": {"editable": True}}
    )
    hook = f"import sys; sys.path.append({str(repository.folder)!r})"
    (made.site / "__editable__.numba_cuda-0.15.0.pth").write_text(hook)
    found = made.look()
    assert column(found) == f"0.16.0+git.1.{commit[:7]}"
    assert found.packages["numba-cuda"] == "0.16.0"
    assert found.origins["numba-cuda"].facts() == {
        "version": "0.16.0", "commit": commit, "path": str(folder), "url": repository.folder.as_uri(), "editable": True,
    }  # fmt: skip
    assert found.builds["numba-cuda"].folder == str(folder)
    (folder / "new.py").touch()
    dirty = made.look()
    assert column(dirty).startswith(f"0.16.0+git.1.{commit[:7]}.dirty.")
    assert dirty.origins["numba-cuda"].facts()["commit"] == f"{commit}+dirty"


def test_what_stands_earlier_on_the_path_is_what_counts(made: Made, tmp_path: Path) -> None:
    made.package("cupy", version="13.6.0")
    made.distribution("cupy-cuda12x", "13.6.0")
    mine = tmp_path / "mine"
    made.package("cupy", site=mine, version="14.0.0a1")
    (made.site / "first.pth").write_text(f"import sys; sys.path.insert(0, {str(mine)!r})\n")
    found = made.look()
    assert column(found, "cupy-nvrtc").startswith("14.0.0a1+local.")
    assert found.origins["cupy-cuda12x"].path == str(mine / "cupy")


def test_a_copy_with_its_metadata_is_no_release_either(made: Made, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    made.package("cupy", site=mine, version="13.6.0")
    made.distribution("cupy-cuda12x", "13.6.0", site=mine)
    (made.site / "mine.pth").write_text(f"{mine}\n")
    assert column(made.look(), "cupy-nvrtc").startswith("13.6.0+local.")


def test_a_checkout_without_metadata_is_there_all_the_same(made: Made, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "cupy")
    made.package("cupy", site=repository.folder, version="14.1.0")
    commit = repository.commit()
    (made.site / "mine.pth").write_text(f"{repository.folder}\n")
    found = made.look()
    assert (column(found, "cupy-nvrtc"), list(found.builds)) == (f"14.1.0+git.1.{commit[:7]}", ["cupy"])


def test_a_link_in_site_packages_leads_to_a_checkout(made: Made, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "sources")
    folder = made.package("numba_cuda", site=repository.folder, version="0.15.0")
    commit = repository.commit()
    (made.site / "numba_cuda").symlink_to(folder)
    made.distribution("numba-cuda", "0.15.0")
    assert column(made.look()) == f"0.15.0+git.1.{commit[:7]}"


def test_what_was_built_from_a_repository_tells_its_commit(made: Made) -> None:
    made.package("numba_cuda")
    vcs = {"vcs": "git", "commit_id": "3f2a9c1d" * 5, "requested_revision": "main"}
    made.distribution("numba-cuda", "0.15.0", direct={"url": "https://example.org/a.git", "vcs_info": vcs})
    found = made.look()
    assert column(found) == "0.15.0+git.3f2a9c1"
    assert found.origins["numba-cuda"].facts() == {
        "version": "0.15.0",
        "commit": "3f2a9c1d" * 5,
        "url": "https://example.org/a.git",
    }


def test_two_wheels_of_one_version_are_two_builds(tmp_path: Path) -> None:
    columns = set()
    for number, digest in enumerate(("sha256=aaa", "sha256=bbb", "sha256=bbb")):
        made = Made(tmp_path / f"env{number}")
        made.package("numba_cuda")
        record = f"numba_cuda/__init__.py,{digest},10\nnumba_cuda-0.15.0.dist-info/RECORD,,\n../../../bin/x{number}.dist-info/,,\n"
        made.distribution(
            "numba-cuda", "0.15.0", direct={"url": f"file:///{number}.whl", "archive_info": {}}, record=record
        )
        columns.add(column(made.look()))
    assert len(columns) == 2
    assert all(each.startswith("0.15.0+build.") for each in columns)


@pytest.mark.parametrize(
    "text", ["[]", "3", "{", '{"url": 3}', '{"url": "x", "vcs_info": 3}', '{"url": "x", "dir_info": []}']
)
def test_an_address_that_cannot_be_read_is_none(made: Made, text: str) -> None:
    made.package("numba_cuda")
    made.distribution("numba-cuda", "0.15.0")
    (made.site / "numba_cuda-0.15.0.dist-info" / "direct_url.json").write_text(text)
    assert column(made.look()).startswith("0.15.0")


def test_an_environment_within_a_checkout_holds_releases(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit({".gitignore": ".venv\n", "a.py": ""})
    made = Made(repository.folder / ".venv")
    made.package("numba_cuda")
    made.distribution("numba-cuda", "0.15.0")
    assert column(made.look()) == "0.15.0"
