"""The record: its keys with types and meanings, and its line of JSON.

Checks, JSON Schema (`harness.records.schema`), columns of ``results.parquet`` (`harness.records.parquet`), the tables
of docs/records.md (`harness.records.make`) and mypy's types of records follow from these classes. Texts in
``Annotated`` are descriptions, in Markdown. All other items in it restrict the values (`harness.records.record`).
`NotRequired` keys are not in all records: a later version of cumatrix added them, or they apply to few cells.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NotRequired, TypedDict, final

import orjson

from harness.errors import UsageError
from harness.model import Stage, Status, Target, TargetError, Verdict
from harness.model.target import TARGET_PATTERN

_DEEPEST = 100
"""The maximum nesting of lists and tables: code that walks through a value is recursive."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def line_of(record: Mapping[str, Any]) -> bytes:
    """Return one line of JSON in UTF-8 with its newline. Numbers must be finite (`harness.records.make`)."""
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # orjson cannot encode a lone surrogate (a byte of a log that was not UTF-8), but JSON can escape it. orjson
        # also rejects integers of more than 64 bits.
        return _LINE.encode(record).encode("utf-8", "backslashreplace") + b"\n"


def text_of(value: Any) -> str:
    """Return compact JSON on one line. Numbers that are not finite become null."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return _LINE.encode(value)  # as above


def read_json(data: bytes) -> Any:
    """Parse a text of JSON. Lone surrogates are replaced, because no file can contain them.

    Raises
    ------
    ValueError
        If the text is not JSON, not UTF-8 (then it is a `UnicodeDecodeError`), or nested too deeply.
    """
    try:
        value = _decode(data.decode())
    except RecursionError:
        raise _too_deep() from None
    if data.count(b"[") + data.count(b"{") > _DEEPEST:
        _check_depth(value)
    return _encodable(value) if _SURROGATE.search(data) else value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


# `json.loads` makes a decoder for each call with options.
_decode = json.JSONDecoder(parse_constant=_no_constant).decode


def _too_deep() -> ValueError:
    return ValueError(f"lists and tables within each other more than {_DEEPEST} times")


def _check_depth(value: Any) -> None:
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(_DEEPEST):
        tables = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for items in tables for item in items if isinstance(item, list | dict)]
        if not level:
            return
    raise _too_deep()


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_encodable(item) for item in value]
        case dict():
            return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


class RecordError(UsageError):
    """A file of records or a plan that is unusable. The message is one plain sentence."""


LONGEST = 10**12
"""The maximum in seconds: sums and roundings of smaller values are numbers of JSON."""


class InvalidValue(Exception):
    """A value that is invalid at its key.

    Parameters
    ----------
    problem : str
        The error, without the key: ``must be text, not null``.
    path : list of str and int
        Keys and indices that lead to the value, the innermost first.
    """

    def __init__(self, problem: str, path: list[str | int] | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str | int] = path or []

    def __str__(self) -> str:
        """Return the error with its key: ``artifact.kernels[0].num_regs: must be a whole number, not text``."""
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in reversed(self.path))
        return f"{key.removeprefix('.')}: {self.problem}" if key else self.problem


@dataclass(frozen=True)
class Check:
    """The type of a value.

    Parameters
    ----------
    run : callable
        Raises `InvalidValue` on any other value.
    schema : Mapping
        The check as JSON Schema, as strict as JSON Schema allows.
    kind : str
        The type in words: ``a whole number``.
    """

    run: Callable[[Any], None]
    schema: Mapping[str, Any]
    kind: str


def word_of(value: Any) -> str:
    """Return the type of a JSON value in words: ``text``, ``a number``, ``a table``."""
    words = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return words.get(type(value), "null")


def _of(kind: type, word: str, schema_type: str) -> Check:
    def run(value: Any) -> None:
        # isinstance takes a bool for an int, but `true` is not a number of registers.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InvalidValue(
                f"must be {word}, not {value if kind is int and type(value) is float else word_of(value)}"
            )

    return Check(run, {"type": schema_type}, word)


TEXT = _of(str, "text", "string")
FLAG = _of(bool, "true or false", "boolean")
WHOLE = _of(int, "a whole number", "integer")
TABLE = _of(dict, "a table", "object")


def _filled(value: Any) -> None:
    TEXT.run(value)
    if not value:
        raise InvalidValue("must not be empty")


def _count(value: Any) -> None:
    WHOLE.run(value)
    if not -(2**63) <= value < 2**63:
        raise InvalidValue("must be a whole number that fits into 64 bits")


def _seconds(value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidValue(f"must be a number, not {word_of(value)}")
    try:
        fits = math.isfinite(value) and 0 <= value <= LONGEST
    except OverflowError:
        raise InvalidValue("must be a number of seconds, not one that is greater than any float") from None
    if not fits:
        raise InvalidValue(f"must be a number of seconds, not {value}")


def _target(value: Any) -> None:
    TEXT.run(value)
    try:
        Target.parse(value)
    except TargetError as error:
        raise InvalidValue(str(error)) from None


FILLED = Check(_filled, {"type": "string", "minLength": 1}, "text")
COUNT = Check(_count, {"type": "integer"}, WHOLE.kind)
"""A whole number that a column of ``results.parquet`` can hold."""
SECONDS = Check(_seconds, {"type": "number", "minimum": 0, "maximum": LONGEST}, "a number")
TARGET = Check(_target, {"type": "string", "pattern": f"^{TARGET_PATTERN}$"}, "a target")


def one_of(words: type[StrEnum]) -> Check:
    """Return the check for a word of an enumeration."""
    known = frozenset(map(str, words))

    def run(value: Any) -> None:
        TEXT.run(value)
        if value not in known:
            raise InvalidValue(f"{value!r} is not one of {', '.join(words)}")

    return Check(run, {"enum": [str(word) for word in words]}, f"a {words.__name__.lower()}")


def constant(value: int) -> Check:
    """Return the check for a constant number."""
    return Check(WHOLE.run, {"const": value}, f"{value}")


SCHEMA = 1
"""Version of the format that this version writes."""


class Toolchain(TypedDict):
    """The toolchain."""

    requested: Annotated[
        dict[str, Any],
        "requested: `packages` (versions that the environment declares), `library`, `toolkit`, `headers`, `libraries` (header libraries of the variant), `cuda_home` of a local toolkit, `host_compiler` of nvcc with its version (`gcc 12.2.0`)",
    ]
    observed: Annotated[
        dict[str, Any],
        "versions of what was loaded, depending on the backend: `nvrtc`, `nvvm`, `ptx`, `ptxas`, `nvjitlink`, `headers`, `cupy`, `numba`, `numba_cuda`, `numpy`, `python`, `wheels`… `headers_from`: origin of CUDA's headers for CuPy; `borrowed`: folders of another release in the toolkit; `builds`: development builds by distribution (`version`, `commit`, `path`, `url`, `digest`, `editable`); `libraries`: the same for header libraries",
    ]


class Expected(TypedDict):
    """The expectation that applied."""

    status: Annotated[str, one_of(Status), "expected status"]
    stage: Annotated[str | None, one_of(Stage), "expected stage; null for any"]
    diagnostic: Annotated[str | None, "regular expression that a message must match; null for any"]
    xfail: Annotated[bool, "true for a known fault"]
    reason: Annotated[str, "explanation"]
    link: Annotated[str, "address of a page about it, or empty"]
    kernels: NotRequired[Annotated[list[str], "names of kernels that a build must have"]]
    kernel_count: NotRequired[Annotated[int, COUNT, "number of kernels that a build must have at least"]]
    tensor_cores: NotRequired[Annotated[bool, "whether a build must have instructions for tensor cores, or must not"]]


class Diagnostic(TypedDict):
    """One message of a compiler."""

    severity: Annotated[str, "`fatal`, `error`, `warning`, `remark` or `note`"]
    message: Annotated[str, "text on one line"]
    code: NotRequired[Annotated[str, "the compiler's number or name for it, or empty"]]
    file: NotRequired[Annotated[str, "file, without the folders above the case, or empty"]]
    line: NotRequired[Annotated[int | None, "line in that file, from 1"]]
    fingerprint: NotRequired[Annotated[str, "hash of severity and message without paths, quoted names and numbers"]]


class Kernel(TypedDict):
    """Resources of one kernel."""

    name: Annotated[str, "as in the cubin"]
    num_regs: NotRequired[Annotated[int | None, COUNT, "registers per thread"]]
    shared_bytes: NotRequired[Annotated[int | None, COUNT, "static shared memory per block, in bytes"]]
    local_bytes: NotRequired[Annotated[int | None, COUNT, "local memory per thread, in bytes"]]
    const_bytes: NotRequired[Annotated[int | None, COUNT, "constant memory, in bytes"]]
    spill_bytes: NotRequired[
        Annotated[
            int | None,
            COUNT,
            "spilled bytes, from ptxas's output; null if ptxas did not run as a process",
        ]
    ]
    stack_bytes: NotRequired[Annotated[int | None, COUNT, "stack per thread, in bytes"]]
    instructions: NotRequired[Annotated[int | None, COUNT, "number of instructions"]]
    opcodes: NotRequired[Annotated[int | None, COUNT, "number of different opcodes"]]
    tensor_cores: NotRequired[
        Annotated[
            str | None,
            "instructions for tensor cores, separated by blanks: of a cubin `HMMA`, `IMMA`, `BMMA`, `DMMA`, `QMMA`, `OMMA`, `HGMMA`, `IGMMA`, `BGMMA`, `QGMMA`, `UTCxMMA` (UTCHMMA and the like), of PTX `mma`, `wmma.mma`, `wgmma.mma_async`, `tcgen05.mma`; empty for none; null where a function that the kernel may call could have some",
        ]
    ]


class Artifact(TypedDict):
    """The artifact."""

    format: Annotated[str, "`ptx`, `cubin`, `object` for a relocatable cubin, `ltoir`, `hsaco` for an AMD code object"]
    target: Annotated[str, "architecture read back from it"]
    bytes: Annotated[int, COUNT, "size in bytes"]
    sha256: Annotated[str, "SHA-256 of its content, in hexadecimal digits"]
    kernels: Annotated[
        list[Kernel],
        "kernels with their resources, read back from the cubin; for PTX only names",
    ]


@final
class Other(TypedDict):
    """Another run's result for the same cell."""

    run: Annotated[str, "name of the run"]
    status: Annotated[str, one_of(Status), "status there"]
    stage: Annotated[str | None, one_of(Stage), "stage there"]
    reason: Annotated[str, "reason there"]
    diagnostic: Annotated[str, "first message, or empty"]
    device: NotRequired[
        Annotated[
            str,
            "in a report: name of the device, or `virtual`, if it differs from this record's",
        ]
    ]


