"""Keys of a record: each once, with type and meaning.

Checks, JSON Schema (`harness.records.schema`), columns of ``results.parquet`` (`harness.records.parquet`), the tables of
docs/records.md (`harness.records.make`) and what mypy knows of records follow from these classes. Texts in ``Annotated`` are descriptions, in
Markdown; everything else in it restricts the values (`harness.records.record`). `NotRequired` keys are not in all records: they came with a later
version of cumatrix, or say something of few cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NotRequired, TypedDict, final

from harness.model import Stage, Status, Target, TargetError, Verdict
from harness.model.target import TARGET_PATTERN

LONGEST = 10**12
"""In seconds: sums and roundings of what is less are numbers of JSON."""


class InvalidValue(Exception):
    """A value that cannot stand where it stands.

    Parameters
    ----------
    problem : str
        What is wrong, without the key: ``must be text, not null``.
    path : list of str and int
        Keys and places that lead to the value, the innermost first.
    """

    def __init__(self, problem: str, path: list[str | int] | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str | int] = path or []

    def __str__(self) -> str:
        """``artifact.kernels[0].num_regs: must be a whole number, not text``."""
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
        The same as JSON Schema, as far as that can say it.
    kind : str
        The same in words: ``a whole number``.
    """

    run: Callable[[Any], None]
    schema: Mapping[str, Any]
    kind: str


def word_of(value: Any) -> str:
    """Describe a JSON value for people: ``text``, ``a number``, ``a table``."""
    words = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return words.get(type(value), "null")


def _of(kind: type, word: str, schema_type: str) -> Check:
    def run(value: Any) -> None:
        # bool is an int to isinstance, and `true` is no number of registers.
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
    """One of the words of an enumeration."""
    known = frozenset(map(str, words))

    def run(value: Any) -> None:
        TEXT.run(value)
        if value not in known:
            raise InvalidValue(f"{value!r} is not one of {', '.join(words)}")

    return Check(run, {"enum": [str(word) for word in words]}, f"a {words.__name__.lower()}")


def constant(value: int) -> Check:
    """A number that is always the same."""
    return Check(WHOLE.run, {"const": value}, f"{value}")


SCHEMA = 1
"""Version of the format that this version writes."""


class Toolchain(TypedDict):
    """The toolchain."""

    requested: Annotated[
        dict[str, Any],
        "what was asked for: `packages`, the versions that the environment declares; `library`, `toolkit`, `headers`; `libraries`, the header libraries of the variant; `cuda_home` of a toolkit of the machine's own; `host_compiler` of nvcc, with its version (`gcc 12.2.0`)",
    ]
    observed: Annotated[
        dict[str, Any],
        "versions asked of what was really loaded. Which keys there are depends on the backend: `nvrtc`, `nvvm`, `ptx`, `ptxas`, `nvjitlink`, `headers`, `cupy`, `numba`, `numba_cuda`, `numpy`, `python`, `wheels`… `headers_from` says where CuPy found CUDA's headers, `borrowed` which folders of the toolkit are another release's, `builds` what is known of libraries that are no release of an index, by distribution (`version`, `commit`, `path`, `url`, `digest`, `editable`), `libraries` the same of header libraries",
    ]


class Expected(TypedDict):
    """The expectation that applied."""

    status: Annotated[str, one_of(Status), "what should happen"]
    stage: Annotated[str | None, one_of(Stage), "where; null: at any stage"]
    diagnostic: Annotated[str | None, "a regular expression that a message has to match; null: any"]
    xfail: Annotated[bool, "whether it is a known fault"]
    reason: Annotated[str, "why this is expected"]
    link: Annotated[str, "address of where more is said, or empty"]


class Diagnostic(TypedDict):
    """One message of a compiler."""

    severity: Annotated[str, "`fatal`, `error`, `warning`, `remark` or `note`"]
    message: Annotated[str, "its text on one line"]
    code: NotRequired[Annotated[str, "the compiler's number or name of it, or empty"]]
    file: NotRequired[Annotated[str, "the file it names, without the folders above the case, or empty"]]
    line: NotRequired[Annotated[int | None, "line in that file, from 1"]]
    fingerprint: NotRequired[Annotated[str, "hash of severity and message without paths, quoted names and numbers"]]


class Kernel(TypedDict):
    """Resources of one kernel."""

    name: Annotated[str, "as in the cubin"]
    num_regs: NotRequired[Annotated[int | None, COUNT, "registers of a thread"]]
    shared_bytes: NotRequired[Annotated[int | None, COUNT, "static shared memory of a block, in bytes"]]
    local_bytes: NotRequired[Annotated[int | None, COUNT, "local memory of a thread, in bytes"]]
    const_bytes: NotRequired[Annotated[int | None, COUNT, "constant memory, in bytes"]]
    spill_bytes: NotRequired[
        Annotated[
            int | None,
            COUNT,
            "what was spilled, in bytes, as only ptxas's own output tells; null where no ptxas ran by itself",
        ]
    ]
    stack_bytes: NotRequired[Annotated[int | None, COUNT, "stack of a thread, in bytes"]]
    instructions: NotRequired[Annotated[int | None, COUNT, "how many there are; not in records of early versions"]]
    opcodes: NotRequired[Annotated[int | None, COUNT, "how many kinds of them; not in records of early versions"]]


class Artifact(TypedDict):
    """The artifact."""

    format: Annotated[str, "`ptx`, `cubin`, `object` for a relocatable cubin, `ltoir`"]
    target: Annotated[str, "as read back"]
    bytes: Annotated[int, COUNT, "its size in bytes"]
    sha256: Annotated[str, "of its content, in hexadecimal digits"]
    kernels: Annotated[
        list[Kernel],
        "what each kernel needs, read back from the cubin; of PTX nothing but the name is known, and the rest is null",
    ]


