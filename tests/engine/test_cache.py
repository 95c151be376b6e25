"""The result cache: stored and rejected outcomes, and damaged entries."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.diagnostics import hint
from harness.engine.cache import ResultCache, batches, lasting
from harness.errors import UsageError
from harness.model import Artifact, Diagnostic, KernelResources, Outcome, Stage, Status

FULL = Outcome(
    status=Status.REJECTED, stage=Stage.ASSEMBLE, stages=(Stage.COMPILE, Stage.ASSEMBLE), seconds=1.5, command=("a", "b"), log="l\ng",
    diagnostics=(Diagnostic(severity="error", message="größer", file="kernel.cu", line=7),), observed={"nvrtc": "12.4"}, notes=("n",),
    artifact=Artifact(format="cubin", target="sm_80", bytes=1, sha256="0", kernels=(KernelResources(name="k", num_regs=8),)),
)  # fmt: skip


def test_an_outcome_comes_back_as_it_was(tmp_path: Path) -> None:
    ResultCache(tmp_path).keep_outcome("key", FULL)
    assert ResultCache(tmp_path).outcome("key") == FULL
    assert ResultCache(tmp_path).outcome("other") is None


def refused(log: str = "kernel.cu(1): error: no", fingerprint: str = "e20") -> Outcome:
    """An outcome that a compiler rejected."""
    said = Diagnostic(severity="error", message="no", fingerprint=fingerprint)
    return Outcome(status=Status.REJECTED, diagnostics=(said,), log=log)


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.REJECTED}))
def test_what_another_try_could_change_is_not_kept(status: Status) -> None:
    assert lasting(Outcome(status=status)) is (status in (Status.BUILT, Status.UNSUPPORTED))


def test_a_refusal_is_kept_where_the_compiler_says_why() -> None:
    assert lasting(refused())
    assert not lasting(Outcome(status=Status.REJECTED))
    assert not lasting(refused(fingerprint="plain"))  # its last words, which are unreadable
    assert not lasting(refused(fingerprint="crash"))


@pytest.mark.parametrize(
    "words",
    [
        "k.cu(1): error: x\ncc1plus: fatal error: error writing to /tmp/x.s: No space left on device",
        "OSError: [Errno 24] Too many open files",
        "cc1plus: out of memory allocating 65536 bytes",
        "fatal error: cannot create temporary file",
        "ptxas fatal   : Memory allocation failure",
        "vfork: Resource temporarily unavailable",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
    ],
)
def test_a_refusal_in_which_the_machine_had_a_say_is_not_kept(words: str) -> None:
    assert not lasting(refused(words))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"status": "new"},
        {"status": "built", "color": 1},
        {"status": "built", "stage": 3},
        {"status": "built", "artifact": {"x": 1}},
    ],
)
def test_an_entry_of_another_version_counts_as_missing(tmp_path: Path, value: dict[str, Any]) -> None:
    cache = ResultCache(tmp_path)
    cache.keep_fact("key", value)
    assert cache.outcome("key") is None


@contextlib.contextmanager
def _sqlite(folder: Path) -> Iterator[sqlite3.Connection]:
    """Return the database, which any program can change."""
    connection = sqlite3.connect(folder / "results.db", isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def _plant(folder: Path, key: str, value: object) -> None:
    ResultCache(folder).close()
    with _sqlite(folder) as connection:
        connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", (key, time.time(), value))


class Ran:
    """A class that creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_planted_pickle_is_not_run(tmp_path: Path) -> None:
    folder, ran = tmp_path / "results", tmp_path / "ran"
    planted = pickle.dumps(Ran(ran))
    _plant(folder, "key", planted)
    # The table of diskcache, an earlier dependency: it unpickled rows of mode 4.
    with contextlib.closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as connection:
        connection.execute(
            "CREATE TABLE Cache (rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, mode INTEGER, value BLOB)"
        )
        connection.execute("INSERT INTO Cache VALUES (1, 'key', 1, 4, ?)", (planted,))
    cache = ResultCache(folder)
    cache.read_ahead(["key"])
    assert (cache.fact("key"), cache.fact("key"), cache.outcome("key")) == (None, None, None)
    assert not ran.exists()
    pickle.loads(planted)
    assert ran.exists()


