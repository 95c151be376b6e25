"""Messages if uv finds no space; uv's output is faked, since no disk is filled here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import PartUnavailable
from harness.protocol import process_output
from harness.toolkits.download import run_uv


def test_a_full_disk_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        "error: Failed to install: a.whl\n  cause: failed to copy file\n  cause: No space left on device (os error 28)"
    )
    full = SimpleNamespace(code=2, output="", errors=said, whole=True, total=0)
    monkeypatch.setattr(process_output, "run", lambda *_, **__: full)
    folder = tmp_path / "environments" / ".numba-0.59.1-x"
    folder.mkdir(parents=True)
    with pytest.raises(PartUnavailable) as caught:
        run_uv("numba 0.59.1", ["pip", "install", "numba"], folder)
    assert str(caught.value) == (
        f"numba 0.59.1 is not installed: no space is left on the device, in {tmp_path / 'environments'} or in uv's cache; "
        "make room, and run it again"
    )
