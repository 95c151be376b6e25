"""Every key of ``case.toml``, once: the loader, the JSON Schema and the documentation read this table."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.cases.errors import shown
from harness.errors import did_you_mean
from harness.model.enums import Stage, Status
from harness.model.launch import FILLS
from harness.patterns import PatternError, pattern

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"
NAME = r"^[a-z0-9][a-z0-9._-]*$"
LABEL = r"^[A-Za-z0-9_.:+-]+$"
_WHEEL = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
_LINK = r"^https?://[^\s/]+\S*$"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MAX_REGEX = 1000

EXPECTED = tuple(str(s) for s in (Status.BUILT, Status.REJECTED, Status.CRASHED, Status.TIMED_OUT))


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key: what kind of value it has (a name in `KINDS`), whether it must be there, and what it means."""

    kind: str
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of value: its JSON Schema, and a function that says what is wrong with a value, or nothing."""

    schema: Mapping[str, Any]
    wrong: Callable[[Any], str | None]


def _text(pattern: str = "", *, wanted: str = "a text", lines: bool = False, empty: bool = False) -> Kind:
    compiled = re.compile(pattern) if pattern else None

    def wrong(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"must be {wanted}, not {shown(value)}"
        if not empty and not value.strip():
            return f"must be {wanted}, not empty"
        if _CONTROL.search(value) or (not lines and "\n" in value):
            shape = "without control characters" if lines else "on one line"
            return f"must be {wanted} {shape}, not {shown(value)}"
        # `$` would let a line break through, which was refused above.
        return f"must be {wanted}, not {shown(value)}" if compiled and not compiled.match(value) else None

    schema: dict[str, Any] = {"type": "string"}
    if pattern:
        schema["pattern"] = pattern
    elif not empty:
        schema["pattern"] = r"\S"
    return Kind(schema=schema, wrong=wrong)


def _list_of(item: Kind, wanted: str) -> Kind:
    def wrong(value: Any) -> str | None:
        if not isinstance(value, list):
            return f"must be a list of {wanted}, not {shown(value)}"
        for index, one in enumerate(value):
            if message := item.wrong(one):
                return f"entry {index + 1} {message}"
        return None

    return Kind(schema={"type": "array", "items": dict(item.schema)}, wrong=wrong)


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


def _any(_value: Any) -> str | None:
    return None


_EXPRESSION: Mapping[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"\S"}]}


_LINK_TEXT = _text(_LINK, wanted="an address such as https://github.com/cupy/cupy/issues/8155")
_OPTION_TEXT = _text(wanted="an option")

KINDS: Mapping[str, Kind] = {
    "line": _text(wanted="a text"),
    "wheel": _text(
        _WHEEL, wanted="the name of a wheel on PyPI such as mine-headers, without versions, addresses or options"
    ),
    "text": _text(wanted="a text", lines=True, empty=True),
    "flag": Kind(schema={"type": "boolean"}, wrong=_flag_wrong),
    "condition": _text(wanted="a condition", lines=True, empty=True),
    "regex": Kind(schema={"type": "string", "minLength": 1, "maxLength": _MAX_REGEX}, wrong=_regex_wrong),
    "link": _LINK_TEXT,
    "links": _list_of(_LINK_TEXT, "addresses"),
    "names": _list_of(_text(NAME, wanted='a lower-case name such as "grid-sync"'), "names"),
    "options": _list_of(_OPTION_TEXT, "options"),
    "folders": _list_of(_text(wanted="a folder"), "folders"),
    "size": _text(r"^[0-9]+[KMG]$", wanted='a size such as "3G"'),
    "standard": _text(r"^(c|gnu)\+\+[0-9]{2}$", wanted='a C++ standard such as "c++17"'),
    "reference": _text(wanted="a Python file"),
    "program": _text(r"^.+\.py$", wanted='a Python file such as "program.py"'),
    "kernel": _text(IDENTIFIER, wanted="the name of a kernel"),
    "number": Kind(schema={"type": "number", "minimum": 0}, wrong=_number_wrong),
    "seed": Kind(schema={"type": "integer", "minimum": 0, "maximum": 2**32 - 1}, wrong=_seed_wrong),
    "type": _text(r"^[A-Za-z_][A-Za-z0-9_ ]*(\[\])?$", wanted='a type such as "int32" or "float32[]"'),
    "expression": Kind(schema=_EXPRESSION, wrong=_any),  # checked by harness.cases.launch, with the variants
    "expressions": Kind(
        schema={"anyOf": [*_EXPRESSION["anyOf"], {"type": "array", "minItems": 1, "items": _EXPRESSION}]}, wrong=_any
    ),
    "fill": Kind(schema={"anyOf": [{"type": "number"}, {"enum": list(FILLS)}]}, wrong=_any),
    "choice": Kind(schema={"type": "string"}, wrong=_any),  # checked by `wrong_value`, with the key's choices
    # Tables and lists of tables have code of their own: harness.cases.rules, .parameters, .schema.
    "tables": Kind(schema={}, wrong=_any),
}

_WHEN = Key(kind="condition", help="where it applies; everywhere when left out")
_REASON = Key(kind="text", help="why, for whoever reads the matrix")
_LINK_KEY = Key(kind="link", help="a public page about it")

CASE: Mapping[str, Key] = {
    "title": Key(kind="line", required=True, help="one line that says what the program shows"),
    "description": Key(kind="text", help="a paragraph: what to learn from it"),
    "features": Key(kind="names", help="features of CUDA that it exercises, for grouping and selection"),
    "links": Key(kind="links", help="pages of upstream that tell of it"),
    "backends": Key(
        kind="names", help="the only backends it is for; every one that speaks its languages when left out"
    ),
    "heavy": Key(kind="flag", help="true for a case that takes long: `run` leaves it out unless it is named"),
    "source": Key(kind="tables", required=True, help="the program, by language"),
    "entry": Key(kind="tables", help="kernels that must come out, by language"),
    "libraries": Key(kind="tables", help="header libraries it needs, each with its versions: an axis of the case"),
    "parameters": Key(kind="tables", help="the case's own axes; each combination of values is a variant"),
    "options": Key(kind="tables", help="compiler and library options; later tables win"),
    "launch": Key(kind="tables", help="how kernels are launched on a device; for each kernel the first that applies"),
    "verify": Key(kind="tables", help="how results are checked on a device; the first that applies counts"),
    "unsupported": Key(kind="tables", help="cells that are not applicable; the first rule that applies counts"),
    "expect": Key(kind="tables", help="what will happen; the first that applies counts, and built where none does"),
}

SOURCE: Mapping[str, Key] = {
    "cuda": Key(kind="line", help="CUDA C++, a file in the case's folder"),
    "torch": Key(kind="line", help="CUDA C++ with PyTorch's headers, a file in the case's folder"),
    "python": Key(kind="line", help="Python for Numba, a file in the case's folder"),
    "cupy": Key(kind="program", help="Python that has CuPy compile something, a file in the case's folder (.py)"),
}

OPTIONS: Mapping[str, Key] = {
    "when": _WHEN,
    "arch": Key(
        kind="choice",
        choices=("given", "implicit"),
        help="whether the user names the architecture or leaves it to the library",
    ),
    "std": Key(kind="standard", help="C++ standard"),
    "rdc": Key(kind="flag", help="relocatable device code, linked with libcudadevrt"),
    "debug": Key(kind="flag", help="debug code (-G; debug=True in Numba)"),
    "lineinfo": Key(kind="flag", help="line numbers in the code"),
    "fastmath": Key(kind="flag", help="fast, less exact arithmetic"),
    "cache": Key(kind="flag", help="Numba's cache=True"),
    "depth": Key(
        kind="choice",
        choices=("device", "unit", "extension"),
        help="nvcc: the device pass alone, the whole translation unit (nvcc's default), or all of torch's load_inline",
    ),
    "declarations": Key(kind="text", help="C++ declarations for load_inline, of the functions that it exports"),
    "functions": Key(kind="options", help="functions that load_inline exports"),
    "memory": Key(kind="size", help="memory that the compiler is known to need, such as 3G, for the scheduler"),
    "enable_cooperative_groups": Key(kind="flag", help="CuPy's argument of that name"),
    "include": Key(
        kind="folders", help="include directories: folders in the case's, or . for itself; tables add to each other"
    ),
    "flags": Key(kind="options", help="further options for the compiler; tables add to each other"),
    "ptxas": Key(kind="options", help="further options for ptxas; tables add to each other"),
}

LAUNCH: Mapping[str, Key] = {
    "when": _WHEN,
    "kernel": Key(kind="kernel", help="which kernel; may be left out where the case has one"),
    "grid": Key(kind="expressions", help="blocks, as a number or up to three; 1 when left out"),
    "block": Key(kind="expressions", help="threads of a block, as a number or up to three; 1 when left out"),
    "shared": Key(kind="expression", help="dynamic shared memory in bytes; none when left out"),
    "opt_in": Key(kind="flag", help="the host first allows the kernel that much dynamic shared memory"),
    "cooperative": Key(kind="flag", help="a cooperative launch, so that the grid can wait for itself"),
    "arguments": Key(kind="tables", help="the kernel's arguments, in order"),
}

ARGUMENT: Mapping[str, Key] = {
    "name": Key(kind="line", help="what messages call it"),
    "type": Key(kind="type", required=True, help='"float32[]" for an array, "int32" for a number, or a definition'),
    "size": Key(kind="expressions", help="length of an array, or those of its dimensions"),
    "fill": Key(kind="fill", help="what an array starts with: zeros, ones, sequence, random or a number"),
    "seed": Key(kind="seed", help="for random; 0 when left out"),
    "value": Key(kind="expression", help="the number"),
}

VERIFY: Mapping[str, Key] = {
    "when": _WHEN,
    "reference": Key(
        kind="reference", required=True, help="Python file with a function of the kernel's name, for NumPy arrays"
    ),
    "rtol": Key(kind="number", help="relative tolerance, 0 when left out"),
    "atol": Key(kind="number", help="absolute tolerance, 0 when left out"),
}

LIBRARY: Mapping[str, Key] = {
    "versions": Key(
        kind="options",
        required=True,
        help="versions as PyPI numbers them, such as 3.5.1; folders; revisions of repositories",
    ),
    "package": Key(kind="wheel", help="the wheel on PyPI, for versions"),
    "include": Key(
        kind="line", required=True, help="the folder of the wheel or checkout that is the include directory"
    ),
    "header": Key(kind="line", help="a header in it that defines the version"),
    "macros": Key(kind="options", help="macros in that header, one for each part of the version"),
}

UNSUPPORTED: Mapping[str, Key] = {
    "when": _WHEN,
    "reason": Key(kind="text", required=True, help="why the combination is not applicable"),
    "link": _LINK_KEY,
}

EXPECT: Mapping[str, Key] = {
    "when": _WHEN,
    "status": Key(kind="choice", required=True, choices=EXPECTED, help="the expected status"),
    "stage": Key(kind="choice", choices=tuple(map(str, Stage)), help="where it happens; any stage when left out"),
    "diagnostic": Key(kind="regex", help="found in the message of a diagnostic (a regular expression of RE2)"),
    "xfail": Key(kind="flag", help="true for what somebody should mend: a build is then reported as xpass"),
    "reason": _REASON,
    "link": _LINK_KEY,
}


def wrong_value(key: Key, value: Any) -> str | None:
    """What is wrong with `value` as that key's value, or None."""
    if key.choices and not isinstance(value, str):
        return f"must be one of {', '.join(key.choices)}, not {shown(value)}"
    if key.choices and value not in key.choices:
        return f"{shown(value)} is not one of {', '.join(key.choices)}{_meant(value, key.choices)}"
    return KINDS[key.kind].wrong(value)


def _meant(value: str, choices: tuple[str, ...]) -> str:
    hint = did_you_mean(value, choices)
    return hint if hint.startswith(" (did") else ""
