"""Targets, and users' syntax for target axes."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.matrix.axes import fold_targets, short_target, spell_targets, target_key
from harness.model import KNOWN_TARGETS, Target, TargetError
from harness.model import target as module
from harness.model.target import AMD, DEFAULT_TARGETS, NVIDIA, VENDORS, Vendor, check_known, parse_targets
from harness.toolkits import Installed


def names(text: str) -> list[str]:
    return [str(target) for target in parse_targets(text)]


@pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)
def test_every_known_target_is_read_as_it_is_written(target: Target) -> None:
    assert Target.parse(str(target)) == target
    assert target.real.as_virtual.real == target.real


def test_a_target_in_a_message_of_a_test_has_one_line() -> None:
    assert repr(Target.parse("sm_90a")) == "Target(virtual=False, cc=90, suffix='a')"


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
    assert parse_targets("all,amd") == sorted(KNOWN_TARGETS, key=lambda target: target.sort_key)
    assert len(set(names("all,amd"))) == len(KNOWN_TARGETS)
    assert parse_targets("all") == parse_targets("nvidia") == list(NVIDIA.targets)
    assert names("amd")[0] == "gfx900"


def test_the_default_is_known() -> None:
    assert set(parse_targets(DEFAULT_TARGETS)) <= set(KNOWN_TARGETS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no target"),
        (" , ", "names no target"),
        ("sm_75..compute_80", "mixes real and virtual"),
        ("sm_90..sm_80", "no known target is in"),
        ("sm_91..sm_99", "no known target is in"),
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


@pytest.fixture
def other() -> Iterator[Vendor]:
    """Register a vendor with hexadecimal numbers, features after them, and no virtual targets."""
    vendor = Vendor(
        name="other", label="Other", rank=2, real="qpu", number=r"\d{1,2}[0-9a-f]{2}", base=16, minors=2, suffix=r"(?::[a-z]+[+-])*",
        known=("908", "90a", "90a:xnack+", "942", "1030", "1100"), old=("803",), default="qpu90a", examples="qpu90a or qpu1100",
        toolkit="qpu release",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(VENDORS, vendor.name, vendor)
        for cached in (module._parsed, target_key):
            cached.cache_clear()
        yield vendor
    for cached in (module._parsed, target_key):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("text", "cc", "number", "suffix", "capability"),
    [
        ("qpu90a", 0x90A, "90a", "", "9.0.10"),
        ("qpu942", 0x942, "942", "", "9.4.2"),
        ("qpu1100", 0x1100, "1100", "", "11.0.0"),
        ("qpu90a:sramecc-:xnack+", 0x90A, "90a:sramecc-:xnack+", ":sramecc-:xnack+", "9.0.10"),
    ],
)
def test_a_target_of_another_vendor_is_read_as_it_is_written(
    other: Vendor, text: str, cc: int, number: str, suffix: str, capability: str
) -> None:
    target = Target.parse(text)
    assert (target.vendor, target.virtual, target.cc, target.number) == (other, False, cc, number)
    assert (target.kind, target.suffix, target.capability, str(target)) == ("qpu", suffix, capability, text)
    assert target.real == target.as_virtual == target
    assert target != Target(virtual=False, cc=cc, suffix=suffix)


def test_a_target_of_amd() -> None:
    target = Target.parse("gfx90a")
    assert (target.vendor, target.virtual, target.cc, target.number) == (AMD, False, 0x90A, "90a")
    assert names("gfx1100,sm_90,gfx90a..gfx950") == ["sm_90", "gfx90a", "gfx942", "gfx950", "gfx1100"]
    assert all(each.vendor is NVIDIA for each in parse_targets(DEFAULT_TARGETS))


def test_vendors_follow_each_other_and_numbers_count_in_their_base(other: Vendor) -> None:
    mixed = "qpu1100,compute_80,qpu942,sm_120,qpu90a,sm_90,qpu908,qpu90a:xnack+"
    ordered = ["sm_90", "sm_120", "compute_80", "qpu908", "qpu90a", "qpu90a:xnack+", "qpu942", "qpu1100"]
    assert names(mixed) == sorted(mixed.split(","), key=target_key) == ordered


def test_a_range_and_all_take_the_targets_of_another_vendor(other: Vendor) -> None:
    assert names("qpu90a..qpu1030") == ["qpu90a", "qpu942", "qpu1030"]
    assert names(f"all,amd,{other.name}") == [*map(str, KNOWN_TARGETS), *map(str, other.targets)]
    with pytest.raises(TargetError, match=re.escape("'sm_80..qpu942' mixes architectures of several vendors")):
        parse_targets("sm_80..qpu942")


def test_a_number_alone_belongs_to_the_vendor_that_has_a_short_form(other: Vendor) -> None:
    assert names("90a,8.0") == ["sm_80", "sm_90a"]
    with pytest.raises(
        TargetError,
        match="'942b' is not a target: write sm_80, sm_90a or compute_80, gfx942 or gfx1100, qpu90a or qpu1100",
    ):
        parse_targets("942b")


def test_what_no_release_of_another_vendor_knows_is_told_with_its_nearest(other: Vendor) -> None:
    check_known(Target.parse("qpu942"))
    check_known(Target.parse("qpu803"))
    with pytest.raises(TargetError, match="no qpu release knows qpu940; the nearest are qpu90a and qpu942"):
        check_known(Target.parse("qpu940"))


def test_messages_and_headings_have_targets_of_another_vendor(other: Vendor) -> None:
    target = Target.parse("qpu90a")
    assert target.masked("qpu90a: no qpu90a in qpu90a0, sm_90a") == "qpuXX: no qpuXX in qpu90a0, sm_90a"
    assert target.unmasked("no qpuXX, but sm_XX") == "no qpu90a, but sm_XX"
    assert short_target("qpu90a") == "qpu90a"
    axis = ["sm_80", "sm_90", "compute_80", "qpu908", "qpu90a", "qpu942"]
    assert fold_targets(["sm_90", "compute_80", "qpu90a", "qpu942"], axis) == "sm_90, compute_80, qpu90a, qpu942"
    assert fold_targets(axis, axis) == "sm_80, sm_90, compute_80, qpu908–qpu942"
    assert spell_targets(["sm_80", "qpu90a", "qpu942", "qpu908", "qpu1100"]) == "sm_80, qpu908–qpu942, qpu1100"


def test_messages_hide_the_number_of_both_kinds() -> None:
    target = Target.parse("compute_90a")
    assert target.masked("sm_90a, compute_90a, sm_90, sm_90ab") == "sm_XX, compute_XX, sm_90, sm_90ab"
    assert target.unmasked("sm_XX, compute_XX, sm_XXL") == "sm_90a, compute_90a, sm_XXL"


def test_a_copied_target_has_the_same_vendor() -> None:
    target = Target.parse("sm_90a")
    for same in (pickle.loads(pickle.dumps(target)), copy.deepcopy(target)):
        assert same == target
        assert hash(same) == hash(target)
        assert same.vendor is NVIDIA


@pytest.mark.compilers
@pytest.mark.parametrize("release", ["11.8", "12.4", "12.9", "13.0", "13.5"])
def test_nothing_that_a_release_knows_is_refused(release: str, toolkit: Callable[[str], Installed]) -> None:
    tool = toolkit(release).home / "bin" / "ptxas"
    said = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"'((?:sm|compute)_\d+[af]?)'", said))
    assert len(known) > 20
    for name in known:
        check_known(Target.parse(name))
