"""Value types of keys in case files and configurations: their checks and their JSON Schema."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.cases.toml import Report, shown
from harness.errors import did_you_mean
from harness.model.case import FILLS
from harness.model.cell import HOST_COMPILER
from harness.model.target import VIRTUAL_PATTERN
from harness.regex import PatternError, pattern

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"
SIGNATURE = r"^[A-Za-z_][A-Za-z0-9_.]*\(.*\)$"


@dataclass(frozen=True)
class SignatureForm:
    """The syntax of kernel signatures in a language.

    Parameters
    ----------
    pattern : str
        Regular expression for a whole signature.
    example : str
        Example for messages.
    of : str
        Name of the compiler in messages.
    """

    pattern: str
    example: str
    of: str


SIGNATURES: Mapping[str, SignatureForm] = {
    "python": SignatureForm(SIGNATURE, "void(float32[:])", "Numba"),
    "triton": SignatureForm(r"^[^,\n]+(,[^,\n]+)*$", "*fp16, *fp32, 128", "Triton"),
}
"""Signature forms by language, for kernels in Python. Kernels of other languages have no signatures."""
NAME = r"^[a-z0-9][a-z0-9._-]*$"
LABEL = r"^[A-Za-z0-9_.:+-]+$"
_WHEEL = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
_LINK = r"^https?://[^\s/]+\S*$"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MAX_REGEX = 1000


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key: type of its value (a name in `KINDS`), meaning, and whether it is required."""

    kind: str
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ValueType:
    """A type of value: its JSON Schema, and a function that returns the problem of a value, or None."""

    schema: Mapping[str, Any]
    wrong: Callable[[Any], str | None]