@final
class Other(TypedDict):
    """Another run's result for the same cell."""

    run: Annotated[str, "its name"]
    status: Annotated[str, one_of(Status), "what happened there"]
    stage: Annotated[str | None, one_of(Stage), "and at which stage"]
    reason: Annotated[str, "as in its record"]
    diagnostic: Annotated[str, "the first message, or empty"]
    device: NotRequired[
        Annotated[
            str,
            "in a report: the name of the device that it was told of, or `virtual`, where this record is of another",
        ]
    ]


@final
class Record(TypedDict):
    """One record: what is known of one cell."""

    schema: Annotated[int, constant(SCHEMA), "version of this format"]
    cell: Annotated[
        str,
        FILLED,
        "unique and readable: case, variant in brackets, backend with `@` and the library's version, CUDA release, target",
    ]
    case: Annotated[str, FILLED, "name of the case"]
    program: NotRequired[Annotated[str, "only of a program without a case (`cumatrix try`): digest of where it lies"]]
    project: NotRequired[
        Annotated[
            str,
            "name of the project whose case it is; not there for cumatrix's own cases, where nothing names the project, and for a program without a case",
        ]
    ]
    title: Annotated[str, "title of the case"]
    topic: Annotated[str, "folder of the case"]
    features: Annotated[list[str], "what of CUDA the case is about"]
    links: Annotated[list[str], "addresses that the case names"]
    variant: Annotated[
        str,
        "`arch=given,fragment=tf32`; empty for a case without parameters. Of a program without a case its options: `-std=c++17 -lineinfo -DN=4 -Iinclude`",
    ]
    backend: Annotated[str, FILLED, "name of the backend"]
    library: Annotated[str, "version of the library behind the backend; empty for `nvrtc` and `nvcc`"]
    target: Annotated[str, TARGET, "`sm_80` or `compute_80`, with suffix"]
    toolkit: Annotated[str, FILLED, "`12.4`, or `13.5+headers13.0` where the headers are another release's"]
    host_compiler: NotRequired[
        Annotated[
            str,
            "host compiler that was asked for, such as `gcc-13`; empty where the machine's own is taken; not in records of early versions",
        ]
    ]
    environment: Annotated[
        str, "what the environment under test is called: tox's name for it, `local`, or as `--environment` says"
    ]
    toolchain: Annotated[Toolchain, "what compiled, as asked for and as found"]
    status: Annotated[str, one_of(Status), "what happened"]
    stage: Annotated[
        str | None,
        one_of(Stage),
        "the stage that failed, or the last one that was exercised; null where nothing was compiled",
    ]
    stages: Annotated[
        list[Annotated[str, one_of(Stage)]],
        "every stage that was exercised. One that is not listed was not run, and nothing is known of it",
    ]
    verdict: Annotated[
        str,
        one_of(Verdict),
        "what that means against the expectation. Derived from the facts; `cumatrix report` derives it again from the cases as they are then",
    ]
    expected: Annotated[Expected, "the expectation that applied"]
    reason: Annotated[
        str, "why the cell is `unsupported`, `unavailable`, `crashed` or a `harness_error`; empty otherwise"
    ]
    diagnostics: Annotated[list[Diagnostic], "messages of the compilers, most telling first"]
    artifact: Annotated[
        Artifact | None,
        "what came out; null where nothing did. Numba links each kernel by itself: then it is all of them, one after another",
    ]
    device: Annotated[
        dict[str, Any],
        "`virtual`: true, and `compute_capability`; empty for backends that ask no device. On a real one `virtual` is false, with `name`, `compute_capability`, `driver`, `cuda`, `memory` and more, and `sanitizer` with `--sanitize`",
    ]
    signal: Annotated[
        int | None, COUNT, "number of the signal when `crashed` by one, of the compiler's child as well; otherwise null"
    ]
    seconds: Annotated[
        float, SECONDS, "compile time in seconds, from the record's own compilation even where it comes from the cache"
    ]
    peak_bytes: NotRequired[
        Annotated[
            int | None,
            "the most resident memory that the cell's processes had together, in bytes, looked at ten times a second, and never less than that of the largest; null where nothing ran; not in records of early versions",
        ]
    ]
    cached: Annotated[bool, "true when it was not compiled again"]
    shared_steps: NotRequired[
        Annotated[
            list[str],
            "tools of nvcc that had the same input for another cell of the run, and whose work was taken from there: it depends on the order of cells, and nothing else in the record does; not in records of early versions",
        ]
    ]
    command: Annotated[
        list[str],
        "what was run, in order: library calls with their options, NVRTC's options as they arrived there, argv of tools. Folders have the names that they have on every machine: `$CUDA_HOME`, `$CUMATRIX_HOME` (what cumatrix keeps), `…/site-packages`",
    ]
    log: Annotated[str, "the tools' own output, at most 65,536 characters: the first and the last half of a longer one"]
    notes: Annotated[
        list[str],
        "sentences on what else happened: a warning of the library, a stage left out and why, processes that were left behind, and remarks, which begin with `remark: `",
    ]
    fingerprint: Annotated[str, "content key of the cell; empty where nothing was compiled"]
    run: Annotated[str, "name of the run, as in its plan"]
    cumatrix: Annotated[str, "version of cumatrix"]
    taken_from: NotRequired[
        Annotated[
            str,
            "only where another's results answered (`--from`): the file or address, and the run that compiled it there",
        ]
    ]
    others: NotRequired[
        Annotated[
            list[Other],
            "only where runs were merged and told different things of the cell: what the others told",
        ]
    ]
