"""Reuse of published outcomes (``--from``) whose inputs and request are identical.

Keys are computed here, from the files on this machine (`harness.engine.fingerprints`). Published results only name the
files to hash, and the outcome under each key. An outcome with a changed input is never reused. The outcomes themselves
are not verified: trust the publisher of results as you trust a compiler.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from harness.engine.cache import ResultStore, lasting
from harness.engine.file_states import Files, Roots
from harness.engine.reads import is_system, plain
from harness.errors import PartUnavailable, UsageError, needs
from harness.model import Outcome
from harness.records import Record, RecordError, read_records
from harness.records.failures import of_neighbours
from harness.records.merge import identity
from harness.records.plan import Inputs, inputs_path, state_name
from harness.toolkits.download import index_settings
from harness.web.address import AddressError, public, read_address

_LARGEST = 512 << 20  # bytes
_SECONDS = 300.0


def is_address(place: str) -> bool:
    """Return whether a place is an address rather than a file."""
    return "://" in place


def fetch(address: str, folder: Path, largest: int = _LARGEST, seconds: float = _SECONDS) -> Path:
    """Download results, and return the file.

    Parameters
    ----------
    address : str
        Address of ``results.parquet``, of a ``.jsonl``, or of a published page with a ``results.parquet``.
    folder : Path
        Folder for the file.
    largest : int
        Size limit in bytes.
    seconds : float
        Time limit in seconds.

    Raises
    ------
    UsageError
        If it is not a web address.
    PartUnavailable
        If the download fails or exceeds a limit.
    """
    try:
        read_address(address)
    except AddressError as error:
        raise UsageError(f"--from {public(address)}: {error}") from None
    parts = urlsplit(address)
    if not parts.path.endswith((".parquet", ".jsonl")):
        parts = parts._replace(path=f"{parts.path.removesuffix('/index.html').rstrip('/')}/results.parquet")
    path = folder / parts.path.rpartition("/")[2]
    deadline = time.monotonic() + seconds
    if not _download(urlunsplit(parts), path, largest, deadline):
        raise PartUnavailable(f"--from {public(urlunsplit(parts))}: there is no such page")
    if path.suffix == ".jsonl":
        inputs_file = inputs_path(Path(parts.path))
        _download(urlunsplit(parts._replace(path=str(inputs_file))), inputs_path(path), largest, deadline)
    return path


def _download(address: str, path: Path, largest: int, deadline: float) -> bool:
    """Download a file; return False if the server does not have it."""
    # Imported here: every run imports this module, and few runs download.
    from harness.web.download import DownloadError, download

    begin = f"--from {public(address)}"
    certificates = index_settings()[0].get("SSL_CERT_FILE")
    try:
        with open(path, "wb") as file:
            seconds = deadline - time.monotonic()
            response = download(
                read_address(address), file, largest=largest, seconds=seconds, certificates=certificates
            )
    except DownloadError as error:
        raise PartUnavailable(f"{begin}: {error}") from None
    if response.status in (404, 410):
        path.unlink()
        return False
    if response.status != 200:
        raise PartUnavailable(f"{begin}: the server answers {response.reason}")
    return True


_FIELDS = "status stage stages reason artifact signal seconds command log device notes peak_bytes shared_steps diagnostics".split()


@dataclass(frozen=True)
class RecordSource:
    """Results from one place.

    Parameters
    ----------
    name : str
        The file, folder or address, without a password.
    records : tuple of Record
        Its records.
    inputs : Inputs
        Inputs of the records; empty if it does not contain them.
    """

    name: str
    records: tuple[Record, ...]
    inputs: Inputs


def read_source(place: str) -> RecordSource:
    """Read the results of one ``--from``: a ``.jsonl``, ``results.parquet``, a folder of either, or an address.

    Raises
    ------
    RecordError, UsageError, PartUnavailable
        If the results cannot be read; the message is one sentence.
    """
    if not is_address(place):
        return RecordSource(place, *_read(Path(place)))
    with tempfile.TemporaryDirectory(prefix="cumatrix-from-") as folder:
        path = fetch(place, Path(folder))
        name = public(
            place if place.endswith(path.name) else f"{place.removesuffix('index.html').rstrip('/')}/{path.name}"
        )
        try:
            return RecordSource(name, *_read(path))
        except RecordError as error:
            raise RecordError(str(error).replace(str(path), name)) from None


def _read(path: Path) -> tuple[tuple[Record, ...], Inputs]:
    if (path / "results.parquet").is_file():
        path = path / "results.parquet"
    if path.suffix != ".parquet":
        results = read_records([path], inputs=True)
        return results.records, results.inputs
    try:
        from harness.records.parquet import read_inputs_of, read_parquet
    except ImportError as error:
        raise needs(f"--from {path}", "report", error) from None
    return tuple(read_parquet(path)[0]), read_inputs_of(path)


class Earlier:
    """The cache, with other results as a fallback; new entries go to the cache only.

    Parameters
    ----------
    cache : ResultStore or None
        The cache, which takes precedence.
    roots : Roots
        Names of this machine's folders.
    sources : sequence of RecordSource
        The results, in order of precedence.
    """

    def __init__(self, cache: ResultStore | None, roots: Roots, sources: Sequence[RecordSource]) -> None:
        self.cache = cache
        self.roots = roots
        self.sources = sources
        self._taken: dict[str, str] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        self._outcomes: dict[str, tuple[Record, str]] = {}
        self._cells: dict[tuple[str, str], tuple[Record, RecordSource]] = {}
        self._differ: dict[tuple[int, str], str] = {}
        self._files = Files()
        for source in reversed(sources):
            self._add(source)

    def _add(self, source: RecordSource) -> None:
        inputs = source.inputs
        for name, paths in inputs.sets.items():
            if not any(is_system(self.roots.path(path) or path) for path, _ in paths):
                # Without hashes: this machine hashes its own files.
                self._facts[f"set:{name}"] = {"paths": [list(path) for path in paths], "hashes": []}
        for first, name, _ in (*inputs.answers.values(), *inputs.workers.values()):
            names = self._facts.setdefault(first, {"sets": []})["sets"]
            if name not in names:
                names.append(name)
        for key, (_, _, ready) in inputs.workers.items():
            if not ready.get("status"):
                self._facts[key] = dict(ready)
        for record in source.records:
            # Also under the cell's name alone: a program has another folder on another machine.
            cell, whose = identity(record)
            self._cells[cell, whose] = self._cells[cell, ""] = (record, source)
            if record["fingerprint"] in inputs.answers:
                self._outcomes[record["fingerprint"]] = (record, source.name)

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome under a key, from the cache or else from the results."""
        if self.cache and (found := self.cache.outcome(key)):
            return found
        record, name = self._outcomes.get(key, (None, ""))
        if record is None:
            return None
        outcome = outcome_of(record)
        if outcome is None or not lasting(outcome):
            return None
        self._taken[key] = f"{name}, run {record['run']}"
        return outcome

    def read_ahead(self, keys: Iterable[str]) -> None:
        """Read the next keys of the cache ahead."""
        if self.cache:
            self.cache.read_ahead(keys)

    def note_use(self) -> None:
        """Record the use of the cache."""
        if self.cache:
            self.cache.note_use()

    def taken_from(self, key: str) -> str:
        """Return the origin of the outcome under a key; empty for the cache."""
        return self._taken.get(key, "")

    def keep_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome in the cache."""
        if self.cache:
            self.cache.keep_outcome(key, outcome)

    def fact(self, key: str) -> dict[str, Any] | None:
        """Return the fact under a key; sets of files from the cache and from results are merged."""
        here, there = self.cache.fact(key) if self.cache else None, self._facts.get(key)
        if here and there and isinstance(here.get("sets"), list):
            return {"sets": list(dict.fromkeys((*map(str, here["sets"]), *there["sets"])))}
        return here or there

    def keep_fact(self, key: str, value: dict[str, Any]) -> None:
        """Keep a fact in the cache."""
        if self.cache:
            self.cache.keep_fact(key, value)

    def why_not(self, cell: str, program: str) -> str:
        """Return the reason why a cell's record was not reused; empty without a record."""
        record, source = self._cells.get((cell, program), self._cells.get((cell, ""), (None, None)))
        if record is None or source is None:
            return ""
        outcome = outcome_of(record)
        if record["device"].get("virtual") is False:
            return "results of a device are never reused"
        if outcome is None or not lasting(outcome):
            return "crashed, timed-out and unavailable cells run again"
        if record["fingerprint"] not in source.inputs.answers:
            return f"{source.name} does not list the files of its records"
        _, name, worker = source.inputs.answers[record["fingerprint"]]
        _, loaded, _ = source.inputs.workers.get(worker, ("", "", {}))
        number = self.sources.index(source)
        path = self._other(number, source.inputs, loaded) or self._other(number, source.inputs, name)
        if path:
            return f"{path} differs from the file there"
        return (
            "the request there differs: another version of cumatrix or of a library, other options, limits or variables"
        )

    def _other(self, number: int, inputs: Inputs, name: str) -> str:
        """Return the first file of a set whose content differs here."""
        if (number, name) not in self._differ:
            found = ""
            for path, listed in inputs.sets.get(name, ()) if f"set:{name}" in self._facts else ():
                here = self.roots.path(path)
                if here is None or self._files.state(here, listed) != inputs.states.get(state_name(path, listed)):
                    found = plain(here or path)
                    break
            self._differ[number, name] = found
        return self._differ[number, name]


def outcome_of(record: Mapping[str, Any]) -> Outcome | None:
    """Return the outcome of a record; None if the record is incomplete."""
    try:
        fields = {name: record[name] for name in _FIELDS if name in record}
        notes = [note for note in record["notes"] if not of_neighbours(note)]
        return Outcome.from_json({**fields, "notes": notes, "observed": record["toolchain"]["observed"]})
    except (KeyError, TypeError, ValueError):
        return None
