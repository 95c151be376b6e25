"""Two halves of a piece of work at the same time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection


def in_parallel(one: Callable[[], None], other: Callable[[], None], *, apart: bool) -> None:
    """Do both; `one` in a process of its own where `apart` is true.

    The process is forked, so it has all that was read without a copy, and gives nothing back but the files that it wrote.
    `one` must not use libraries that have started threads by then, as pyarrow does.

    Raises
    ------
    Exception
        What either of them raised.
    """
    if not apart:
        one()
        other()
        return
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_do, args=(one, theirs))
    child.start()
    theirs.close()
    try:
        other()
    except BaseException:
        child.kill()
        raise
    finally:
        problem = _read(mine)
        child.join()
    if problem is not None:
        raise problem
    if child.exitcode:
        raise RuntimeError(f"a process of the report ended with {child.exitcode}")


def _read(pipe: Connection) -> Exception | None:
    """The process's last message; None without one."""
    try:
        problem: Exception = pipe.recv()
    except EOFError:
        return None
    return problem


def _do(work: Callable[[], None], pipe: Connection) -> None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 (raised in the process that waits)
        pipe.send(error)
