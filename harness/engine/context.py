"""What a run was asked for, and what there is to run it with."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.engine.cache import ResultStore
from harness.engine.devices import Devices
from harness.engine.environment import Environment
from harness.engine.roots import Roots
from harness.engine.trace import Trace
from harness.model import Toolchain
from harness.protocol.wire import Limits
from harness.records.artifact_folder import ArtifactFolder
from harness.toolkits import ToolkitStore
from harness.toolkits.store import data_folder


@dataclass(frozen=True)
class RunContext:
    """Environment, toolkits, cache and limits of one run.

    Parameters
    ----------
    environment : Environment
        The environment under test that is there.
    store : ToolkitStore
        The installed toolkits.
    cache : ResultStore or None
        Outcomes of earlier runs; None compiles everything.
    limits : Limits
        What a cell may use.
    include : tuple of Path
        Include directories beside the toolkit's, for every cell.
    memory : int
        What all cells together may need at a time, in bytes; what the machine has free, when 0.
    devices : Devices
        The real devices that cells may run on.
    sanitizer : str
        Path of compute-sanitizer, which then goes over every launch; empty for none.
    longest_first : bool
        Whether cells that took long before are compiled first; else they keep their order.
    trace : Trace
        Where it is noted what every runner does when.
    others : tuple of Environment
        Further environments under test, one for each release of ``--with``; each has a name of its own.
    executor : str
        Where cells are compiled (`harness.engine.executor.EXECUTORS`); threads of this process when empty.
    absent : str
        What is said of cells whose parts are not there, where nothing may be installed; empty where each part names its own command.
    artifacts : ArtifactFolder or None
        Where what was built is kept; what is not there yet is compiled, whatever the cache has.
    named : Roots or None
        Names of folders for a run that was asked for on another machine.
    """

    environment: Environment
    store: ToolkitStore
    cache: ResultStore | None
    limits: Limits = field(default_factory=Limits)
    include: tuple[Path, ...] = ()
    memory: int = 0
    devices: Devices = field(default_factory=Devices)
    sanitizer: str = ""
    longest_first: bool = True
    trace: Trace = field(default_factory=Trace)
    others: tuple[Environment, ...] = ()
    executor: str = ""
    absent: str = ""
    artifacts: ArtifactFolder | None = None
    named: Roots | None = None

    @cached_property
    def roots(self) -> Roots:
        """By which names keys have the folders of this machine."""
        return self.named or Roots.of(self.environment.python)

    def environment_of(self, toolchain: Toolchain) -> Environment:
        """The environment that the cells of a toolchain run in."""
        return next((each for each in self.others if each.name == toolchain.environment), self.environment)

    @property
    def name(self) -> str:
        """What the run is called after: its environment, or the libraries of which it has several."""
        if not self.others or self.environment.named:
            return self.environment.name
        return "+".join(dict.fromkeys(each.library for each in self.others))

    @cached_property
    def tools(self) -> Path:
        """Folder of the small libraries that cumatrix builds for itself."""
        return data_folder() / "tools"
