"""After any change between two runs, the second run answers as if there had been no first.

A pair is data (`pair.Pair`): add one to the lists in ``pairs_*.py``, and name the backends that have that way of reading.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from .pair import Pair
from .pairs_cuda import HEADERS, OPTIONS, SPELLINGS
from .pairs_host import HOST
from .pairs_libraries import LIBRARIES
from .pairs_python import PROGRAMS
from .pairs_toolkits import TOOLKITS
from .site import Site, short, told

pytestmark = pytest.mark.compilers

ALL: tuple[Pair, ...] = (*HEADERS, *OPTIONS, *SPELLINGS, *TOOLKITS, *HOST, *PROGRAMS, *LIBRARIES)
CODE = ("status", "stage", "diagnostics", "artifact", "log", "toolchain")


def test_every_pair_has_a_name_of_its_own() -> None:
    assert len({pair.name for pair in ALL}) == len(ALL)


# A pair takes seconds. Between two nights, NVRTC runs one pair of each way of reading, and other processes run one each.
QUICK = {
    "python-runs-a-tool-numba", "appears-earlier-cupy-nvrtc", "in-I-older-nvcc",
    *(f"{name}-nvrtc" for name in (
        "program-mended", "in-I-nested", "in-I-size-and-time-as-before", "header-link-retargeted", "appears-earlier", "goes-and-a-later-one-comes-up",
        "takes-the-place-of-the-toolkits", "a-file-that-nothing-reads", "spelled-line-splice-in-the-word", "spelled-macro-of-macros",
        "spelled-name-from-D", "has-include-alone", "options-of-a-case", "pre-include-looked-for", "toolkit-header-added",
    )),
}  # fmt: skip


def params() -> list[Any]:
    """Generate a test for each pair and backend."""
    names = {f"{pair.name}-{name}": (pair, name) for pair in ALL for name in pair.backends}
    assert names.keys() >= QUICK
    return [
        pytest.param(*each, id=name, marks=() if name in QUICK else pytest.mark.slow) for name, each in names.items()
    ]


@pytest.mark.parametrize(("pair", "backend"), params())
def test_a_change_between_two_runs(pair: Pair, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Site(pair, backend, tmp_path, monkeypatch)) as site:
        play(site)


def play(site: Site) -> None:
    pair = site.pair
    site.before()
    first = site.run()
    assert not first["cached"]
    again = site.run()
    assert again["cached"] or not pair.kept, f"nothing changed, and it was compiled again: {short(again)}"
    assert told(again) == told(first)
    site.change()
    answered, true = site.run(), site.run("--no-cache")
    changed = any(first[key] != true[key] for key in CODE)
    assert changed is pair.matters, f"the pair does not show what it is for: {short(first)} -> {short(true)}"
    assert told(answered) == told(true), f"it was {short(first)}; is {short(true)}; the answer was {short(answered)}"
