"""``cumatrix.bisect``, with real compilers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"over": "git:."}, "cumatrix.bisect searches releases"),
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
