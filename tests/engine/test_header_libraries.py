"""Header libraries as an axis: names in ``[libraries]`` and ``--library``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command
from repositories import Repository, cutlass

from harness.cases.discovery import load_cases
from harness.engine.program_axes import Finder, parse_chosen, with_libraries
from harness.errors import UsageError
from harness.model import Case
from harness.toolkits import Installed

CASE = """title = "x"

[source]
cuda = "kernel.cu"

[libraries]
cutlass = {values}

[parameters]
N = [1, 2]
"""
KERNEL = '#include <cutlass/version.h>\nextern "C" __global__ void kernel(int *a) { __shared__ int s[CUTLASS_MINOR]; s[threadIdx.x] = *a; __syncthreads(); *a = s[0]; }\n'


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return two commits, and a data folder of the test."""
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "home"))
    made = Repository(tmp_path / "cutlass")
    made.commit(cutlass("4.1.0"), tag="v4.1.0")
    made.commit(cutlass("4.2.0"), tag="v4.2.0")
    return made


def case_with(folder: Path, values: str) -> Path:
    """Write a folder with one case."""
    root = folder / "cases"
    (root / "topic" / "name").mkdir(parents=True)
    (root / "topic" / "name" / "case.toml").write_text(CASE.format(values=values))
    (root / "topic" / "name" / "kernel.cu").write_text(KERNEL)
    return root


def names(cases: list[Case]) -> list[str]:
    """Return the names of the variants."""
    return [variant.name for case in cases for variant in case.variants]


def test_releases_and_revisions_stand_beside_each_other(tmp_path: Path, repository: Repository) -> None:
    root = case_with(tmp_path, '["3.5.1", "../../../cutlass", "../../../cutlass@v4.1.0..v4.2.0"]')
    loaded = load_cases(root)
    assert len(names(loaded)) == 6  # reading cases looks up nothing
    (case,) = found = with_libraries(loaded, {}, Finder())
    first, second = (repository.git("rev-parse", "--short=7", name) for name in ("v4.1.0", "v4.2.0"))
    # The folder's commit equals the commit of the range.
    wanted = ["3.5.1", f"4.2.0+git.2.{second}", f"4.1.0+git.1.{first}"]
    assert names(found) == [f"cutlass={number},N={n}" for number in wanted for n in (1, 2)]
    assert list(case.libraries["cutlass"].built) == wanted[1:]


def test_chosen_ones_take_the_place_of_the_cases(tmp_path: Path, repository: Repository) -> None:
    loaded = load_cases(case_with(tmp_path, '["3.5.1", "4.2.0"]'))
    chosen = parse_chosen(["cutlass=3.8.0", "cutlass=./cutlass@v4.1.0"], tmp_path)
    number = f"4.1.0+git.1.{repository.git('rev-parse', '--short=7', 'v4.1.0')}"
    assert names(with_libraries(loaded, chosen, Finder())) == [
        f"cutlass={version},N={n}" for version in ("3.8.0", number) for n in (1, 2)
    ]


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("cutlass=3.5.1", ["3.5.1"]),
        ("cutlass==3.5.1", ["3.5.1"]),
        ("cutlass=3.4", ["3.4.1"]),
        ("cutlass=3.4..3.5", ["3.4.0", "3.4.1", "3.5.0", "3.5.1"]),
        ("cutlass=3.5.1, 3.4.1,3.5.1", ["3.5.1", "3.4.1"]),
        ("cutlass=99.1.0", ["99.1.0"]),  # from an unknown wheel
        ("cccl=3.1", ["3.1.4"]),
        ("cccl=2.7..3.0", ["2.7.0", "2.8.2", "3.0.1"]),
    ],
)
def test_versions_series_and_ranges(tmp_path: Path, text: str, versions: list[str]) -> None:
    assert list(parse_chosen([text], tmp_path).values()) == [versions]


