"""Cache keys of cells: hashes of the request and of every file that the compiler reads."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import orjson

import harness
from harness.engine.cache import ResultStore
from harness.engine.file_states import Files, Roots, marks_in
from harness.engine.reads import METADATA, PLACE, TIME, Reads, is_system
from harness.records.plan import FileSet as Set
from harness.records.plan import Inputs, state_name

# Increase it when the meaning of a key's fields changes.
_SCHEMA = 4
# For values that orjson rejects: lone surrogates in file names, and numbers of more than 64 bits.
_JSON = json.JSONEncoder(sort_keys=True).encode
_ENGINE_FOLDERS = ("protocol", "native", "nvidia", "backends", "worker", "diagnostics", "artifacts", "engine")


class Key:
    """A hash over labelled, length-prefixed fields; different sets of fields cannot collide by concatenation."""

    def __init__(self, kind: str) -> None:
        self._hash = _begun(kind, engine_digest()).copy()

    def copy(self) -> Key:
        """Return a key that begins with the same fields."""
        other = Key.__new__(Key)
        other._hash = self._hash.copy()
        return other

    def add(self, label: str, value: Any) -> Key:
        """Add one field; `value` is any JSON value."""
        _add(self._hash, label, value)
        return self

    def hex(self) -> str:
        """Return the hexadecimal digest."""
        return self._hash.hexdigest()


@cache
def _begun(kind: str, engine: str) -> hashlib._Hash:
    """Return the common prefix of all keys of a kind."""
    begun = hashlib.sha256()
    for label, value in (("kind", kind), ("schema", _SCHEMA), ("engine", engine), ("machine", platform.machine())):
        _add(begun, label, value)
    return begun


def canonical(value: Any) -> bytes:
    """Encode a value as JSON with sorted keys."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return _JSON(value).encode()


def _add(to: hashlib._Hash, label: str, value: Any) -> None:
    name, part = label.encode(), canonical(value)
    to.update(b"%b%b%b%b" % (len(name).to_bytes(8, "big"), name, len(part).to_bytes(8, "big"), part))


