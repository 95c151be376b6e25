"""Progress bars of installations and compilations, without a clock."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import pytest
from record_builders import cell
from rich.console import Console

from harness.cli import progress
from harness.cli.progress import Compiling, Installing, Written, share
from harness.engine.install import Step


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=200)


def test_what_is_left_goes_by_what_cells_are_expected_to_take() -> None:
    cells = [cell(target=f"sm_{each}") for each in (80, 86, 89, 90)]
    expected = dict(zip((each.id for each in cells), (1.0, 1.0, 2.0, 6.0), strict=True))
    bar = Compiling(terminal(), cells, lambda each: expected[each.id], jobs=2)
    assert bar.time_left(bar.began) == "left about 0:00:05"
    bar.done(cells[0], "✓ one", compiled=False)  # from an earlier run: not a measure for the others
    assert (bar.seconds, bar.gone) == (9.0, 0.0)
    bar.done(cells[2], "✓ two", compiled=True)
    assert bar.time_left(bar.began + 10) == "left 0:00:35"
    assert bar.task is not None
    shown = "".join(str(column(bar.bar.tasks[0])) for column in bar.bar.columns if not isinstance(column, str))
    assert "2/4" in shown and "✓ two" in shown


def test_what_takes_minutes_is_said_where_nothing_comes() -> None:
    cells = [cell(backend="cupy-jitify", target=each) for each in ("sm_80", "sm_90")]
    bar = Compiling(terminal(), cells, lambda each: 1.0, jobs=2)
    assert bar.waiting(bar.last + 5) == ""
    assert "Jitify looks for CUDA's headers, which takes minutes" in bar.waiting(bar.last + 11)
    bar.done(cells[0], "✓", compiled=True)
    assert bar.waiting(bar.last + 11) == ""  # they were found


def test_without_a_terminal_nothing_is_asked_of_cells() -> None:
    def never(_: object) -> float:
        raise AssertionError

    bar = Compiling(Console(file=io.StringIO()), [cell()], never, jobs=2)
    bar.done(cell(), "✓", compiled=True)


def test_of_all_parts_together_bytes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # A browser of other tests is a child of this process, and writes, too.
    monkeypatch.setattr(progress, "_children", list)
    steps = [Step("CUDA 12.1", 60_000_000, str), Step("cupy 13.0.0", 40_000_000, str)]
    bar = Installing(terminal(), steps, "16 cells")
    bar.begin(steps[0])
    (task,) = bar.bar.tasks
    assert task.description == "1 of 2: CUDA 12.1, 60.0 MB; then 16 cells"
    assert bar._bytes(task) == "0 bytes of 100.0 MB"
    bar._written._seen[0] = 75_000_000
    assert bar._bytes(task) == "30.0 MB of 100.0 MB"
    bar.end(steps[0])
    bar.begin(steps[1])
    assert bar._bytes(task) == "60.0 MB of 100.0 MB"
    unknown = [replace(step, size=0) for step in steps]
    assert Installing(terminal(), unknown)._bytes(task) == "60000000/2"


def test_what_children_write_is_counted() -> None:
    written = Written()
    before = written.bytes()
    code = "import sys; open('/dev/null', 'wb').write(bytes(3_000_000)); print('there', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdout.readline() == "there\n"
        assert written.bytes() >= before + 3_000_000
        process.communicate()
    assert written.bytes() >= 3_000_000  # also after their end


@pytest.mark.parametrize("size", [0, 1, 10_000_000])
def test_a_part_is_not_all_there_before_it_is(size: int) -> None:
    shares = [share(written, size) for written in (0, size, 2 * size, 4 * size, 400 * size)]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] < 1
