"""Breakage of the newest release: only cells that differ in nothing but the release count, on the page and in the feed."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

from record_builders import cell, plan, record, rejected

from harness.analysis.frame import cells_frame
from harness.model import Cell, Outcome
from harness.records import Record, merge
from harness.report.feed import NewRelease, atom_feed
from harness.report.pages import answer_page
from harness.report.site import Site, front_of

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "<script>alert(1)</script>\x1b[31m"


def nvrtc(toolkit: str, target: str = "sm_80", case: str = "wmma/fragments", title: str = "") -> Cell:
    return cell(case, backend="nvrtc", library="", toolkit=toolkit, target=target, title=title)


def site_of(*records: Record) -> Site:
    merged = merge(records, [plan()])
    return Site(merged=merged, table=cells_frame(merged))


def told(site: Site) -> list[str]:
    return [f"{item.label} {item.finding} ({item.basis})" for item in site.releases]


def on(host: str, of: Cell, outcome: Outcome | None = None) -> Record:
    """Return a record of a machine's own host compiler."""
    made = record(of, outcome)
    requested = {**made["toolchain"]["requested"], "host_compiler": host}
    return {**made, "toolchain": {**made["toolchain"], "requested": requested}}


def test_a_release_is_compared_with_the_one_before_and_no_earlier_one() -> None:
    site = site_of(
        *(record(nvrtc(toolkit)) for toolkit in ("12.4", "12.9", "13.0")),
        *(record(nvrtc("12.4", "sm_90")), record(nvrtc("13.0", "sm_90"), rejected())),
        *(record(nvrtc("12.9", "sm_75")), record(nvrtc("13.0", "sm_75"), rejected())),
        *(record(nvrtc("12.9", "sm_86"), rejected()), record(nvrtc("13.0", "sm_86"), rejected())),
    )
    assert told(site) == ["CUDA 13.0 breaks 1 feature (1 of 2 pairs that build with 12.9)"]
    (broken,) = site.releases[0].broken
    assert (broken.case, broken.tools) == ("wmma/fragments", "NVRTC on sm_75")


def test_a_pair_with_another_host_compiler_shows_nothing() -> None:
    nvcc = [replace_backend(nvrtc(toolkit), "nvcc") for toolkit in ("13.0", "13.5")]
    same = site_of(on("gcc 13.3.0, glibc 2.36", nvcc[0]), on("gcc 13.3.0, glibc 2.36", nvcc[1], rejected()))
    assert told(same) == ["CUDA 13.5 breaks 1 feature (1 of 1 pair that builds with 13.0)"]
    other = site_of(on("gcc 13.3.0, glibc 2.36", nvcc[0]), on("gcc 13.3.0, glibc 2.39", nvcc[1], rejected()))
    (release,) = other.releases
    assert (release.finding, release.basis) == (
        "cannot be compared: no cell differs from one that 13.0 builds in the release alone",
        "",
    )


def replace_backend(of: Cell, backend: str) -> Cell:
    return replace(of, toolchain=replace(of.toolchain, backend=backend))


def test_a_library_that_moves_with_cuda_is_not_compared() -> None:
    """CuPy 14 with CUDA 13 and CuPy 13 with CUDA 12 prove nothing about either; two releases with one CUDA release do."""
    apart = [cell(library="13.6.0", toolkit="12.9"), cell(library="14.2.0", toolkit="13.0")]
    assert [item.finding.partition(":")[0] for item in site_of(*map(record, apart)).releases] == [
        "cannot be compared"
    ] * 2
    both = site_of(*map(record, apart), record(cell(library="14.2.0", toolkit="12.9"), rejected()))
    assert told(both)[0] == "CuPy 14.2.0 breaks 1 feature (1 of 1 pair that builds with 13.6.0)"


def test_architectures_that_cuda_no_longer_knows_are_named() -> None:
    gone = rejected("nvrtc: error: invalid value for --gpu-architecture (-arch)")
    site = site_of(
        *(record(nvrtc(toolkit)) for toolkit in ("12.9", "13.0")),
        *(record(nvrtc("12.9", "sm_70")), record(nvrtc("13.0", "sm_70"), gone)),
    )
    assert told(site) == ["CUDA 13.0 breaks 1 feature (1 of 2 pairs that build with 12.9; no longer builds for sm_70)"]


def test_the_page_begins_with_what_breaks_and_keeps_hostile_text_as_text() -> None:
    said = rejected(HOSTILE)
    of = [nvrtc(toolkit, case="a/case", title=HOSTILE) for toolkit in ("12.9", "13.0")]
    site = site_of(record(of[0]), record(of[1], said), *(record(cell(library=item)) for item in ("13.6.0", "14.2.0")))
    page = answer_page(front_of(site), site.own_table, site.frame)
    latest = page.partition('id="latest"')[2]
    assert latest.index("CUDA 13.0</b> breaks 1 feature") < latest.index(
        "CuPy 14.2.0</b> breaks nothing that was tried"
    )
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in latest
    feed = atom_feed((), site.releases, address="https://example.org/m/")
    root = ET.fromstring(feed)
    first, second = root.findall(f"{ATOM}entry")
    assert {first.findtext(f"{ATOM}title"), second.findtext(f"{ATOM}title")} == {
        "CUDA 13.0 breaks 1 feature",
        "CuPy 14.2.0 breaks nothing that was tried",
    }
    content = "".join(entry.findtext(f"{ATOM}content") or "" for entry in (first, second))
    assert "<script" not in content and "&lt;script&gt;" in content
    assert {entry.findtext(f"{ATOM}updated") for entry in (first, second)} == {"2026-01-01T12:00:00+00:00"}
    assert [link.get("href") for link in first.findall(f"{ATOM}link")] == [
        "https://example.org/m/#ask=what%20breaks%20between%20CuPy%2013.6.0%20and%2014.2.0"
    ]


def test_a_release_without_a_pair_has_no_entry() -> None:
    nothing = NewRelease(name="torch", version="2.15.0", before="2.14.0", pairs=0, failed=0, broken=(), dropped=(), updated="")  # fmt: skip
    assert ET.fromstring(atom_feed((), [nothing])).findall(f"{ATOM}entry") == []
