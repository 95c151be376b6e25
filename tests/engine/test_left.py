"""Files that a cell's process leaves: links, pipes, endless files, and invalid replies."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cells import make_case, make_cell, make_exit, make_order

from harness.engine.collect import Remains, collect_outcome, read_file, read_text
from harness.model import Outcome
from harness.protocol.process_output import KEPT, Unreadable


def sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(600 << 20)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "no plain file"),
        (os.mkdir, "no plain file"),
        (lambda path: path.symlink_to("/etc/hostname"), "outside"),
        (lambda path: path.symlink_to("/proc/kmsg"), "outside"),
    ],
)
def test_a_file_that_is_none_is_not_read(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / "log")
    with pytest.raises((Unreadable, OSError), match=f"{words}|directory"):
        read_file(tmp_path / "log", tmp_path, KEPT)
    assert read_text(tmp_path / "log", tmp_path) == ""


def test_a_long_text_is_read_without_its_middle(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as file:
        file.write(b"begin")
        file.truncate(600 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"end")
    text = read_text(tmp_path / "log", tmp_path)
    assert text.startswith("begin") and text.endswith("end") and len(text) < KEPT + 100
    assert f"[... {(600 << 20) + 3 - KEPT} bytes left out ...]" in text
    with pytest.raises(Unreadable, match="has 629145603 bytes"):
        read_file(tmp_path / "log", tmp_path, KEPT)


def test_a_link_within_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("text")
    (tmp_path / "log").symlink_to("real")
    assert read_text(tmp_path / "log", tmp_path) == "text"


REPLIES = [
    "[]",
    "[" * 100_000,
    "NaN",
    '{"status": "built", "seconds": NaN}',
    '{"status": "marvellous"}',
    '{"status": "built", "stage": "nowhere"}',
    '{"status": ["built"]}',
    '{"status": "built", "signal": "eleven"}',
    '{"status": "built", "stages": "compile"}',
    '{"status": "built", "notes": [1]}',
    '{"status": "built", "artifact": {"format": "ptx"}}',
    '{"status": "built", "artifact": []}',
    '{"status": "built", "signal": true}',
    '{"status": "built", "surprise": 1}',
    json.dumps({"status": "built", "observed": {"a": [[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]}}),
]


@pytest.fixture
def charged(tmp_path: Path) -> Callable[[], Outcome]:
    """Return the outcome of a child that exited normally and left the test's files."""
    (tmp_path / "kernel.cu").touch()
    cell = make_cell(make_case(tmp_path / "kernel.cu"), "nvrtc", "12.4", "compute_80")
    order = make_order(tmp_path / "kernel.cu", "compute_80", tmp_path / "cell-1")
    order.scratch.mkdir()
    return lambda: collect_outcome(Remains.of(cell, order, make_exit(), tmp_path, tmp_path))


@pytest.mark.parametrize("text", REPLIES, ids=lambda text: text[:40])
def test_what_is_no_reply_costs_its_cell(charged: Callable[[], Outcome], tmp_path: Path, text: str) -> None:
    (tmp_path / "cell-1" / "reply.json").write_text(text)
    outcome = charged()
    assert (outcome.status, outcome.stage) == ("crashed", "compile")
    assert outcome.reason.startswith("ended with exit code 0 and without an answer: ")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, sparse, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("name", ["reply.json", "log", "stages"])
def test_a_reply_that_is_no_file_neither_hangs_nor_fills_the_memory(
    charged: Callable[[], Outcome], tmp_path: Path, make: Callable[[Path], object], name: str
) -> None:
    make(tmp_path / "cell-1" / name)
    assert charged().status == "crashed"
