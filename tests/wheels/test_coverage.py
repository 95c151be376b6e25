"""GPUs of generated libraries, by the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import Target
from harness.model.compatibility import Way
from harness.model.gpus import Gpu
from harness.wheels.binary import read_library
from harness.wheels.coverage import Coverage, coverage, uneven
from harness.wheels.entries import LINKED, RELOCATABLE, Entry, Kind, Library, Unit


def unit(*targets: str, section: str = LINKED, linked: bool | None = False, isa: tuple[int, int] = (8, 0)) -> Unit:
    entries = []
    for text in targets:
        target = Target.parse(text)
        entries.append(
            Entry(Kind.PTX if target.virtual else Kind.SASS, target, isa if target.virtual else (0, 0), 0, 1)
        )
    return Unit(tuple(entries), section, linked=linked)


def of(cc: int, *units: Unit) -> Coverage:
    (found,) = coverage(Library("lib.so", 1, units), [Gpu(cc)])
    return found


def part(*targets: str) -> Unit:
    return unit(*targets, section=RELOCATABLE)


@pytest.mark.parametrize(
    ("parts", "linked", "way"),
    [
        ([part("sm_80", "compute_80"), part("sm_80", "compute_80")], True, Way.JIT),
        ([part("sm_80", "compute_80"), part("sm_80")], True, Way.NONE),
        ([part("sm_80", "sm_90"), part("sm_80", "compute_80")], True, Way.JIT),
        ([part("sm_80", "compute_80")], False, Way.NONE),
        ([part("sm_80", "compute_80")], None, Way.UNKNOWN),
    ],
)
def test_linked_code_is_linked_again_if_each_part_allows_it(parts: list[Unit], linked: bool | None, way: Way) -> None:
    # An H100 with the driver 580.159.04 behaves like the first three rows.
    found = of(90, *parts, unit("sm_80", linked=linked))
    assert found.way is way
    assert bool(found.why) is (way is not Way.JIT)


def test_the_driver_is_that_of_the_newest_ptx_and_of_the_gpu() -> None:
    found = of(120, unit("compute_80", isa=(8, 0)), unit("compute_80", isa=(9, 1)))
    assert found.release and found.release.cuda == "13.1"
    old = of(120, unit("compute_80", "compute_90", isa=(7, 8)))
    assert old.release and old.release.cuda == "12.8"
    assert of(120, unit("compute_80", isa=(99, 0))).release is None
    assert of(80, unit("sm_80")).release is None


def test_a_library_that_runs_in_part() -> None:
    found = of(90, unit("sm_80", "sm_90"), unit("sm_80"), unit("sm_90a"))
    assert (found.way, found.running, found.total, found.complete) == (Way.NATIVE, 2, 3, False)
    assert found.why == "no SASS for 9.x, no PTX"
    library = Library("lib.so", 1, (unit("sm_80", "sm_90"), unit("sm_80"), unit("sm_90a")))
    assert uneven(library, [Gpu(80), Gpu(90)]) == [library.units[1], library.units[2]]
    assert uneven(library, [Gpu(80)]) == [library.units[2]]
    assert uneven(library, [Gpu(75)]) == []


def test_fatbins_that_a_program_chooses_from_count_together() -> None:
    found = of(90, unit("sm_80", section=".rodata"), unit("sm_90", section=".rodata"))
    assert (found.way, found.complete) == (Way.NATIVE, True)


def test_code_that_a_library_loads_itself_counts_where_the_rest_lacks_it() -> None:
    units = (unit("sm_75"), unit("sm_80", section=".ldata"), unit("compute_90", section=".ldata"))
    found = of(90, *units)
    assert (found.way, found.running, found.total) == (Way.JIT, 1, 2)
    assert found.why == "no SASS for 9.x, no PTX; what the library loads itself has code"
    assert of(75, *units).complete
    assert of(70, *units).way is Way.NONE


@pytest.mark.parametrize("ident", [b"\x01\x01", b"\x01\x02", b"\x02\x02"])
def test_an_elf_file_of_another_kind_has_no_device_code(tmp_path: Path, ident: bytes) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"\x7fELF" + ident + bytes(100))
    assert read_library(path, "lib.so").units == ()
