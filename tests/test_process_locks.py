"""Files of a running process: distinguished from the remains of a killed one, and named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.process_locks import HeldFolder, exclusive_folder, holder, sweep

Start = Callable[[], tuple[subprocess.Popen[str], Path]]
HOLD = """
import signal, sys
from pathlib import Path
from harness.process_locks import HeldFolder
for number in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)  # ignored in what a shell runs in the background, and in what it starts
folder = HeldFolder(Path(sys.argv[1]), ".new-")
(folder.path / "half").write_text("half")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Start]:
    """Start another process, which holds a folder until it is killed."""
    started = []

    def start() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout
        return process, Path(process.stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT, signal.SIGHUP])
def test_what_a_killed_process_left_goes(other: Start, tmp_path: Path, number: int) -> None:
    killed, left = other()
    alive, held = other()
    mine = HeldFolder(tmp_path, ".new-")
    (tmp_path / ".new-file").touch()
    (tmp_path / "other-folder").mkdir()
    killed.send_signal(number)
    killed.wait()
    assert (left / "half").is_file()
    sweep(tmp_path, ".new-")
    assert not left.exists()
    assert (held / "half").is_file()
    assert mine.path.is_dir()
    assert (tmp_path / ".new-file").is_file()
    assert (tmp_path / "other-folder").is_dir()
    mine.remove()
    assert not mine.path.exists()
    assert alive.poll() is None


INTERRUPTED = """
import os, sys
from pathlib import Path
from harness.process_locks import HeldFolder
whole = HeldFolder(Path(sys.argv[1]), ".new-")
if os.fork() == 0:
    sys.exit()  # a child that ends as programs do leaves its parent's folders alone
os.wait()
assert whole.path.is_dir()
make = os.mkdir
def interrupted(*arguments):
    make(*arguments)
    raise KeyboardInterrupt
os.mkdir = interrupted
HeldFolder(Path(sys.argv[1]), ".new-")
"""


def test_an_interruption_leaves_nothing_however_early_it_comes(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, tmp_path], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("KeyboardInterrupt\n"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "work").touch()
    (tmp_path / ".new-link").symlink_to(folder)
    sweep(tmp_path, ".new-")
    assert (folder / "work").is_file()


def test_who_holds_it_is_named(other: Start) -> None:
    process, folder = other()
    said = holder(folder)
    assert f"process {process.pid}, since 20" in said
    assert Path(sys.executable).name in said
    with (
        pytest.raises(UsageError, match=f"busy.*process {process.pid}"),
        exclusive_folder(folder, lambda who: UsageError(f"busy{who}")),
    ):
        pass
    process.kill()
    process.wait()
    assert holder(folder) == ""
    with exclusive_folder(folder, lambda who: UsageError(f"busy{who}")):
        pass


def test_nobody_holds_what_is_not_there(tmp_path: Path) -> None:
    assert holder(tmp_path / "nothing") == ""
    sweep(tmp_path / "nothing", ".new-")


def test_many_at_once_take_nothing_from_each_other(tmp_path: Path) -> None:
    make = (
        "import sys; from pathlib import Path; from harness.process_locks import *\n"
        "for _ in range(200):\n"
        "    sweep(Path(sys.argv[1]), '.new-')\n"
        "    with HeldFolder(Path(sys.argv[1]), '.new-') as folder:\n"
        "        (folder / 'x').touch(); sweep(Path(sys.argv[1]), '.new-'); assert (folder / 'x').is_file()\n"
    )
    several = [subprocess.Popen([sys.executable, "-c", make, tmp_path], stderr=subprocess.PIPE) for _ in range(3)]
    said = [process.communicate(timeout=600)[1] for process in several]
    assert [process.returncode for process in several] == [0, 0, 0], said
    assert list(os.scandir(tmp_path)) == []


LOOK = """
import os, signal, sys, time
from harness.process_locks import temporary_folder

opened = os.open

def open_slowly(*arguments, **named):
    handle = opened(*arguments, **named)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
    return handle

os.open = open_slowly
try:
    temporary_folder()
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupted_look_for_the_temporary_folder_leaves_nothing_there(tmp_path: Path) -> None:
    # The shell of a background test ignores SIGINT.
    argv = ["env", "--default-signal=INT", sys.executable, "-c", LOOK]
    assert subprocess.run(argv, env={**os.environ, "TMPDIR": str(tmp_path)}).returncode == 130
    assert list(tmp_path.iterdir()) == []
