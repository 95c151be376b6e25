"""Logs of real issues, and the cause that the thread found."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.causes import catalogue, explain_log

HERE = Path(__file__).parent
ISSUES: list[dict[str, Any]] = tomllib.loads((HERE / "issues.toml").read_text("utf-8"))["issue"]
PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
MARGINS = {
    "docker": "#12 57.62 ",
    "older docker": "57.62 ",
    "GitHub": "2026-01-31T12:00:00.0000000Z ",
    "Azure": "##[error]",
    "Visual Studio Code": "[cmake] ",
    "pip": "      ",
    "pytest": "E   ",
    "a quotation": "> ",
    "Python's logging": "2026-01-31 12:00:00,123 ",
    "PyTorch": "E0808 13:24:30.445000 114448 torch/_inductor/runtime/triton_heuristics.py:539] [4/0_1] ",
    "TensorFlow": "2022-12-08 11:37:51.345475: W external/org_tensorflow/asm_compiler.cc:231] ",
    "vLLM": "(EngineCore_DP0 pid=421) ERROR 01-05 12:12:01 [core.py:842] ",
}
BEFORE = "\n".join(
    (
        "Collecting torch==2.4.0\n  Downloading torch-2.4.0-cp311-cp311-manylinux1_x86_64.whl (797.2 MB)",
        "Processing ./csrc\n  Preparing metadata (setup.py): started\n  Preparing metadata (setup.py): finished with status 'done'",
        "-- The CXX compiler identification is GNU 11.4.0\n-- Detecting CUDA compiler ABI info - done\n-- Found CUDAToolkit: /usr/local/cuda/include",
        "running build_ext\nbuilding 'ops' extension\ncopying ops/__init__.py -> build/lib.linux-x86_64-cpython-311/ops",
        *(f"[{n}/230] Building CXX object src/CMakeFiles/ops.dir/part_{n}.cpp.o" for n in range(1, 231)),
        *(f"[ {n}%] Built target part_{n}" for n in range(1, 100)),
    )
)
AFTER = "\n".join(
    (
        "ninja: build stopped: subcommand failed.",
        *(f"[{n}/310] Building CXX object src/CMakeFiles/late.dir/part_{n}.cpp.o" for n in range(231, 311)),
        "gmake[1]: *** [CMakeFiles/Makefile2:153: src/CMakeFiles/ops.dir/all] Error 2",
        "Traceback (most recent call last):",
        *(
            f'  File "/usr/lib/python3.11/site-packages/setuptools/command/c{n}.py", line {n}, in run\n    self.run_command("build")'
            for n in range(20)
        ),
        "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
        "The above exception was the direct cause of the following exception:",
        "RuntimeError: Error compiling objects for extension",
        "error: subprocess-exited-with-error",
        "ERROR: Failed building wheel for ops",
    )
)


def told(log: str, *, warns: bool = False) -> str:
    """The cause of the first error that has one, or if a log only `warns` of the first warning; empty if none is known."""
    return next((match.cause.name for match in explain_log(log).matches if match.of_warning is warns), "")


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue["link"].removeprefix("https://github.com/"))
def test_the_cause_that_the_thread_found_is_named(issue: dict[str, Any]) -> None:
    """A wrong answer is worse than none, so `open` allows none only."""
    log, warns = issue["log"], issue.get("warns", False)
    expected = "" if issue.get("open") else issue["cause"]
    assert told(log, warns=warns) == expected
    assert expected or explain_log(log).unexplained or not explain_log(log).matches
    # What a build prints before and after the message does not change the answer.
    long = f"{BEFORE}\n{log}\n{AFTER}\n"
    assert long.count("\n") > 450
    assert told(long, warns=warns) == expected
    wrong = {
        name: answer for name in MARGINS if (answer := told(with_margin(log, MARGINS[name]), warns=warns)) != expected
    }
    assert wrong == {}


def with_margin(log: str, margin: str) -> str:
    return "\n".join(margin + line for line in log.splitlines())


def test_the_issues_are_whole() -> None:
    keys = {"group", "link", "says", "cause", "before", "log"}
    assert all(keys <= set(issue) <= keys | {"open", "unseen", "round", "warns"} for issue in ISSUES)
    assert {issue["before"] for issue in ISSUES} == {"right", "wrong", "none"}
    assert {issue["cause"] for issue in ISSUES} - {""} <= set(catalogue())
    links = [issue["link"] for issue in ISSUES]
    assert len(set(links)) == len(links) > 120
    assert all(
        re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull|discussions)/\d+", link) for link in links
    )
    # Logs that look like a known cause and have another.
    assert sum(issue["cause"] == "" for issue in ISSUES) >= 15


def rows() -> Iterator[str]:
    """The table of the page."""
    yield "| Logs of | Logs | Before | Now |\n| --- | ---: | ---: | ---: |"
    groups = list(dict.fromkeys(issue["group"] for issue in ISSUES))
    for group in [*groups, ""]:
        logs = [issue for issue in ISSUES if group in ("", issue["group"])]
        before = Counter(issue["before"] for issue in logs)
        now = Counter("none" if issue.get("open") else "right" for issue in logs)
        score = " | ".join(
            f"{each['right']} right, {each['wrong']} wrong, {each['none']} none" for each in (before, now)
        )
        yield f"| {group or 'all'} | {len(logs)} | {score} |"
    yield "\nLogs that the catalogue had not seen, before any change for them:\n"
    yield "| Read | Logs | Right | Wrong | None |\n| --- | ---: | ---: | ---: | ---: |"
    for name, answers in (
        ("after the entries of the first 129", [issue["unseen"] for issue in ISSUES if "unseen" in issue]),
        ("after those 164", [issue["before"] for issue in ISSUES if issue.get("round") == 2]),
        ("after those 263", [issue["before"] for issue in ISSUES if issue.get("round") == 3]),
        ("after those 298", [issue["before"] for issue in ISSUES if issue.get("round") == 4]),
        ("after those 359", [issue["before"] for issue in ISSUES if issue.get("round") == 5]),
        ("after those 412", [issue["before"] for issue in ISSUES if issue.get("round") == 6]),
        ("after those 441", [issue["before"] for issue in ISSUES if issue.get("round") == 7]),
        ("after those 450", [issue["before"] for issue in ISSUES if issue.get("round") == 8]),
        ("after those 536", [issue["before"] for issue in ISSUES if issue.get("round") == 9]),
        ("after those 552", [issue["before"] for issue in ISSUES if issue.get("round") == 11]),
        ("after those 627", [issue["before"] for issue in ISSUES if issue.get("round") == 12]),
        ("after those 696", [issue["before"] for issue in ISSUES if issue.get("round") == 13]),
        ("after those 778", [issue["before"] for issue in ISSUES if issue.get("round") == 14]),
        ("after those 840", [issue["before"] for issue in ISSUES if issue.get("round") == 15]),
        ("after those 899", [issue["before"] for issue in ISSUES if issue.get("round") == 16]),
        ("after those 960", [issue["before"] for issue in ISSUES if issue.get("round") == 17]),
        ("after those 1,020", [issue["before"] for issue in ISSUES if issue.get("round") == 18]),
        ("after those 1,078", [issue["before"] for issue in ISSUES if issue.get("round") == 19]),
        ("after those 1,138", [issue["before"] for issue in ISSUES if issue.get("round") == 20]),
        ("after those 1,198", [issue["before"] for issue in ISSUES if issue.get("round") == 21]),
        ("after those 1,237", [issue["before"] for issue in ISSUES if issue.get("round") == 22]),
        ("after those 1,297", [issue["before"] for issue in ISSUES if issue.get("round") == 23]),
        ("after those 1,350", [issue["before"] for issue in ISSUES if issue.get("round") == 24]),
        ("after those 1,410", [issue["before"] for issue in ISSUES if issue.get("round") == 25]),
        ("after those 1,510", [issue["before"] for issue in ISSUES if issue.get("round") == 26]),
    ):
        count = Counter(answers)
        yield f"| {name} | {len(answers)} | {count['right']} | {count['wrong']} | {count['none']} |"


def test_the_page_has_the_score() -> None:
    """Where this fails, the rows that it prints belong into the page."""
    assert "\n".join(rows()) + "\n" in PAGE.read_text("utf-8")
