"""Records of reads, and the states that follow from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engine.file_states import Files
from harness.engine.reads import DIRECTORY, reads_of


def record(kind: str, path: str, *numbers: int) -> str:
    return " ".join([kind, *map(str, numbers or (1, 2, 3, 4, 5)), path])


def test_files_missing_ones_and_folders() -> None:
    reads = reads_of(
        [record("R", "/a b"), record("M", "/m"), record("D", "/d"), record("L", "/l"), record("E", "/e")], []
    )
    assert reads.states == {"/a b": (1, 2, 3, 4, 5), "/m": None, "/d": DIRECTORY, "/l": (1, 2, 3, 4, 5), "/e": ()}
    assert reads.listed == {"/l"}
    assert not reads.unknown


@pytest.mark.parametrize(
    "path", ["/own/x", "/own/deep/x", "/proc/self/maps", "/sys/a", "/dev/null", "/proc/self/fd/3", "/dev/fd/3"]
)
def test_what_belongs_to_the_worker_or_the_kernel_is_no_input(path: str) -> None:
    assert reads_of([record("R", path)], ["/own"]).states == {}


def test_a_link_out_of_the_workers_folder_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    own, source = tmp_path / "own", tmp_path / "source.py"
    own.mkdir()
    source.touch()
    (own / "link.py").symlink_to(source)
    assert list(reads_of([record("R", f"{own}/link.py")], [str(own)]).states) == [str(source)]


def test_what_a_cell_wrote_itself_is_no_input() -> None:
    records = [record("R", "/before"), record("W", "/before"), record("W", "/made"), record("R", "/made")]
    assert list(reads_of(records, []).states) == ["/before"]


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (None, "could not be followed"),
        ([record("r", "/a")], "/a was changed at the moment when it was read"),
        ([record("R", "/a"), record("R", "/a", 1, 2, 3, 4, 6)], "/a changed while it was read"),
        ([record("R", "/a"), record("M", "/a")], "/a changed while it was read"),
        ([record("M", "/a"), record("R", "/a")], "/a changed while it was read"),
        ([record("L", "/a"), record("L", "/a", 1, 2, 0, 9, 0)], "/a changed while it was read"),
        ([record("X", "/bin/static")], "linked statically"),
        ([record("X", "/bin/a"), record("Y", "/bin/a"), record("X", "/bin/b"), record("B", "/bin/a"), record("X", "/c")], "statically"),
    ],
)  # fmt: skip
def test_what_cannot_be_known_is_said(records: list[str] | None, why: str) -> None:
    assert why in reads_of(records, []).unknown


@pytest.mark.parametrize(
    "records",
    [
        [record("X", "/bin/a"), record("Y", "/bin/a"), record("X", "/usr/bin/a"), record("B", "/usr/bin/a")],
        [record("D", "/a"), record("L", "/a")],
        [record("L", "/a"), record("D", "/a")],
        [record("E", "/a"), record("R", "/a")],
        [record("R", "/a"), record("E", "/a")],
        [
            record("R", "/a/x.py"),
            record("M", "/a/__pycache__/x.cpython-311.pyc"),
            record("r", "/a/__pycache__/x.cpython-311.pyc"),
        ],
    ],
)
def test_what_is_no_change(records: list[str]) -> None:
    assert not reads_of(records, []).unknown


def test_states(tmp_path: Path) -> None:
    files = Files()
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").write_text("x")
    (tmp_path / "c").write_text("y")
    a, b, c = (files.state(str(tmp_path / name)) for name in "abc")
    assert a == b != c
    assert files.state(str(tmp_path)) == "d"
    assert files.state(str(tmp_path), True).startswith("d:")
    assert files.state(str(tmp_path / "none")) == files.state(str(tmp_path / "a" / "none")) == "-"
    assert files.state("/dev/null") == "o:20000"
    assert files.state("a" * 5000).startswith("e:")
    assert files.state("nul\0").startswith("e:")


def test_a_link_that_a_cell_makes_is_a_product_and_what_it_leads_to_is_none(tmp_path: Path) -> None:
    own, source = tmp_path / "own", tmp_path / "source.py"
    own.mkdir()
    source.touch()
    (own / "link.py").symlink_to(source)
    records = [record("W", f"{own}/link.py"), record("K", f"{own}/link.py"), record("R", f"{own}/link.py")]
    assert list(reads_of(records, [str(own)]).states) == [str(source)]
