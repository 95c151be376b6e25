"""Prints this machine's CUDA devices (`harness.protocol.messages.Driver`) as one line of JSON; any Python can run it.

A separate process queries the driver, so that no other process loads it. The arguments are additional folders of the
driver's library, outside of the dynamic loader's search path.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
_COOPERATIVE, _OPT_IN, _PROCESSORS = 95, 97, 16


def load() -> tuple[ctypes.CDLL, str]:
    """Load libcuda; return it with its folder, which is empty if the loader found it."""
    for folder in ["", *sys.argv[1:]]:
        try:
            return ctypes.CDLL(os.path.join(folder, "libcuda.so.1")), folder
        except OSError:
            continue
    print(json.dumps({"devices": [], "problem": "no driver: libcuda.so.1 is not there"}))
    raise SystemExit


def main() -> None:
    cuda, folder = load()
    answer: dict[str, Any] = {"devices": [], "problem": "", "folder": folder}
    code = cuda.cuInit(0)
    if code:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(code, ctypes.byref(name))
        answer["problem"] = f"the driver says {(name.value or b'error %d' % code).decode()}"
        print(json.dumps(answer))
        return
    number = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(number))
    answer["cuda"] = f"{number.value // 1000}.{number.value % 1000 // 10}"
    answer["driver"] = driver_version(folder)
    cuda.cuDeviceGetCount(ctypes.byref(number))
    for ordinal in range(number.value):
        device, text, memory = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
        cuda.cuDeviceGet(ctypes.byref(device), ordinal)
        cuda.cuDeviceGetName(text, len(text), device)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

        def attribute(which: int, device: ctypes.c_int = device) -> int:
            value = ctypes.c_int()
            cuda.cuDeviceGetAttribute(ctypes.byref(value), which, device)
            return value.value

        answer["devices"].append(
            {
                "name": text.value.decode(errors="replace"),
                "compute_capability": "{}.{}".format(*map(attribute, _CAPABILITY)),
                "memory": memory.value,
                "multiprocessors": attribute(_PROCESSORS),
                "shared_opt_in": attribute(_OPT_IN),
                "cooperative": bool(attribute(_COOPERATIVE)),
            }
        )
    print(json.dumps(answer))


def driver_version(folder: str) -> str:
    """Return the driver's version, such as ``"580.159.04"``; only NVML and the kernel module report it."""
    try:
        nvml = ctypes.CDLL(os.path.join(folder, "libnvidia-ml.so.1"))
        text = ctypes.create_string_buffer(96)
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0:
            return text.value.decode()
    except (OSError, AttributeError):
        pass  # a driver without NVML, as in a container
    try:
        with open("/proc/driver/nvidia/version") as file:
            words = file.readline().split()
            return next((word for word in words if word[:1].isdigit() and "." in word), "")
    except OSError:
        return ""


if __name__ == "__main__":
    main()
