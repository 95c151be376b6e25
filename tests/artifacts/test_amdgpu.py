"""AMD code objects: what is read of them, and hostile ones. Real ones are in ``tests/backends/test_triton.py``."""

from __future__ import annotations

from contextlib import suppress

import pytest
from code_objects import KERNEL, code_object, elf
from hypothesis import given
from hypothesis import strategies as st

from harness.artifacts.amdgpu import read_code_object


def test_a_kernel_has_its_registers_lds_scratch_and_spills() -> None:
    target, (kernel,) = read_code_object(code_object(KERNEL))
    assert str(target) == "gfx942"
    assert (kernel.name, kernel.num_regs, kernel.shared_bytes, kernel.local_bytes) == ("dot", 256, 65536, 1332)
    assert (kernel.spill_bytes, kernel.tensor_cores, kernel.instructions) == (1328, None, None)


@pytest.mark.parametrize(
    "target", ["amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "amdgpu9.42-amd-amdhsa-unknown-gfx942"]
)
def test_other_spellings_of_the_same_processor(target: str) -> None:
    assert str(read_code_object(code_object(target=target))[0]) == "gfx942"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (code_object(KERNEL, flags=0x3F), "its header says gfx90a, and its metadata 'amdgcn-amd-amdhsa--gfx942'"),
        (code_object(target="gfx942"), "its metadata 'gfx942'"),
        (code_object(KERNEL, flags=0xFE), "unknown number 0xfe"),
        (code_object(KERNEL, machine=190), "another machine"),
        (code_object(KERNEL, symbols=("fill.kd",)), "lists the kernel dot, which it does not have"),
        (code_object({**KERNEL, ".vgpr_count": -1}), ".vgpr_count is -1"),
        (code_object({**KERNEL, ".vgpr_count": True}), ".vgpr_count is True"),
        (code_object({**KERNEL, ".name": 7}), "a kernel has no name"),
        (code_object(7), "not a code object"),
        (elf(b"\xdf\xff\xff\xff\xff", flags=0x4C), "its metadata is cut off"),
        (elf(b"\x91" * 100_000, flags=0x4C), "not a code object"),
        (elf(b"\x81\x90\x01", flags=0x4C), "not a code object"),
        (elf(b"\xc1", flags=0x4C), "unknown kind 0xc1"),
        (elf(b"\x07", flags=0x4C), "its metadata is no map"),
        (b"\x7fELF", "no ELF file"),
    ],
)
def test_what_is_no_code_object(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match="not a code object") as caught:
        read_code_object(data)
    assert words in str(caught.value)


@given(st.integers(0, len(code_object(KERNEL)) - 1), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(place: int, byte: int) -> None:
    data = bytearray(code_object(KERNEL))
    data[place] = byte
    with suppress(ValueError):
        assert str(read_code_object(bytes(data))[0]) == "gfx942"
