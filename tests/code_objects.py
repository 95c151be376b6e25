"""AMD code objects made by hand."""

from __future__ import annotations

import struct
from typing import Any

KERNEL = {
    ".name": "dot", ".symbol": "dot.kd", ".vgpr_count": 256, ".vgpr_spill_count": 332, ".group_segment_fixed_size": 65536,
    ".private_segment_fixed_size": 1332, ".args": [{".offset": 0, ".size": 8}] * 20, ".uses_dynamic_stack": False,
}  # fmt: skip


def pack(value: Any) -> bytes:
    """MessagePack, each kind in one of its forms."""
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
    """A code object with a note and symbols."""
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
