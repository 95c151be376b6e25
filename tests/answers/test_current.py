"""Current breakage, and the latest changes."""

from __future__ import annotations

from harness.answers.cells import Feature, Known, Row
from harness.answers.feature import current_breakage, latest_changes


def known_of(*cells: tuple[str, str, str, str]) -> Known:
    """Return cells of a case with CuPy and CUDA 12.9: variant, version, target, letter."""
    rows = [
        Row(f"{rest}@{version}-{target}", "topic/case", rest, "cupy-nvrtc", "", version, "12.9", target, letter, "said")
        for rest, version, target, letter in cells
    ]
    feature = Feature(case="topic/case", title="A case", topic="topic")
    return Known(rows=rows, features={"topic/case": feature}, runs={}, hosts=())


def test_what_a_newer_version_has_mended_is_not_broken_now() -> None:
    """On sm_75 the newer release was not tried: the failure of the older release is no news."""
    known = known_of(("", "13.4", "sm_75", "k"), ("", "13.4", "sm_80", "k"), ("", "14.2", "sm_80", "w"))
    assert current_breakage(known, {}) == []


def test_what_the_newest_version_has_is_broken_where_it_was_tried() -> None:
    known = known_of(("", "13.4", "sm_75", "k"), ("", "14.2", "sm_80", "k"), ("", "14.2", "sm_90", "k"))
    (item,) = current_breakage(known, {f"@14.2-{target}": ("no overload", "") for target in ("sm_80", "sm_90")})
    assert (item.tools, item.targets, item.reason) == ("CuPy", "sm_80, sm_90", "no overload")


def test_changes_name_variants_and_architectures() -> None:
    known = known_of(
        *(("form=a", "13.6", "sm_80", "w"), ("form=a", "14.2", "sm_80", "x")),
        *(("form=b", "13.6", "sm_80", "x"), ("form=b", "14.2", "sm_80", "w")),
        *(("form=b", "13.6", "sm_90", "x"), ("form=b", "14.2", "sm_90", "w")),
    )
    told = [(item.release, item.works, item.label, item.tools) for item in latest_changes(known)]
    assert told == [
        ("CuPy 14.2", False, "form=a", "CuPy on sm_80, after 13.6"),
        ("CuPy 14.2", True, "form=b", "CuPy on sm_80, sm_90, after 13.6"),
    ]


def test_what_all_variants_did_names_none() -> None:
    known = known_of(("", "13.6", "sm_80", "x"), ("", "14.2", "sm_80", "w"))
    (item,) = latest_changes(known)
    assert (item.label, item.works) == ("", True)
