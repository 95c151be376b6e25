"""Summaries that are kept: never those of a case that is another by now."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.backends import BACKENDS
from harness.cases import load, summary
from harness.cases.discovery import load_cases
from harness.cases.errors import CaseError
from harness.cases.summary import summaries, summary_of

from .conftest import GOOD, Write

LIBRARY = Path(__file__).parents[2] / "cases"
HEADERS = Path("lib/include")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of the test's own, for which files have not changed lately."""
    monkeypatch.setenv("CUMATRIX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(summary, "_SETTLED", -(10**12))
    summary._made_by.cache_clear()
    yield tmp_path / "cache" / "cases.json"
    summary._made_by.cache_clear()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the cases that were read, rather than answered out of what was kept."""
    names: list[str] = []
    real = load.load_case

    def noted(path: Path, root: Path) -> object:
        names.append(path.parent.name)
        return real(path, root)

    monkeypatch.setattr(load, "load_case", noted)
    return names


@pytest.mark.usefixtures("cache")
def test_nothing_is_read_twice(read: list[str]) -> None:
    first = summaries(LIBRARY)
    assert len(read) == len(first) > 100
    read.clear()
    assert summaries(LIBRARY) == first == [summary_of(case) for case in load_cases(LIBRARY)]
    # All of them by load_cases, and none by the list.
    assert len(read) == len(first)


@pytest.mark.usefixtures("cache")
def test_only_what_has_changed_is_read_again(root: Path, write: Write, read: list[str]) -> None:
    write(GOOD, "topic/a")
    path = write(GOOD.replace("A case", "B case"), "topic/b")
    assert [each.title for each in summaries(root)] == ["A case", "B case"]
    assert read == ["a", "b"]
    was = path.stat()
    # As long as before, and with the times of before, as far as anyone can set them.
    path.write_text(GOOD.replace("A case", "C case"))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert [each.title for each in summaries(root)] == ["A case", "C case"]
    assert read == ["a", "b", "b"]


def _no_source(case: Path) -> None:
    (case / "kernel.cu").unlink()


def _a_folder(case: Path) -> None:
    (case / "kernel.cu").unlink()
    (case / "kernel.cu").mkdir()


def _a_broken_file(case: Path) -> None:
    (case / "case.toml").write_text("title = 1\n")


def _no_folder_of_headers(case: Path) -> None:
    shutil.rmtree(case / "lib")


def _a_link_that_leads_out(case: Path) -> None:
    (case / "kernel.cu").unlink()
    (case / "kernel.cu").symlink_to(__file__)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    "change", [_no_source, _a_folder, _a_broken_file, _no_folder_of_headers, _a_link_that_leads_out]
)
def test_what_went_wrong_since_is_told(root: Path, write: Write, change: Callable[[Path], None]) -> None:
    case = write(GOOD + f'[[options]]\ninclude = ["{HEADERS}"]\n').parent
    shutil.rmtree(case)
    (case / HEADERS).mkdir(parents=True)
    write(GOOD + f'[[options]]\ninclude = ["{HEADERS}"]\n')
    assert len(summaries(root)) == len(summaries(root)) == 1
    change(case)
    with pytest.raises(CaseError):
        summaries(root)


@pytest.mark.usefixtures("cache")
def test_cases_that_come_and_go(root: Path, write: Write) -> None:
    write(GOOD, "topic/a")
    summaries(root)
    write(GOOD, "topic/b")
    assert [each.name for each in summaries(root)] == ["topic/a", "topic/b"]
    shutil.rmtree(root / "topic/a")
    assert [each.name for each in summaries(root)] == ["topic/b"]
    (root / "topic/b").rename(root / "topic/c")
    assert [each.name for each in summaries(root)] == ["topic/c"]
    assert [each.name for each in summaries(root, ["topic/c"])] == ["topic/c"]
    with pytest.raises(CaseError, match="no case is called"):
        summaries(root, ["topic/a"])


@pytest.mark.usefixtures("cache")
def test_another_folder_of_cases_gives_another_name(root: Path, write: Write) -> None:
    write()
    summaries(root)
    with pytest.raises(CaseError, match="a case lies at"):
        summaries(root / "topic")


def test_what_changed_a_moment_ago_is_not_kept(
    root: Path, write: Write, cache: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_SETTLED", 10**12)
    write()
    summaries(root)
    summaries(root)
    assert read == ["some", "some"]
    assert not cache.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[libraries]\ncutlass = ['./lib']\n",  # a folder has a version of its own, which nobody looks up here
        "[[options]]\ninclude = ['../../shared']\n",
    ],
)
def test_what_lies_outside_is_not_kept(root: Path, write: Write, cache: Path, read: list[str], text: str) -> None:
    (root / "shared").mkdir()
    (root / "topic/some/lib").mkdir(parents=True)
    write(GOOD + text)
    summaries(root)
    summaries(root)
    assert read == ["some", "some"]
    assert not cache.exists()


def _entries(text: str) -> dict[str, dict[str, object]]:
    entries: dict[str, dict[str, object]] = json.loads(text)["cases"]
    return entries


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[" * 100_000,
        lambda text: "[]",
        lambda text: "{}",
        lambda text: text.replace('"by":"', '"by":"0'),
        lambda text: json.dumps({**json.loads(text), "cases": []}),
        lambda text: text.replace('"title":"A case"', '"title":["lie"]').replace("topic/some", "topic/lie"),
        lambda text: text.replace('"languages":["cuda"]', '"languages":"cuda"'),
        lambda text: text.replace('"variants":1', '"variants":null'),
        lambda text: json.dumps({**json.loads(text), "cases": dict.fromkeys(_entries(text), 7)}),
    ],
)
def test_what_is_damaged_counts_as_nothing(root: Path, write: Write, cache: Path, damage: Callable[[str], str]) -> None:
    write()
    right = summaries(root)
    cache.write_text(damage(cache.read_text()))
    assert summaries(root) == right == summaries(root)


def test_what_is_another_users_counts_as_nothing(
    root: Path, write: Write, cache: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    summaries(root)
    cache.write_text(cache.read_text().replace("A case", "A lie "))
    monkeypatch.setattr("harness.user_folders.os.geteuid", lambda: os.getuid() + 1)
    assert [each.title for each in summaries(root)] == ["A case"]
    assert read == ["some", "some"]


@pytest.mark.usefixtures("cache")
def test_other_backends_are_other_cases(
    root: Path, write: Write, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(GOOD.replace("[source]", 'backends = ["new"]\n[source]'))
    with monkeypatch.context() as more:
        more.setattr(BACKENDS, "_all", {**BACKENDS, "new": replace(BACKENDS["nvrtc"], name="new")})
        assert [each.backends for each in summaries(root)] == [("new",)]
    summary._made_by.cache_clear()
    with pytest.raises(CaseError, match="unknown backend"):
        summaries(root)
    assert read == ["some", "some"]


def test_a_cache_that_cannot_be_written(
    root: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CUMATRIX_CACHE", str(tmp_path / "file"))
    write()
    assert len(summaries(root)) == 1
    assert (tmp_path / "file").read_text() == ""


def test_many_commands_at_once(root: Path, write: Write, cache: Path) -> None:
    for number in range(20):
        write(GOOD, f"topic/n{number}")
    code = f"from harness.cases import summary as listed; listed._SETTLED = -10**12; from pathlib import Path; print(*listed.summaries(Path({str(root)!r})))"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=LIBRARY.parent)
        for _ in range(4)
    ]
    said = [each.communicate(timeout=100)[0] for each in running]
    assert [each.returncode for each in running] == [0] * 4
    assert said == [said[0]] * 4
    assert len(_entries(cache.read_text())) == 20
    assert [path.name for path in cache.parent.iterdir()] == ["cases.json"]
