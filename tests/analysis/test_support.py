"""Support statements are true for every cell they cover, and say nothing of any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_builders import built, cell, plan, record, rejected

from harness.analysis.frame import cells_frame, make_frame
from harness.analysis.support import AS_BUNDLED, Point, Statement, _Axes, _points, _span, statements
from harness.model import Artifact, Outcome, Stage, Status, ToolkitRef
from harness.model.cell import host_named
from harness.records import Record, merge

LIBRARIES = ["9.0.0", "13.0.0rc1", "13.0.0", "13.1.0"]
TOOLKITS = ["11.8", "12.4", "12.10", "13.0"]
TARGETS = ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "compute_80"]
OUTCOMES: dict[str, Callable[[str], Outcome]] = {
    "built": built,
    "rejected at compile": lambda target: rejected("incomplete type is not allowed"),
    "rejected at link": lambda target: rejected("bad input", stage=Stage.LINK),
    "crashed at compile": lambda target: Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=11),
    "unsupported": lambda target: Outcome(status=Status.UNSUPPORTED, reason="no such architecture"),
    "unavailable": lambda target: Outcome(status=Status.UNAVAILABLE, reason="not installed"),
}
Points = dict[tuple[str, str, str], str]  # outcome by library, toolkit and target
POINTS = list(product(LIBRARIES, TOOLKITS, TARGETS))


def records_of(points: Points) -> list[Record]:
    cells = {place: cell(library=place[0], toolkit=place[1], target=place[2]) for place in points}
    return [record(cells[place], OUTCOMES[outcome](place[2])) for place, outcome in points.items()]


@settings(max_examples=150, deadline=None)
@given(
    points=st.dictionaries(
        st.sampled_from(POINTS),
        # Mostly two outcomes, which gives repetitions to fold.
        st.sampled_from(["built", "built", "built", "rejected at compile", *OUTCOMES]),
        min_size=1,
        max_size=60,
    )
)
def test_every_cell_can_be_told_from_the_statement(points: Points) -> None:
    (statement,) = statements(make_frame(records_of(points)))
    covered = {place: outcome for place, outcome in points.items() if outcome != "unavailable"}
    for place in POINTS:
        assert statement.outcome_of(*place) == covered.get(place)
    assert sorted(statement.cells) == sorted(cell(library=a, toolkit=b, target=c).id for a, b, c in covered)
    assert len(statement.unknown) == len(points) - len(covered)
    assert statement.not_applicable == {Point(*place) for place, outcome in covered.items() if outcome == "unsupported"}
    spoken_of = {
        point
        for clause in statement.clauses
        for point in product(
            clause.libraries, clause.toolkits, [each for part in clause.parts for each in part.targets]
        )
    }
    assert statement.gaps == {Point(*place) for place in spoken_of - covered.keys()}
    assert statement.outcome_of("99", "12.4", "sm_80") is None
    assert statement.works_everywhere == ({*covered.values()} - {"unsupported"} == {"built"})
    _never_speaks_twice(statement)
    for hole in statement.holes.libraries:
        assert hole not in {place[0] for place in covered}


def _never_speaks_twice(statement: Statement) -> None:
    """Blocks of clauses do not overlap, and every target of a clause is in one part."""
    seen = set()
    for clause in statement.clauses:
        for point in product(clause.libraries, clause.toolkits, [t for part in clause.parts for t in part.targets]):
            assert point not in seen
            seen.add(point)


def headline(points: Points) -> Statement:
    (statement,) = statements(make_frame(records_of(points)))
    return statement


B, R, L, C = "built", "rejected at compile", "rejected at link", "crashed at compile"
SAID = f'{R} ("incomplete type is not allowed")'


def grid(libraries: str, toolkits: str, targets: str, outcome: Callable[[str, str, str], str]) -> Points:
    return {place: outcome(*place) for place in product(libraries.split(), toolkits.split(), targets.split())}


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (grid("1 2 3 4", "12.4", "sm_80", lambda a, _b, _c: B if a in "34" else R), f"up to 2: {SAID}; from 3: builds"),
        (grid("1 2 3 4", "12.4", "sm_80", lambda a, _b, _c: B if a in "23" else R), f"1: {SAID}; 2 to 3: builds; from 4: {SAID}"),
        (grid("1 2 3", "12.4", "sm_80", lambda a, _b, _c: B if a in "13" else R), f"1: builds; 2: {SAID}; from 3: builds"),
        (grid("1", "12.4 12.5", "sm_80", lambda _a, b, _c: B if b == "12.5" else R), f"CUDA 12.4: {SAID}; from CUDA 12.5: builds"),
        (
            grid("1 2", "12.4 12.5", "sm_80", lambda a, b, _c: B if (a, b) == ("2", "12.5") else R),
            f"1: {SAID}; from 2 with CUDA 12.4: {SAID}; from 2 with CUDA 12.5: builds",
        ),
        (
            grid("1 2 3", "12.4 12.5 12.6", "sm_80", lambda a, b, _c: B if a == "3" or b == "12.6" else R),
            f"up to 2 with CUDA 12.4 to 12.5: {SAID}; up to 2 with CUDA 12.6: builds; from 3: builds",
        ),
        (grid("1", "12.4", "sm_75 sm_80 sm_90", lambda _a, _b, c: R if c == "sm_75" else B), f"needs sm_80, below it {SAID}"),
        (grid("1", "12.4", "sm_75 sm_80", lambda _a, _b, c: B if c == "sm_75" else R), f"builds on sm_75, {SAID} on sm_80"),
        (
            grid("1", "12.4", "sm_75 sm_80 compute_80", lambda _a, _b, c: B if c == "compute_80" else R),
            f"builds on compute_80, {SAID} on sm_75, sm_80",
        ),
        (
            grid("1", "12.4", "sm_75 sm_80 sm_90", lambda _a, _b, c: {"sm_75": L, "sm_80": C, "sm_90": B}[c]),
            'builds on sm_90, rejected at link ("bad input") on sm_75, crashes at compile on sm_80',
        ),
        (grid("1 2", "12.4 12.5", "sm_80 sm_90", lambda *_: R), SAID),
    ],
)  # fmt: skip
def test_headlines(points: Points, words: str) -> None:
    statement = headline(points)
    assert statement.headline == f"cupy-nvrtc: {words}"
    assert statement.uniform == (len(set(points.values())) == 1)


def test_notes() -> None:
    points = grid("13.0.0 13.2.0", "12.4 12.6", "sm_75 sm_80", lambda *_: B)
    more = {"12.4 13.0.0": "unsupported", "12.4 13.2.0": "unsupported", "12.6 13.2.0": "unsupported"}
    points |= {(name.split()[1], name.split()[0], "sm_100"): outcome for name, outcome in more.items()}
    points |= {(library, "12.6", "sm_90"): "unavailable" for library in ("13.0.0", "13.2.0")}
    del points["13.0.0", "12.6", "sm_80"]
    assert headline(points).notes == (
        "Tested: cupy-nvrtc 13.0.0 and 13.2.0, CUDA 12.4 and 12.6, sm_75, sm_80.",
        "Unsupported: sm_100 with CUDA 12.4; sm_100 with 13.2.0 and CUDA 12.6.",
        "Untested: sm_80 with 13.0.0 and CUDA 12.6.",
        "Untested in between: CUDA 12.5; sm_86–sm_90.",
        "No result for 2 cells that should have been tried.",
    )
    apart = grid("13.0.0", "12.4 12.5", "sm_80", lambda *_: B) | grid("13.2.0", "12.6", "sm_80", lambda *_: B)
    statement = headline(apart)
    assert statement.notes[1:] == ("Never tried together: 13.2.0 and CUDA 12.4, 12.5; 13.0.0 and CUDA 12.6.",)
    assert statement.sentence == f"{statement.headline}. {' '.join(statement.notes)}"
    libraries = [cell(library=library, variant={"N": n}) for library, n in (("1", 1), ("2", 2), ("3", 1))]
    first = statements(make_frame(list(map(record, libraries))))[0]
    assert first.notes[1:] == ("Untested in between: cupy-nvrtc 2.",)


def test_lists_have_six_parts() -> None:
    names = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"]
    assert _span(names[:6]) == "1.0, 1.1, 1.2, 1.3, 1.4 and 1.5"
    assert _span(names) == "1.0 to 1.6 (7 versions)"
    axes = _Axes({"1.0"}, {"13.0"}, TARGETS)
    assert _points([Point("1.0", "13.0", each) for each in TARGETS], {"13.0": {"1.0"}}, axes) == (
        "sm_75–sm_100, compute_80 with CUDA 13.0"
    )
    points = [Point("1.0", f"12.{number}", f"sm_{cc}") for number, cc in enumerate((50, 60, 70, 75, 80, 90, 100))]
    tried = {point.toolkit: {"1.0"} for point in points}
    texts = [f"{point.target} with CUDA {point.toolkit}" for point in points]
    axes = _Axes({"1.0"}, set(tried), [point.target for point in points])
    assert _points(points[:6], tried, axes) == "; ".join(texts[:6])
    assert _points(points, tried, axes) == "; ".join([*texts[:6], "and 1 more of the kind"])


def test_a_range_of_untried_ones_contains_nothing_that_was_tried() -> None:
    """sm_80 is tried with CUDA 12.5, and 13.1.0 with 12.4."""
    points = grid("13.0.0 13.1.0 13.2.0", "12.4 12.5 12.6", "sm_75 sm_80 sm_90", lambda *_: B)
    for target in ("sm_75", "sm_90"):
        for library in ("13.0.0", "13.1.0", "13.2.0"):
            del points[library, "12.5", target]
    assert "Untested: sm_75, sm_90 with CUDA 12.5." in headline(points).notes
    apart = {place: outcome for place, outcome in points.items() if place[1] != "12.4" or place[0] == "13.1.0"}
    assert "Never tried together: 13.0.0, 13.2.0 and CUDA 12.4." in headline(apart).notes


def test_a_note_names_every_release() -> None:
    releases = [f"12.{minor}" for minor in range(10)]
    points = grid("13.0.0 13.1.0", " ".join(releases), "sm_80", lambda *_: B)
    for release in releases[1::2]:
        del points["13.0.0", release, "sm_80"]
    assert headline(points).notes[1:] == ("Never tried together: 13.0.0 and CUDA 12.1, 12.3, 12.5, 12.7, 12.9.",)


def test_the_most_frequent_message_is_quoted() -> None:
    texts = {"sm_75": "first", "sm_80": "second", "sm_86": "second", "sm_90": ""}
    records = [
        record(cell(target=target), rejected(text) if text else rejected(diagnostics=()))
        for target, text in texts.items()
    ]
    (statement,) = statements(make_frame(records))
    (part,) = statement.clauses[0].parts
    assert (part.message, part.messages) == ("second", 2)
    assert statement.headline == 'cupy-nvrtc: rejected at compile ("second" and 1 more)'


def test_ptx_that_was_not_assembled_is_told_apart() -> None:
    ptx = Artifact(format="ptx", target="compute_80", bytes=1, sha256="ab" * 32, kernels=())
    (statement,) = statements(make_frame([record(cell(), built(artifact=ptx, stages=(Stage.COMPILE,)))]))
    assert statement.headline == "cupy-nvrtc: compiles to PTX, which was not assembled"
    assert not statement.works_everywhere


def test_of_8155() -> None:
    """The sentence of the issue."""
    points = {}
    for library, target in product(["12.3.0", "13.0.0", "13.1.0", "14.2.0"], ["sm_70", "sm_75", "sm_80", "sm_90"]):
        works = library in ("13.1.0", "14.2.0") and target in ("sm_80", "sm_90")
        points[library, "12.4", target] = "built" if works else "rejected at compile"
    statement = headline(points)
    assert statement.headline == (
        'cupy-nvrtc: up to 13.0.0: rejected at compile ("incomplete type is not allowed"); '
        'from 13.1.0: needs sm_80, below it rejected at compile ("incomplete type is not allowed")'
    )
    assert statement.notes == (
        "Tested: cupy-nvrtc 12.3.0, 13.0.0, 13.1.0 and 14.2.0, CUDA 12.4, sm_70–sm_90.",
        "Untested in between: sm_72, sm_86–sm_89.",
    )


def test_versions_are_numbers_and_holes_are_named() -> None:
    points = {("1.0", toolkit, "sm_80"): "built" for toolkit in ("12.4", "12.9")}
    points |= {("1.0", "11.8", "sm_80"): "rejected at compile"}
    statement = headline(points)
    assert (
        statement.headline.startswith("cupy-nvrtc: CUDA 11.8: rejected at compile")
        or "up to CUDA 11.8" in statement.headline
    )
    assert "from CUDA 12.4: builds" in statement.headline
    assert statement.holes.toolkits == ("12.0", "12.1", "12.2", "12.3", "12.5", "12.6", "12.8")
    assert "Untested in between: CUDA 12.0 to 12.3, 12.5 to 12.8." in statement.notes


def test_notes_have_one_order() -> None:
    """Points come from a set, whose order differs between processes."""
    targets = ("sm_75", "sm_80", "sm_90")
    points = [Point(f"1.{number}", "12.9", target) for number in range(3) for target in targets[number:]]
    tried = {"12.9": {"1.0", "1.1", "1.2", "1.3"}}
    axes = _Axes(tried["12.9"], {"12.9"}, list(targets))
    texts = {_points(order, tried, axes) for order in permutations(points)}
    assert texts == {
        "sm_75 with 1.0 and CUDA 12.9; sm_80 with 1.0, 1.1 and CUDA 12.9; sm_90 with 1.0 to 1.2 and CUDA 12.9"
    }


def test_what_changed_together_is_told_together() -> None:
    """If library and toolkit both changed, the statement names both."""
    statement = headline({("9.0.0", "11.8", "sm_80"): "built", ("13.0.0", "12.4", "sm_80"): "rejected at compile"})
    assert "9.0.0 with CUDA 11.8: builds; from 13.0.0 with CUDA 12.4: rejected" in statement.headline
    assert statement.apart == {("9.0.0", "12.4"), ("13.0.0", "11.8")}


def test_headers_of_another_release_are_a_subject_of_their_own() -> None:
    records = [record(cell(toolkit="13.5", headers=headers)) for headers in ("", "13.0")]
    found = statements(make_frame(records))
    assert [item.subject.headers for item in found] == ["", "13.0"]
    assert found[1].headline == "cupy-nvrtc with the headers of CUDA 13.0: builds"


def test_a_host_compiler_is_named_in_the_statement() -> None:
    of = cell(backend="nvcc", library="")
    host = host_named("gcc-13", "gcc 13.3.0, glibc 2.39")
    found = statements(
        make_frame([record(each) for each in (of, replace(of, toolchain=replace(of.toolchain, host=host)))])
    )
    assert [item.headline for item in found] == ["nvcc: builds", "nvcc, gcc-13: builds"]


def test_a_release_that_a_library_brings_along_is_not_named() -> None:
    of = cell(backend="triton", library="3.5.0")
    bundled = replace(of.toolchain, toolkit=ToolkitRef(release="12.8", headers="12.8", bundled=True))
    (statement,) = statements(make_frame([record(replace(of, toolchain=bundled))]))
    assert statement.sentence == "triton: builds. Tested: triton 3.5.0, sm_80."
    assert statement.outcome_of("3.5.0", AS_BUNDLED, "sm_80") == "built"


def test_cells_that_never_arrived_are_not_covered() -> None:
    cells = [cell(target=target) for target in ("sm_80", "sm_90")]
    (statement,) = statements(cells_frame(merge([record(cells[0])], [plan(*cells)])))
    assert statement.cells == (cells[0].id,)
    assert statement.unknown == (cells[1].id,)
    assert "No result for 1 cell that should have been tried." in statement.notes


def test_nothing_but_unsupported() -> None:
    statement = headline({("1.0", "13.0", "sm_75"): "unsupported"})
    assert statement.headline == "cupy-nvrtc: not applicable wherever it was tried"
    assert not statement.clauses
    assert not statement.works_everywhere


def test_other_names_are_no_other_message() -> None:
    records = [
        record(
            cell(target=target),
            rejected(f"Entry function '{'x' * 80}{target}' uses too much shared data", diagnostics=()),
        )
        for target in ("sm_80", "sm_90")
    ]
    for item, name in zip(records, "ab", strict=True):
        item["diagnostics"] = [
            {"severity": "error", "code": "", "message": f"Entry function '{name * 80}' is too large", "file": "",
             "line": None, "fingerprint": "same"}
        ]  # fmt: skip
    (statement,) = statements(make_frame(records))
    assert statement.clauses[0].parts[0].messages == 1
    assert "(\"Entry function '…' is too large\")" in statement.headline
