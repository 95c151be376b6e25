"""Many entries of the cache are read at a time, as diskcache would give them one by one."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import diskcache
import pytest

from harness.engine.cache import ResultCache
from harness.engine.entries import Entries, batches


@pytest.fixture
def store(tmp_path: Path) -> diskcache.Cache:
    return diskcache.Cache(str(tmp_path), eviction_policy="least-recently-used")


def _asked(store: diskcache.Cache, key: str) -> float:
    with sqlite3.connect(Path(store.directory) / diskcache.core.DBNAME) as connection:
        (found,) = connection.execute("SELECT access_time FROM Cache WHERE key = ?", (key,)).fetchone()
    return float(found)


def _set_asked(store: diskcache.Cache, when: float) -> None:
    with sqlite3.connect(Path(store.directory) / diskcache.core.DBNAME) as connection:
        connection.execute("UPDATE Cache SET access_time = ?", (when,))


def test_texts_are_what_diskcache_has(store: diskcache.Cache, tmp_path: Path) -> None:
    keys = [f"key-{number}" for number in range(1200)]
    for key in keys:
        store.set(key, f'{{"of": "{key}"}}')
    entries = Entries(tmp_path)
    found = entries.read([*keys, "other"])
    assert found == {**{key: store.get(key) for key in keys}, "other": None}
    entries.close()


def test_what_lies_in_a_file_of_its_own_is_left_to_diskcache(store: diskcache.Cache, tmp_path: Path) -> None:
    store.set("long", "x" * 100_000)
    store.set("gone", "text", expire=0.0)
    store.set("bytes", b"text")
    entries = Entries(tmp_path)
    assert entries.read(["long", "bytes"]) == {}
    assert entries.read(["gone"]) in ({}, {"gone": None})
    entries.close()


def test_when_they_were_asked_for_is_noted_at_the_end_and_not_again_within_an_hour(
    store: diskcache.Cache, tmp_path: Path
) -> None:
    store.set("key", "text")
    for before, noted in ((time.time() - 7200, True), (time.time() - 60, False), (time.time() + 1e6, True)):
        _set_asked(store, before)
        entries = Entries(tmp_path)
        entries.read(["key"])
        assert _asked(store, "key") == before
        entries.close()
        assert (abs(_asked(store, "key") - time.time()) < 50) is noted


def test_what_was_not_asked_for_longest_still_goes_first(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    for number in range(200):
        cache.keep_fact(f"key-{number}", {"text": "x" * 5000})
    _set_asked(cache._store, time.time() - 7200)
    cache.read_ahead(["key-3"])
    cache.note_use()
    assert cache.prune(600_000) < 200
    assert cache.fact("key-3") is not None


def test_a_table_that_cannot_be_read_gives_nothing(tmp_path: Path) -> None:
    assert Entries(tmp_path / "missing").read(["key"]) == {}
    with sqlite3.connect(tmp_path / diskcache.core.DBNAME) as connection:
        connection.execute("CREATE TABLE Cache (other TEXT)")
    entries = Entries(tmp_path)
    assert entries.read(["key"]) == {}
    entries.close()


def test_what_was_read_ahead_is_answered_once_and_not_after_it_was_kept_anew(tmp_path: Path) -> None:
    cache, other = ResultCache(tmp_path), ResultCache(tmp_path)
    cache.keep_fact("key", {"n": 1})
    cache.read_ahead(["key", "none"])
    other.keep_fact("key", {"n": 2})
    other.keep_fact("none", {"n": 2})
    assert (cache.fact("key"), cache.fact("key")) == ({"n": 1}, {"n": 2})
    assert (cache.fact("none"), cache.fact("none")) == (None, {"n": 2})
    cache.read_ahead(["key"])
    cache.keep_fact("key", {"n": 3})
    assert cache.fact("key") == {"n": 3}


def test_batches_are_all_there_is_in_order() -> None:
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches([], 2)) == []
