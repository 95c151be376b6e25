"""The folder that a program runs in: its files are readable, and stay unchanged."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.backends.python_program import Program, WorkFolder, from_elsewhere
from harness.protocol.backend import Job, Rejected


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "plain.txt").write_text("plain")
    (folder / "data" / "in.txt").write_text("in")
    (folder / "data" / "deep" / "file.txt").write_text("deep")
    return folder


def everything(folder: Path) -> dict[str, str | None]:
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def work(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkFolder]:
    (tmp_path / "cell").mkdir()
    made, before = WorkFolder(program, tmp_path / "cell"), everything(program)
    monkeypatch.chdir(made.path)
    with made.guarded():
        yield made
    assert everything(program) == before


def test_what_lies_beside_the_program_can_be_read(work: WorkFolder) -> None:
    assert Path("plain.txt").read_text() == "plain"
    assert Path("data/deep/file.txt").read_text() == "deep"
    assert sorted(os.listdir()) == ["data", "plain.txt"]


def append(name: str) -> None:
    with open(name, "a") as file:
        file.write("!")


def rename_and_append() -> None:
    os.rename("plain.txt", "moved.txt")
    append("moved.txt")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda: Path("plain.txt").write_text("new"), {"plain.txt": "new"}),
        (lambda: append("plain.txt"), {"plain.txt": "plain!"}),
        (lambda: append("data/in.txt"), {"data/in.txt": "in!", "data/deep/file.txt": "deep"}),
        (lambda: append("data/deep/../deep/file.txt"), {"data/deep/file.txt": "deep!"}),
        (lambda: Path("data/new.txt").write_text("new"), {"data/new.txt": "new", "data/in.txt": "in"}),
        (lambda: os.makedirs("data/more/still", exist_ok=True), {"data/more/still": None}),
        (lambda: os.remove("data/in.txt"), {"data/in.txt": ...}),
        (lambda: shutil.rmtree("data"), {"data": ...}),
        (lambda: os.rename("data/in.txt", "moved.txt"), {"moved.txt": "in", "data/in.txt": ...}),
        (lambda: os.rename("data", "moved"), {"moved/in.txt": "in", "data": ...}),
        (rename_and_append, {"moved.txt": "plain!"}),
        (lambda: os.truncate("plain.txt", 2), {"plain.txt": "pl"}),
        (lambda: os.chmod("plain.txt", 0o600), {"plain.txt": "plain"}),
        (lambda: os.close(os.open("plain.txt", os.O_RDWR | os.O_TRUNC)), {"plain.txt": ""}),
        (lambda: shutil.copy("plain.txt", "data/in.txt"), {"data/in.txt": "plain"}),
        (lambda: sqlite3.connect("data/new.db").execute("create table t (a)"), {"data/in.txt": "in"}),
    ],
)  # fmt: skip
def test_what_the_program_changes_is_a_copy(
    work: WorkFolder, change: Callable[[], object], expected: dict[str, object]
) -> None:
    change()
    for name, text in expected.items():
        path = Path(name)
        found = (path.read_text() if path.is_file() else None) if path.exists() else ...
        assert found == text, name


def test_a_mode_is_the_copys(work: WorkFolder, program: Path) -> None:
    before = (program / "plain.txt").stat().st_mode
    os.chmod("plain.txt", 0o400)
    assert (program / "plain.txt").stat().st_mode == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "plain.txt").write_text("new"),
        lambda folder: (folder / "new.txt").touch(),
        lambda folder: (folder / "new").mkdir(),
        lambda folder: (folder / "plain.txt").unlink(),
        lambda folder: (folder / "data" / "in.txt").rename("taken.txt"),
        lambda folder: os.link("plain.txt", folder / "new.txt"),
        lambda folder: os.symlink("plain.txt", folder / "new.txt"),
        lambda folder: shutil.rmtree(folder / "data"),
        lambda folder: os.utime(folder / "plain.txt"),
    ],
)
def test_the_program_cannot_reach_the_users_files_another_way(
    work: WorkFolder, program: Path, change: Callable[[Path], object]
) -> None:
    with pytest.raises(PermissionError, match="keeps the files next to a program unchanged"):
        change(program)


def test_links_beside_the_program_are_no_way_out(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "in.txt").write_text("in")
    (program / "linked").symlink_to(tmp_path / "far")
    (tmp_path / "cell").mkdir()
    work = WorkFolder(program, tmp_path / "cell")
    monkeypatch.chdir(work.path)
    with work.guarded():
        append("linked/in.txt")
        assert Path("linked/in.txt").read_text() == "in!"
        with pytest.raises(PermissionError):
            (program / "linked" / "new.txt").touch()
    assert everything(tmp_path / "far") == {"in.txt": "in"}


def test_what_goes_above_its_folder_does_not_reach_the_cells_own_files(work: WorkFolder, tmp_path: Path) -> None:
    (tmp_path / "cell" / "log").write_text("said")
    Path("../log").write_text("the program's own")
    assert (tmp_path / "cell" / "log").read_text() == "said"


def test_elsewhere_it_may_write(work: WorkFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text("text")
    with open(os.devnull, "w") as file:
        file.write("nothing")


def test_a_program_above_its_cell_may_write_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a program in /tmp, where the folders of cells are, too."""
    (tmp_path / "cell").mkdir()
    (tmp_path / "in.txt").write_text("in")
    work = WorkFolder(tmp_path, tmp_path / "cell")
    monkeypatch.chdir(work.path)
    with work.guarded():
        (tmp_path / "cell" / "artifact.ptx").write_text("ptx")
        append("in.txt")
        with pytest.raises(PermissionError):
            (tmp_path / "new.txt").touch()
    assert (tmp_path / "in.txt").read_text() == "in"


def test_a_program_in_cumatrix_s_own_checkout_is_not_cumatrix() -> None:
    with pytest.raises(ValueError, match="of this file") as caught:
        raise ValueError("of this file")
    assert from_elsewhere(caught.value)


def test_what_ends_a_program_early_on_a_device_refuses_its_cell(tmp_path: Path) -> None:
    job = Job("cell", tmp_path / "kernel.py", {}, {}, "sm_90", {}, [], scratch=tmp_path)
    with pytest.raises(Rejected) as refusal:
        Program(job, failure=AssertionError("wrong sum")).raise_on_device()
    assert refusal.value.stage == "launch" and "AssertionError: wrong sum" in "".join(job.logs)
    Program(job).raise_on_device()
