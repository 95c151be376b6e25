"""ELF files, compared with pyelftools."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from harness.artifacts import split
from harness.artifacts.elf import Elf
from harness.toolkits import Installed

OWN = Path(sys.executable).resolve().read_bytes()


def held_against_pyelftools(data: bytes) -> None:
    ours, theirs = Elf(data), ELFFile(io.BytesIO(data))
    assert (ours.flags, ours.abi) == (theirs.header["e_flags"], theirs.header["e_ident"]["EI_ABIVERSION"])
    expected = {section.name: (section["sh_size"], section["sh_type"]) for section in theirs.iter_sections()}
    assert list(ours.sections) == list(expected)
    for name, (size, kind) in expected.items():
        found = ours.sections[name]
        assert found.size == size
        if kind != "SHT_NULL":
            assert found.data == (b"" if kind == "SHT_NOBITS" else theirs.get_section_by_name(name).data()), name
    table = theirs.get_section_by_name(".symtab")
    symbols = list(table.iter_symbols()) if table else []
    assert [symbol.name for symbol in ours.symbols()] == [symbol.name for symbol in symbols]
    functions = [symbol.name for symbol in symbols if symbol["st_info"]["type"] == "STT_FUNC"]
    assert [symbol.name for symbol in ours.symbols() if symbol.type == 2] == functions


def test_a_program_of_this_machine() -> None:
    held_against_pyelftools(OWN)


@pytest.mark.compilers
@pytest.mark.parametrize("release", ["12.4", "13.0"])
def test_what_ptxas_writes(release: str, toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    text = ".version 7.8\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 s[64];\n.visible .entry k() { ret; }\n"
    (tmp_path / "k.ptx").write_text(text)
    for options in ((), ("-c",)):
        ptxas = toolkit(release).home / "bin" / "ptxas"
        subprocess.run([ptxas, *options, "-arch=sm_90", "-o", "k.cubin", "k.ptx"], cwd=tmp_path, check=True, timeout=60)
        held_against_pyelftools((tmp_path / "k.cubin").read_bytes())


def test_more_sections_than_the_header_can_count() -> None:
    texts = b"\0.many\0"
    start = 64 + len(texts)
    first = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 2, 1, 0, 0, 0)  # number of sections, and index of the names
    names = struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64, len(texts), 0, 0, 1, 0)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, start, 0, 64, 0, 0, 64, 0, 0xFFFF)
    assert list(Elf(header + texts + first + names).sections) == ["", ".many"]


def with_sections(texts: bytes, *places: int) -> bytes:
    """Return a file with section names at these places."""
    start = 64 + len(texts)
    names = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(texts), 0, 0, 1, 0)
    rest = b"".join(struct.pack("<IIQQQQIIQQ", place, 1, 0, 0, 64, 0, 0, 0, 1, 0) for place in places)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, start, 0, 64, 0, 0, 64, len(places) + 1, 0)
    return header + texts + names + rest


def test_a_name_may_be_long() -> None:
    long = "n" * (1 << 20)
    assert list(Elf(with_sections(b"\0" + long.encode() + b"\0", 1)).sections) == ["", long]


def test_names_that_are_very_long_together_are_refused() -> None:
    texts = b"\0" + b"n" * (1 << 20) + b"\0"
    with pytest.raises(ValueError, match="too long together"):
        Elf(with_sections(texts, *range(1, 200)))


@pytest.mark.parametrize("size", [0, 5, 63, 64, 4000])
def test_what_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=r"cut off|no ELF"):
        Elf(OWN[:size])


@given(places=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_damaged_header_is_read_or_refused(places: list[tuple[int, int]]) -> None:
    data = bytearray(OWN)
    for place, value in places:
        data[place] = value
    try:
        list(Elf(bytes(data)).symbols())
    except ValueError:
        pass  # said


def _overlapping(data: bytes, count: int) -> bytes:
    """Return an ELF file with `count` sections, each with all of `data`."""
    section = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 64, len(data), 0, 0, 1, 0)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 190, 1, 0, 0, 64 + len(data), 0, 64, 0, 0, 64, count, 0
    )
    return header + data + section * count


def test_sections_that_overlap_are_not_copied() -> None:
    """Without the limit, these files would need a terabyte."""
    assert Elf(_overlapping(bytes(32 << 20), 32_000)).sections[""].size == 32 << 20


@pytest.mark.timeout(60)
def test_many_files_one_after_another_are_told_apart_in_time_that_grows_with_them() -> None:
    empty = _overlapping(b"", 0)
    assert split(empty * 500_000) == [empty] * 500_000
