"""One lane: runs cells one after another, with the zygotes that they need."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.launch import launches_for, references_of
from harness.cases.options import options_for
from harness.engine.bench import Bench
from harness.engine.cache import ResultCache
from harness.engine.devices import DevicePool, Devices
from harness.engine.environment import Environment
from harness.engine.key import Key, source_digest
from harness.engine.memory import Memory, available, size
from harness.engine.settle import settle
from harness.engine.zygote import Limits, Zygote, ZygoteDied
from harness.model import Cell, HeaderLibrary, Outcome, Status, Toolchain
from harness.toolkits import Installed, LibraryStore, ToolkitStore
from harness.toolkits.libraries import observed_version
from harness.toolkits.store import data_folder


class Workshop:
    """What all lanes of a run share: environment, toolkits, cache, limits.

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
        self._shelf = tempfile.TemporaryDirectory(prefix="cumatrix-shelf-")
        self._benches: dict[Toolchain, Bench] = {}
        self._hellos: dict[str, dict[str, Any]] = {}
        self._jobs: dict[str, dict[str, Any]] = {}
        self._keys: dict[str, str] = {}
        self._digests: dict[tuple[Path, tuple[Path, ...]], str] = {}

    def bench(self, toolchain: Toolchain) -> Bench:
        """The bench of a toolchain."""
        if toolchain not in self._benches:
            self._benches[toolchain] = Bench.of(
                toolchain, self.environment, self.store, self.tools, Path(self._shelf.name),
                self.devices.variables if toolchain.device else {},
            )  # fmt: skip
        return self._benches[toolchain]

    def hello(self, bench: Bench) -> dict[str, Any] | None:
        """What the bench's zygote said of itself, in this run or in an earlier one; None before it was asked."""
        if bench.key not in self._hellos and self.cache:
            found = self.cache.fact(Key("hello").add("bench", bench.key).hex())
            if found:
                self._hellos[bench.key] = found
        return self._hellos.get(bench.key)

    def keep_hello(self, bench: Bench, hello: dict[str, Any]) -> None:
        """Remember what a zygote said; a failure to load only for this run."""
        self._hellos[bench.key] = hello
        if self.cache and "status" not in hello:
            self.cache.keep_fact(Key("hello").add("bench", bench.key).hex(), hello)

    def job(self, cell: Cell, bench: Bench) -> dict[str, Any]:
        """Fields of `harness.backends.api.Job` for a cell, but for its scratch folder."""
        if cell.id not in self._jobs:
            self._jobs[cell.id] = self._job(cell, bench)
        return self._jobs[cell.id]

    def _job(self, cell: Cell, bench: Bench) -> dict[str, Any]:
        language = BACKENDS[cell.toolchain.backend].language(cell.case) or ""
        source = cell.case.sources[language]
        # Libraries of the case stand before the toolkit's headers, which may hold another version of them.
        options = options_for(cell)
        own = [source.parent.absolute() / folder for folder in options.pop("include", ())]
        include = [*self._library_include(cell), *bench.include, *self.include, *own]
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

    def key(self, cell: Cell, bench: Bench) -> str:
        """Content key of a cell."""
        if cell.id not in self._keys:
            self._keys[cell.id] = self._key(cell, bench)
        return self._keys[cell.id]

    def _key(self, cell: Cell, bench: Bench) -> str:
        job = dict(self.job(cell, bench))
        source = Path(job.pop("source"))
        installed = {name: found for name, found in self.installed(cell).items() if found}
        apart = {*bench.include, *self._library_include(cell)}  # these have fingerprints of their own
        folders = tuple(Path(folder) for folder in job["include"] if Path(folder) not in apart)
        if (source, folders) not in self._digests:
            self._digests[source, folders] = source_digest(source, folders)
        references = [hashlib.sha256(path.read_bytes()).hexdigest() for path in references_of(cell.case)]
        key = Key("cell").add("bench", bench.key).add("references", references if job["launches"] else [])
        key.add("source", self._digests[source, folders]).add("name", source.name)
        key.add("libraries", {name: found.fingerprint for name, found in installed.items()})
        limits = {"memory": self.limits.memory, **self.limits.rlimits}
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
        bench = self.bench(cell.toolchain)
        if bench.problem:
            return bench.problem, False, ""
        for name, found in self.installed(cell).items():
            if found is None:
                wanted = f"{name}=={cell.variant.libraries[name]}"
                reason = f"{wanted} is not installed: run `cumatrix toolkits install {wanted}`, or `cumatrix toolkits install --cases`"
                return Outcome(status=Status.UNAVAILABLE, reason=reason), False, ""
        hello = self.hello(bench)
        if hello is None:
            return None
        if "status" in hello:
            return Outcome(status=Status(hello["status"]), reason=hello["reason"], log=hello.get("log", "")), False, ""
        unknown = bench.unknown_target(cell, hello)
        if unknown:
            return Outcome(status=Status.UNSUPPORTED, reason=unknown, observed=self._observed(bench, hello)), False, ""
        key = self.key(cell, bench)
        # What a device does is never taken from an earlier run: it is asked each time.
        kept = self.cache.outcome(key) if self.cache and not cell.toolchain.device else None
        return (kept, True, key) if kept else None

    def finish(self, outcome: Outcome, cell: Cell, bench: Bench, hello: dict[str, Any]) -> Outcome:
        """Add what the zygote observed, for all cells alike, and what the cell's libraries say of themselves."""
        libraries = {
            name: observed_version(cell.case.libraries[name], found)
            for name, found in self.installed(cell).items()
            if found
        }
        observed = {**self._observed(bench, hello), **({"libraries": libraries} if libraries else {})}
        return replace(outcome, observed={**observed, **outcome.observed})

    def _observed(self, bench: Bench, hello: dict[str, Any]) -> dict[str, Any]:
        assert bench.toolkit is not None and bench.headers is not None
        return {
            **hello["observed"],
            **(
                {"cuda_home": str(bench.toolkit.home)}
                if bench.toolchain.toolkit.local
                else {"wheels": dict(bench.toolkit.packages)}
            ),
            **(
                {"headers_wheels": dict(bench.headers.packages)}
                if bench.headers.release != bench.toolkit.release
                else {}
            ),
        }


