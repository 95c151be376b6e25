"""Signals on a kernel before Linux 6.12, whose Landlock does not restrict signals: the fork server decides on each.

The kernel of the machine is later; a variable for this test makes workers treat it as an earlier one.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest
from cells import Place

from harness.protocol.messages import CLAIMED_LANDLOCK
from harness.toolkits import Installed
from harness.worker import processes, sandbox
from harness.worker.sandbox import sandbox_restrictions

from .programs import MEMORY_OF_OTHERS, PROCESSES, SIGNALS
from .runs import RELEASE, Aftermath, run_programs

CLAIMED = 5
SENDS = {
    "signals-its-own": """
import threading
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
os.kill(os.getpid(), signal.SIGUSR1)
signal.raise_signal(signal.SIGUSR1)
signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
os.killpg(0, signal.SIGUSR1)
signal.pidfd_send_signal(os.pidfd_open(os.getpid()), signal.SIGUSR1)
if len(got) < 5:
    print("reached not even itself", len(got))
os.killpg(child.pid, signal.SIGSTOP)
os.kill(child.pid, signal.SIGCONT)
signal.pidfd_send_signal(os.pidfd_open(child.pid), signal.SIGTERM)
if child.wait() != -signal.SIGTERM:
    print("reached not even its own")
attempt(os.kill, 1, 0)
attempt(os.kill, scheduler, 0)
attempt(os.killpg, os.getpgid(scheduler), 0)
attempt(os.killpg, os.getpgid(keeper), 0)
attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(scheduler), 0))
attempt(call, 424, 999, 0, None, 0)
attempt(call, 129, scheduler, 0, None)
attempt(call, 297, scheduler, scheduler, 0, None)
""",
    "aborts": "os.abort()",
}
PROGRAMS = {**SIGNALS, **PROCESSES, **MEMORY_OF_OTHERS, **SENDS}
# One or two of each kind for the first tier.
QUICK = (
    "kills-its-parent",
    "kills-the-group-above",
    "signals-everything",
    "leaves-a-daemon",
    "traces-its-parent",
    *SENDS,
)
ODD = {"ends-silently": ("crashed", None), "aborts": ("crashed", signal.SIGABRT)}


def test_who_decides_follows_from_what_the_kernel_offers() -> None:
    always = {*sandbox.CALLS, *sandbox.LOCK_CALLS, *processes.SCHEDULING}
    assert sandbox.calls(6).keys() == sandbox.calls(7).keys() == always
    assert sandbox.calls(5).keys() == sandbox.calls(0).keys() == {*always, *processes.SIGNALS}


def test_the_claim_is_never_more_than_the_kernel_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CLAIMED_LANDLOCK, raising=False)  # other tests in this module always claim an earlier kernel
    sandbox.version.cache_clear()
    there = sandbox.version()
    for claimed, found in (("999", there), ("0", 0)):
        monkeypatch.setenv(CLAIMED_LANDLOCK, claimed)
        sandbox.version.cache_clear()
        assert sandbox.version() == found
    assert "inspecting other processes" in sandbox_restrictions()[1]
    monkeypatch.undo()
    sandbox.version.cache_clear()


def test_who_is_below() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, process_group=0) as shell:
        assert shell.stdout
        sleeper = int(shell.stdout.readline())
        for number in (shell.pid, sleeper, -shell.pid, 0):
            processes.check_call(os.getpid(), 62, [number & 0xFFFFFFFF])
        for number in (1, os.getpid(), os.getppid(), -os.getpgid(os.getppid())):
            with pytest.raises(PermissionError):
                processes.check_call(os.getpid(), 62, [number & 0xFFFFFFFF])
        os.killpg(shell.pid, signal.SIGKILL)


@pytest.fixture(
    scope="module", params=[QUICK, pytest.param(tuple(PROGRAMS), marks=pytest.mark.slow)], ids=["few", "all"]
)
def aftermath(
    request: pytest.FixtureRequest,
    places: Callable[[str], Place],
    toolkit: Callable[[str], Installed],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Aftermath]:
    toolkit(RELEASE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CLAIMED_LANDLOCK, str(CLAIMED))
        chosen = {name: PROGRAMS[name] for name in request.param}
        yield run_programs(places("numba==0.59.1"), chosen, tmp_path_factory)


@pytest.mark.compilers
@pytest.mark.skipif(
    sandbox.version() < CLAIMED or not sandbox.broker_available(), reason="this kernel has less, and is no example"
)
class TestPrograms:
    def test_the_innocent_do_not_notice(self, aftermath: Aftermath) -> None:
        aftermath.check_innocent()

    def test_nothing_is_left(self, aftermath: Aftermath) -> None:
        assert aftermath.left == []

    def test_nothing_is_reached(self, aftermath: Aftermath) -> None:
        assert len(aftermath.hostile) >= len(QUICK)
        for name, record in aftermath.hostile.items():
            assert (record["status"], record["signal"]) == ODD.get(name, ("rejected", None)), (name, record["log"])
            assert "reached" not in record["log"], (name, record["log"])
            assert name in ODD or "Traceback" not in record["log"], (name, record["log"])
            assert name not in SIGNALS or "refused" in record["log"], (name, record["log"])
