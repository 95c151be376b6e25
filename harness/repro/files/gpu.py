"""Checks whether this machine's driver reports a GPU of a compute capability."""

import ctypes


def has_device(capability):
    """Return whether libcuda's first device has a compute capability, such as ``has_device("8.0")``."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    device, value = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return False
    numbers = []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        numbers.append(str(value.value))
    return ".".join(numbers) == capability
