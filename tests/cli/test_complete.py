"""Completion, as bash asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


def offered(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word, through the function that the documented line defines."""
    script = (
        'eval "$(_CUMATRIX_COMPLETE=bash_source cumatrix)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_cumatrix_completion cumatrix "${!#}" ""; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", "cumatrix", *words], cwd=folder, capture_output=True, text=True, timeout=100, check=True,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "some", "none"),
    [
        (("try", "k.cu", "-b", "nvrtc,n"), {"nvrtc,nvcc", "nvrtc,numba"}, {"nvrtc,nvrtc"}),
        (("run", "-t", "12.4..13"), {"12.4..13.0"}, {"12.4..12.9"}),
        (("run", "-a", "sm_8"), {"sm_80", "sm_89"}, {"sm_90"}),
        (("try", "k.cu", "--with", "cu"), {"cupy="}, {"numba="}),
        (("toolkits", "install", "12.9"), {"12.9"}, {"13.0"}),
        (("run", "wm"), {"wmma"}, {"wmma/one"}),
        (("run", "wmma/"), {"wmma/one", "wmma/two"}, {"other"}),
    ],
)
def test_bash_offers_what_could_stand_there(
    tmp_path: Path, words: tuple[str, ...], some: set[str], none: set[str]
) -> None:
    for name in ("wmma/one", "wmma/two", "other/three"):
        (tmp_path / "cases" / name).mkdir(parents=True)
        (tmp_path / "cases" / name / "case.toml").write_text("")
    found = set(offered(tmp_path, *words))
    assert some <= found
    assert not none & found
