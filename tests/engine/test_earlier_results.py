"""Outcomes from results of others: loading, conditions for reuse, and messages about the rest."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from record_builders import built, cell, changed, record

from harness.engine.earlier_results import Earlier, RecordSource, fetch, outcome_of, read_source
from harness.engine.file_states import Files, Roots
from harness.engine.fingerprints import Answers
from harness.engine.reads import Reads
from harness.errors import CumatrixError, PartUnavailable
from harness.records import Record

CELL = cell().id
FIRST, ASKED = "1" * 64, "2" * 64


def reads(*paths: Path) -> Reads:
    files = Files()
    return Reads({str(path): files.current_state(str(path))[1] for path in paths})


def published(here: Path, **fields: Any) -> RecordSource:
    """Publish results of a user who has compiled a program in a folder of their own."""
    answers = Answers(None, Roots({"$HERE": str(here)}))
    worker = answers.key_of(ASKED, reads(here / "library.so")).key
    key = answers.key_of(FIRST, reads(here / "kernel.cu", here / "header.h")).key
    answers.workers[FIRST] = worker
    made: Record = changed(record(cell(), built()), fingerprint=key, **fields)
    return RecordSource("results.parquet", (made,), answers.inputs_of([key], {worker: {"targets": ["sm_80"]}}))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The same files in the folders of two people."""
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
        for file in ("kernel.cu", "header.h", "library.so"):
            (tmp_path / name / file).write_text(file)
    return tmp_path / "there", tmp_path / "here"


def taken(source: RecordSource, here: Path) -> tuple[Earlier, list[str]]:
    """Return the content keys for which another folder with the same program has an outcome."""
    roots = Roots({"$HERE": str(here)})
    earlier = Earlier(None, roots, [source])
    return earlier, [key for key in Answers(earlier, roots).keys(FIRST) if earlier.outcome(key)]


def test_the_same_files_in_another_folder_are_answered_and_it_is_said_by_whom(folders: tuple[Path, Path]) -> None:
    source = published(folders[0])
    earlier, keys = taken(source, folders[1])
    assert keys == [source.records[0]["fingerprint"]]
    assert earlier.taken_from(keys[0]) == f"results.parquet, run {source.records[0]['run']}"


@pytest.mark.parametrize("name", ["kernel.cu", "header.h"])
def test_nothing_is_taken_after_a_change_and_the_file_is_named(folders: tuple[Path, Path], name: str) -> None:
    source = published(folders[0])
    (folders[1] / name).write_text("changed")
    earlier, keys = taken(source, folders[1])
    assert keys == []
    assert earlier.why_not(CELL, "") == f"{folders[1] / name} differs from the file there"


def test_a_file_of_the_library_counts_too(folders: tuple[Path, Path]) -> None:
    roots = Roots({"$HERE": str(folders[1])})
    source = published(folders[0])
    worker = next(iter(source.inputs.workers))
    assert list(Answers(Earlier(None, roots, [source]), roots).keys(ASKED)) == [worker]
    (folders[1] / "library.so").write_text("changed")
    earlier = Earlier(None, roots, [source])
    assert list(Answers(earlier, roots).keys(ASKED)) != [worker]
    assert "library.so differs" in earlier.why_not(CELL, "")


def test_what_was_asked_otherwise_is_said(folders: tuple[Path, Path]) -> None:
    earlier, _ = taken(published(folders[0]), folders[1])
    assert "the request there differs" in earlier.why_not(CELL, "")
    assert earlier.why_not("another cell", "") == ""


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": "crashed", "stage": "compile"}, "run again"),
        ({"status": "timed_out", "stage": "compile"}, "run again"),
        ({"device": {"virtual": False, "name": "NVIDIA H200"}}, "never reused"),
    ],
)
def test_what_another_try_could_change_is_not_taken(
    folders: tuple[Path, Path], fields: Mapping[str, Any], why: str
) -> None:
    earlier, keys = taken(published(folders[0], **fields), folders[1])
    assert why in earlier.why_not(CELL, "")
    assert keys == [] or "device" in fields  # the resolver does not compile these


def test_records_without_what_they_follow_from_are_not_taken(folders: tuple[Path, Path]) -> None:
    source = published(folders[0])
    bare = replace(source, inputs=type(source.inputs)())
    earlier, keys = taken(bare, folders[1])
    assert keys == []
    assert "does not list the files" in earlier.why_not(CELL, "")


@pytest.mark.parametrize(
    "path", ["/proc/kmsg", f"$HERE/{'../' * 20}proc/kmsg", "//proc/kmsg", "link:/sys/x", "/dev/zero"]
)
def test_a_list_that_names_files_of_the_kernels_own_is_not_looked_at(folders: tuple[Path, Path], path: str) -> None:
    source = published(folders[0])
    sets = {name: (*paths, (path, False)) for name, paths in source.inputs.sets.items()}
    earlier, keys = taken(replace(source, inputs=replace(source.inputs, sets=sets)), folders[1])
    assert keys == []
    earlier.why_not(CELL, "")


def test_remarks_that_neighbours_gave_are_left_behind() -> None:
    own = "remark: k does nothing but trap: it may be compiled out here"
    given = "remark: k looks compiled out for sm_80: 4 instructions, compared with 40 for sm_90"
    outcome = outcome_of(changed(record(cell(), built()), notes=["a note", own, given]))
    assert outcome is not None
    assert outcome.notes == ("a note", own)


class _Pages(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[str]:
    """Start a server for the files of a folder; yield its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Pages, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_published_page_is_read_by_its_address(pages: str, tmp_path: Path) -> None:
    for place in ("page/index.html", "page/", "page", "page/results.parquet"):
        (tmp_path / "page").mkdir(exist_ok=True)
        (tmp_path / "page" / "results.parquet").write_bytes(b"rows")
        (tmp_path / "got").mkdir(exist_ok=True)
        assert fetch(f"{pages}/{place}", tmp_path / "got").read_bytes() == b"rows"


@pytest.mark.parametrize(
    ("limits", "why"), [({"largest": 9}, "more than 0 MiB"), ({"seconds": -1.0}, "within the time limit")]
)
def test_a_download_has_limits(pages: str, tmp_path: Path, limits: Mapping[str, Any], why: str) -> None:
    (tmp_path / "results.parquet").write_bytes(bytes(100))
    (tmp_path / "got").mkdir()
    with pytest.raises(PartUnavailable, match=why):
        fetch(pages, tmp_path / "got", **limits)


def test_what_cannot_be_read_is_refused_by_its_address(pages: str, tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_bytes(b"no Parquet")
    (tmp_path / "x.jsonl").write_bytes(b"no record\n")
    with pytest.raises(CumatrixError, match=rf"^{pages}/results.parquet: cannot be read as Parquet"):
        read_source(pages)
    with pytest.raises(CumatrixError, match=rf"^{pages}/x.jsonl: line 1: not JSON"):
        read_source(f"{pages}/x.jsonl")
    with pytest.raises(CumatrixError, match="there is no such page"):
        read_source(f"{pages}/none")
    with pytest.raises(CumatrixError, match="begins with https"):
        read_source("file:///etc/passwd")
    with pytest.raises(CumatrixError, match=r"^--from http://127\.0\.0\.1/results\.parquet: the connection failed"):
        read_source("http://ann:secret@127.0.0.1/?token=secret")
