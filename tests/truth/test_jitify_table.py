"""Jitify's findings are kept for the next worker: searching again takes a minute with CUDA's larger headers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from harness.toolkits.store import data_folder

from .pair import KERNEL, ONE, Pair
from .site import Site

pytestmark = pytest.mark.compilers


def test_the_table_of_headers_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(name="table", backends=("cupy-jitify",), files={"kernel.cu": ONE + KERNEL}, change=())

    def tables() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (data_folder() / "tools" / "jitify").glob("*.json")}

    with closing(Site(pair, "cupy-jitify", tmp_path, monkeypatch)) as site:
        site.before()
        assert site.run("--no-cache")["status"] == "built"
        before = tables()
        assert before
        site.run("--no-cache")
        assert {path: tables()[path] for path in before} == before
