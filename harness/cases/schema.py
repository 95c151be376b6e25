"""The keys of ``case.toml``, each defined once, and the JSON Schema for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.cases.values import IDENTIFIER, KINDS, LABEL, SIGNATURES, Key
from harness.model.outcome import Stage, Status

EXPECTED = tuple(str(s) for s in (Status.BUILT, Status.REJECTED, Status.CRASHED, Status.TIMED_OUT))

_WHEN = Key(kind="condition", help="condition on the cells; every cell by default")
_REASON = Key(kind="text", help="reason, for readers of the matrix")
_LINK_KEY = Key(kind="link", help="a public page on the subject")

CASE: Mapping[str, Key] = {
    "title": Key(kind="line", required=True, help="one line on the purpose of the program"),
    "description": Key(kind="text", help="a paragraph: what the program demonstrates"),
    "features": Key(kind="names", help="features of CUDA that the program exercises, for grouping and selection"),
    "links": Key(kind="links", help="pages of upstream on the subject"),
    "backends": Key(kind="names", help="the only backends for the program; by default every backend for its languages"),
    "host_compilers": Key(
        kind="host_compilers",
        help="host compilers for nvcc, each an axis value of the case: gcc-13, clang-16; the machine's own by default",
    ),
    "heavy": Key(kind="flag", help="true for a case that takes long: `run` skips it unless it is named"),
    "source": Key(kind="tables", required=True, help="the program, by language"),
    "entry": Key(kind="tables", help="required kernels, by language"),
    "kernels": Key(
        kind="kernels",
        help='required kernels of a build: names, as in ["saxpy"], or their minimum number',
    ),
    "libraries": Key(kind="tables", help="required header libraries, each with its versions: an axis of the case"),
    "parameters": Key(kind="tables", help="the case's own axes; each combination of values is a variant"),
    "options": Key(kind="tables", help="compiler and library options; later tables win"),
    "launch": Key(kind="tables", help="launches of kernels on a device; for each kernel the first that applies counts"),
    "verify": Key(kind="tables", help="checks of results on a device; the first that applies counts"),
    "unsupported": Key(kind="tables", help="cells that are not applicable; the first rule that applies counts"),
    "expect": Key(
        kind="tables", help="expected outcomes; the first that applies counts; without one, a build is expected"
    ),
}

SOURCE: Mapping[str, Key] = {
    "cuda": Key(
        kind="files",
        help="CUDA C++: a file in the case's folder or elsewhere in the project, or several of one program",
    ),
    "torch": Key(kind="files", help="CUDA C++ with PyTorch's headers: as cuda"),
    "python": Key(kind="line", help="Python for Numba, a file in the case's folder"),
    "ptx": Key(kind="files", help="PTX for ptxas: as cuda"),
    "hip": Key(kind="files", help="HIP C++ for AMD GPUs: as cuda"),
    "triton": Key(kind="line", help="Python for Triton, a file in the case's folder"),
    "cute": Key(kind="python", help="Python with CuTe DSL, a file in the case's folder (.py)"),
    "warp": Key(kind="python", help="Python with kernels of Warp, a file in the case's folder (.py)"),
    "cutile": Key(kind="python", help="Python that exports kernels of cuTile, a file in the case's folder (.py)"),
    "cupy": Key(kind="python", help="Python that compiles with CuPy, a file in the case's folder (.py)"),
}

OPTIONS: Mapping[str, Key] = {
    "when": _WHEN,
    "arch": Key(
        kind="choice",
        choices=("given", "implicit"),
        help="given: the user names the architecture; implicit: the library selects it",
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
    "memory": Key(kind="size", help="memory that the compiler needs, such as 3G, for the scheduler"),
    "enable_cooperative_groups": Key(kind="flag", help="CuPy's argument of that name"),
    "include": Key(
        kind="folders",
        help="include directories: folders of the case or elsewhere in the project, relative to the case's folder; tables accumulate",
    ),
    "toolkit_headers": Key(
        kind="flag",
        help="false: omit the toolkit's include directories, as in a direct call of NVRTC, or with CuPy but no toolkit",
    ),
    "toolkit_first": Key(
        kind="flag",
        help="true: the toolkit's include directories precede the case's own and those of header libraries",
    ),
    "compile_for": Key(
        kind="architecture",
        help="virtual architecture of the PTX or LTO IR, which is then compiled for the target; may be the name of a definition",
    ),
    "assembler": Key(
        kind="release", help="CUDA release whose ptxas assembles the PTX; may be the name of a definition"
    ),
    "linker": Key(
        kind="release",
        help="CUDA release whose nvJitLink links PTX, LTO IR or relocatable code; may be the name of a definition",
    ),
    "every_target": Key(
        kind="flag",
        help="true: also run the compiler for targets that it does not list; its refusal is the outcome",
    ),
    "num_warps": Key(kind="seed", help="Triton's option of that name: warps of a block"),
    "num_stages": Key(kind="seed", help="Triton's option of that name: stages of a pipelined loop"),
    "flags": Key(kind="options", help="further options for the compiler; tables accumulate"),
    "ptxas": Key(kind="options", help="further options for ptxas; tables accumulate"),
}

LAUNCH: Mapping[str, Key] = {
    "when": _WHEN,
    "kernel": Key(kind="kernel", help="name of the kernel; optional if the case has one"),
    "grid": Key(kind="expressions", help="blocks, as a number or up to three; 1 by default"),
    "block": Key(kind="expressions", help="threads of a block, as a number or up to three; 1 by default"),
    "shared": Key(kind="expression", help="dynamic shared memory in bytes; none by default"),
    "opt_in": Key(kind="flag", help="true: the host first raises the kernel's limit of dynamic shared memory"),
    "cooperative": Key(kind="flag", help="true: a cooperative launch, whose blocks can synchronize"),
    "arguments": Key(kind="tables", help="the kernel's arguments, in order"),
}

ARGUMENT: Mapping[str, Key] = {
    "name": Key(kind="line", help="name in messages"),
    "type": Key(kind="type", required=True, help='"float32[]" for an array, "int32" for a number, or a definition'),
    "size": Key(kind="expressions", help="length of an array, or those of its dimensions"),
    "fill": Key(kind="fill", help="initial value of an array: zeros, ones, sequence, random or a number"),
    "seed": Key(kind="seed", help="seed of random; 0 by default"),
    "value": Key(kind="expression", help="value of a number"),
}

VERIFY: Mapping[str, Key] = {
    "when": _WHEN,
    "reference": Key(
        kind="reference", required=True, help="Python file with a function of the kernel's name, for NumPy arrays"
    ),
    "rtol": Key(kind="number", help="relative tolerance; 0 by default"),
    "atol": Key(kind="number", help="absolute tolerance; 0 by default"),
}

LIBRARY: Mapping[str, Key] = {
    "versions": Key(
        kind="options",
        required=True,
        help="versions on PyPI, such as 3.5.1; folders; revisions of repositories",
    ),
    "package": Key(kind="wheel", help="wheel on PyPI, for versions"),
    "include": Key(kind="line", required=True, help="include directory in the wheel or checkout"),
    "header": Key(kind="line", help="header in that folder that defines the version"),
    "macros": Key(kind="options", help="macros in that header, one per part of the version"),
}

UNSUPPORTED: Mapping[str, Key] = {
    "when": _WHEN,
    "reason": Key(kind="text", required=True, help="why the combination is not applicable"),
    "link": _LINK_KEY,
}

EXPECT: Mapping[str, Key] = {
    "when": _WHEN,
    "status": Key(kind="choice", required=True, choices=EXPECTED, help="the expected status"),
    "stage": Key(kind="choice", choices=tuple(map(str, Stage)), help="expected stage; any stage by default"),
    "diagnostic": Key(kind="regex", help="regular expression (RE2) for the message of a diagnostic"),
    "kernels": Key(kind="kernels", help="required kernels of a build, instead of the case's; 0 for none"),
    "tensor_cores": Key(
        kind="flag",
        help="true: a build must use tensor cores; false: it must not; both are accepted by default",
    ),
    "xfail": Key(kind="flag", help="true for a fault that should be fixed: a build is then xpass"),
    "reason": _REASON,
    "link": _LINK_KEY,
}

FAULTS: Mapping[str, Key] = {"expect": CASE["expect"]}
"""Keys of ``faults.toml``."""


FILE_NAME = "case.schema.json"

# TOML language servers of editors read draft 7.
DRAFT = "http://json-schema.org/draft-07/schema#"
_SCALAR = {"type": ["string", "number", "boolean"]}


def case_schema() -> dict[str, Any]:
    """Return the schema as a JSON value. It omits what only the loader checks: files, conditions, variants."""
    properties = properties_of(CASE)
    properties["source"] |= {**table_of(SOURCE), "minProperties": 1}
    properties["entry"] |= _ENTRY
    add_tables(properties)
    properties["launch"]["items"]["properties"]["arguments"] |= {"type": "array", "items": table_of(ARGUMENT)}
    return {
        "$schema": DRAFT,
        "title": "A case of cumatrix",
        **table_of(CASE),
        "properties": properties,
    }


def add_tables(properties: dict[str, Any]) -> None:
    """Add the schemas of parameters, libraries and lists of rules to those present in `properties`."""
    libraries = {
        "type": "object",
        "propertyNames": {"pattern": IDENTIFIER},
        "additionalProperties": {"oneOf": [_VERSIONS, table_of(LIBRARY)]},
    }
    lists = {"options": OPTIONS, "launch": LAUNCH, "verify": VERIFY, "unsupported": UNSUPPORTED, "expect": EXPECT}
    tables = {"parameters": _PARAMETERS, "libraries": libraries}
    tables |= {name: {"type": "array", "items": table_of(keys)} for name, keys in lists.items()}
    for name, schema in tables.items():
        if name in properties:
            properties[name] |= schema


def write_schema(path: Path) -> None:
    """Write the schema to a file, for example ``cases/case.schema.json``."""
    Path(path).write_text(json.dumps(case_schema(), indent=2) + "\n", encoding="utf-8")


def table_of(keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return the schema of a table with exactly these keys."""
    required = [name for name, key in keys.items() if key.required]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": properties_of(keys),
    }


