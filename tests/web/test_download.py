"""Downloads from real servers on loopback: the recipients of credentials, and the behaviour of hostile servers."""

from __future__ import annotations

import base64
import io
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import Command

from harness.engine.earlier_results import fetch
from harness.environments.index import Index
from harness.errors import CumatrixError, PartUnavailable
from harness.records.plan import make_plan
from harness.web.address import read_address
from harness.web.download import DownloadError, download
from web.servers import Server, answer, authority, moved

Serve = Callable[..., Server]
TOKEN = "Basic " + base64.b64encode(b"me:se@cret").decode()
SECRETS = ("cret", TOKEN.removeprefix("Basic "))
PAGE = json.dumps({"files": []}).encode()


def with_password(url: str) -> str:
    return url.replace("://", "://me:se%40cret@")


def get(url: str, **keywords: object) -> bytes:
    file = io.BytesIO()
    download(read_address(url), file, **{"largest": 1 << 20, "seconds": 60.0, **keywords})  # type: ignore[arg-type]
    return file.getvalue()


def test_a_redirect_within_an_origin_keeps_the_credentials(serve: Serve) -> None:
    server = serve(lambda path: answer(b"rows") if path == "/b" else moved("/b"))
    assert get(with_password(server.url) + "/a") == b"rows"
    assert server.asked == [("/a", TOKEN), ("/b", TOKEN)]


def test_no_other_origin_is_sent_credentials(serve: Serve, tmp_path: Path) -> None:
    """Another port, another name of the same host, the way back, credentials in the redirect itself, and ``.netrc``."""
    (tmp_path / ".netrc").write_text("machine localhost login me password se@cret\n")
    (tmp_path / ".netrc").chmod(0o600)
    other = serve(lambda path: moved(f"{first.url}/back") if path == "/back" else answer(b"rows"))
    first: Server = serve(
        lambda path: {
            "/port": moved(f"{other.url}/x"),
            "/name": moved(f"http://localhost:{first.port}/x"),
            "/own": moved(f"{other.url.replace('://', '://you:se%40cret@')}/x"),
            "/return": moved(f"{other.url}/back"),
        }.get(path, answer(b"rows"))
    )
    for path in ("/port", "/name", "/own", "/return"):
        assert get(with_password(first.url) + path) == b"rows"
    named = {"/port", "/name", "/own", "/return"}
    assert {asked for asked in first.asked if asked[1]} == {(path, TOKEN) for path in named}
    assert [asked for asked in other.asked if asked[1]] == []
    assert len(other.asked) == 3 and len(first.asked) == 6