@cache
def engine_digest() -> str:
    """Hash the modules that produce an outcome from a cell."""
    digest, root = hashlib.sha256(), Path(harness.__file__).parent
    for folder in _ENGINE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".c"):
                data = path.read_bytes()
                digest.update(f"{path.relative_to(root)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


# Maximum number of file sets per question; a program that looks up random files has more, and is compiled again.
_SETS = 12
# Maximum number of recent sets in memory, which need no sorting and naming.
_LATELY = 64


@dataclass(frozen=True)
class AnswerKey:
    """The cache key of a set of reads.

    Parameters
    ----------
    key : str
        The second key; empty if `problem` has the reason.
    problem : str
        Reason why a result cannot be cached.
    """

    key: str
    problem: str = ""


class Answers:
    """The cache's keys, by the question and the files that were read.

    Parameters
    ----------
    cache : ResultStore or None
        The cache; None stores and finds nothing, but keys are made all the same.
    roots : Roots
        Names of files in sets.

    Attributes
    ----------
    origins : dict
        First key and name of the set, by second key.
    workers : dict
        Key of the worker, by first key of a cell.
    """

    def __init__(self, cache: ResultStore | None, roots: Roots | None = None) -> None:
        self.cache = cache
        self.roots = roots or Roots({})
        self.files = Files()
        self.origins: dict[str, tuple[str, str]] = {}
        self.workers: dict[str, str] = {}
        self._sets: dict[str, Set | None] = {}
        self._known: dict[str, list[str]] = {}
        self._loaded: dict[str, tuple[Reads, AnswerKey]] = {}
        self._loading: dict[str, Lock] = {}
        self._lately: dict[Set, tuple[str, Set]] = {}
        # Sets share most of their files: each pair is stored once.
        self._pairs: dict[tuple[str, bool], tuple[str, bool]] = {}

    def keys(self, first: str) -> Iterator[str]:
        """Yield the second keys that match the current files, the likeliest first."""
        for name in self._names(first):
            paths = self._set(name)
            if paths is not None:
                yield self._second(first, name, self.files.hash_of_set(name, paths, self._places))

    def unread(self, firsts: Iterable[str]) -> Iterator[str]:
        """Yield the first keys that have not been looked up yet."""
        return (first for first in firsts if first not in self._known)

    def key_of(
        self, first: str, reads: Reads, program: tuple[str, ...] = (), libraries: tuple[str, ...] = ()
    ) -> AnswerKey:
        """Return the second key of a new result, and remember its set of files.

        There is no key if a file has changed since it was read: each file must still have the signature that it was
        read with.

        Parameters
        ----------
        first : str
            The first key.
        reads : Reads
            The files that were read.
        program : tuple of str
            Folders of the program, each with a trailing ``/``. There is no key if a file that was read uses the time of
            compilation, or if a file in these folders uses metadata (`harness.engine.reads`). Empty for a worker.
        libraries : tuple of str
            Folders of development builds in the same form; they may be inside the program's folders.
        """
        if reads.unknown:
            return AnswerKey("", reads.unknown)
        name, paths = self._set_of(tuple((path, path in reads.listed) for path in reads.states))
        states = []
        self.files.share(reads.states)
        for path, listed in paths:
            state = self.files.state_of_read(path, listed, reads.states[path])
            if state is None:
                return AnswerKey("", f"{path} changed while it was read")
            if program and (marks := marks_in(state)):
                if TIME in marks:
                    return AnswerKey("", f"{path} uses __TIME__, __DATE__ or __TIMESTAMP__")
                if METADATA in marks and self._is_of(path, program, libraries):
                    return AnswerKey(
                        "",
                        f"{path} may ask for what is not followed: times and modes of files, the machine, other processes",
                    )
            states.append(state)
        self._remember(first, name, paths)
        return AnswerKey(self._second(first, name, self.files.hash_of([*states, *self._places(paths, states)])))

    def _is_of(self, path: str, program: tuple[str, ...], libraries: tuple[str, ...]) -> bool:
        """Return whether a file is the program's own: in its folder, but not of an environment or library under test."""
        apart = tuple(folder for folder in libraries if not any(each.startswith(folder) for each in program))
        is_installed = self.roots.is_installed(path) and not any(map(self.roots.is_installed, program))
        return path.startswith(program) and not is_installed and not path.startswith(apart)

    def _places(self, paths: Set, states: Iterable[str]) -> list[str]:
        """Return paths of the user's own files if one of them can read its path; names identify other files in keys."""
        own = [(path, state) for (path, _), state in zip(paths, states, strict=True) if self.roots.is_own(path)]
        return [path for path, _ in own] if any(PLACE in marks_in(state) for _, state in own) else []

    def key_of_worker(self, first: str, reads: Reads) -> AnswerKey:
        """Return the `key_of` a worker's reads while loading; reuse the key of a worker with equal reads."""
        self.files.share(reads.states)
        with self._loading.setdefault(first, Lock()):
            before = self._loaded.get(first)
            if before and before[0] == reads:
                return before[1]
            found = self.key_of(first, reads)
            if found.key:
                self._loaded[first] = reads, found
            return found

    def _set_of(self, read: Set) -> tuple[str, Set]:
        """Return the sorted set of reads and its name; most cells of a case read the same files in the same order."""
        if known := self._lately.get(read):
            return known
        paths: Set = tuple(sorted((self._pairs.setdefault(pair, pair) for pair in read), key=self._named))
        name = sys.intern(hashlib.sha256(json.dumps(list(map(self._named, paths))).encode()).hexdigest())
        if len(self._lately) >= _LATELY:
            self._lately.clear()
        self._lately[read] = name, paths
        return name, paths

    def _second(self, first: str, name: str, state: str) -> str:
        key = Key("answer").add("first, set, state", [first, name, state]).hex()
        self.origins[key] = (first, name)
        return key

    def inputs_of(self, keys: Iterable[str], ready: Mapping[str, Mapping[str, Any]]) -> Inputs:
        """Return the inputs of outcomes."""
        answers, workers = {}, {}
        for key in keys:
            first, name = self.origins.get(key, ("", ""))
            worker = self.workers.get(first, "")
            if worker in self.origins and worker in ready:
                answers[key] = (first, name, worker)
                workers[worker] = (*self.origins[worker], ready[worker])
        sets, states = {}, {}
        here: dict[tuple[str, bool], str] = {}
        for name in {name for _, name, _ in (*answers.values(), *workers.values())}:
            paths = self._set(name) or ()
            for each in paths:
                if each not in here:
                    here[each] = self._named(each)[0]
                    states[state_name(here[each], each[1])] = self.files.state(*each)
            sets[name] = tuple((here[each], each[1]) for each in paths)
        return Inputs(sets, states, workers, answers)

    def _named(self, path: tuple[str, bool]) -> tuple[str, bool]:
        return self.roots.name(path[0]), path[1]

    def _names(self, first: str) -> list[str]:
        if first not in self._known:
            kept = self.cache.fact(first) if self.cache else None
            names = kept.get("sets") if kept else None
            self._known[first] = [str(name) for name in names] if isinstance(names, list) else []
        return self._known[first]

    def _set(self, name: str) -> Set | None:
        if name not in self._sets:
            kept = self.cache.fact(f"set:{name}") if self.cache else None
            self._sets[name] = self._read(kept) if kept else None
        return self._sets[name]

    def _read(self, kept: Mapping[str, Any]) -> Set | None:
        try:
            for *numbers, digest in kept["hashes"]:
                self.files.hashes.setdefault(tuple(map(int, numbers)), str(digest))
            paths = [(self.roots.path(str(name)), bool(listed)) for name, listed in kept["paths"]]
            if any(is_system(path) for path, _ in paths if path):
                return None
            # A root that is missing here: the state of its files is unknown.
            return tuple((path, listed) for path, listed in paths if path) if all(path for path, _ in paths) else None
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    def _remember(self, first: str, name: str, paths: Set) -> None:
        names = self._names(first)
        if self._set(name) is None:
            self._sets[name] = paths
            if self.cache:
                self._keep_set(self.cache, name, paths)
            self.files.fresh.difference_update(path for path, _ in paths)
        if name not in names:
            names.insert(0, name)
            del names[_SETS:]
            if self.cache:
                self.cache.keep_fact(first, {"sets": names})

    def close(self) -> None:
        """Save the hashes of files that changed after their sets were remembered."""
        if self.cache and self.files.fresh:
            for name, paths in self._sets.items():
                if paths and any(path in self.files.fresh for path, _ in paths):
                    self._keep_set(self.cache, name, paths)

    def _keep_set(self, cache: ResultStore, name: str, paths: Set) -> None:
        """Save a set with hashes by signature, so that the next run does not read unchanged files."""
        found = []
        for path, listed in paths:
            _, signature = self.files.current_state(path, listed)
            if signature in self.files.hashes:
                found.append([*signature, self.files.hashes[signature]])
        cache.keep_fact(f"set:{name}", {"paths": list(map(self._named, paths)), "hashes": found})
