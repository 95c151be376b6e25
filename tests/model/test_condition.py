"""Conditions: valid and invalid syntax, and meaning."""

from __future__ import annotations

import ast
import pickle
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Target
from harness.model.cell import cell_facts
from harness.model.condition import NAMES, Condition, ConditionError, Spelled, Version

FACTS: dict[str, Any] = {
    "backend": "cupy-jitify", "target": "sm_90a", "suffix": "a", "virtual": False, "cc": Version("9.0"),
    "toolkit": Version("12.4"), "headers": Version("12.4"), "library": Version("13.0.0"), "cupy": Version("13.0.0"),
    "fragment": "tf32", "size": 49156, "cached": True,
}  # fmt: skip
PARAMETERS: dict[str, list[Any]] = {"fragment": ["half", "tf32"], "size": [49152, 49156], "cached": [True, False]}


def holds(text: str, **changes: Any) -> bool:
    return Condition.parse(text, PARAMETERS)({**FACTS, **changes})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ('backend == "cupy-jitify"', True),
        ('backend != "cupy-jitify"', False),
        ('"cupy-jitify" == backend', True),
        ('backend in ("numba", "cupy-jitify")', True),
        ('backend not in ("numba", "cupy-jitify")', False),
        ('backend in ["numba"]', False),
        ('backend == "numba" or suffix == "a" and not virtual', True),
        ('(backend == "numba" or suffix == "a") and virtual', False),
        ("virtual", False),
        ("not virtual", True),
        ("virtual == false", True),
        ("cached", True),
        ("cached == true", True),
        ("cached == True", True),
        ("true", True),
        ("False", False),
        ("size == 49156", True),
        ("size > 49152", True),
        ("49152 < size", True),
        ("49156 < size", False),
        ("49152 < size <= 49156", True),
        ("49152 < size < 49156", False),
        ("size > -1", True),
        ('fragment == "tf32"', True),
        ('fragment in ("half",)', False),
    ],
)
def test_what_a_condition_means(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("version", "text", "expected"),
    [
        ("9.0", 'cc >= "8.0"', True),
        ("10.0", 'cc >= "9.0"', True),  # not as texts, which sort "10.0" first
        ("10.0", 'cc < "9.0"', False),
        ("8.0", 'cc == "8"', True),
        ("8.6", 'cc == "8.*"', True),
        ("7.5", '"7.0" <= cc', True),
        ("7.5", '"7.0" > cc', False),
        ("7.5", '"7.0" <= cc < "8.0"', True),
        ("8.0", '"7.0" <= cc < "8.0"', False),
        ("12.1", '"12.0" < cc < "12.1"', False),
        ("9.0", 'cc in ("9.0", "10.0")', True),
        ("8.9", 'cc not in ("9.0", "10.0")', True),
    ],
)
def test_capabilities_are_numbers(version: str, text: str, expected: bool) -> None:
    assert holds(text, cc=Version(version)) is expected


@pytest.mark.parametrize(
    ("version", "text", "expected"),
    [
        ("13.0.0", 'cupy == "13.0"', True),
        ("13.0.0", 'cupy == "13.*"', True),
        ("13.10.0", 'cupy < "13.9"', False),
        ("13.1.0rc1", 'cupy < "13.1"', False),  # PEP 440: an exclusive bound excludes its own pre-releases
        ("13.1.0rc1", 'cupy <= "13.1"', True),
        ("13.1.0rc1", 'cupy >= "13.0"', True),
        ("13.0.0.post1", 'cupy > "13.0.0"', False),  # the same applies to post-releases
        ("13.0.0+local", 'cupy == "13.0.0"', True),
        ("1!1.0", 'cupy > "13"', True),
    ],
)
def test_versions_compare_as_pep_440_says(version: str, text: str, expected: bool) -> None:
    assert holds(text, cupy=Version(version)) is expected


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
def test_a_version_that_a_cell_does_not_have_makes_its_comparison_false(operator: str) -> None:
    assert holds(f'numba {operator} "0.59"') is False
    assert holds(f'library {operator} "0.59"', library=None) is False
    assert holds(f'not numba {operator} "0.59"') is True


