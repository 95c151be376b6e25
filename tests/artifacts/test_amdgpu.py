"""AMD code objects: parsing, and hostile files. ``tests/backends/test_triton.py`` has real ones."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.artifacts.amdgpu import read_code_object

KERNEL = {
    ".name": "dot", ".symbol": "dot.kd", ".vgpr_count": 256, ".vgpr_spill_count": 332, ".group_segment_fixed_size": 65536,
    ".private_segment_fixed_size": 1332, ".args": [{".offset": 0, ".size": 8}] * 20, ".uses_dynamic_stack": False,
}  # fmt: skip


def pack(value: Any) -> bytes:
    """Return a value in MessagePack, each type in one form."""
    if isinstance(value, bool) or value is None:
        return bytes([{None: 0xC0, False: 0xC2, True: 0xC3}[value]])
    if isinstance(value, int):
        return bytes([value]) if 0 <= value < 128 else b"\xcd" + struct.pack(">H", value) if 0 <= value < 1 << 16 else b"\xd3" + struct.pack(">q", value)  # fmt: skip
    if isinstance(value, str):
        text = value.encode()
        return bytes([0xA0 | len(text)]) + text if len(text) < 32 else b"\xd9" + bytes([len(text)]) + text
    if isinstance(value, list):
        head = bytes([0x90 | len(value)]) if len(value) < 16 else b"\xdc" + struct.pack(">H", len(value))
        return head + b"".join(map(pack, value))
    return b"\xde" + struct.pack(">H", len(value)) + b"".join(pack(key) + pack(each) for key, each in value.items())


def elf(note: bytes, *, flags: int, machine: int = 224, symbols: tuple[str, ...] = ("dot.kd",)) -> bytes:
    """Return a code object with a note and symbols."""
    head = struct.pack("<III", 7, len(note), 32) + b"AMDGPU\0\0"
    texts = b"\0" + b"".join(name.encode() + b"\0" for name in symbols)
    table = b"".join(
        struct.pack("<IBBHQQ", texts.index(b"\0" + name.encode() + b"\0") + 1, 1, 0, 1, 0, 64) for name in symbols
    )
    names = b"\0.note\0.symtab\0.strtab\0.shstrtab\0"
    parts = ((b".note", 7, head + note, 0), (b".symtab", 2, table, 3), (b".strtab", 3, texts, 0), (b".shstrtab", 3, names, 0))  # fmt: skip
    body, headers = b"", [bytes(64)]
    for name, kind, data, link in parts:
        headers.append(struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name + b"\0") + 1, kind, 0, 0, 64 + len(body), len(data), link, 0, 1, 0))  # fmt: skip
        body += data
    ident = b"\x7fELF\x02\x01\x01\x40\x04" + bytes(7)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, machine, 1, 0, 0, 64 + len(body), flags, 64, 0, 0, 64, 5, 4)
    return header + body + b"".join(headers)


def code_object(*kernels: Any, target: str = "amdgcn-amd-amdhsa--gfx942", flags: int = 0x54C, **more: Any) -> bytes:
    return elf(pack({"amdhsa.kernels": list(kernels), "amdhsa.target": target}), flags=flags, **more)


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