def test_all_are_those_that_have_a_wheel(tmp_path: Path) -> None:
    (found,) = parse_chosen(["cccl=all"], tmp_path).values()
    assert {"2.8.2", "3.1.4"} < set(found) and "3.4.1rc1" not in found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cutlass", "write NAME=VERSIONS, such as cutlass=4.2.0"),
        ("cutlass=", "write NAME=VERSIONS"),
        ("cutlas=1", r"unknown library .did you mean \"cutlass\""),
        ("cutlass=new", "'new' is not a version such as 3.5.1, nor a folder"),
        ("cutlass=./nowhere", "there is no folder"),
        ("cutlass=9..10", r"cutlass has no versions from 9 to 10; known are 3\.3\.0"),
    ],
)
def test_what_is_neither_is_told(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_chosen([text], tmp_path)


def test_a_library_that_no_program_uses_is_told(tmp_path: Path, repository: Repository) -> None:
    loaded = load_cases(case_with(tmp_path, '["3.5.1"]'))
    with pytest.raises(UsageError, match="--library cccl: none of the chosen programs uses it"):
        with_libraries(loaded, {"cccl": ["3.1.4"]}, Finder())


def test_a_revision_that_there_is_not_has_file_line_and_key(tmp_path: Path, repository: Repository) -> None:
    loaded = load_cases(case_with(tmp_path, '["../../../cutlass@v9", "../../../cutlass@v4.1.0"]'))
    words = r"cases/topic/name/case\.toml:7: libraries\.cutlass: file://.* has no commit, tag or branch 'v9'"
    with pytest.raises(UsageError, match=words):
        with_libraries(loaded, {}, Finder())


def test_a_number_of_a_wheel_is_refused_with_the_library_s_own(tmp_path: Path) -> None:
    loaded = load_cases(case_with(tmp_path, '["3.5.1"]'))
    chosen = {"cutlass": ["3.5.1"]}
    assert names(with_libraries(loaded, chosen, Finder())) == ["cutlass=3.5.1,N=1", "cutlass=3.5.1,N=2"]
    program = Case(name="k.cu", path=tmp_path / "k.cu", title="k", program="ab", sources={"cuda": tmp_path / "k.cu"})
    with pytest.raises(
        UsageError, match=r"--library cccl=12\.9\.27: 12\.9\.27 is the number of a wheel: the cccl in it is 2\.8\.2"
    ):
        with_libraries([program], {"cccl": ["12.9.27"]}, Finder())


@pytest.mark.compilers
def test_an_edit_of_a_header_is_compiled(
    cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path, repository: Repository
) -> None:
    toolkit("12.4")
    home = {"CUMATRIX_HOME": str(tmp_path / "home"), "CUMATRIX_CACHE": str(tmp_path / "cache")}
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "toolkits").symlink_to(toolkit("12.4").home.parent)
    (tmp_path / "kernel.cu").write_text(KERNEL)
    repository.write(cutlass("4.3.0"))
    arguments = ["try", "kernel.cu", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80"]
    arguments += ["--library", "cutlass=./cutlass,./cutlass@v4.1.0,git+file:///nowhere@main"]

    def shown() -> list[tuple[str, int, bool]]:
        """Return the release in front, the compiled programs, and whether the cache answered."""
        found = []
        for record in cumatrix.records(*arguments, env=home):
            number = record["variant"].removeprefix("--library=cutlass=")
            if record["status"] == "unavailable":
                assert record["reason"].startswith("file:///nowhere cannot be copied: '/nowhere' does not appear to be")
                found.append((number, 0, False))
                continue
            assert record["toolchain"]["observed"]["libraries"]["cutlass"]["commit"]
            found.append(
                (number.partition("+")[0], record["artifact"]["kernels"][0]["shared_bytes"] // 4, record["cached"])
            )
        return found

    assert shown() == [("0+main", 0, False), ("4.1.0", 1, False), ("4.3.0", 3, False)]
    assert shown() == [("0+main", 0, False), ("4.1.0", 1, True), ("4.3.0", 3, True)]
    repository.write(cutlass("4.3.0", "#undef CUTLASS_MINOR\n#define CUTLASS_MINOR 5\n"))
    assert shown() == [("0+main", 0, False), ("4.1.0", 1, True), ("4.3.0", 5, False)]