class Lane:
    """Runs cells one at a time.

    Parameters
    ----------
    workshop : Workshop
        What the lanes share.
    keep : int
        How many zygotes may wait at the same time for further cells.
    """

    def __init__(self, workshop: Workshop, keep: int = 1) -> None:
        self.workshop = workshop
        self.keep = keep
        self._zygotes: OrderedDict[Toolchain, Zygote] = OrderedDict()
        self.closed = False

    def run(self, cell: Cell) -> tuple[Outcome, bool, str]:
        """Outcome of a cell, whether it comes from the cache, and its content key."""
        known = self.workshop.answer(cell)
        if known:
            return known
        bench = self.workshop.bench(cell.toolchain)
        zygote = self._zygote(bench)
        known = self.workshop.answer(cell)  # what the zygote said may have settled it
        if known:
            return known
        key = self.workshop.key(cell, bench)
        with self.workshop.memory.taken(self.workshop.needs(cell)):
            outcome = self._compile(cell, bench, zygote)
        self.workshop.learn(cell, outcome.peak_bytes)
        outcome = self.workshop.finish(outcome, cell, bench, zygote.hello)
        if self.workshop.cache and not cell.toolchain.device:
            self.workshop.cache.keep_outcome(key, outcome)
        return outcome, False, key

    def close(self) -> None:
        """End every zygote, and with it whatever it runs."""
        self.closed = True
        while self._zygotes:
            try:
                zygote = self._zygotes.popitem()[1]
            except KeyError:
                return  # the lane's own thread and the one that interrupts it may both be here
            zygote.close()

    def _zygote(self, bench: Bench) -> Zygote:
        zygote = self._zygotes.get(bench.toolchain)
        if zygote is None:
            while len(self._zygotes) >= self.keep:
                self._zygotes.popitem(last=False)[1].close()
            zygote = bench.zygote()
            self._zygotes[bench.toolchain] = zygote
            self.workshop.keep_hello(bench, zygote.hello)
        self._zygotes.move_to_end(bench.toolchain)
        return zygote

    def _compile(self, cell: Cell, bench: Bench, zygote: Zygote) -> Outcome:
        scratch = Path(tempfile.mkdtemp(prefix="cell-", dir=zygote.folder)).resolve()
        job = {**self.workshop.job(cell, bench), "scratch": str(scratch)}
        try:
            ended = self._run(cell, zygote, job)
            assert bench.toolkit is not None
            return settle(
                cell, ended, scratch, bench.toolkit.home, self.workshop.tools, job["entries"], job.get("device", {})
            )
        except ZygoteDied as error:
            self._zygotes.pop(bench.toolchain, None)
            zygote.close()
            return Outcome(status=Status.HARNESS_ERROR, reason=f"the worker process is gone: {error}")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _run(self, cell: Cell, zygote: Zygote, job: dict[str, Any]) -> dict[str, Any]:
        shop = self.workshop
        if not cell.toolchain.device:
            return zygote.run(job, shop.limits)
        with shop.pool.take(cell.toolchain.device) as device:
            job["device"] = dict(device.facts)
            # The driver reserves more address space than any machine has memory.
            limits = replace(shop.limits, memory=0)
            return zygote.run(job, limits, visible=device.token, sanitizer=shop.sanitizer)


Finished = Callable[[Cell, Outcome, bool, str], None]
"""Called with each finished cell, its outcome, whether it was kept from before, and its content key."""