def properties_of(keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return the schema of each key's value."""
    return {
        name: {
            "description": key.help,
            **KINDS[key.kind].schema,
            **({"enum": list(key.choices)} if key.choices else {}),
        }
        for name, key in keys.items()
    }


_KERNELS = {
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {"type": "string", "pattern": IDENTIFIER},
}

_ENTRY = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "cuda": _KERNELS,
        "torch": _KERNELS,
        "ptx": _KERNELS,
        "hip": _KERNELS,
        "cupy": _KERNELS,
        "cute": _KERNELS,
        "warp": _KERNELS,
        "cutile": _KERNELS,
        **{
            language: {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": IDENTIFIER},
                "additionalProperties": {"type": "string", "pattern": form.pattern},
            }
            for language, form in SIGNATURES.items()
        },
    },
}

_VERSIONS = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}

_PARAMETERS = {
    "type": "object",
    "propertyNames": {"pattern": IDENTIFIER},
    "additionalProperties": {
        "oneOf": [
            {
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"anyOf": [{"type": "string", "pattern": LABEL}, {"type": ["number", "boolean"]}]},
            },
            {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": LABEL},
                "additionalProperties": {
                    "type": "object",
                    "propertyNames": {"pattern": IDENTIFIER},
                    "additionalProperties": _SCALAR,
                },
            },
        ]
    },
}


if __name__ == "__main__":
    write_schema(Path(__file__).parents[2] / "cases" / FILE_NAME)
