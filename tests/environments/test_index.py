"""Releases listed by an index as JSON, as HTML and in a folder; stored, and reused without the network."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from toolkits.local_index import LocalIndex

from harness.environments.index import File, Index
from harness.errors import PartUnavailable

NAME = "numba-0.59.0-cp311-cp311-manylinux2014_x86_64.whl"
SHA256 = "0123456789abcdef" * 4
PAGE = {
    "files": [
        {
            "filename": NAME,
            "url": f"../../files/{NAME}",
            "hashes": {"sha256": SHA256},
            "size": 7,
            "upload-time": "2024-01-31T10:00:00.5Z",
            "requires-python": ">=3.9",
            "yanked": False,
        }
    ]
}
HTML = (
    f'<a href="../../files/{NAME}#sha256={SHA256}" data-requires-python="&gt;=3.9" data-upload-time="2024-01-31T10:00:00Z">x</a>'
    '<a href="numba-0.58.0-py3-none-any.whl" data-yanked="broken">y</a><a href="/">up</a>'
)


class Server:
    """An HTTP index with a single reply."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answer: tuple[int, str, str] = (200, "application/vnd.pypi.simple.v1+json", json.dumps(PAGE))
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append((self.path, self.headers.get("Authorization", "")))
                code, kind, text = server.answer
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()
        self.address = f"127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server(no_settings: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://user:se%40cret@{server.address}/simple/")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server
    server.http.shutdown()
    server.thread.join()
    server.http.server_close()


def test_json_tells_date_size_and_python(server: Server, tmp_path: Path) -> None:
    (file,) = Index(tmp_path).files("numba")
    place = f"http://{server.address}/files/{NAME}"
    assert file == File(NAME, 7, "2024-01-31T10:00:00.5Z", ">=3.9", address=place, sha256=SHA256)
    assert file.date is not None and file.date.isoformat() == "2024-01-31T10:00:00.500000+00:00"
    token = base64.b64encode(b"user:se@cret").decode()
    assert server.asked == [("/simple/numba/", f"Basic {token}")]


def test_html_is_read_where_an_index_speaks_no_json(server: Server, tmp_path: Path) -> None:
    server.answer = (200, "text/html; charset=utf-8", HTML)
    place = f"http://{server.address}/simple/numba/"
    assert Index(tmp_path).files("numba") == [
        File(NAME, 0, "2024-01-31T10:00:00Z", ">=3.9", address=f"http://{server.address}/files/{NAME}", sha256=SHA256),
        File("numba-0.58.0-py3-none-any.whl", yanked=True, address=f"{place}numba-0.58.0-py3-none-any.whl"),
    ]


def test_an_answer_is_kept_and_taken_again(server: Server, tmp_path: Path) -> None:
    assert Index(tmp_path, offline=True).files("numba") == []
    first = Index(tmp_path).files("numba")
    assert Index(tmp_path).files("numba") == Index(tmp_path, offline=True).files("numba") == first
    assert len(server.asked) == 1
    (kept,) = tmp_path.glob("*.json")
    os.utime(kept, (0, 0))
    server.answer = (500, "text/plain", "")
    assert Index(tmp_path).files("numba") == first  # an old reply is better than none
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((500, "text/plain", ""), "cannot be queried: 500"), ((200, "application/json", "[]"), "returned something other than a page"),
        ((200, "application/json", "{"), "returned something other than a page"), ((200, "application/json", '{"files": [{}]}'), "returned something other than a page"),
        ((200, "application/json", '{"files": [{"filename": "a", "size": "big"}]}'), "returned something other than a page"),
    ],
)  # fmt: skip
def test_an_index_that_fails_is_said_without_the_password(
    server: Server, tmp_path: Path, answer: tuple[int, str, str], said: str
) -> None:
    server.answer = answer
    with pytest.raises(PartUnavailable, match=said) as raised:
        Index(tmp_path).files("numba")
    assert "cret" not in str(raised.value)


def test_a_library_that_an_index_does_not_have_has_no_files(server: Server, tmp_path: Path) -> None:
    server.answer = (404, "text/plain", "")
    assert Index(tmp_path).files("numba") == []


def test_an_address_that_is_none_is_said(no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "ftp://nowhere/simple")
    with pytest.raises(PartUnavailable, match="is no address of an index"):
        Index(tmp_path).files("numba")


def test_a_folder_and_an_index_of_files_count_as_well(
    numbas: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in ("numba-0.60.0-py3-none-any.whl", "numba_cuda-0.1.0-py3-none-any.whl"):
        (folder / name).write_bytes(b"12345")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    index = Index(tmp_path / "answers")
    assert [file.name for file in index.files("numba")] == [
        f"numba-{v}-py3-none-any.whl" for v in ("0.58.1", "0.59.0", "0.59.1", "0.60.0")
    ]
    assert index.size({"numba": "0.60.0"}) == 5
    assert index.size({"numba": "0.61.0", "other": "1"}) == 0
