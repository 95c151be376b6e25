"""Targets, and how users write axes of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import KNOWN_TARGETS, Target, TargetError
from harness.model.target import DEFAULT_TARGETS, check_known, parse_targets
from harness.toolkits import Installed


def names(text: str) -> list[str]:
    return [str(target) for target in parse_targets(text)]


@pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)
def test_every_known_target_is_read_as_it_is_written(target: Target) -> None:
    assert Target.parse(str(target)) == target
    assert target.real.as_virtual.real == target.real


@pytest.mark.parametrize(
    ("text", "capability"), [("sm_50", "5.0"), ("sm_90a", "9.0"), ("sm_121f", "12.1"), ("compute_103", "10.3")]
)
def test_capabilities(text: str, capability: str) -> None:
    assert Target.parse(text).capability == capability


@pytest.mark.parametrize(
    "text",
    ["", "80", "sm80", "sm_8", "sm_1000", "sm_80b", "SM_80", "sm_80 sm_90", "sm_80\n1", "compute_90aa", "lto_80"],
)
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(TargetError, match="is not a target: write sm_80"):
        Target.parse(text)


@given(st.text(max_size=30))
def test_random_text_is_a_target_or_refused(text: str) -> None:
    try:
        assert str(Target.parse(text)) == text.strip()
    except TargetError:
        pass


@given(st.text(alphabet="smcompute_0123456789af.,al ", max_size=40))
def test_random_axes_are_read_or_refused(text: str) -> None:
    try:
        assert parse_targets(text)
    except TargetError:
        pass


def test_a_range_takes_the_plain_ones_of_its_kind() -> None:
    assert names("sm_75..sm_90") == ["sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90"]
    assert names("compute_89..compute_100") == ["compute_89", "compute_90", "compute_100"]
    assert names("sm_80..sm_80") == ["sm_80"]


def test_a_list_is_sorted_and_without_repetition() -> None:
    assert names("sm_100, sm_90a,sm_90,compute_75,sm_100 ,") == ["sm_90", "sm_90a", "sm_100", "compute_75"]


def test_all_of_them() -> None:
    assert parse_targets("all") == sorted(KNOWN_TARGETS, key=lambda target: target.sort_key)
    assert len(set(names("all"))) == len(KNOWN_TARGETS)


def test_the_default_is_known() -> None:
    assert set(parse_targets(DEFAULT_TARGETS)) <= set(KNOWN_TARGETS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no target"),
        (" , ", "names no target"),
        ("sm_75..compute_80", "mixes real and virtual"),
        ("sm_90..sm_80", "no known target lies in"),
        ("sm_91..sm_99", "no known target lies in"),
        ("sm_75..", "'' is not a target"),
        ("sm_75..sm_80..sm_90", "'sm_80..sm_90' is not a target"),
        ("sm_75...sm_80", "'.sm_80' is not a target"),
        ("everything", "is not a target"),
    ],
)
def test_axes_that_make_no_sense(text: str, words: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_targets(text)
    assert words in str(caught.value)


def test_a_number_alone_is_a_real_architecture() -> None:
    assert names("80,8.6,90a,10.0,12.1f") == ["sm_80", "sm_86", "sm_90a", "sm_100", "sm_121f"]
    assert names("8.0..90") == names("sm_80..sm_90")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sm_76", "no CUDA release knows sm_76; the nearest are sm_75 and sm_80"),
        ("compute_76", "the nearest are compute_75 and compute_80"),
        ("sm_35a", "the nearest is sm_50"),
        ("sm_200", "the nearest is sm_121"),
        ("sm_10", "the nearest is sm_50"),
        ("sm_90f", "the nearest are sm_90 and sm_90a"),
        ("sm_86a", "the nearest is sm_86"),
    ],
)
def test_what_no_release_knows_is_told_with_the_nearest(text: str, words: str) -> None:
    (target,) = parse_targets(text)
    with pytest.raises(TargetError) as caught:
        check_known(target)
    assert words in str(caught.value)


@pytest.mark.compilers
@pytest.mark.parametrize("release", ["11.8", "12.4", "12.9", "13.0", "13.5"])
def test_nothing_that_a_release_knows_is_refused(release: str, toolkit: Callable[[str], Installed]) -> None:
    tool = toolkit(release).home / "bin" / "ptxas"
    said = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"'((?:sm|compute)_\d+[af]?)'", said))
    assert len(known) > 20
    for name in known:
        check_known(Target.parse(name))
