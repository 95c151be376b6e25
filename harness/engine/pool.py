"""The fork servers that a runner keeps."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from harness.engine.fork_server import ForkServer, ForkServerDied
from harness.engine.toolchain import PreparedToolchain
from harness.model import Toolchain


class ForkServers:
    """Fork servers by toolchain; of those that wait for further cells, the one that was used last stays longest.

    Parameters
    ----------
    keep : int
        How many may wait at the same time.
    before_end : callable
        Called before one is ended on the way: what its cells left behind goes with it.

    Attributes
    ----------
    closed : bool
        Whether the run is over.
    running : OrderedDict
        Each by its toolchain, the one that was used last at the end.
    """

    def __init__(self, keep: int = 1, before_end: Callable[[], None] = lambda: None) -> None:
        self.keep = keep
        self.before_end = before_end
        self.closed = False
        self.running: OrderedDict[Toolchain, ForkServer] = OrderedDict()

    def of(self, toolchain: PreparedToolchain) -> ForkServer:
        """The one of a toolchain, which is started where there is none; it need not be ready yet.

        Raises
        ------
        ForkServerDied
            When all were closed meanwhile.
        """
        name = toolchain.toolchain
        fork_server = self.running.get(name)
        if fork_server is not None and fork_server.gone:
            self.end(toolchain)  # whoever ended it, it was none of the cells to come
            fork_server = None
        if fork_server is None:
            if len(self.running) >= self.keep:
                self.before_end()
            while len(self.running) >= self.keep:
                self.running.popitem(last=False)[1].close()
            # Known before it is ready: whoever interrupts need not wait until a library is loaded.
            fork_server = self.running[name] = toolchain.fork_server()
            if self.closed:  # while it was starting, so that `close` did not see it
                self.end(toolchain)
                raise ForkServerDied("the run is over")
        if name in self.running:
            self.running.move_to_end(name)
        return fork_server

    def end(self, toolchain: PreparedToolchain) -> None:
        """End that of a toolchain: the next cell starts another one."""
        self.before_end()
        fork_server = self.running.pop(toolchain.toolchain, None)
        if fork_server is not None:
            fork_server.close()

    def close(self) -> None:
        """End every one, and with it whatever it runs."""
        self.closed = True
        while self.running:
            try:
                fork_server = self.running.popitem()[1]
            except KeyError:
                return  # the runner's own thread and the one that interrupts it may both be here
            fork_server.close()