def test_results_and_an_index_keep_a_password_from_the_host_of_a_redirect(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands themselves: no other host receives the credentials, and neither output nor files contain them."""
    thief = serve(lambda path: answer(status="500 Stolen"))
    server = serve(lambda path: moved(f"{thief.url}{path}"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", with_password(server.url) + "/simple/")
    monkeypatch.setenv("CUMATRIX_CACHE", str(tmp_path / "cache"))
    (tmp_path / "k.cu").write_text("__global__ void k() {}\n")
    command = Command(tmp_path)
    words = ("k.cu", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80", "--out", "out/k.jsonl")
    taken = command("try", *words, "--from", with_password(server.url) + "/page?sig=se@cret")
    listed = command("libraries", "list", "numba")
    assert server.asked[0] == ("/page/results.parquet?sig=se@cret", TOKEN)
    assert ("/simple/numba/", TOKEN) in server.asked
    assert thief.asked and {authorization for _, authorization in thief.asked} == {""}
    assert taken.returncode == 4 and "the server answers 500 Internal Server Error" in taken.stderr, taken
    written = [path.read_text("utf-8", "replace") for path in tmp_path.rglob("*.json*") if path.is_file()]
    printed = "".join([taken.stdout, taken.stderr, listed.stdout, listed.stderr, *written])
    assert [secret for secret in SECRETS if secret in printed] == []
    assert "Traceback" not in printed


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_is_checked_and_never_left(serve: Serve, tmp_path: Path) -> None:
    certificate, context = authority(tmp_path)
    plain = serve(lambda path: answer(b"rows"))
    secure = serve(lambda path: moved(f"{plain.url}/x") if path == "/down" else answer(b"rows"), context)
    into = serve(lambda path: moved(f"{secure.url}/x"))
    trusted = {"certificates": str(certificate)}
    assert get(with_password(secure.url) + "/x", **trusted) == b"rows"
    assert get(with_password(into.url) + "/x", **trusted) == b"rows"
    assert secure.asked == [("/x", TOKEN), ("/x", "")]
    with pytest.raises(DownloadError, match="redirected from https:// to http://"):
        get(with_password(secure.url) + "/down", **trusted)
    assert plain.asked == []
    with pytest.raises(DownloadError, match="certificate is not trusted: self-signed certificate"):
        get(secure.url)


def _for_ever(start: bytes, part: bytes) -> Callable[[str], Iterator[bytes]]:
    return lambda path: itertools.chain([start], itertools.repeat(part))


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "a body without end": _for_ever(OK + b"\r\n", b"\0"),
    "chunks": _for_ever(CHUNKED, b"1\r\nx\r\n"),
    "trailers": _for_ever(CHUNKED + b"0\r\n", b"a: b\r\n"),
    "continue": _for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a flood of continue": _for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000),
    "the body of a redirect": _for_ever(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", b"x"),
    "a redirect to itself": lambda path: moved("/again"),
    "a status line": _for_ever(b"HTTP/1.1 ", b"2"),
    "headers": _for_ever(OK, b"a: b\r\n"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_server_that_never_ends_costs_the_limit_and_no_more(serve: Serve, kind: str) -> None:
    """One limit for the whole download: each single byte arrives in time."""
    server = serve(ENDLESS[kind])
    with pytest.raises(DownloadError):
        get(server.url + "/x", seconds=0.5, largest=1 << 40)
    if not kind.startswith(("a redirect", "the body")):
        assert server.left.wait(60), "the connection is ended, and not left to a thread"


@pytest.mark.parametrize("part", [b"", OK[:10], OK + b"a: b\r\n", CHUNKED + b"5\r\nab"])
def test_a_server_that_drips_is_left_at_the_limit(serve: Serve, part: bytes) -> None:
    """Send a byte, and then none until the client disconnects."""

    def reply(path: str) -> Iterator[bytes]:
        yield part
        server.left.wait(60)

    server = serve(reply)
    with pytest.raises(DownloadError, match=r"^it did not arrive within the time limit$"):
        get(server.url + "/x", seconds=0.3)
    server.left.set()


LONG = b"9" * 5000
BROKEN = {
    b"": "ended without a response",
    b"SSH-2.0-OpenSSH\r\n\r\n": "not valid HTTP .BadStatusLine",
    b"HTTP/1.1 " + LONG + b" OK\r\n\r\n": "not valid HTTP",
    b"HTTP/1.1 200 " + b"x" * 70_000: "not valid HTTP .LineTooLong",
    OK + b"a: b\r\n" * 200 + b"\r\n": "not valid HTTP",
    OK + b"Content-Length: 10\r\n\r\nabc": "the connection ended before all",
    OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nabc": "more than 1 MiB",
    OK + b"\r\n" + b"x" * (1 << 21): "more than 1 MiB",
    CHUNKED + b"5\r\nab": "the connection ended before all",
    CHUNKED + b"-5\r\nabcde": "not valid HTTP .ValueError|the connection ended before all",
    CHUNKED + b"zz\r\n": "the connection ended before all",
    CHUNKED + b"f" * 70_000: "not valid HTTP .LineTooLong",
    OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b": "sent compressed",
    b"HTTP/1.1 401 \x1b[31mse@cret\r\n\r\n": "401 Unauthorized",
    moved("http://[::1/"): "redirect names no valid address",
    moved("http://127.0.0.1:99999/"): "redirect names no valid address",
    moved("http://" + "a" * 300 + ".example/"): "redirect names no valid address",
    moved("http://a..b/"): "redirect names no valid address",
    moved("file:///etc/passwd"): "redirect names no valid address",
    moved("http://:80/x"): "redirect names no valid address",
    moved("ftp://me@127.0.0.1/\xff"): "redirect names no valid address",
}


@pytest.mark.parametrize(("said", "why"), BROKEN.items(), ids=range(len(BROKEN)))
def test_each_broken_answer_is_one_sentence(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes, why: str
) -> None:
    """For results and for an index."""
    monkeypatch.setattr("harness.environments.index._LARGEST", 1 << 20)
    server = serve(lambda path: said)
    monkeypatch.setenv("UV_DEFAULT_INDEX", with_password(server.url))
    for call in (
        lambda: fetch(with_password(server.url) + "/x.parquet", tmp_path, largest=1 << 20),
        lambda: Index(tmp_path / "answers").files("numba"),
    ):
        with pytest.raises(PartUnavailable, match=why) as raised:
            call()
        text = str(raised.value)
        assert text.isprintable() and not [secret for secret in SECRETS if secret in text], text


@pytest.mark.parametrize(
    "address",
    [
        "http://me:se@cret@[::1", "http://me:se@cret@host:port/x", "http://me:se@cret@host:99999/", "http://me:s/e@cret@host/", "http://me:se@cret@/x",
        "http://me:se@cret@a..b/", "http://me:se@cret@" + "a" * 300 + "/", "http://me:se@cret@ho st/", "ftp://me:se@cret@host/x", "http://me:se@cret@\u2100.example/",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_said_without_its_password(
    no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    for call in (lambda: fetch(address, tmp_path), lambda: Index(tmp_path / "answers").files("numba")):
        with pytest.raises(CumatrixError) as raised:
            call()
        assert "cret" not in str(raised.value)


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"files": [{"filename": "a", "size": Infinity}]}'])
def test_a_page_that_breaks_its_reader_is_one_sentence(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    server = serve(lambda path: answer(text, Content_Type="application/vnd.pypi.simple.v1+json"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", server.url)
    with pytest.raises(PartUnavailable, match="returned something other than a page"):
        Index(tmp_path).files("numba")
    server.reply = lambda path: answer(b"<![" * 9, Content_Type="text/html")
    with pytest.raises(PartUnavailable, match="returned something other than a page"):
        Index(tmp_path).files("cupy-cuda12x")


def test_a_plan_holds_no_credentials_of_its_command_line() -> None:
    argv = [
        "run",
        "--from",
        "https://me:se%40cret@host/page?sig=se@cret",
        "--where",
        "cc >= '8.0'",
        "--from=http://cret@h/x",
        "--library=a=git+ssh://git@h/x",
        "https://me:se@cret@h/x",
    ]
    plan = make_plan([], run="r", environment="e", argv=argv)
    assert plan["argv"] == [
        "run",
        "--from",
        "https://host/page",
        "--where",
        "cc >= '8.0'",
        "--from=http://h/x",
        "--library=a=git+ssh://git@h/x",
        "https://h/x",
    ]
