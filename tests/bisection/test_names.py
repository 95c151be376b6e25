"""Names of groups of cells."""

from __future__ import annotations

from harness.bisection.search import Lane
from harness.bisection.sentences import name_of


def lane(variant: str = "", backend: str = "nvrtc", target: str = "sm_80") -> Lane:
    return Lane(variant=variant, backend=backend, library="", toolkit="12.4", target=target)


def test_names_say_what_differs_and_nothing_else() -> None:
    every = [
        lane(variant, backend, target)
        for variant in ("a=1", "a=2")
        for backend in ("nvrtc", "nvcc")
        for target in ("sm_80", "sm_90")
    ]
    assert name_of(every, every) == ""
    assert name_of([each for each in every if each.variant == "a=1"], every) == "[a=1] nvrtc, [a=1] nvcc"
    assert name_of([each for each in every if each.target == "sm_90"], every).endswith("sm_90")
    assert name_of(every[:1], every) == "[a=1] nvrtc sm_80"
    assert name_of([lane("a=1")], [lane("a=1"), lane("a=2")]) == "[a=1]"


def test_what_some_variants_have_in_common_names_them() -> None:
    every = [
        lane(f"arch={arch},kind={kind}", target=target)
        for arch in "xy"
        for kind in "abc"
        for target in ("sm_80", "sm_90")
    ]
    assert name_of([each for each in every if "arch=x" in each.variant], every) == "[arch=x]"
    assert (
        name_of([each for each in every if "arch=x" in each.variant and each.target == "sm_90"], every)
        == "[arch=x] sm_90"
    )
    assert name_of([each for each in every if "kind=b" in each.variant], every) == "[kind=b]"
