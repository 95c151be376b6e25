"""Names of paths: the same on every machine, and only for folders that differ between machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engine.file_states import Roots
from harness.engine.reads import LINK


def test_a_path_has_the_name_of_the_deepest_folder() -> None:
    roots = Roots({"$HOME": "/home/ann", "$HERE": "/home/ann/work"})
    names = {
        "/home/ann/work/kernel.cu": "$HERE/kernel.cu",
        "/home/ann/work": "$HERE",
        "/home/ann/workshop/kernel.cu": "$HOME/workshop/kernel.cu",
        "/home/anna": "/home/anna",
        f"{LINK}/home/ann/x": f"{LINK}$HOME/x",
        "/usr/include/math.h": "/usr/include/math.h",
    }
    assert {path: roots.name(path) for path in names} == names
    assert {path: roots.path(name) for path, name in names.items()} == {path: path for path in names}


def test_names_lead_to_this_machines_folders() -> None:
    there, here = Roots({"$HERE": "/home/ann/work"}), Roots({"$HERE": "/srv/build"})
    assert here.path(there.name("/home/ann/work/include/a.h")) == "/srv/build/include/a.h"
    assert here.path("$PYTHON/bin/python") is None


def test_a_folder_may_stand_for_one_that_is_not_here() -> None:
    roots = Roots({"/opt/programs": "/tmp/sent/1"})
    assert roots.name("/tmp/sent/1/kernel.cu") == "/opt/programs/kernel.cu"
    assert roots.path("/opt/programs/kernel.cu") == "/tmp/sent/1/kernel.cu"
    assert roots.path("/opt/programs2") == "/opt/programs2"


def test_where_links_lead_has_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    roots = Roots({"$HERE": str(tmp_path / "link")})
    for path in (tmp_path / "link" / "a", tmp_path / "real" / "a"):
        assert roots.path(roots.name(str(path))) == str(path)
    assert roots.name(str(tmp_path / "link" / "a")) != roots.name(str(tmp_path / "real" / "a"))


def test_variables_are_named_part_by_part() -> None:
    assert Roots({"$HOME": "/home/ann"}).names("/home/ann/bin:/usr/bin") == "$HOME/bin:/usr/bin"


@pytest.mark.parametrize("python", ["/usr/bin/python3", "python3"])
def test_the_systems_python_has_no_name(python: str) -> None:
    assert "$PYTHON" not in Roots.of(python).folders
    assert Roots.of("/opt/venv/bin/python").folders["$PYTHON"] == "/opt/venv"
