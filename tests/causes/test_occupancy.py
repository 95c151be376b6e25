"""What a kernel may use of a multiprocessor."""

from __future__ import annotations

from typing import Any

import pytest

from harness.causes import Budget, Limits, budget, limits_of
from harness.causes.occupancy import Occupancy, launch_note
from harness.model import KNOWN_TARGETS


def kernel(registers: int = 32, shared: int = 0, **more: int) -> dict[str, Any]:
    return {"name": "k", "num_regs": registers, "shared_bytes": shared, "spill_bytes": 0, **more}


def limits(target: str) -> Limits:
    """Those of a target that has some."""
    found = limits_of(target)
    assert found is not None
    return found


def budgeted(kernel: dict[str, Any], target: str) -> Budget:
    """What is left to a kernel on a target whose limits are known."""
    found = budget(kernel, target)
    assert found is not None
    return found


def occupancy(target: str, threads: int, **uses: int) -> Occupancy:
    return next(item for item in budgeted(kernel(**uses), target).occupancy if item.threads == threads)


@pytest.mark.parametrize(
    ("target", "kib"),
    [("sm_75", 64), ("sm_80", 163), ("sm_86", 99), ("sm_90a", 227), ("compute_100f", 227), ("sm_120", 99)],
)
def test_shared_memory_of_a_block(target: str, kib: int) -> None:
    assert limits(target).block_shared == kib * 1024


def test_what_nvidia_does_not_publish_is_not_invented() -> None:
    unknown = {str(target) for target in KNOWN_TARGETS if limits_of(str(target)) is None}
    assert {item.removeprefix("sm_").rstrip("af") for item in unknown if item.startswith("sm_")} == {"88", "101", "107"}
    assert budget(kernel(), "sm_107") is None


def test_the_source_is_linked() -> None:
    assert "cuda-programming-guide" in limits("sm_80").source
    assert "12.9" in limits("sm_60").source


# As cudaOccupancyMaxActiveBlocksPerMultiprocessor and NVIDIA's calculator have it.
@pytest.mark.parametrize(
    ("target", "threads", "uses", "blocks", "limit"),
    [
        ("sm_80", 256, {"registers": 32}, 8, "threads"),
        ("sm_80", 128, {"registers": 16}, 16, "threads"),
        ("sm_80", 256, {"registers": 64}, 4, "registers"),
        ("sm_80", 256, {"registers": 33}, 6, "registers"),
        ("sm_80", 1024, {"registers": 32}, 2, "threads"),
        ("sm_86", 256, {"registers": 32, "shared": 49152}, 2, "shared memory"),
        ("sm_90", 128, {"registers": 255}, 2, "registers"),
        ("sm_75", 256, {"registers": 32}, 4, "threads"),
        ("sm_75", 256, {"registers": 32, "shared": 32768}, 2, "shared memory"),
        ("sm_80", 256, {"registers": 32, "shared": 49152}, 3, "shared memory"),
    ],
)
def test_occupancy(target: str, threads: int, uses: dict[str, int], blocks: int, limit: str) -> None:
    found = occupancy(target, threads, **uses)
    assert (found.blocks, found.limit) == (blocks, limit)


def test_warnings() -> None:
    assert budgeted(kernel(), "sm_80").warnings == ()
    found = budgeted(kernel(registers=255, shared=65536, spill_bytes=16), "sm_90")
    assert found.threads == 256
    assert len(found.warnings) == 4
    assert "cannot be launched" in budgeted(kernel(shared=70000), "sm_75").warnings[0]
    assert budgeted(kernel(shared=1024), "sm_80").dynamic == 163 * 1024 - 1024


def test_what_is_not_known_is_left_open() -> None:
    found = budgeted({"name": "k"}, "sm_80")
    assert (found.registers, found.shared, found.threads) == (None, None, 1024)


@pytest.mark.parametrize(
    ("target", "shared", "note"),
    [
        ("sm_86", 101376, ""),
        ("sm_86", 101380, "cannot launch: k has 101380 bytes of static shared memory; a block can have 101376 on compute capability 8.6"),
        ("sm_90", 65536, ""),  # launched on an H100 with driver 580
        ("sm_90a", 232448, ""),
        ("sm_88", 1 << 20, ""),
    ],
)  # fmt: skip
def test_more_than_a_block_can_have_cannot_be_launched(target: str, shared: int, note: str) -> None:
    assert launch_note([("small", 1024), ("unknown", None), ("k", shared)], target) == note
