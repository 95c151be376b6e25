"""The ROCm of this machine, for tests that compile with it."""

from __future__ import annotations

import pytest

from harness.toolkits.rocm import PACKAGES, find_rocm

needs_rocm = pytest.mark.skipif(
    "5.2" not in find_rocm(), reason=f"there is no ROCm 5.2: apt-get install {PACKAGES} (Debian 12)"
)
