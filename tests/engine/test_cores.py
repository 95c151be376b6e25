"""Number of parallel cells: the number of usable cores."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = "from harness.engine.machine import usable_cores; print(usable_cores())"


def test_cores_that_are_kept_from_us_do_not_count() -> None:
    one = min(os.sched_getaffinity(0))

    def limited() -> None:
        os.sched_setaffinity(0, {one})

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], preexec_fn=limited, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_there_is_one_at_least() -> None:
    assert 1 <= len(os.sched_getaffinity(0)) == int(subprocess.check_output([sys.executable, "-c", PROGRAM]))
