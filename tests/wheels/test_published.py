"""Published wheels: new releases are read, the others are kept, and `ask` answers from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from harness.answers.wheels import WheelReplies
from harness.model.gpus import Gpu
from harness.wheels.published import WHEELS, packed, read_wheels, since

from .test_wheel_command import AMPERE, HOPPER, Wheel, wheel

__all__ = ["wheel"]
pytestmark = [pytest.mark.compilers, pytest.mark.called]

PLAN = '[wheels]\nreleases = 2\n[wheels.packages]\nours = ["mine"]\nbuilt = ["only-source"]\n'
BLACKWELL = (*AMPERE, ("elf", "sm_120"))


@pytest.fixture
def publish(cumatrix: Command) -> Callable[..., list[str]]:
    """Return a function that reads the wheels of a folder and returns cumatrix's lines on stderr."""
    (cumatrix.folder / "plan.toml").write_text(PLAN)
    (cumatrix.folder / "only_source-3.0.tar.gz").write_bytes(b"")
    (cumatrix.folder / "none").mkdir()
    place = {"UV_FIND_LINKS": str(cumatrix.folder), "UV_DEFAULT_INDEX": (cumatrix.folder / "none").as_uri()}

    def run(code: int = 0) -> list[str]:
        done = cumatrix("publish", "--wheels", "--out", cumatrix.folder, env=place)
        assert done.returncode == code, done.stderr
        return [line for line in done.stderr.splitlines() if line.startswith("cumatrix: ")]

    return run


def test_new_releases_are_read_and_known_ones_kept(
    wheel: Wheel, publish: Callable[..., list[str]], cumatrix: Command
) -> None:
    wheel("1.0", one=AMPERE, two=HOPPER)
    wheel("1.1", one=AMPERE, two=HOPPER)
    assert publish() == ["cumatrix: new on the index: mine 1.0", "cumatrix: new on the index: mine 1.1"]
    wheel("1.2", one=BLACKWELL, two=BLACKWELL)
    assert publish() == ["cumatrix: new on the index: mine 1.2"]
    assert publish() == []
    mine, source = read_wheels(cumatrix.folder / WHEELS)
    assert packed([mine, source]) == (cumatrix.folder / WHEELS).read_bytes()
    assert [release.version for release in mine.releases] == ["1.1", "1.2"]  # the newest two
    assert (source.releases, source.source) == ((), "3.0")
    assert (first := since(mine, Gpu(120))) and first.version == "1.1"  # by JIT
    replies = WheelReplies([mine, source])
    told = {key: reply.sentence for key in ("runs ours 120", "runs ours@1.1 120", "runs ours 75", "runs built") if (reply := replies.of(key))}  # fmt: skip
    assert told == {
        "runs ours 120": "Yes: mine 1.2 has native code for sm_120 in each of its 2 libraries. So has each release that was read, from 1.1 on.",
        "runs ours@1.1 120": "In part: mine 1.1 has PTX alone for sm_120 in 1 of its 2 libraries. PTX is compiled from the driver of CUDA 13.0 (580.65.06) on.",
        "runs ours 75": "No: mine 1.2 has no code for sm_75. Nor has any release that was read, from 1.1 on.",
        "runs built": "Not known: the index has only-source 3.0 as source alone. The build decides.",
    }
    reply = replies.of("runs ours@1.1 120")
    assert reply and reply.rows[0].text == "two.so: no SASS for 12.x, no PTX"
    assert replies.of("runs another 120") is None


def test_a_wheel_that_cannot_be_read_is_named_and_the_others_are_kept(
    wheel: Wheel, publish: Callable[..., list[str]], cumatrix: Command
) -> None:
    wheel("1.0", one=AMPERE)
    (cumatrix.folder / "mine-1.1-py3-none-any.whl").write_bytes(b"no archive")
    *new, problem = publish(4)
    assert new == [f"cumatrix: new on the index: mine {version}" for version in ("1.0", "1.1")]
    assert problem.startswith("cumatrix: not read: mine 1.1: mine-1.1-py3-none-any.whl is no wheel that can be read")
    (mine, _) = read_wheels(cumatrix.folder / WHEELS)
    assert [release.version for release in mine.releases] == ["1.0"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[wheels]\nreleases = 0\n[wheels.packages]\na = ['a']", "wheels.releases: must be a number from 1 to 50, not 0"),
        ("[wheels]\nreleases = 1\n[wheels.packages]\na = 'a'", "wheels.packages.a: must be a list of names of packages"),
        ("[wheels]\nreleases = 1\nmore = 1\n[wheels.packages]\na = ['../a']", "wheels.more: is no key of [wheels]"),
        ("[[part]]\nname = 'x'", "has no table [wheels]"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_used_is_named(text: str, problem: str, cumatrix: Command) -> None:
    (cumatrix.folder / "plan.toml").write_text(text)
    done = cumatrix("publish", "--wheels", "--out", cumatrix.folder)
    assert done.returncode in (2, 3) and problem in done.stderr, done.stderr


@pytest.mark.parametrize(
    "change", [{"schema": 2}, {"packages": 3}, {"packages": [{}]}, {"packages": [{"codes": ["sass sm_x"], "kinds": [[9]]}]}]
)  # fmt: skip
def test_a_damaged_file_gives_one_sentence(change: dict[str, object], cumatrix: Command) -> None:
    path: Path = cumatrix.folder / WHEELS
    (cumatrix.folder / "plan.toml").write_text(PLAN)
    path.write_text(json.dumps({"schema": 1, "packages": [], **change}))
    done = cumatrix("publish", "--wheels", "--out", cumatrix.folder)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and WHEELS in done.stderr
