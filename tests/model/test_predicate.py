"""Versions match equally with every release of `packaging`."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The environment has `packaging` and no other requirement of cumatrix.
SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from harness.model.condition import InVersions
print(json.dumps([InVersions("cupy", text).holds({"cupy": version}) for text, version in json.loads(sys.argv[2])]))
"""


@pytest.mark.compilers
def test_pre_releases_count_with_the_oldest_packaging(venv: Callable[..., str]) -> None:
    """Before packaging 26, `SpecifierSet.contains` rejected pre-releases by default."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (oldest,) = [text.replace(">=", "==") for text in wanted if text.startswith("packaging>=")]
    asked = [(">=13.0", "13.1.0rc1"), ("<=13.1", "13.1.0rc1"), ("<13.1", "13.1.0rc1"), (">=13.0", "what")]
    done = subprocess.run(
        [venv(oldest), "-c", SCRIPT, ROOT, json.dumps(asked)],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [True, True, False, False]