@pytest.mark.parametrize(
    "value",
    [
        b"", b"\xff\xfe", b"[1]", b"7", b"null", b'{"a": "\xff"}', b"[" * 100_000, b'{"a":' * 100_000, b'{"a": NaN}',
        b'{"a": ' + b"9" * 5000 + b"}", b'{"a": "\\ud800", "b": ' + b"9" * 30 + b"}", '{"a": 1}', 7, 1.5, None,
    ],
    ids=lambda value: repr(value)[:12],
)  # fmt: skip
def test_a_value_that_is_no_json_object_counts_as_missing(tmp_path: Path, value: object) -> None:
    ResultCache(tmp_path).keep_fact("other", {"n": 1})
    with contextlib.suppress(sqlite3.IntegrityError):
        _plant(tmp_path, "key", value)
    cache = ResultCache(tmp_path)
    assert (cache.fact("key"), cache.outcome("key")) == (None, None)
    cache.read_ahead(["key", "other"])
    assert (cache.fact("key"), cache.fact("other")) == (None, {"n": 1})


def test_a_value_that_is_too_large_is_not_loaded(tmp_path: Path) -> None:
    ResultCache(tmp_path).keep_fact("other", {"n": 1})
    with _sqlite(tmp_path) as connection:
        connection.execute("INSERT INTO entries VALUES ('key', 0, zeroblob(300000000))")
    program = f"""
import resource
from pathlib import Path
from harness.engine.cache import ResultCache
resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
cache = ResultCache(Path({str(tmp_path)!r}))
cache.read_ahead(["key", "other"])
assert (cache.fact("key"), cache.fact("other")) == (None, {{"n": 1}})
assert cache.fact("key") is None
"""
    subprocess.run([sys.executable, "-c", program], check=True)


DEEP: Any = []
for _ in range(500):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "fields",
    [
        {"log": 7}, {"log": None}, {"reason": ["a"]}, {"signal": True}, {"signal": "9"}, {"seconds": "1"}, {"seconds": 1e999}, {"peak_bytes": 1.5},
        {"command": [1]}, {"command": 3}, {"notes": [None]}, {"observed": []}, {"observed": {"a": DEEP}}, {"device": "x"},
        {"diagnostics": [{"severity": 1, "message": "m"}]}, {"diagnostics": [{"severity": "error", "message": "m", "line": "1"}]}, {"diagnostics": 5},
        {"artifact": 0}, {"artifact": {"format": "ptx", "target": "t", "bytes": "1", "sha256": "0", "kernels": []}}, {"stages": [{}]},
        {"status": []}, {"artifact": {"format": "ptx", "target": "t", "bytes": 1, "sha256": "0", "kernels": [{"name": 1}]}}, {"signal": 10**400},
    ],
    ids=repr,
)  # fmt: skip
def test_an_outcome_with_fields_of_other_types_counts_as_missing(tmp_path: Path, fields: dict[str, Any]) -> None:
    cache = ResultCache(tmp_path)
    cache.keep_fact("key", {**FULL.to_json(), **fields})
    assert cache.outcome("key") is None


def _truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _garbage(path: Path) -> None:
    path.write_bytes(b"nothing of SQLite's" * 1000)