def test_a_target_of_amd_has_no_compute_capability() -> None:
    assert cell_facts({}, Target.parse("gfx1100"), {})["cc"] is None
    assert cell_facts({}, Target.parse("sm_110"), {})["cc"] == Version("11.0")


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("version", ["12.3", "12.4", "12.10"])
def test_a_flipped_comparison_means_the_same(operator: str, version: str) -> None:
    flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
    facts = {"toolkit": Version(version)}
    assert holds(f'toolkit {operator} "12.4"', **facts) is holds(f'"12.4" {flipped} toolkit', **facts)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('bakend == "nvrtc"', 'did you mean "backend"'),
        ('fragment == "tf23"', 'did you mean "tf32"'),
        ("fragment", "'fragment' is not true or false by itself"),
        ("toolkit >= 12.4", 'toolkit is a version: compare it with a text such as toolkit >= "12.4"'),
        ('toolkit >= "new"', "not a comparison of versions"),
        ('toolkit >= "12.*"', "not a comparison of versions"),
        ('backend < "numba"', "compare it with == or !="),
        ("backend == 3", 'backend is a text: compare it with "3"'),
        ('size < "big"', "compares a text with a number"),
        ('"a" == "b"', "a name on one side"),
        ('true == "a"', "'true': a comparison needs a name on one side"),
        ("backend", "not true or false by itself"),
        ("len(backend) > 3", "a comparison needs a name"),
        ('__import__("os").system("id")', "not allowed here"),
        ('backend.upper() == "NUMBA"', "a comparison needs a name"),
        ("backend == toolkit", "is not a value"),
        ("backend is None", "compare with"),
        ("lambda: 0", "not allowed here"),
        ("[x for x in (1,)]", "not allowed here"),
        ("(backend := 'x') == 'x'", "a comparison needs a name"),
        ("f'{backend}' == 'x'", "a comparison needs a name"),
        ("backend ==", "cannot read the condition"),
        ("backend = 'numba'", "cannot read the condition"),
        ("(" * 500 + "true" + ")" * 500, "cannot read the condition"),
        ("virtual and " * 400 + "virtual", "may have 2000 characters"),
        ("backend == 'a\0b'", "cannot read the condition"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ConditionError, match=r"^[^\n]+$") as caught:
        Condition.parse(text, PARAMETERS)
    assert words.replace("'", '"') in str(caught.value).replace("'", '"')


@pytest.mark.parametrize("text", ["not " * 490 + "virtual", "(virtual or " * 150 + "virtual" + ")" * 150])
def test_deep_ones_are_refused(text: str) -> None:
    with pytest.raises(ConditionError, match=r"levels deep|cannot read"):
        Condition.parse(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('bakend == "nvrtc"', 1),
        ('  virtual and bakend == "nvrtc"', 15),
        ('fragment == "tf23"', 13),
        ('fragment == "ä" or virtual', 13),
        ('fragment != "half" and size == "ö" or bakend == 1', 32),
        ("virtual and (true or\n  bakend)", 24),
        ('virtual and (suffix == "a" or\n"ä" in backend and bakend)', 50),
        ("virtual and", 12),
        ("(virtual", 1),
        ("true)", 5),
        ('fragment == "tf32" and fragment', 24),
    ],
)
def test_an_error_says_where_it_is(text: str, position: int) -> None:
    with pytest.raises(ConditionError) as caught:
        Condition.parse(text, PARAMETERS)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"jitify" in backend', True),
        ('"JITIFY" in backend', True),
        ('"numba" in backend', False),
        ('"numba" not in backend', True),
        ('"32" in fragment and not "12" in target', True),
    ],
)
def test_parts_of_texts(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"1" in size', "size is not a text"),
        ('"12" in toolkit', "toolkit is not a text"),
        ('"x" in virtual', "virtual is not a text"),
        ('"x" in frag', 'did you mean "fragment"'),
        ("1 in fragment", 'write "in" as'),
        ('"tf23" in fragment', "'tf23' is in no fragment"),
        ('"sm80" in target', "'sm80' is in no target (did you mean \"sm_80\"?)"),
    ],
)
def test_parts_of_what_is_no_text_are_refused(text: str, words: str) -> None:
    with pytest.raises(ConditionError) as caught:
        Condition.parse(text, PARAMETERS)
    assert words in str(caught.value)


