"""Real checkouts, with shell commands as build steps instead of compilers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import record_builders as make
from bisection_builders import GONE, NO, OTHER_WORDS, YES

from harness.bisection.git import OTHER, SAME, UNTESTABLE, Checkout, CommitLog, build, compare
from harness.bisection.search import Lane, LaneOutcome, outcome_of
from harness.errors import UsageError
from harness.model import Outcome

Repository = Callable[..., list[str]]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a checkout with a file ``state`` that differs in each commit; return the commits."""

    def make_one(*contents: str) -> list[str]:
        folder = tmp_path / "checkout"
        folder.mkdir()
        commits = []
        run("init", "-q", "-b", "trunk", folder=folder)
        for number, content in enumerate(contents):
            (folder / "state").write_text(f"{content}\n{number}\n")
            run("add", "-A", folder=folder)
            run(
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@example.org",
                "commit",
                "-q",
                "-m",
                f"{content} {number}",
                folder=folder,
            )
            commits.append(run("rev-parse", "HEAD", folder=folder))
        return commits

    return make_one


def run(*words: str, folder: Path) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout.strip()


STEP = ["sh", "-c", "case $(head -1 state) in good) exit 0;; bad) exit 1;; *) exit 125;; esac"]


def test_the_first_commit_that_is_other(repository: Repository, tmp_path: Path) -> None:
    commits = repository(*["good"] * 5, *["bad"] * 6)
    checkout = Checkout.at(str(tmp_path / "checkout"))
    with checkout.bisecting():
        assert checkout.first_different(commits[0], commits[-1], STEP) == [commits[5]]
    assert run("rev-parse", "--abbrev-ref", "HEAD", folder=checkout.path) == "trunk"
    assert run("status", "--porcelain", folder=checkout.path) == ""


def test_what_cannot_be_tested_is_skipped_and_told(repository: Repository, tmp_path: Path) -> None:
    commits = repository("good", "good", "broken", "broken", "bad", "bad")
    checkout = Checkout.at(str(tmp_path / "checkout"))
    with checkout.bisecting():
        assert set(checkout.first_different(commits[0], commits[-1], STEP)) == {*commits[2:5]}


def test_a_step_that_fails_ends_the_search(repository: Repository, tmp_path: Path) -> None:
    commits = repository("good", "good", "good", "bad")
    checkout = Checkout.at(str(tmp_path / "checkout"))
    with pytest.raises(UsageError, match="came to no end"), checkout.bisecting():
        checkout.first_different(commits[0], commits[-1], ["sh", "-c", "exit 255"])
    assert run("rev-parse", "--abbrev-ref", "HEAD", folder=checkout.path) == "trunk"


def test_a_checkout_that_could_lose_something_is_left_alone(repository: Repository, tmp_path: Path) -> None:
    repository("good", "bad")
    folder = tmp_path / "checkout"
    (folder / "state").write_text("mine\n")
    with pytest.raises(UsageError, match="has changes that are not committed"):
        Checkout.at(str(folder))
    run("checkout", "--", "state", folder=folder)
    run("bisect", "start", folder=folder)
    with pytest.raises(UsageError, match=r"is under way: `git -C \S+ bisect reset` ends it"):
        Checkout.at(str(folder))


def test_what_is_no_checkout(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        Checkout.at(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="that is no checkout of git"):
        Checkout.at(str(tmp_path / "empty"))
    (commit,) = repository("good")
    checkout = Checkout.at(str(tmp_path / "checkout"))
    assert checkout.commit("HEAD") == commit
    for name in ("v9", "--all", "HEAD~5"):
        with pytest.raises(UsageError, match="has no commit"):
            checkout.commit(name)


def seen(*outcomes: Outcome) -> dict[Lane, LaneOutcome]:
    found = {}
    for target, outcome in zip(("sm_80", "sm_90"), outcomes, strict=False):
        record = make.record(make.cell(target=target), outcome)
        if one := outcome_of(record):
            found[Lane.of(record, "")] = one
    return found


@pytest.mark.parametrize(
    ("now", "code"),
    [((YES, NO), SAME), ((YES, OTHER_WORDS), OTHER), ((NO, GONE), OTHER), ((YES, GONE), UNTESTABLE), ((), UNTESTABLE)],
)
def test_one_cell_that_differs_is_enough(now: tuple[Outcome, ...], code: int) -> None:
    assert compare(seen(YES, NO), seen(*now)) == code


def test_commits_are_trials_of_one_cell_whatever_their_versions_are() -> None:
    def lane(library: str, variant: str, builds: dict[str, Any]) -> Lane:
        record = make.record(make.cell(target="sm_80", backend="numba-cuda", library=library))
        observed = {**record["toolchain"]["observed"], "builds": builds}
        return Lane.of_commit(
            {**record, "variant": variant, "toolchain": {**record["toolchain"], "observed": observed}}
        )

    build = {"numba-cuda": {"version": "0.20.1"}}
    headers = "--library=cutlass=4.2.0+git.3f2a9c1,n=2"
    assert lane("0.20.1+git.3f2a9c1", headers, build) == lane(
        "0.20.7+git.683300b", headers.replace("4.2.0+git.3f2a9c1", "4.3.0+git.1234567"), build
    )
    assert lane("0.20.1", "n=2", {}) != lane("0.20.2", "n=2", {}), "releases"
    assert lane("0.20.1+git.3f2a9c1", "n=2", build) != lane("0.20.1+git.3f2a9c1", "n=3", build)


def test_a_log_keeps_what_was_seen(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    assert log.outcomes("c" * 40) is None
    log.keep("c" * 40, [make.record(outcome=YES)])
    log.keep("d" * 40, [], "the build ended with 2: no rule")
    assert [one.status for one in (log.outcomes("c" * 40) or {}).values()] == ["built"]
    assert (log.outcomes("d" * 40), log.reason("d" * 40)) == ({}, "the build ended with 2: no rule")
    log.forget_untestable()
    assert log.outcomes("d" * 40) is None
    assert log.outcomes("c" * 40)


def test_builds(tmp_path: Path) -> None:
    assert build("touch done", tmp_path, 60) == ""
    assert (tmp_path / "done").is_file()
    assert build("echo one; echo 'error: two' >&2; exit 3", tmp_path, 60) == "the build ended with 3: error: two"
    assert build("false", tmp_path, 60) == "the build ended with 1: it said nothing"
    assert build("sleep 600", tmp_path, 0.2) == "the build has not ended within 0.2 s"
