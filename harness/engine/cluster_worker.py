"""What runs in a worker of a Dask cluster: the engine of its machine, there for one run, and the tasks that ask it."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Sequence

from distributed import Worker, WorkerPlugin, get_worker

from harness.engine.devices import Devices, find_devices
from harness.engine.key import engine_digest
from harness.engine.machine import Engine, WorkerRequest, WorkerResults
from harness.model import Cell


class EnginePlugin(WorkerPlugin):  # type: ignore[misc]  # Dask has no types here
    """The engine of a worker, there for one run: Dask hands it to all workers, and to those that join later."""

    def __init__(self, name: str, asked: WorkerRequest) -> None:
        self.name = name
        self.asked = asked
        self.engine: Engine | None = None

    def setup(self, worker: Worker) -> None:
        """Called by Dask as the plugin, or the worker, comes."""
        if self.asked.same_machine and threading.current_thread() is threading.main_thread():
            # A terminal interrupts all of its processes; the one that was asked ends the others.
            signal.signal(signal.SIGINT, _pass)
        self.engine = Engine(self.asked, worker.state.nthreads)

    async def teardown(self, worker: Worker) -> None:
        """Called by Dask as either goes; ends every process of the engine."""
        if self.engine:
            await asyncio.to_thread(self.engine.close)


def _pass(_number: int, _frame: object) -> None:
    """A handler, and not ``SIG_IGN``, which programs that are started would inherit."""


def compile_cells(name: str, cells: Sequence[Cell]) -> WorkerResults:
    """The task that Dask runs: cells through the engine of the worker that it runs on."""
    plugin = get_worker().plugins[name]
    assert isinstance(plugin, EnginePlugin) and plugin.engine is not None
    return plugin.engine.run(cells)


def about(device: str) -> tuple[str, Devices]:
    """What a worker is: its cumatrix (`engine_digest`), and its devices."""
    return engine_digest(), Devices() if device == "none" else find_devices("auto")
