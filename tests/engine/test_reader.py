"""The process that reads the output of cells: output over a limit costs one cell, and the next cell is read."""

from __future__ import annotations

import json
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cells import make_case, make_cell, make_exit, make_order

from harness.engine import reader as readers
from harness.engine.collect import Remains, collect_outcome
from harness.engine.reader import Reader, ReaderClosed, ReadingLimits
from harness.records.files import ArtifactFolder

PTX = ".version 8.4\n.target sm_80\n.visible .entry scale()\n{\n\tret;\n}\n"


@pytest.fixture
def remains(tmp_path: Path) -> Callable[..., Remains]:
    """Write the reply of a cell that claims to have built a text."""

    def leave(name: str, ptx: str = PTX, reply: dict[str, Any] | None = None) -> Remains:
        (tmp_path / "kernel.cu").touch()
        scratch = tmp_path / name
        scratch.mkdir()
        (scratch / "artifact.ptx").write_text(ptx)
        artifact = {"path": str(scratch / "artifact.ptx"), "format": "ptx"}
        (scratch / "reply.json").write_text(json.dumps({"status": "built", "artifact": artifact, **(reply or {})}))
        cell = make_cell(make_case(tmp_path / "kernel.cu"), "nvrtc", "12.4", "compute_80")
        order = make_order(tmp_path / "kernel.cu", "compute_80", scratch, ["scale"])
        return Remains.of(cell, order, make_exit(), tmp_path, tmp_path)

    return leave


@pytest.fixture
def reader() -> Iterator[Callable[..., Reader]]:
    made: list[Reader] = []

    def make(**more: Any) -> Reader:
        made.append(Reader(**more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_an_outcome_is_the_same_as_in_this_process(
    remains: Callable[..., Remains], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    keep = ArtifactFolder(tmp_path / "kept")
    keep.open()
    left = remains("cell-1", reply={"notes": ["é \ud800 \x1b[31m"], "observed": {"nvrtc": [1.5, None]}})
    outcome = reader(keep=keep).read(left)
    assert outcome == collect_outcome(left) and outcome.status == "built"
    assert [path.suffix for path in keep.path.iterdir()] == [".ptx"]


def test_what_could_not_be_kept_is_counted_here(
    remains: Callable[..., Remains], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    keep = ArtifactFolder(tmp_path / "file" / "kept")
    assert reader(keep=keep).read(remains("cell-1")).status == "built"
    assert keep.unkept.total() == 1


@pytest.mark.parametrize(
    ("ptx", "limits", "why"),
    [
        (PTX + "\n" * (200 << 20), ReadingLimits(memory=1 << 28), "it takes too much memory"),
        (PTX * 20_000, ReadingLimits(seconds=0.001), "it takes more than 0 s"),
        (PTX.replace("scale", "scale" + "x" * 5000), ReadingLimits(largest=5000), "are to be kept of it, more than 5000"),
    ],
    ids=["memory", "time", "size"],
)  # fmt: skip
def test_what_exceeds_a_limit_costs_its_cell(
    remains: Callable[..., Remains], reader: Callable[..., Reader], ptx: str, limits: ReadingLimits, why: str
) -> None:
    outcome = reader(limits=limits).read(remains("cell-1", ptx))
    assert outcome.status == "harness_error"
    assert outcome.reason.startswith("what the cell left cannot be read: ") and why in outcome.reason


def test_the_next_cell_gets_another_process(remains: Callable[..., Remains], reader: Callable[..., Reader]) -> None:
    one = reader(limits=ReadingLimits(largest=2000))
    assert one.read(remains("cell-1")).status == "built"
    process = os.dup(one._process)
    assert one.read(remains("cell-2", PTX.replace("scale", "scale" + "x" * 5000))).status == "harness_error"
    assert select.select([process], [], [], 60)[0], "the process still runs"
    os.close(process)
    assert one.read(remains("cell-3")).status == "built"


def test_a_process_that_has_gone_between_cells_costs_none(
    remains: Callable[..., Remains], reader: Callable[..., Reader]
) -> None:
    one = reader()
    assert one.read(remains("cell-1")).status == "built"
    signal.pidfd_send_signal(one._process, signal.SIGKILL)
    assert select.select([one._process], [], [], 60)[0]
    assert one.read(remains("cell-2")).status == "built"


def test_readers_end_with_the_process_that_forks_them(
    remains: Callable[..., Remains], reader: Callable[..., Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = readers._Host()  # a reader pool that no other test uses
    monkeypatch.setattr(readers, "_host", made)
    one, other = reader(), reader()
    for number, each in enumerate((one, other)):
        assert each.read(remains(f"cell-{number}")).status == "built"
    host = made._process
    assert host is not None
    host.kill()
    for each in (one, other):
        assert select.select([each._process], [], [], 60)[0], "a reader outlives its parent"
    assert one.read(remains("cell-3")).status == "built"
    one.close()
    assert made._process is not None and made._process is not host
    other.close()
    assert made._process is None


def test_close_ends_a_reading_that_is_under_way(remains: Callable[..., Remains], reader: Callable[..., Reader]) -> None:
    one = reader()
    assert one.read(remains("cell-0")).status == "built"
    signal.pidfd_send_signal(one._process, signal.SIGSTOP)  # it would never reply
    ended: list[BaseException] = []

    def read() -> None:
        try:
            one.read(remains("cell-1"))
        except ReaderClosed as error:
            ended.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    one.close()
    thread.join()
    assert len(ended) == 1


def test_a_reply_of_replies_costs_its_cell(remains: Callable[..., Remains]) -> None:
    """Each level is a separate message, and nested functions read them."""
    left = remains("cell-1")
    product = '{"path": "a", "format": "ptx", "parts": ['
    text = '{"status": "built", "artifact": ' + product * 450 + "]}" * 450 + "}"
    (left.order.scratch / "reply.json").write_text(text)
    outcome = collect_outcome(left)
    assert outcome.status == "crashed"
    assert "nested too deep" in outcome.reason


def test_names_do_not_depend_on_where_readers_were_started(
    remains: Callable[..., Remains], reader: Callable[..., Reader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = reader(keep=ArtifactFolder(Path("kept")))
    assert one.read(remains("cell-0", reply={"status": "rejected"})).status == "rejected"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/kernel.cu").touch()
    monkeypatch.chdir(tmp_path / "elsewhere")
    left = remains("cell-1", reply={"status": "rejected", "artifact": None})
    (left.order.scratch / "log").write_text(f"{tmp_path}/elsewhere/kernel.cu(1): error: no such type\n")
    cell = make_cell(make_case(Path("kernel.cu")), "nvrtc", "12.4", "compute_80")
    left = Remains.of(cell, left.order, make_exit(), tmp_path / "cuda", tmp_path / "tools")
    assert one.read(left).log == "kernel.cu(1): error: no such type"