SPELLED = {
    name: [Spelled(value) for value in values]
    for name, values in {"fragment": ("half", "tf32"), "size": ("8", "16"), "cached": ("true", "false"), "cutlass": ("3.4.1", "3.10.0")}.items()
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('fragment == "tf32"', True),
        ('fragment == "bf16"', False),  # results can have any value
        ("size == 16", True),
        ('size == "16"', True),
        ("size > 8", True),
        ("size < 16", False),
        ("cached", True),
        ("cached == false", False),
        ('cutlass > "3.9"', True),
        ('cutlass == "3.*"', True),
        ("fragment > 3", False),
        ("fragment == 3", False),
    ],
)
def test_what_names_of_variants_spell_is_compared_as_what_it_is_compared_with(text: str, expected: bool) -> None:
    facts = {name: Spelled(value) for name, value in (("fragment", "tf32"), ("size", "16"), ("cached", "true"), ("cutlass", "3.10.0"))}  # fmt: skip
    assert Condition.parse(text, SPELLED)(facts) is expected


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize(
    ("text", "when"), [("cached", "true"), ("cached == true", "true"), ("cached == false", "false")]
)
def test_truths_that_names_of_variants_spell(text: str, when: str, value: str) -> None:
    assert Condition.parse(text, SPELLED)({"cached": Spelled(value)}) is (value == when)


def test_a_condition_has_limits() -> None:
    assert Condition.parse(f"backend == '{'x' * 1987}'").text
    with pytest.raises(ConditionError, match="a condition may have 2000 characters, this one has 2001"):
        Condition.parse(f"backend == '{'x' * 1988}'")
    assert Condition.parse("not " * 118 + "virtual")({"virtual": True})
    with pytest.raises(ConditionError, match="a condition may be nested 120 levels deep"):
        Condition.parse("not " * 119 + "virtual")


def test_one_name_may_have_other_kinds_of_values_in_other_cases() -> None:
    condition = Condition.parse("size > 8", {"size": [4, 16, "large"]})
    assert [condition({"size": size}) for size in (4, 16, "large")] == [False, True, False]
    assert condition({}) is False


@pytest.mark.parametrize(
    "text",
    ["", "true", 'backend == "nvrtc"', '(virtual or cc >= "8.0") and not "a" in target', "size in (1, 2) or 3 < size <= -4", "not " * 100 + "virtual",
     "(virtual or " * 50 + "virtual" + ")" * 50],
)  # fmt: skip
def test_a_condition_can_be_pickled(text: str) -> None:
    condition = Condition.parse(text, {"size": [1, 2, 3]})
    again = pickle.loads(pickle.dumps(condition))
    assert (again, hash(again), again.tree) == (condition, hash(condition), condition.tree)
    for facts in ({}, FACTS, {"virtual": True, "size": 2, "backend": "nvrtc"}):
        assert again(facts) is condition(facts)


@given(st.text(max_size=200))
def test_random_text_is_read_or_refused(text: str) -> None:
    try:
        condition = Condition.parse(text, PARAMETERS)
    except ConditionError:
        return
    assert condition(FACTS) in (True, False)


WORDS = st.sampled_from(
    [
        *NAMES,
        *PARAMETERS,
        "and",
        "or",
        "not",
        "in",
        "==",
        "<",
        ">=",
        "!=",
        "(",
        ")",
        '"12.4"',
        '"tf32"',
        "1",
        ",",
        "true",
        "-",
        "[",
        "]",
    ]
)


@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_random_words_are_read_or_refused(text: str) -> None:
    try:
        condition = Condition.parse(text, PARAMETERS)
    except ConditionError:
        return
    assert condition(FACTS) in (True, False)
    assert condition({}) in (True, False)  # a missing fact does not affect the validity of a condition


TRUTHS = st.recursive(
    st.sampled_from(["true", "false"]),
    lambda inner: st.one_of(
        inner.map("not ({})".format),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda three: "({}) {} ({})".format(*three)),
    ),
    max_leaves=20,
)


@given(TRUTHS)
def test_connectives_mean_what_they_mean_in_python(text: str) -> None:
    tree = ast.parse(text.replace("true", "True").replace("false", "False"), mode="eval")
    assert Condition.parse(text)({}) is eval(compile(tree, "", "eval"), {"__builtins__": {}})


def test_python_does_not_warn_of_a_literal() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        condition = Condition.parse(r'backend == "gcc\d"')
    assert condition.text == r'backend == "gcc\d"'
