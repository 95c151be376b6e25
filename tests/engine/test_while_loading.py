"""Work during the start of a fork server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.engine.file_states import Files, signature_of
from harness.engine.fork_server import hash_meanwhile, mapped_below
from harness.engine.reads import Signature

# A process that waits, with a child that maps three libraries.
PARENT = """
import mmap, os, sys
if not os.fork():
    kept = [mmap.mmap(os.open(name, os.O_RDONLY), 0, prot=mmap.PROT_READ) for name in ("large.so.1", "large.so.2", "small.so", "large.txt")]
    print("mapped", flush=True)
    sys.stdin.read()
    os._exit(0)
os.wait()
"""


def test_large_libraries_that_a_child_has_mapped(tmp_path: Path) -> None:
    for name, size in (("large.so.1", 3 << 20), ("large.so.2", 2 << 20), ("large.txt", 3 << 20)):
        (tmp_path / name).write_bytes(bytes(size))
    (tmp_path / "small.so").write_bytes(bytes(1 << 12))
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout and parent.stdout.readline() == b"mapped\n"
        found = mapped_below(parent.pid)
        hashed = {looks: hashed_while(parent, looks) for looks in (0, 1, 99)}
        assert parent.stdin
        parent.stdin.close()
    large = [str(tmp_path / name) for name in ("large.so.1", "large.so.2")]
    assert {path: found[path] for path in found if path.startswith(str(tmp_path))} == {
        path: signature_of(os.stat(path)) for path in large
    }
    assert mapped_below(parent.pid) == {}
    # No message if the fork server is ready at once, and none after it is ready.
    assert [len(hashed[looks]) for looks in (0, 1)] == [0, 1]
    assert hashed[99] >= set(large)


def hashed_while(process: subprocess.Popen[bytes], looks: int) -> set[str]:
    """Files that are hashed while a fork server loads."""
    shared: set[str] = set()

    class Loading:
        """A fake fork server that is ready after a number of polls."""

        def __init__(self) -> None:
            self.process, self.left = process, looks

        def loads(self, _seconds: float) -> bool:
            self.left -= 1
            return self.left >= 0

    class Noted(Files):
        def share(self, read: Mapping[str, Signature | None]) -> None:
            shared.update(read)
            super().share(read)

    hash_meanwhile(Loading(), Noted())  # type: ignore[arg-type]
    return shared
