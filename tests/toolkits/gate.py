"""Installations that wait for a wheel, and their leftovers."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Gate:
    """An HTTP index that holds back the second half of each wheel until it is opened."""

    def __init__(self, root: Path) -> None:
        self.opened = threading.Event()
        self.asked = threading.Event()
        self.downloads = 0
        gate = self

        class Handler(SimpleHTTPRequestHandler):
            def copyfile(self, source: Any, outputfile: Any) -> None:
                text = source.read()
                if not self.path.endswith(".whl"):
                    outputfile.write(text)
                    return
                gate.downloads += 1
                outputfile.write(text[: len(text) // 2])
                outputfile.flush()
                gate.asked.set()
                gate.opened.wait(600)
                outputfile.write(text[len(text) // 2 :])

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True  # the client was killed

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        """Release all waiting clients."""
        self.opened.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def until(happens: Callable[[], object]) -> None:
    """Wait for an event; pytest-timeout ends the test if the event never happens."""
    while not happens():
        time.sleep(0.05)


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.endswith(".lock"))


def unpacked(tmp_path: Path) -> list[str]:
    """Return the files that uv was unpacking."""
    return [path.name for path in (tmp_path / "uv-cache").glob(".tmp*")]


def free(lock: Path) -> bool:
    """Return whether no uv holds the lock of its cache: a killed process holds it for a moment."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True
