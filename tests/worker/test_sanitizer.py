"""Only a part of compute-sanitizer's output is parsed: a fake tool prints without limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cells import make_order
from peaks import peak_of

from harness.protocol.messages import Setup
from harness.worker import child

MUCH = 100 << 20
FAKE = f"""#!/bin/sh
if [ "$1" = --version ]; then
    echo "Version 2025.3.1"
    head -c {MUCH} /dev/zero
    exit
fi
{{
    echo "========= Invalid __global__ write of size 4 bytes"
    head -c {MUCH} /dev/zero
    echo
    echo "========= ERROR SUMMARY: 7 errors"
}} > "$4"
"""


def test_a_report_of_any_size(tmp_path: Path) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(FAKE)
    tool.chmod(0o755)
    order = replace(make_order(tmp_path / "kernel.cu", "sm_80", tmp_path), sanitizer=str(tool))
    setup = Setup(tmp_path, "13.0", "13.0", [], tmp_path)
    found = {}
    assert peak_of(lambda: found.update(child.check_memory("nvrtc", setup, order))) < MUCH // 5
    first = "Invalid __global__ write of size 4 bytes"
    assert found == {"tool": "memcheck", "version": "2025.3.1", "errors": 7, "found": [first]}
