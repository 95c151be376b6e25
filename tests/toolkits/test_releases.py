"""Users' names of CUDA releases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.toolkits import RELEASES, parse_toolkits


def names(text: str) -> list[str]:
    return [str(ref) for ref in parse_toolkits(text)]


def test_lists_and_ranges() -> None:
    assert names("12.4") == ["12.4"]
    assert names("13.0, 11.8 ,13.0,") == ["13.0", "11.8"]
    assert names("12.5..13.0") == ["12.5", "12.6", "12.8", "12.9", "13.0"]
    assert names("12.7..12.8") == ["12.8"]
    assert names("12.9..12.9") == ["12.9"]
    assert names("all") == list(RELEASES)


def test_a_major_version_alone() -> None:
    newest = [name for name in RELEASES if name.startswith("13.")]
    assert names("13") == newest[-1:]
    assert names("12,11") == ["12.9", "11.8"]
    assert names("12.9..13") == ["12.9", *newest]
    assert names("12.9..13.0") == ["12.9", "13.0"]
    assert names("13+headers12") == [f"{newest[-1]}+headers12.9"]


def test_headers_of_another_release() -> None:
    (ref,) = parse_toolkits("13.5+headers13.0")
    assert (ref.release, ref.headers, str(ref)) == ("13.5", "13.0", "13.5+headers13.0")
    assert names("13.0+headers13.0") == ["13.0"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("12.44", "did you mean 12.4"), ("14", "unknown CUDA release '14'"), ("12.7", "unknown CUDA release '12.7'"), ("", "names no CUDA release"), ("13.0..12.0", "no CUDA release is in"),
     ("twelve..13.0", "'twelve' is not a CUDA release"), ("..", "is not a CUDA release"), ("13.5+headers9.9", "unknown CUDA release '9.9'")],
)  # fmt: skip
def test_what_is_no_release(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_toolkits(text)
    assert words in str(caught.value).replace('"', "")


@given(st.text(alphabet="0123456789.,+headers al", max_size=30))
def test_random_text_is_read_or_refused(text: str) -> None:
    try:
        assert parse_toolkits(text)
    except UsageError:
        pass


def test_every_release_names_exact_wheels_of_its_own_major_version() -> None:
    assert list(RELEASES) == [
        "11.7",
        "11.8",
        "12.0",
        "12.1",
        "12.2",
        "12.3",
        "12.4",
        "12.5",
        "12.6",
        "12.8",
        "12.9",
        "13.0",
        "13.1",
        "13.2",
        "13.3",
        "13.4",
        "13.5",
    ]
    for name, release in RELEASES.items():
        major = name.split(".")[0]
        for package, version in release.packages.items():
            assert package.endswith(f"-cu{major}") is (int(major) < 13)
            assert version.startswith(f"{major}." if "cccl" in package else f"{name}.")
