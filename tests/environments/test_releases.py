"""Users' names of releases: versions, series, ranges, all, and pre-releases on request."""

from __future__ import annotations

import pytest
from packaging.version import Version

from harness.environments.index import File
from harness.environments.releases import Published, Python, choose, parse_with
from harness.errors import PartUnavailable, UsageError

VERSIONS = [
    "10.6.0",
    "12.2.0",
    "12.3.0",
    "13.0.0rc1",
    "13.0.0",
    "13.1.0",
    "13.6.0",
    "14.0.0",
    "14.0.0+cpu",
    "14.2.0",
    "15.0.0a1",
]


def wheel(version: str, *, python: str = "cp311", day: str = "2024-01-18", yanked: bool = False) -> File:
    name = f"cupy_cuda12x-{version}-{python}-{python}-manylinux2014_x86_64.manylinux2014_aarch64.whl"
    return File(name, 100, f"{day}T02:00:00Z", ">=3.9", yanked)


def release(version: str, *files: File, distribution: str = "cupy-cuda12x") -> Published:
    return Published(library="cupy", version=Version(version), wheels={distribution: files or (wheel(version),)})


RELEASES = [release(version) for version in VERSIONS]


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("12", ["12.3.0"]), ("13", ["13.6.0"]), ("13.*", ["13.6.0"]), ("13.0", ["13.0.0"]), ("13.0.0", ["13.0.0"]), ("=13.0.0", ["13.0.0"]),
        ("12,13.0", ["12.3.0", "13.0.0"]), ("13.0,12", ["12.3.0", "13.0.0"]), ("13,13.6", ["13.6.0"]),
        ("13.1..14", ["13.1.0", "13.6.0", "14.0.0", "14.2.0"]), ("13.1..14.0.0", ["13.1.0", "13.6.0", "14.0.0"]),
        ("14..", ["14.0.0", "14.2.0"]), ("..12", ["12.2.0", "12.3.0"]),
        ("all", ["12.2.0", "12.3.0", "13.0.0", "13.1.0", "13.6.0", "14.0.0", "14.2.0"]), ("10", ["10.6.0"]),
        ("13.0.0rc1", ["13.0.0rc1"]), ("15,pre", ["15.0.0a1"]), ("13.0.0rc1..13.0", ["13.0.0rc1", "13.0.0"]), ("14.0.0+cpu", ["14.0.0+cpu"]),
    ],
)  # fmt: skip
def test_words_stand_for_releases(words: str, chosen: list[str]) -> None:
    assert [str(each.version) for each in choose(parse_with(f"cupy={words}"), RELEASES)] == chosen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cupi=13", r'unknown library \'cupi\' \(did you mean "cupy"\?\)'), ("cupy", r"name versions as in cupy=14"), ("cupy=", "name versions"),
        ("cupy=new", r"'new' is no version such as 13\.1\.0, series such as 13, or range"), ("cupy=13..x", r"'x' is no version"),
        ("cupy=14..12", "from the older to the newer: 12..14"), ("cupy>=13", "name versions as in cupy=14, or a range such as cupy=14.."),
        ("cupy-cuda12x=13.6.0", "is a wheel of cupy, which follows the toolkit"), ("cutlass=4.2.0", "cutlass is named with --library"),
        ("cuda=12.4", "cuda is named with -t"), ("cupy @", "name the source to build after @"), ("-e", "names its folder, as in -e"),
        ("=13", "name a library: cupy, numba"), ("cupy=..", "a range has an end"), ("cupy=pre", "pre adds pre-releases to versions"), ("numpy=2", "unknown library"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_with(text)


@pytest.mark.parametrize("word", ["13.9", "11", "15", "13.2..13.5"])
def test_what_the_index_does_not_have_is_said_with_what_it_has(word: str) -> None:
    with pytest.raises(UsageError, match=rf"the index has no cupy {word}; it has .*1[23]\."):
        choose(parse_with(f"cupy={word}"), RELEASES)


def test_an_index_without_any_release_is_said() -> None:
    with pytest.raises(PartUnavailable, match="the index has no release of cupy"):
        choose(parse_with("cupy=13"), [])


def test_a_withdrawn_release_is_taken_by_its_full_name_only() -> None:
    known = [release("13.5.0", wheel("13.5.0", yanked=True)), release("13.4.0")]
    assert [str(each.version) for each in choose(parse_with("cupy=13"), known)] == ["13.4.0"]
    assert [str(each.version) for each in choose(parse_with("cupy=13.5.0"), known)] == ["13.5.0"]


def test_a_release_knows_its_day_its_pythons_and_its_cuda() -> None:
    of = Published(
        library="cupy",
        version=Version("13.0.0"),
        wheels={
            "cupy-cuda12x": (wheel("13.0.0", python="cp312", day="2024-01-20"), wheel("13.0.0")),
            "cupy-cuda11x": (wheel("13.0.0", python="cp39"),),
        },
    )
    assert (of.day, of.majors, of.pythons(), of.pythons(["cupy-cuda11x"])) == (
        "2024-01-18",
        [11, 12],
        ["3.9", "3.11", "3.12"],
        ["3.9"],
    )
    assert [of.distribution(major) for major in (11, 12, 13)] == ["cupy-cuda11x", "cupy-cuda12x", None]
    assert of.wheel_for("cupy-cuda12x", Python("", "3.11.7")) and not of.wheel_for("cupy-cuda12x", Python("", "3.13.0"))
