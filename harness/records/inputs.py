"""Input manifests, kept with the records: another machine can tell whether the outcomes would be the same there.

A record's fingerprint is a hash over the request and every file that was read. To check it against
other files, a reader needs their names: this is the list, ``x.inputs.json`` next to ``x.jsonl``.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.records.json_io import RecordError

SCHEMA = 1
_LARGEST = 512 << 20  # bytes of JSON
_HASH = re.compile(r"[0-9a-f]{64}")

FileSet = tuple[tuple[str, bool], ...]
"""Names of paths, and whether it is a folder whose names were listed."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of some records.

    Parameters
    ----------
    sets : Mapping[str, FileSet]
        Files that were read together, by a hash of their names.
    states : Mapping[str, str]
        What was at a path, as `harness.engine.file_states` tells it; of a listed folder after a last ``/``.
    workers : Mapping[str, tuple]
        By key of what a worker process has read while it loaded: the question, the set, and what it said of itself.
    answers : Mapping[str, tuple]
        By fingerprint: the question, the set, and the key of the worker.
    """

    sets: Mapping[str, FileSet] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    workers: Mapping[str, tuple[str, str, Mapping[str, Any]]] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)

    def __or__(self, other: Inputs) -> Inputs:
        return Inputs(
            {**self.sets, **other.sets},
            {**self.states, **other.states},
            {**self.workers, **other.workers},
            {**self.answers, **other.answers},
        )

    def __bool__(self) -> bool:
        return bool(self.answers)

    def of(self, fingerprints: Collection[str]) -> Inputs:
        """Those of some records alone."""
        answers = {key: answer for key, answer in self.answers.items() if key in fingerprints}
        workers = {key: self.workers[key] for _, _, key in answers.values() if key in self.workers}
        names = {name for _, name, _ in (*answers.values(), *workers.values())}
        sets = {name: self.sets[name] for name in names if name in self.sets}
        wanted = {state_name(path, listed) for paths in sets.values() for path, listed in paths}
        states = {name: state for name, state in self.states.items() if name in wanted}
        return Inputs(sets, states, workers, answers)

    def to_json(self) -> bytes:
        """The content of a ``.inputs.json``; paths are written once, and sets are lists of their places."""
        files = sorted({path for paths in self.sets.values() for path in paths})
        place = {path: number for number, path in enumerate(files)}
        value = {
            "schema": SCHEMA,
            "files": [[path, int(listed), self.states.get(state_name(path, listed), "")] for path, listed in files],
            "sets": {name: [place[path] for path in self.sets[name]] for name in sorted(self.sets)},
            "workers": {key: list(self.workers[key]) for key in sorted(self.workers)},
            "answers": {key: list(self.answers[key]) for key in sorted(self.answers)},
        }
        return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Inputs:
        """Inverse of `to_json`.

        Raises
        ------
        RecordError
            On anything else; the message begins with `where`.
        """
        try:
            value = json.loads(data)
            if value["schema"] != SCHEMA:
                raise ValueError(
                    f"its version is {value['schema']!r}, and this cumatrix reads {SCHEMA}: update cumatrix"
                )
            files = [(_path(path), bool(listed)) for path, listed, _ in value["files"]]
            states = {
                state_name(*file): _text(state) for file, (_, _, state) in zip(files, value["files"], strict=True)
            }
            sets = {_hash(name): tuple(files[_place(place)] for place in of) for name, of in value["sets"].items()}
            workers = {
                _hash(key): (_hash(first), _hash(name), _table(ready))
                for key, (first, name, ready) in value["workers"].items()
            }
            answers = {
                _hash(key): (_hash(first), _hash(name), _hash(worker))
                for key, (first, name, worker) in value["answers"].items()
            }
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            why = (str(error).splitlines() or ["damaged"])[0][:200]
            raise RecordError(f"{where}: not a list of what records follow from: {why}") from None
        return cls(sets, states, workers, answers)

    def packed(self) -> bytes:
        """The same, for the metadata of ``results.parquet``."""
        return zlib.compress(self.to_json(), 6)

    @classmethod
    def unpacked(cls, data: bytes, where: str) -> Inputs:
        """Inverse of `packed`; raises `RecordError` on anything else, and on what unpacks to more than 512 MiB."""
        try:
            unpack = zlib.decompressobj()
            text = unpack.decompress(data, _LARGEST)
        except zlib.error as error:
            raise RecordError(f"{where}: its list of what records follow from is damaged: {error}") from None
        if unpack.unconsumed_tail:
            raise RecordError(f"{where}: its list of what records follow from has more than {_LARGEST >> 20} MiB")
        return cls.from_json(text, where)


def state_name(path: str, listed: bool) -> str:
    """Under which name `Inputs.states` has what was at a path."""
    return f"{path}/" if listed else path


def inputs_path(path: Path) -> Path:
    """``x.inputs.json`` for ``x.jsonl``."""
    return path.with_name(path.name.removesuffix(".jsonl") + ".inputs.json")


def read_inputs(paths: Iterable[Path]) -> Inputs:
    """Read the manifests next to files of records; empty without any.

    Raises
    ------
    RecordError
        When one is damaged.
    """
    found = Inputs()
    for path in map(inputs_path, paths):
        if path.is_file():
            try:
                if path.stat().st_size > _LARGEST:
                    raise RecordError(f"{path}: has more than {_LARGEST >> 20} MiB")
                data = path.read_bytes()
            except OSError as error:
                raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
            found |= Inputs.from_json(data, str(path))
    return found


def _hash(value: Any) -> str:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise ValueError("a key is no hash")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 200:
        raise ValueError("the state of a file is no short text")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("what a worker said is no table")
    return value


def _place(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a set names a file that is not in the list")
    return value


def _path(value: Any) -> str:
    """The name of a path."""
    if not isinstance(value, str) or "\0" in value or len(value) > 8192:
        raise ValueError("the name of a file is none")
    path = value.removeprefix("link:").removeprefix("times:").removeprefix("pyc:")
    if not path.startswith(("/", "$")):
        raise ValueError("the name of a file is not absolute")
    return value
