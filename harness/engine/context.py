"""What all runners of a run share."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.launch import launches_for, references_of
from harness.cases.options import options_for
from harness.engine.answers import Answers, Settled
from harness.engine.cache import ResultCache, lasting
from harness.engine.devices import DevicePool, Devices
from harness.engine.environment import Environment
from harness.engine.fork_server import ForkServer, Limits
from harness.engine.key import Key
from harness.engine.memory import Memory, available, size
from harness.engine.missing import without_part
from harness.engine.reads import Reads, reads_of
from harness.engine.toolchain import PreparedToolchain
from harness.model import Cell, HeaderLibrary, Outcome, Status, Toolchain
from harness.protocol.limits import limits_of_cell
from harness.toolkits import Installed, LibraryStore, ToolkitStore
from harness.toolkits.borrowed import borrowed
from harness.toolkits.libraries import observed_version
from harness.toolkits.store import data_folder


class RunContext:
    """What all runners of a run share: environment, toolkits, cache, limits.

    Parameters
    ----------
    environment : Environment
        The environment under test.
    store : ToolkitStore
        The installed toolkits.
    cache : ResultCache or None
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
    """

    def __init__(
        self,
        environment: Environment,
        store: ToolkitStore,
        cache: ResultCache | None,
        limits: Limits,
        include: tuple[Path, ...] = (),
        memory: int = 0,
        devices: Devices | None = None,
        sanitizer: str = "",
    ) -> None:
        self.environment = environment
        self.store = store
        self.cache = cache
        self.limits = limits
        self.include = include
        self.devices = devices or Devices()
        self.pool = DevicePool(self.devices)
        self.sanitizer = sanitizer
        self.tools = data_folder() / "tools"
        self.libraries = LibraryStore()
        self.memory = Memory(memory or available())
        self._needs: dict[str, int] = {}
        self._found: dict[tuple[str, str], Installed | None] = {}
        self._steps = tempfile.TemporaryDirectory(prefix="cumatrix-shelf-")
        self._prepared: dict[Toolchain, PreparedToolchain] = {}
        self._hellos: dict[str, tuple[dict[str, Any], list[str]]] = {}
        self._unknown: dict[str, str] = {}
        self._jobs: dict[str, dict[str, Any]] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self.answers = Answers(cache)
        self.unkept: Counter[str] = Counter()

    def prepared(self, toolchain: Toolchain) -> PreparedToolchain:
        """The toolchain of a toolchain."""
        if toolchain not in self._prepared:
            self._prepared[toolchain] = PreparedToolchain.of(
                toolchain, self.environment, self.store, self.tools, Path(self._steps.name),
                self.devices.variables if toolchain.device else {},
            )  # fmt: skip
        return self._prepared[toolchain]

    def hello(self, prepared: PreparedToolchain) -> tuple[dict[str, Any], list[str]] | None:
        """What the toolchain's fork server said of itself, in this run or in an earlier one; None before it was asked.

        With it come the keys of all that such a fork server has read. There may be several for the same files: Python looks for more of them while
        its compiled modules are still being written. There is none where it is not known what was read.
        """
        if prepared.key not in self._hellos and self.cache:
            found = [(said, key) for key in self.answers.keys(prepared.key) if (said := self.cache.fact(key))]
            if found:
                self._hellos[prepared.key] = (found[0][0], [key for _, key in found])
        return self._hellos.get(prepared.key)

    def keep_hello(self, prepared: PreparedToolchain, fork_server: ForkServer) -> str:
        """Remember what a fork server said; a failure to load only for this run. Returns the key of all that it has read."""
        if "status" in fork_server.hello:
            self._hellos[prepared.key] = (fork_server.hello, [])
            return ""
        settled = self.answers.settle(prepared.key, reads_of(fork_server.reads, self.own(fork_server.folder)))
        before = self._hellos[prepared.key][1] if prepared.key in self._hellos else []
        keys = [settled.key, *(key for key in before if key != settled.key)] if settled.key else []
        self._hellos[prepared.key] = (fork_server.hello, keys)
        self._unknown[prepared.key] = prepared.unfollowed or settled.problem
        if self.cache and settled.key:
            self.cache.keep_fact(settled.key, fork_server.hello)
        return settled.key

    def keep(self, cell: Cell, prepared: PreparedToolchain, prepared_key: str, reads: Reads, outcome: Outcome) -> str:
        """Keep an outcome for later runs where it follows from what was read and from nothing else; its key."""
        first = self.key(cell, prepared, prepared_key)
        settled = self.answers.settle(first, reads) if first else Settled("", self._unknown.get(prepared.key, ""))
        if not self.cache or cell.toolchain.device:
            return settled.key
        if settled.key and lasting(outcome):
            self.cache.keep_outcome(settled.key, outcome)
        elif settled.problem and lasting(outcome):
            self.unkept[settled.problem] += 1
        return settled.key

    def own(self, fork_server: Path) -> list[str]:
        """Folders whose files are products of this run or of cumatrix itself."""
        return [os.path.realpath(folder) for folder in (fork_server, self._steps.name, self.tools)]

    def close(self) -> None:
        """Give back what the run took, and keep what it learned."""
        self.answers.close()
        self._steps.cleanup()

    def job(self, cell: Cell, prepared: PreparedToolchain) -> dict[str, Any]:
        """Fields of `harness.protocol.backend.Job` for a cell, but for its scratch folder."""
        if cell.id not in self._jobs:
            self._jobs[cell.id] = self._job(cell, prepared)
        return self._jobs[cell.id]

    def _job(self, cell: Cell, prepared: PreparedToolchain) -> dict[str, Any]:
        language = BACKENDS[cell.toolchain.backend].language(cell.case) or ""
        source = cell.case.sources[language]
        # Libraries of the case stand before the toolkit's headers, which may hold another version of them.
        options = options_for(cell)
        own = [source.parent.absolute() / folder for folder in options.pop("include", ())]
        include = [*self._library_include(cell), *prepared.include, *self.include, *own]
        return {
            "cell": cell.id,
            "source": str(source.absolute()),
            "entries": dict(cell.case.entries.get(language, {})),
            "definitions": dict(cell.variant.definitions),
            "target": str(cell.target),
            "options": {name: value for name, value in options.items() if name != "memory"},
            "include": [str(folder) for folder in include],
            "launches": launches_for(cell) if cell.toolchain.device else [],
        }

    def installed(self, cell: Cell) -> dict[str, Installed | None]:
        """The header libraries of a cell, as they are installed."""
        return {
            name: self._library(cell.case.libraries[name], version) for name, version in cell.variant.libraries.items()
        }

    def _library(self, library: HeaderLibrary, version: str) -> Installed | None:
        """A library as it was found first: its manifest is read and its files are looked at once in a run."""
        key = (library.name, version)
        if key not in self._found:
            self._found[key] = self.libraries.find(library, version)
        return self._found[key]

    def _library_include(self, cell: Cell) -> list[Path]:
        return [folder for found in self.installed(cell).values() if found for folder in found.include]

    def key(self, cell: Cell, prepared: PreparedToolchain, prepared_key: str) -> str:
        """First key of a cell: what is asked, of a worker that had read what `bench_key` stands for; empty without one."""
        if not prepared_key:
            return ""
        if (cell.id, prepared_key) not in self._keys:
            self._keys[cell.id, prepared_key] = self._key(cell, prepared, prepared_key)
        return self._keys[cell.id, prepared_key]

    def _key(self, cell: Cell, prepared: PreparedToolchain, prepared_key: str) -> str:
        job = self.job(cell, prepared)
        installed = {name: found.fingerprint for name, found in self.installed(cell).items() if found}
        references = [hashlib.sha256(path.read_bytes()).hexdigest() for path in references_of(cell.case)]
        key = Key("cell").add("toolchain", prepared_key).add("references", references if job["launches"] else [])
        key.add("libraries", installed)
        limits = limits_of_cell(self.limits.memory, self.limits.rlimits)
        return key.add("job", {**job, "cell": ""}).add("limits", limits).hex()

    def needs(self, cell: Cell) -> int:
        """Bytes that compiling a cell may need: as other architectures of it did, as the case says, or by its backend."""
        key = self._need_key(cell)
        if key not in self._needs:
            kept = self.cache.fact(key) if self.cache else None
            declared = options_for(cell).get("memory")
            default = size(declared) if declared else BACKENDS[cell.toolchain.backend].memory
            self._needs[key] = kept["bytes"] if kept else default
        return self._needs[key]

    def learn(self, cell: Cell, peak: int | None) -> None:
        """Remember what a cell needed, for the others of its variant and for later runs."""
        if peak:
            key = self._need_key(cell)
            self._needs[key] = peak
            if self.cache:
                self.cache.keep_fact(key, {"bytes": peak})

    def _need_key(self, cell: Cell) -> str:
        key = Key("memory").add("toolchain", cell.toolchain.name)
        return key.add("variant", [cell.case.name, cell.variant.name]).hex()

    def answer(self, cell: Cell) -> tuple[Outcome, bool, str] | None:
        """Outcome, whether it comes from the cache, and content key, where nothing needs to be compiled."""
        facts = cell.facts()
        for rule in cell.case.unsupported:
            if rule.when(facts):
                return Outcome(status=Status.UNSUPPORTED, reason=rule.reason), False, ""
        prepared = self.prepared(cell.toolchain)
        if prepared.problem:
            return prepared.problem, False, ""
        for name, found in self.installed(cell).items():
            if found is None:
                wanted = f"{name}=={cell.variant.libraries[name]}"
                reason = f"{wanted} is not installed: run `cumatrix toolkits install {wanted}`, or `cumatrix toolkits install --cases`"
                return Outcome(status=Status.UNAVAILABLE, reason=reason), False, ""
        known = self.hello(prepared)
        if known is None:
            return None
        hello, prepared_keys = known
        if "status" in hello:
            return Outcome(status=Status(hello["status"]), reason=hello["reason"], log=hello.get("log", "")), False, ""
        unknown = prepared.unknown_target(cell, hello)
        if unknown:
            return (
                Outcome(status=Status.UNSUPPORTED, reason=unknown, observed=self._observed(prepared, hello)),
                False,
                "",
            )
        # What a device does is never taken from an earlier run: it is asked each time.
        if not self.cache or cell.toolchain.device:
            return None
        firsts = [self.key(cell, prepared, prepared_key) for prepared_key in prepared_keys]
        for key in chain.from_iterable(map(self.answers.keys, firsts)):
            kept = self.cache.outcome(key)
            if kept:
                return kept, True, key
        return None

    def finish(self, outcome: Outcome, cell: Cell, prepared: PreparedToolchain, hello: dict[str, Any]) -> Outcome:
        """Add what the fork server observed, for all cells alike, and what the cell's libraries say of themselves."""
        libraries = {
            name: observed_version(cell.case.libraries[name], found)
            for name, found in self.installed(cell).items()
            if found
        }
        language = BACKENDS[cell.toolchain.backend].language(cell.case) or ""
        outcome = without_part(outcome, cell.toolchain.toolkit, prepared.include, cell.case.sources[language])
        observed = {**self._observed(prepared, hello), **({"libraries": libraries} if libraries else {})}
        return replace(outcome, observed={**observed, **outcome.observed})

    def _observed(self, prepared: PreparedToolchain, hello: dict[str, Any]) -> dict[str, Any]:
        assert prepared.toolkit is not None and prepared.headers is not None
        return {
            **hello["observed"],
            **(
                {"cuda_home": str(prepared.toolkit.home)}
                if prepared.toolchain.toolkit.local
                else {"wheels": dict(prepared.toolkit.packages)}
            ),
            **(
                {"headers_wheels": dict(prepared.headers.packages)}
                if prepared.headers.release != prepared.toolkit.release
                else {}
            ),
            **({"borrowed": taken} if (taken := borrowed(prepared.headers.home)) else {}),
        }
