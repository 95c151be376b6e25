"""The driver of a real device loads exactly the code that the compatibility rules allow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.engine.machine import Devices
from harness.model import Target
from harness.model.compatibility import Way, answer
from harness.nvidia.launch import Driver, DriverError
from harness.toolkits import ToolkitStore

pytestmark = pytest.mark.gpu
TARGETS = "75 80 86 89 90 90a 100 100a 100f 103 110 120 120a 120f 121".split()
PTX = ".version {isa}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"


def loads(driver: Driver, image: bytes) -> bool:
    try:
        driver.load(image)
    except DriverError as error:
        # The first code has no kernel image for the device; the second is PTX for a newer device.
        if error.name not in ("CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_INVALID_PTX"):
            raise
        return False
    return True


def test_each_target_loads_where_the_rules_say(devices: Devices, store: ToolkitStore, tmp_path: Path) -> None:
    if (
        not any(toolkit.release == "13.0" for toolkit in store.installed())
        or str(devices.items[0].facts["cuda"]) < "13.0"
    ):
        pytest.skip("needs CUDA 13.0 and its driver")
    (toolkit,) = (each for each in store.installed() if each.release == "13.0")
    driver, cc = Driver(), int(devices.items[0].capability.replace(".", ""))
    wrong = []
    for number in TARGETS:
        target = Target.parse(f"sm_{number}")
        ptx, cubin = tmp_path / "k.ptx", tmp_path / "k.cubin"
        ptx.write_text(PTX.format(isa="9.0", target=target))
        subprocess.run([toolkit.home / "bin" / "ptxas", f"-arch={target}", ptx, "-o", cubin], check=True)
        for code, file in ((target, cubin), (target.as_virtual, ptx)):
            way = answer(code, cc).way
            if way is not Way.UNKNOWN and loads(driver, file.read_bytes()) != (way is not Way.NONE):
                wrong.append(str(code))
    assert wrong == []
