"""``cumatrix.bisect``, with real compilers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import Repository

import cumatrix
from harness.toolkits import Installed

KERNEL = "__global__ void twice(float *a) { a[threadIdx.x] *= 2; }\n"


@pytest.mark.compilers
def test_the_release_that_changed_an_outcome(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toolkit: Callable[[str], Installed],
    capfd: pytest.CaptureFixture[str],
) -> None:
    for release in ("12.9", "13.0"):
        toolkit(release)
    monkeypatch.chdir(tmp_path)
    Path("twice.cu").write_text(KERNEL)
    found = cumatrix.bisect("twice.cu", over="cuda", releases=["12.9", "13.0"], backend="nvrtc", target="sm_70")
    (border,) = found.borders
    assert (border.before, border.after, border.between) == ("12.9", "13.0", ())
    assert "CUDA 13.0 does not take it any more (CUDA 13.0 knows no sm_70" in border.sentence
    assert border.notes.startswith("https://docs.nvidia.com/cuda/archive/13.0")
    assert (found.over, found.tried, dict(found.skipped), found.contradiction) == ("cuda", ("12.9", "13.0"), {}, "")
    assert capfd.readouterr() == ("", "")


@pytest.mark.compilers
def test_the_commit_that_changed_an_outcome(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toolkit: Callable[[str], Installed],
    capfd: pytest.CaptureFixture[str],
) -> None:
    toolkit("12.9")
    monkeypatch.chdir(tmp_path)
    Path("twice.cu").write_text("#include <scale.h>\n__global__ void twice(float *a) { *a *= SCALE; }\n")
    library = Repository(tmp_path / "library")
    library.write({".gitignore": "include/\n", "include/empty.h": ""})
    make = "echo '#define {} 2' > include/scale.h\n"
    commits = [
        library.commit({"make.sh": make.format(name), "n": name}) for name in ("SCALE", "SCALE", "SCALED", "SCALED")
    ]
    found = cumatrix.bisect(
        "twice.cu", over="git:library", good=commits[0], build="sh make.sh",
        include="library/include", backend="nvrtc", toolkit="12.9", target="sm_80",
    )  # fmt: skip
    (border,) = found.borders
    assert (border.before, border.after, border.kind) == (commits[1], commits[2], "broke")
    assert 'identifier "SCALE" is undefined' in border.sentence
    assert set(found.tried) <= set(commits) and {commits[0], commits[3]} <= set(found.tried)
    assert library.git("rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"over": "git:."}, "that is no checkout of git"),
        ({"over": "git:.", "releases": "1.0"}, "whose commits git chooses"),
        ({"over": "cupie"}, "no such axis"),
        ({"over": "cuda", "releases": "99.9"}, "99.9"),
    ],
)
def test_what_cannot_be_searched(
    options: dict[str, str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("twice.cu").write_text(KERNEL)
    with pytest.raises(cumatrix.UsageError, match=sentence):
        cumatrix.bisect("twice.cu", **options)  # type: ignore[arg-type]


def test_an_unknown_keyword_is_named() -> None:
    with pytest.raises(TypeError, match=r"bisect\(\) has no keyword 'targt'"):
        cumatrix.bisect("twice.cu", over="cuda", targt="sm_80")  # type: ignore[call-arg]
