"""The scheduler's side of a fork server (`harness.worker.fork_server`)."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import harness
from harness.diagnostics import one_line
from harness.held import TEMPORARY, HeldFolder
from harness.protocol.message import Message, WireError
from harness.protocol.reads import VARIABLE
from harness.protocol.wire import Exit, Order, Ready, Setup

_PACKAGE = Path(harness.__file__).parent

M = TypeVar("M", bound=Message)


class ForkServerDied(Exception):
    """The fork server itself ended; the message says how."""


class ForkServer:
    """A running fork server.

    Parameters
    ----------
    python : str
        Interpreter of the environment under test.
    backend : str
        Name of the backend.
    setup : Setup
        What it is started for.
    env : Mapping
        Variables of the process, but for its folders: see `clean_environment`.
    follow : Path or None
        The library that follows what is read (``native/reads.c``).
    startup : float
        Seconds that loading may take.
    """

    def __init__(
        self,
        python: str,
        backend: str,
        setup: Setup,
        env: Mapping[str, str],
        follow: Path | None = None,
        startup: float = 300.0,
    ) -> None:
        self.backend = backend
        self._held = HeldFolder(Path(tempfile.gettempdir()), TEMPORARY)
        self.folder = self._held.path
        ours, theirs = socket.socketpair()
        self.channel = ours
        self._buffer = bytearray()
        self._log = open(self.folder / "fork_server.log", "w+b")  # noqa: SIM115 - closed with the fork server
        home = self.folder / "home"
        home.mkdir()
        # The library adds to this file and never makes it. The worker is the first program that is run.
        records = self.folder / "reads"
        records.write_text(f"X 0 0 0 0 0 {python}\0")
        followed = {"LD_PRELOAD": str(follow), VARIABLE: str(records)} if follow else {}
        self.process = subprocess.Popen(
            [python, "-s", str(_PACKAGE / "worker" / "boot.py"), str(_PACKAGE), backend, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=[theirs.fileno()],
            cwd=home,
            env={**env, "HOME": str(home), "TMPDIR": str(home), **followed},
            start_new_session=True,
        )
        theirs.close()
        self._setup, self._startup = setup, startup

    @cached_property
    def ready(self) -> Ready:
        """What it says once the backend is loaded, or could not be; waits for that, and ends when `close` is called meanwhile."""
        try:
            self._send(self._setup)
            return self._receive(Ready, self._startup)
        except ForkServerDied as error:
            return Ready(status="unavailable", reason=f"{self.backend} cannot be loaded: {error}")

    def run(self, order: Order) -> Exit:
        """Run one cell in a child of the fork server.

        Raises
        ------
        ForkServerDied
            When the fork server itself ends; it cannot be used again.
        """
        self._send(order)
        # The fork server keeps the deadline; this longer one is for the case that the fork server itself hangs.
        return self._receive(Exit, order.limits.seconds + 60)

    def close(self) -> None:
        """End the fork server and everything below it, and remove its folder."""
        try:
            self.channel.shutdown(socket.SHUT_RDWR)  # wakes a runner that waits for an answer
        except OSError:
            pass  # the fork server has gone already
        self.channel.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended in between
            self.process.wait()
        self._log.close()
        self._held.remove()

    def _send(self, message: Message) -> None:
        try:
            self.channel.sendall(message.to_line())
        except OSError:
            raise ForkServerDied(self._last_words()) from None

    def _receive(self, kind: type[M], seconds: float) -> M:
        end = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.channel], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.process.kill()
                raise ForkServerDied(f"no answer within {seconds:.0f} s")
            data = self.channel.recv(1 << 16)
            if not data:
                raise ForkServerDied(self._last_words())
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        try:
            message: M = kind.from_line(line)
            return message
        except WireError as error:
            self.process.kill()
            raise ForkServerDied(f"what it said cannot be read: {error}") from None

    def _last_words(self) -> str:
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            code = None
        self._log.flush()
        text = (self.folder / "fork_server.log").read_text("utf-8", "replace")[-2000:]
        how = (
            f"its process ended with signal {-code}" if code is not None and code < 0 else f"its process ended ({code})"
        )
        return f"{how}: {one_line(text)}" if text.strip() else how
