"""Plain names of variants (``labels.toml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod

from harness.tables import read_table


@cache
def parameter_labels() -> Mapping[tuple[str, str, str], str]:
    """Plain names by case, parameter and value."""
    return {
        (case, table["name"], value): label
        for table in read_table("answers/labels.toml")["parameter"]
        for case in table["cases"]
        for value, label in table["labels"].items()
    }


def variant_label(case: str, variant: str) -> str:
    """The name of a variant, with a plain name for each value that has one: ``architecture named, fragment=tf32``."""
    parts = (part.partition("=") for part in variant.split(",") if part)
    return ", ".join(parameter_labels().get((case, key, value), f"{key}={value}") for key, _, value in parts)


def group_label(case: str, variants: Sequence[str], every: Sequence[str]) -> str:
    """The name of some variants: values without those that all variants of the case share, and without a parameter's name where the values say enough."""
    split = {item: dict(part.partition("=")[::2] for part in item.split(",") if part) for item in every}
    names = dict.fromkeys(key for item in split.values() for key in item)
    keys = [key for key in names if len({item.get(key, "") for item in split.values()}) > 1]
    plain = len(keys) == 1 and all(re.match(r"(?!true|false)[a-z]", item.get(keys[0], "")) for item in split.values())
    values = {key: list(dict.fromkeys(split[item].get(key, "") for item in variants)) for key in keys}
    if prod(map(len, values.values())) == len(variants):
        return ", ".join(_values(case, key, each, plain=plain) for key, each in values.items()) or "(none)"
    return "; ".join(
        ", ".join(_values(case, key, [split[item].get(key, "")], plain=False) for key in keys) for item in variants
    )


def _values(case: str, key: str, values: Sequence[str], *, plain: bool) -> str:
    known = parameter_labels()
    labels = [known.get((case, key, value), "") for value in values]
    prefix = "" if plain or any(labels) else f"{key}="
    return prefix + " or ".join(label or value for label, value in zip(labels, values, strict=True))
