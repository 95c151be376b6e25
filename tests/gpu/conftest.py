"""Tests that need a real CUDA device; pytest skips them without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engine.machine import Devices, find_devices
from harness.model.condition import Version
from harness.toolkits import ToolkitStore


@pytest.fixture(scope="session")
def devices() -> Devices:
    """Return the devices of this machine."""
    found = find_devices()
    if not found.items:
        pytest.skip(f"no CUDA device: {found.problem}")
    return found


@pytest.fixture(scope="session")
def release(devices: Devices, store: ToolkitStore) -> str:
    """Return the newest installed toolkit that the driver supports."""
    limit = Version(str(devices.items[0].facts["cuda"]))
    known = [toolkit.release for toolkit in store.installed() if Version(toolkit.release) <= limit]
    if not known:
        pytest.skip(f"no toolkit up to CUDA {limit} is installed")
    return known[-1]


@pytest.fixture
def own(devices: Devices) -> str:
    """Return the target of the first device."""
    return "sm_" + devices.items[0].capability.replace(".", "")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an empty folder of cases."""
    return tmp_path / "cases"