@final
class Record(TypedDict):
    """One record: everything known about one cell."""

    schema: Annotated[int, constant(SCHEMA), "version of this format"]
    cell: Annotated[
        str,
        FILLED,
        "unique id: case, variant in brackets, backend with `@` and the library's version, CUDA release, target",
    ]
    case: Annotated[str, FILLED, "name of the case"]
    program: NotRequired[Annotated[str, "only for a program without a case (`cumatrix try`): digest of its path"]]
    project: NotRequired[
        Annotated[
            str,
            "name of the case's project; absent for cumatrix's own cases, unnamed projects, and programs without a case",
        ]
    ]
    title: Annotated[str, "title of the case"]
    topic: Annotated[str, "folder of the case"]
    features: Annotated[list[str], "CUDA features of the case"]
    links: Annotated[list[str], "upstream pages"]
    variant: Annotated[
        str,
        "`arch=given,fragment=tf32`; empty for a case without parameters; for a program without a case, its options: `-std=c++17 -lineinfo -DN=4 -Iinclude`",
    ]
    backend: Annotated[str, FILLED, "name of the backend"]
    library: Annotated[str, "version of the library behind the backend; empty for `nvrtc` and `nvcc`"]
    target: Annotated[str, TARGET, "`sm_80` or `compute_80`, with suffix"]
    toolkit: Annotated[str, FILLED, "`12.4`, or `13.5+headers13.0` with headers of another release"]
    host_compiler: NotRequired[
        Annotated[
            str,
            "requested host compiler, such as `gcc-13`; empty for the machine's own",
        ]
    ]
    environment: Annotated[str, "name of the environment under test: tox's, `local`, or from `--environment`"]
    toolchain: Annotated[Toolchain, "versions, as requested and as found"]
    status: Annotated[str, one_of(Status), "outcome"]
    stage: Annotated[
        str | None,
        one_of(Stage),
        "stage that failed, or the last one that ran; null if nothing was compiled",
    ]
    stages: Annotated[
        list[Annotated[str, one_of(Stage)]],
        "stages that ran; nothing is known about the others",
    ]
    verdict: Annotated[
        str,
        one_of(Verdict),
        "status compared with the expectation; `cumatrix report` derives it again from the current cases",
    ]
    expected: Annotated[Expected, "the expectation that applied"]
    reason: Annotated[
        str,
        "reason of `unsupported`, `unavailable`, `crashed` and `harness_error`; of `built`, the required kernels that are missing; else empty",
    ]
    diagnostics: Annotated[list[Diagnostic], "messages of the compilers, most informative first"]
    artifact: Annotated[
        Artifact | None,
        "the output; null without one. For Numba, which links each kernel alone, all of them one after another",
    ]
    device: Annotated[
        dict[str, Any],
        "`virtual` and `compute_capability`; empty for backends that ask no device. For a real device also `name`, `driver`, `cuda`, `memory` and more, and `sanitizer` with `--sanitize`",
    ]
    signal: Annotated[int | None, COUNT, "signal that ended a `crashed` compiler or its child; else null"]
    seconds: Annotated[float, SECONDS, "compile time in seconds, also for a cached cell"]
    peak_bytes: NotRequired[
        Annotated[
            int | None,
            "peak resident memory of the cell's processes together, in bytes, sampled ten times a second; null if nothing ran",
        ]
    ]
    cached: Annotated[bool, "true if an earlier run's outcome answered"]
    shared_steps: NotRequired[
        Annotated[
            list[str],
            "tools of nvcc whose output came from another cell with the same input; depends on the order of cells",
        ]
    ]
    command: Annotated[
        list[str],
        "commands in order: library calls with options, NVRTC's options as received, argv of tools. Folders have machine-independent names: `$CUDA_HOME`, `$CUMATRIX_HOME`, `…/site-packages`",
    ]
    log: Annotated[str, "output of the tools, at most 65,536 characters: the first and the last half of a longer one"]
    notes: Annotated[
        list[str],
        "sentences: warnings of the library, skipped stages, processes left behind, and remarks, which begin with `remark: `",
    ]
    fingerprint: Annotated[str, "content key; empty if nothing was compiled"]
    run: Annotated[str, "name of the run in its plan"]
    cumatrix: Annotated[str, "version of cumatrix"]
    taken_from: NotRequired[
        Annotated[
            str,
            "only with `--from`: file or address of the results that answered, and their run",
        ]
    ]
    others: NotRequired[
        Annotated[
            list[Other],
            "only after merging runs that disagree: the other results",
        ]
    ]
