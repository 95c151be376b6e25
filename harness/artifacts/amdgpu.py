"""AMD code objects: ELF files for AMD GPUs, with their target and kernels.

The header and the metadata follow LLVM's guide to AMDGPU (https://llvm.org/docs/AMDGPUUsage.html): ``EF_AMDGPU_MACH`` in
``e_flags`` identifies the processor, and the note ``NT_AMDGPU_METADATA`` lists the kernels in MessagePack.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from harness.artifacts.elf import Elf
from harness.model import KernelResources, Target

EM_AMDGPU = 224

_MACH = 0xFF  # EF_AMDGPU_MACH
_PROCESSORS = {
    0x2A: "803", 0x2C: "900", 0x2D: "902", 0x2E: "904", 0x2F: "906", 0x30: "908", 0x31: "909", 0x32: "90c", 0x3F: "90a",
    0x40: "940", 0x4B: "941", 0x4C: "942", 0x4F: "950", 0x33: "1010", 0x34: "1011", 0x35: "1012", 0x42: "1013", 0x36: "1030",
    0x37: "1031", 0x38: "1032", 0x39: "1033", 0x3E: "1034", 0x3D: "1035", 0x45: "1036", 0x41: "1100", 0x46: "1101", 0x47: "1102",
    0x44: "1103", 0x43: "1150", 0x4A: "1151", 0x55: "1152", 0x58: "1153", 0x48: "1200", 0x4E: "1201", 0x49: "1250",
}  # fmt: skip
_METADATA = (b"AMDGPU\0", 32)  # name and type of the note
# ``amdgcn-amd-amdhsa--gfx942:xnack-``, and in later LLVMs ``amdgpu9.42-amd-amdhsa-unknown-gfx942``.
_TARGET = re.compile(r"amd(?:gcn|gpu[0-9a-f.]{0,8})-amd-amdhsa-(?:unknown)?-(gfx[0-9a-f]{3,4})(?::[a-z:+-]+)?")
_REGISTER = 4  # bytes of a vector register per thread


def read_code_object(data: bytes) -> tuple[Target, tuple[KernelResources, ...]]:
    """Read the target and kernels of an AMD code object.

    A kernel's registers are its vector registers, its local memory is scratch, and its shared memory is LDS. Spilled vector registers are
    counted in bytes per thread. Instructions are not read.

    Raises
    ------
    ValueError
        If `data` is not a code object, or its header and its metadata name different processors.
    """
    try:
        elf = Elf(data)
        if elf.machine != EM_AMDGPU:
            raise ValueError("an ELF file for another machine")
        number = _PROCESSORS.get(elf.flags & _MACH)
        if number is None:
            raise ValueError(f"its processor has the unknown number {elf.flags & _MACH:#x}")
        metadata = _metadata(elf)
        named = metadata.get("amdhsa.target", "")
        found = _TARGET.fullmatch(named)
        if found is None or found[1] != f"gfx{number}":
            raise ValueError(f"its header says gfx{number}, and its metadata {named!r}")
        there = {symbol.name for symbol in elf.symbols()}
        kernels = tuple(_kernel(each, there) for each in metadata.get("amdhsa.kernels", []))
    except (ValueError, TypeError, AttributeError, struct.error, RecursionError) as error:
        raise ValueError(f"not a code object: {error}") from None
    return Target.parse(f"gfx{number}"), kernels


def _metadata(elf: Elf) -> dict[str, Any]:
    for section in elf.all_sections:
        for name, kind, text in _notes(section.data) if section.name == ".note" else ():
            if (name, kind) == _METADATA:
                found = _MessagePack(text).value()
                if not isinstance(found, dict):
                    raise ValueError("its metadata is no map")
                return found
    raise ValueError("it has no metadata")


def _notes(data: memoryview) -> Iterator[tuple[bytes, int, memoryview]]:
    place = 0
    while place + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, place)
        start = place + 12 + (name_size + 3) // 4 * 4
        yield bytes(data[place + 12 : place + 12 + name_size]), kind, data[start : start + size]
        place = start + (size + 3) // 4 * 4


def _kernel(found: dict[str, Any], there: set[str]) -> KernelResources:
    name, symbol = found.get(".name", ""), found.get(".symbol")
    if not isinstance(name, str) or not name:
        raise ValueError("a kernel has no name")
    if symbol not in there:
        raise ValueError(f"its metadata lists the kernel {name}, which it does not have")
    spilled = _number(found, ".vgpr_spill_count")
    return KernelResources(
        name=name,
        num_regs=_number(found, ".vgpr_count"),
        shared_bytes=_number(found, ".group_segment_fixed_size"),
        local_bytes=_number(found, ".private_segment_fixed_size"),
        spill_bytes=None if spilled is None else _REGISTER * spilled,
    )


def _number(found: dict[str, Any], key: str) -> int | None:
    value = found.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32):
        raise ValueError(f"{key} is {value!r}")
    return value


_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
# By first byte, the format of the length that follows it.
_TEXTS = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


class _MessagePack:
    """A reader of MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), without its extensions."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._place = data, 0

    def value(self) -> Any:
        """Return the next value.

        Every value takes at least one byte, so no length yields more values than there are bytes.
        """
        first = self._take(1)[0]
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 0x100
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _NUMBERS:
            return self._unpack(_NUMBERS[first])
        if first < 0x90:
            return self._map(first & 0xF)
        if first < 0xA0:
            return self._array(first & 0xF)
        if first < 0xC0:
            return self._text(first & 0x1F)
        for lengths, read in ((_TEXTS, self._text), (_ARRAYS, self._array), (_MAPS, self._map)):
            if first in lengths:
                return read(self._unpack(lengths[first]))
        raise ValueError(f"its metadata has a value of the unknown kind {first:#x}")

    def _map(self, length: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(length)}

    def _array(self, length: int) -> list[Any]:
        return [self.value() for _ in range(length)]

    def _text(self, length: int) -> str:
        return bytes(self._take(length)).decode()

    def _unpack(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _take(self, length: int) -> memoryview:
        taken = self._data[self._place : self._place + length]
        if len(taken) < length:
            raise ValueError("its metadata is cut off")
        self._place += length
        return taken