def _broken_pages(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xff" * (len(data) - 100))


def _folder(path: Path) -> None:
    path.unlink()
    (path / "below").mkdir(parents=True)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "elsewhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _unreadable(path: Path) -> None:
    path.chmod(0)


def _shared_memory(path: Path) -> None:
    path.with_name("results.db-shm").mkdir()


def _garbage_log(path: Path) -> None:
    path.with_name("results.db-wal").symlink_to("/dev/zero")


def _schema(*statements: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with _sqlite(path.parent) as connection:
            for statement in statements:
                connection.execute(statement)

    return change


DAMAGES = {
    "truncated": _truncated, "garbage": _garbage, "broken pages": _broken_pages, "folder": _folder, "link": _link, "pipe": _pipe, "unreadable": _unreadable,
    "shared memory": _shared_memory, "log": _garbage_log, "table": _schema("CREATE TABLE more (a)"), "no table": _schema("DROP TABLE entries"),
    "column": _schema("ALTER TABLE entries ADD COLUMN more"), "version": _schema("PRAGMA user_version = 0"), "index": _schema("DROP INDEX by_use"),
    "trigger": _schema("CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END"),
    "view": _schema("DROP TABLE entries", "CREATE VIEW entries AS SELECT 'key' AS key, 0.0 AS used, x'7b7d' AS value"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_is_moved_aside(tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    hint.cache_clear()
    before = ResultCache(tmp_path)
    for number in range(100):
        before.keep_fact(f"key-{number}", {"text": "x" * 3000})
    before.close()
    DAMAGES[damage](tmp_path / "results.db")
    cache = ResultCache(tmp_path)
    # SQLite detects a damaged page when it reads the page.
    for number in range(100):
        cache.fact(f"key-{number}")
    cache.keep_outcome("key", FULL)
    cache.close()
    again = ResultCache(tmp_path)
    assert again.outcome("key") == FULL
    assert again.entries == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(r"is damaged \(.+\): moved to damaged-results\.db, and a new one is used", said)
    assert not (tmp_path / "elsewhere").exists()
    again.prune(0)
    assert not list(tmp_path.glob("damaged-*"))


def test_a_journal_of_a_stranger_is_not_played_back(tmp_path: Path) -> None:
    """A rollback journal that names a file as its superior makes SQLite delete that file."""
    folder, victim = tmp_path / "results", tmp_path / "victim"
    victim.write_text("precious")
    ResultCache(folder).close()
    name = str(victim).encode()
    end = struct.pack(">I", 0) + name + struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 0, 1, 512, 4096)
    (folder / "results.db-journal").write_bytes(head.ljust(512, b"\0") + end)
    cache = ResultCache(folder)
    cache.keep_outcome("key", FULL)
    assert cache.outcome("key") == FULL
    assert victim.read_text() == "precious"
    assert not (folder / "results.db-journal").exists()


def test_the_cache_of_a_newer_version_is_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hint.cache_clear()
    ResultCache(tmp_path / "results").close()
    with _sqlite(tmp_path / "results") as connection:
        connection.execute("PRAGMA user_version = 99")
    content = (tmp_path / "results" / "results.db").read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUMATRIX_CACHE", str(tmp_path))
        assert ResultCache.if_there_is_room() is None
    assert "it is of a newer cumatrix; upgrade cumatrix or set CUMATRIX_CACHE" in capsys.readouterr().err
    assert (tmp_path / "results" / "results.db").read_bytes() == content


WRITER = """
import sys
from pathlib import Path
from harness.engine.cache import ResultCache
cache = ResultCache(Path(sys.argv[1]))
for number in range(200):
    cache.keep_fact(f"{sys.argv[2]}-{number}", {"n": number})
    assert cache.fact(f"{sys.argv[2]}-{number}") == {"n": number}
if sys.argv[2] == "3":
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
cache.close()
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_write_at_the_same_time(tmp_path: Path, damaged: bool) -> None:
    if damaged:
        _garbage(tmp_path / "results.db")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    said = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0, -9], said
    assert sum("is damaged" in each for each in said) == damaged
    cache = ResultCache(tmp_path)
    assert cache.entries == 800
    assert cache.fact("3-199") == {"n": 199}  # from the killed process


def test_threads_share_a_cache(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)

    def write(thread: int) -> bool:
        for number in range(100):
            cache.keep_fact(f"{thread}-{number}", {"n": number})
        return all(cache.fact(f"{thread}-{number}") == {"n": number} for number in range(100))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(write, range(4)))


def test_a_process_that_holds_the_database_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engine.cache._PATIENCE", 0.1)
    cache = ResultCache(tmp_path)
    with _sqlite(tmp_path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(3):
            cache.keep_outcome("key", FULL)
        assert cache._connection
        assert cache._connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
        assert cache.outcome("key") is None
        connection.execute("COMMIT")
    cache.keep_outcome("key", FULL)
    assert cache.outcome("key") == FULL
    assert cache._connection.execute("PRAGMA busy_timeout").fetchone() == (100,)


def _used(folder: Path, key: str) -> float:
    with _sqlite(folder) as connection:
        (found,) = connection.execute("SELECT used FROM entries WHERE key = ?", (key,)).fetchone()
    return float(found)


def _set_used(folder: Path, when: float) -> None:
    with _sqlite(folder) as connection:
        connection.execute("UPDATE entries SET used = ?", (when,))


def test_use_is_noted_at_the_end_and_not_again_within_an_hour(tmp_path: Path) -> None:
    ResultCache(tmp_path).keep_fact("key", {})
    for before, noted in ((time.time() - 7200, True), (time.time() - 60, False), (time.time() + 1e6, True)):
        _set_used(tmp_path, before)
        cache = ResultCache(tmp_path)
        cache.read_ahead(["key"])
        assert _used(tmp_path, "key") == before
        cache.note_use()
        assert (abs(_used(tmp_path, "key") - time.time()) < 50) is noted


def test_the_least_recently_used_entries_are_evicted(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    for number in range(200):
        cache.keep_fact(f"key-{number}", {"text": "x" * 5000})
    _set_used(tmp_path, time.time() - 7200)
    cache.read_ahead(["key-3"])
    cache.note_use()
    gone = cache.prune(600_000)
    assert 0 < gone < 200
    assert cache.entries == 200 - gone
    assert cache.size <= 600_000
    assert (tmp_path / "results.db").stat().st_size <= 600_000
    assert cache.fact("key-3") is not None
    cache.limit = 600_000
    for number in range(200, 400):
        cache.keep_fact(f"key-{number}", {"text": "x" * 5000})
        assert cache.size <= 600_000
    assert cache.fact("key-399") is not None
    assert cache.prune(0)
    assert (cache.entries, cache.fact("key-399")) == (0, None)


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
    keys = [f"key-{number}" for number in range(1200)]
    for key in keys:
        cache.keep_fact(key, {"of": key})
    cache.read_ahead(keys)
    other.prune(0)
    assert [cache.fact(key) for key in keys] == [{"of": key} for key in keys]


def test_prune_removes_the_cache_of_earlier_versions_and_nothing_else(tmp_path: Path) -> None:
    old = [tmp_path / name for name in ("cache.db", "cache.db-wal", "cache.db-shm", "b2/0f/1234.val")]
    own = [tmp_path / name for name in ("notes.txt", "aa/mine.txt")]
    for path in (*old, *own):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    ResultCache(tmp_path).prune(0)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in own)
    assert not (tmp_path / "b2").exists()


def test_batches_are_all_there_is_in_order() -> None:
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches([], 2)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk that is read-only")
@pytest.mark.parametrize("used", [True, False])
def test_a_read_only_folder_is_named(tmp_path: Path, used: bool) -> None:
    if used:
        ResultCache(tmp_path).close()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", tmp_path], capture_output=True).returncode:
        pytest.skip("this machine's root may not mount")
    try:
        with pytest.raises(UsageError, match=r"cannot use the cache in .*--no-cache"):
            ResultCache(tmp_path)
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot use the cache in .*file.*--no-cache"):
        ResultCache(tmp_path / "file" / "results")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk that is full")
@pytest.mark.parametrize("used", [True, False])
def test_a_full_disk_is_no_reason_not_to_run(tmp_path: Path, used: bool, capsys: pytest.CaptureFixture[str]) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine's root may not mount")
    try:
        if used:
            ResultCache(disk).close()
        with contextlib.suppress(OSError), open(disk / "rest", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CUMATRIX_CACHE", str(disk))
            hint.cache_clear()
            cache = ResultCache.if_there_is_room()
        if cache:
            cache.keep_outcome("key", FULL)
            assert cache.outcome("key") in (None, FULL)
            cache.close()
        else:
            assert "compiles everything" in capsys.readouterr().err
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