def _text(pattern: str = "", *, wanted: str = "a text", lines: bool = False, empty: bool = False) -> ValueType:
    compiled = re.compile(pattern) if pattern else None

    def wrong(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"must be {wanted}, not {shown(value)}"
        if not empty and not value.strip():
            return f"must be {wanted}, not empty"
        if _CONTROL.search(value) or (not lines and "\n" in value):
            shape = "without control characters" if lines else "on one line"
            return f"must be {wanted} {shape}, not {shown(value)}"
        # `$` would accept a trailing line break, which the check above refuses.
        return f"must be {wanted}, not {shown(value)}" if compiled and not compiled.match(value) else None

    schema: dict[str, Any] = {"type": "string"}
    if pattern:
        schema["pattern"] = pattern
    elif not empty:
        schema["pattern"] = r"\S"
    return ValueType(schema=schema, wrong=wrong)


def _list_of(item: ValueType, wanted: str) -> ValueType:
    def wrong(value: Any) -> str | None:
        if not isinstance(value, list):
            return f"must be a list of {wanted}, not {shown(value)}"
        for index, one in enumerate(value):
            if message := item.wrong(one):
                return f"entry {index + 1} {message}"
        return None

    return ValueType(schema={"type": "array", "items": dict(item.schema)}, wrong=wrong)


def _one_or_more(wanted: str, example: str) -> ValueType:
    """Return the type of a text or a list of texts."""
    one = _text(wanted=f'a text such as "{example}"')
    several = _list_of(one, wanted)

    def wrong(value: Any) -> str | None:
        return several.wrong(value) if isinstance(value, list) else one.wrong(value)

    return ValueType(schema={"anyOf": [dict(one.schema), {**several.schema, "minItems": 1}]}, wrong=wrong)


def _regex_wrong(value: Any) -> str | None:
    if message := _text(wanted="a regular expression").wrong(value):
        return message
    if len(value) > _MAX_REGEX:
        return f"may have {_MAX_REGEX} characters, not {len(value)}"
    try:
        pattern(value)
    except PatternError as error:
        return str(error)
    return None


def _flag_wrong(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"must be true or false, not {shown(value)}"


def _number_wrong(value: Any) -> str | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max
    return None if good else f"must be a number from 0, not {shown(value)}"


def _seed_wrong(value: Any) -> str | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32
    return None if good else f"must be a whole number from 0 to 4294967295, not {shown(value)}"


def _count_wrong(value: Any) -> str | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 256
    return None if good else f"must be a whole number from 1 to 256, not {shown(value)}"


def _seconds_wrong(value: Any) -> str | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0.1 <= value <= 7 * 86400
    return None if good else f"must be a number of seconds from 0.1 to 604800, not {shown(value)}"


_DEFINITION = r"^[A-Za-z_][A-Za-z0-9_]*(=.*)?$"


def _definitions_wrong(value: Any) -> str | None:
    if isinstance(value, list):
        return _list_of(_text(_DEFINITION, wanted='a definition such as "N=4"'), "definitions").wrong(value)
    if not isinstance(value, dict):
        return f'must be a list such as ["N=4"], or a table, not {shown(value)}'
    for name, item in value.items():
        if not re.fullmatch(IDENTIFIER[1:-1], name):
            return f"{shown(name)} is not the name of a macro"
        if not isinstance(item, str | int | float) or (isinstance(item, str) and _CONTROL.search(item)):
            return f"{name} must be a text on one line, a number, true or false, not {shown(item)}"
    return None


def _signatures_wrong(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f'must be a table such as {{ axpy = "void(float32[:])" }}, not {shown(value)}'
    for name, item in value.items():
        if not re.fullmatch(IDENTIFIER[1:-1], name) or not isinstance(item, str) or not re.match(SIGNATURE, item):
            return f'{name} must be a signature such as "void(float32[:])", not {shown(item)}'
    return None


KERNEL = r"^[A-Za-z_$][A-Za-z0-9_$]*(::[A-Za-z_$][A-Za-z0-9_$]*)*$"
_MOST_KERNELS = 1_000_000
_KERNELS: list[Mapping[str, Any]] = [
    {"type": "integer", "minimum": 0, "maximum": _MOST_KERNELS},
    {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": KERNEL}},
]


def _kernels_wrong(value: Any) -> str | None:
    if isinstance(value, list) and value:
        return _list_of(_text(KERNEL, wanted='the name of a kernel such as "saxpy"'), "names").wrong(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_KERNELS:
        return None
    return f'must be names of kernels such as ["saxpy"], or how many there must be at least, not {shown(value)}'


def _kernels_of_wrong(value: Any) -> str | None:
    if not isinstance(value, dict):
        return _kernels_wrong(value)
    for name, item in value.items():
        if message := _kernels_wrong(item):
            return f"{shown(name)} {message}"
    return None


def _any(_value: Any) -> str | None:
    return None


_EXPRESSION: Mapping[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"\S"}]}


_LINK_TEXT = _text(_LINK, wanted="an address such as https://github.com/cupy/cupy/issues/8155")
_OPTION_TEXT = _text(wanted="an option")

KINDS: Mapping[str, ValueType] = {
    "line": _text(wanted="a text"),
    "wheel": _text(
        _WHEEL, wanted="the name of a wheel on PyPI such as mine-headers, without versions, addresses or options"
    ),
    "text": _text(wanted="a text", lines=True, empty=True),
    "flag": ValueType(schema={"type": "boolean"}, wrong=_flag_wrong),
    "condition": _text(wanted="a condition", lines=True, empty=True),
    "regex": ValueType(schema={"type": "string", "minLength": 1, "maxLength": _MAX_REGEX}, wrong=_regex_wrong),
    "link": _LINK_TEXT,
    "links": _list_of(_LINK_TEXT, "addresses"),
    "names": _list_of(_text(NAME, wanted='a lower-case name such as "grid-sync"'), "names"),
    "host_compilers": _list_of(
        _text(rf"^{HOST_COMPILER}$", wanted='a host compiler such as "gcc-13" or "clang-16"'), "host compilers"
    ),
    "options": _list_of(_OPTION_TEXT, "options"),
    "folders": _list_of(_text(wanted="a folder"), "folders"),
    "files": _one_or_more("files", "csrc/*.cu"),
    "words": _one_or_more("values", "12.4"),
    "program": _text(r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", wanted='a name such as "fast/softmax"'),
    "project": _text(r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", wanted='a name such as "flash-attn"'),
    "count": ValueType(schema={"type": "integer", "minimum": 1, "maximum": 256}, wrong=_count_wrong),
    "seconds": ValueType(schema={"type": "number", "minimum": 0.1, "maximum": 7 * 86400}, wrong=_seconds_wrong),
    "definitions": ValueType(
        schema={
            "anyOf": [
                {"type": "array", "items": {"type": "string", "pattern": _DEFINITION}},
                {
                    "type": "object",
                    "propertyNames": {"pattern": IDENTIFIER},
                    "additionalProperties": {"type": ["string", "number", "boolean"]},
                },
            ]
        },
        wrong=_definitions_wrong,
    ),
    "signatures": ValueType(
        schema={"type": "object", "additionalProperties": {"type": "string", "pattern": SIGNATURE}},
        wrong=_signatures_wrong,
    ),
    "size": _text(r"^[0-9]+[KMG]$", wanted='a size such as "3G"'),
    "architecture": _text(
        rf"^{VIRTUAL_PATTERN}$|{IDENTIFIER}",
        wanted='a virtual architecture such as "compute_80", or the name of a definition',
    ),
    "release": _text(
        rf"^\d+\.\d+$|{IDENTIFIER}",
        wanted='a CUDA release such as "12.4", or the name of a definition such as "ASSEMBLER"',
    ),
    "standard": _text(r"^(c|gnu)\+\+[0-9]{2}$", wanted='a C++ standard such as "c++17"'),
    "reference": _text(wanted="a Python file"),
    "python": _text(r"^.+\.py$", wanted='a Python file such as "program.py"'),
    "kernels": ValueType(schema={"anyOf": _KERNELS}, wrong=_kernels_wrong),
    "kernels_of": ValueType(
        schema={"anyOf": [*_KERNELS, {"type": "object", "additionalProperties": {"anyOf": _KERNELS}}]},
        wrong=_kernels_of_wrong,
    ),
    "kernel": _text(IDENTIFIER, wanted="the name of a kernel"),
    "number": ValueType(schema={"type": "number", "minimum": 0}, wrong=_number_wrong),
    "seed": ValueType(schema={"type": "integer", "minimum": 0, "maximum": 2**32 - 1}, wrong=_seed_wrong),
    "type": _text(r"^[A-Za-z_][A-Za-z0-9_ ]*(\[\])?$", wanted='a type such as "int32" or "float32[]"'),
    "expression": ValueType(schema=_EXPRESSION, wrong=_any),  # checked by harness.cases.launch, with the variants
    "expressions": ValueType(
        schema={"anyOf": [*_EXPRESSION["anyOf"], {"type": "array", "minItems": 1, "items": _EXPRESSION}]}, wrong=_any
    ),
    "fill": ValueType(schema={"anyOf": [{"type": "number"}, {"enum": list(FILLS)}]}, wrong=_any),
    "choice": ValueType(schema={"type": "string"}, wrong=_any),  # checked by `wrong_value`, with the key's choices
    # harness.cases.rules, .load, .launch and .sources check tables and lists of tables.
    "tables": ValueType(schema={}, wrong=_any),
}


def wrong_value(key: Key, value: Any) -> str | None:
    """Return the problem of `value` as the key's value; None if it is valid."""
    if key.choices and not isinstance(value, str):
        return f"must be one of {', '.join(key.choices)}, not {shown(value)}"
    if key.choices and value not in key.choices:
        return f"{shown(value)} is not one of {', '.join(key.choices)}{_suggestion(value, key.choices)}"
    return KINDS[key.kind].wrong(value)


def _suggestion(value: str, choices: tuple[str, ...]) -> str:
    hint = did_you_mean(value, choices)
    return hint if hint.startswith(" (did") else ""


def check_table(report: Report, key: tuple[str | int, ...], value: Any, keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return the valid entries of a table; report unknown and missing keys and invalid values."""
    if not isinstance(value, dict):
        report.add(key, f"must be a table, not {shown(value)}")
        return {}
    good = {}
    for name, item in value.items():
        if name not in keys:
            report.add((*key, name), f"unknown key{did_you_mean(name, keys)}")
        elif message := wrong_value(keys[name], item):
            report.add((*key, name), message)
        else:
            good[name] = item
    for name, entry in keys.items():
        if entry.required and name not in value:
            report.add((*key, name), "is missing")
    return good
