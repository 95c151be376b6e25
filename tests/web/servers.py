"""Servers that send a test's replies byte for byte, and store the requests."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Answer = Callable[[str], "bytes | Iterator[bytes]"]


def answer(body: bytes = b"", *, status: str = "200 OK", **headers: str) -> bytes:
    """Return a response with a correct length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def moved(address: str) -> bytes:
    """Return a redirect."""
    return answer(status="302 Found", Location=address)


class Server:
    """A server on loopback: one connection, one request, one answer.

    Parameters
    ----------
    reply : Answer
        From the path to the bytes of the response. An iterator goes on until the client leaves.
    context : ssl.SSLContext, optional
        For a server of TLS.
    """

    def __init__(self, reply: Answer, context: ssl.SSLContext | None = None) -> None:
        self.reply, self.context = reply, context
        self.asked: list[tuple[str, str]] = []
        """Path and ``Authorization`` of each request."""
        self.left = threading.Event()
        """Set when a client disconnects before its reply is complete."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accept no further connections."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            with self.context.wrap_socket(connection, server_side=True) if self.context else connection as client:
                head = b""
                while b"\r\n\r\n" not in head:
                    data = client.recv(1 << 16)
                    if not data:
                        return
                    head += data
                lines = head.decode("latin-1").split("\r\n")
                path = lines[0].split(" ")[1]
                found = [line.partition(": ")[2] for line in lines if line.lower().startswith("authorization:")]
                self.asked.append((path, "".join(found)))
                reply = self.reply(path)
                for part in [reply] if isinstance(reply, bytes) else reply:
                    client.sendall(part)
        except OSError:
            self.left.set()


def authority(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return a certificate for 127.0.0.1 that only its own file verifies, and a server's context with it."""
    certificate, key = folder / "ca.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate),
        ],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context
