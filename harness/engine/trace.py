"""A trace of a run: spans of the scheduler and of each runner.

The format is the "Trace Event Format" of Chrome
(https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): spans in microseconds, a lane for each thread.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import UsageError


class Trace:
    """Spans of the threads of one run; may be used by several threads at a time.

    Parameters
    ----------
    path : Path or None
        Where `write` puts them; None keeps none.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._began, self._day = time.perf_counter_ns(), time.time()
        self._lock = threading.Lock()
        self._events: list[dict[str, Any]] = []
        self._lanes: dict[int, int] = {}
        if path:
            self.write()  # a path that cannot be written is known before anything is compiled

    @contextmanager
    def span(self, name: str, **details: str | float) -> Iterator[None]:
        """The time that the body takes, in the lane of this thread."""
        if not self.path:
            yield
            return
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            self._add(name, started, time.perf_counter_ns(), details)

    def write(self) -> None:
        """Write what there is.

        Raises
        ------
        UsageError
            When the file cannot be written.
        """
        if not self.path:
            return
        with self._lock:
            other = {"began": self._day}  # seconds since 1970, of what is 0 here
            text = json.dumps({"traceEvents": self._events, "displayTimeUnit": "ms", "otherData": other})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text, "ascii")
        except OSError as error:
            raise UsageError(f"--trace: cannot write {self.path}: {error.strerror}") from None

    def _add(self, name: str, started: int, ended: int, details: dict[str, str | float]) -> None:
        with self._lock:
            place = {"pid": os.getpid(), "tid": self._lane()}
            times = {"ts": (started - self._began) / 1000, "dur": (ended - started) / 1000}
            self._events.append({"name": name, "ph": "X", **place, **times, "args": details})

    def _lane(self) -> int:
        thread = threading.current_thread()
        assert thread.ident is not None
        if thread.ident not in self._lanes:
            lane = self._lanes[thread.ident] = len(self._lanes)
            name = "scheduler" if thread is threading.main_thread() else thread.name
            where = {"pid": os.getpid(), "tid": lane}
            self._events.append({"name": "thread_name", "ph": "M", **where, "args": {"name": name}})
        return self._lanes[thread.ident]
