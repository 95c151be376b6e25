"""Text of a new configuration for a project's detected programs, and of a new case."""

from __future__ import annotations

import ast
import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Array

from harness.backends import BACKENDS
from harness.cases.load import load_case
from harness.cases.sources import project_of
from harness.cases.values import NAME
from harness.diagnostics import one_line
from harness.errors import UsageError
from harness.libraries import LIBRARIES
from harness.model import KNOWN_TARGETS
from harness.project.current import here
from harness.project.detect import Found, folders_of_headers
from harness.project.programs import program_for
from harness.records.files import replace_files

TARGET = "sm_75..sm_120"
TOOLKIT = "13.0"
"""First release with an nvcc in its wheels and sm_75 as its oldest architecture."""

_LONG = 60


def proposal(found: Found, prefix: tuple[str, ...]) -> str:
    """Return the configuration as TOML.

    Parameters
    ----------
    found : Found
        Detected programs.
    prefix : tuple of str
        Path of the table: ``("tool", "cumatrix")`` in a ``pyproject.toml``, empty in a ``cumatrix.toml``.
    """
    programs = [{**table} for table in found.programs]
    head: dict[str, Any] = {}
    if len(programs) == 1:
        head |= programs.pop()
    kinds = found.kinds
    libraries = [name for kind, name in (("torch", "torch"), ("python", "numba-cuda")) if kind in kinds]
    releases = {name: LIBRARIES[name].releases[-1] for name in libraries}
    if libraries and len(kinds) > 1:
        # With named libraries, only their backends run unless the configuration names others.
        head["backend"] = [
            info.name
            for info in BACKENDS.values()
            if (info.library in libraries if info.library else kinds & set(info.languages))
        ]
    if libraries:
        head["with"] = [f"{name}={release.version.removesuffix('.*')}" for name, release in releases.items()]
    head["toolkit"] = releases["torch"].toolkit if "torch" in releases else TOOLKIT
    known = [str(target) for target in KNOWN_TARGETS if str(target) in found.architectures]
    head["target"] = ",".join(known) or TARGET
    head["page"] = "reports/html"
    blocks = []
    why = [] if programs else [f"# {one_line(found.why[0])}"]
    heading = [f"[{'.'.join(prefix)}]"] if prefix else []
    nested = {name: head.pop(name) for name in ("options",) if name in head}
    blocks.append("\n".join([*heading, *why, *_lines({**head, **nested})]))
    for table, words in zip(programs, found.why, strict=False):
        blocks.append("\n".join([f"[[{'.'.join((*prefix, 'programs'))}]]", f"# {one_line(words)}", *_lines(table)]))
    if found.kernels:
        blocks.insert(1, "\n".join([f"[{'.'.join((*prefix, 'kernels'))}]", *_required(found)]))
    text = "\n\n".join(blocks) + "\n"
    tomllib.loads(text)
    return text


def _required(found: Found) -> Iterator[str]:
    """Yield the lines of the table of required kernels."""
    for name, (required, comment) in sorted(found.kernels.items()):
        if comment:
            yield f"# {one_line(f'{name}: {comment}', 300)}"
        if required is not None:
            yield f"{tomlkit.key(name).as_string()} = {_item(required)}"


def _lines(table: dict[str, Any]) -> list[str]:
    return [f"{name} = {_item(value)}" for name, value in table.items()]


def _item(value: Any) -> str:
    item = (
        tomlkit.item(_inline(value))
        if isinstance(value, list) and value and isinstance(value[0], dict)
        else tomlkit.item(value)
    )
    if isinstance(item, Array) and len(item.as_string()) > _LONG:
        item.multiline(True)
    return str(item.as_string())


def _inline(value: list[dict[str, Any]]) -> Any:
    array = tomlkit.array()
    for each in value:
        table = tomlkit.inline_table()
        table.update(each)
        array.append(table)
    return array


_KERNEL = re.compile(
    r'extern\s*"C"\s*(?:\{\s*)?(?:__launch_bounds__\s*\([^)]*\)\s*)?__global__[^;{(]*?\b([A-Za-z_]\w*)\s*\('
)
_PROGRAM = """// What this shows: a kernel that every backend takes.
extern "C" __global__ void scale(float *values, float factor)
{
    values[threadIdx.x] *= factor;
}
"""


def new_case(name: str, root: Path, origin: Path | None = None) -> list[Path]:
    """Write a case and return the written files.

    Parameters
    ----------
    name : str
        ``topic/name``.
    root : Path
        Folder of cases; created if missing.
    origin : Path, optional
        Program of the project, which the case references in place; by default the case has a small program of its own.

    Raises
    ------
    UsageError
        If the case exists, or `origin` cannot be a case's program.
    """
    if not re.fullmatch(f"{NAME[1:-1]}/{NAME[1:-1]}", name):
        raise UsageError(
            f"{name!r} is not topic/name, of lower-case letters, digits, - _ and .: as in `cumatrix cases new demo/scale`"
        )
    folder = root / name
    path = folder / "case.toml"
    if os.path.lexists(folder):
        raise UsageError(f"{folder} is there already: choose another name")
    files = _from(folder, origin) if origin else {"kernel.cu": _PROGRAM}
    title = f"{origin.name}, as it stands" if origin else "Scaling an array"
    lines = [f'title = "{title}"', ""]
    if origin:
        lines += _of(folder, origin)
    else:
        lines += ["[source]", 'cuda = "kernel.cu"', "", "[entry]", 'cuda = ["scale"]']
    lines += [
        "",
        "# What does not build is expected to be built, until a rule says otherwise:",
        "# [[expect]]",
        "# when = 'cc < \"7.0\"'",
        '# status = "rejected"',
        '# diagnostic = "words of the compiler"',
        '# reason = "why"',
    ]
    texts = {folder / file: text.encode() for file, text in files.items()} | {path: ("\n".join(lines) + "\n").encode()}
    replace_files(texts)
    load_case(path, root)
    return list(texts)


def _from(folder: Path, origin: Path) -> dict[str, str]:
    """Check that a case in `folder` can name the program; no file is copied."""
    project = project_of(folder)
    if origin.suffix not in (".cu", ".cuh", ".py"):
        raise UsageError(f"{origin} is neither CUDA C++ (.cu) nor Python (.py)")
    if not origin.resolve().is_relative_to(project):
        raise UsageError(f"{origin} is outside the project ({project}): copy it into {folder}, and leave --from out")
    return {}


def _of(folder: Path, origin: Path) -> list[str]:
    text = origin.read_text("utf-8", "replace")
    place = Path(os.path.relpath(origin.resolve(), folder.resolve())).as_posix()
    if origin.suffix == ".py":
        kernels = _signatures(origin, text)
        return [
            "[source]",
            f'python = "{place}"',
            "",
            "[entry]",
            "python = { " + ", ".join(f'{name} = "{sig}"' for name, sig in kernels.items()) + " }",
        ]
    project = project_of(folder)
    own = program_for(here(), origin)
    if own:
        rules = [(rule.when.text, dict(rule.values)) for rule in own.options]
        define = [f"-D{name}={value}" for name, value in own.variants[0].definitions.items()]
        rules += [("", {"flags": define})] if define else []
    else:
        rules = [("", {"include": [str(project / each) for each in folders_of_headers(project, origin.resolve())]})]
    language = next(iter(own.sources)) if own else "cuda"
    names = list(dict.fromkeys(_KERNEL.findall(text)))
    lines = ["[source]", f'{language} = "{place}"']
    if names:
        lines += ["", "[entry]", f"{language} = {json.dumps(names)}"]
    for when, values in rules:
        lines += _table(folder, when, values)
    return lines


def _table(folder: Path, when: str, values: dict[str, Any]) -> list[str]:
    """Return the lines of ``[[options]]`` with include directories relative to the case; empty without options."""
    if "include" in values:
        project = project_of(folder)
        inside = [each for each in values.pop("include") if Path(each).resolve().is_relative_to(project)]
        values |= (
            {"include": [Path(os.path.relpath(each, folder.resolve())).as_posix() for each in inside]} if inside else {}
        )
    given = {name: value for name, value in values.items() if value}
    if not given:
        return []
    # JSON's texts and lists are also valid TOML.
    return [
        "",
        "[[options]]",
        *([f"when = {json.dumps(when)}"] if when else []),
        *(f"{name} = {json.dumps(value)}" for name, value in given.items()),
    ]


def _signatures(origin: Path, text: str) -> dict[str, str]:
    """Return the signatures of kernels with types in their decorator: ``@cuda.jit("void(float32[:])")``."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"{origin} cannot be read as Python: {error}") from None
    found = {}
    for node in ast.walk(tree):
        for each in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if (
                isinstance(each, ast.Call)
                and each.args
                and isinstance(node, ast.FunctionDef)
                and "jit" in ast.unparse(each.func)
            ):
                first = (
                    each.args[0].elts[0]
                    if isinstance(each.args[0], ast.List | ast.Tuple) and each.args[0].elts
                    else each.args[0]
                )
                signature = (
                    first.value
                    if isinstance(first, ast.Constant) and isinstance(first.value, str)
                    else ast.unparse(first)
                )
                found[node.name] = signature.replace('"', "'").replace("numba.", "").replace("types.", "")
    if not found:
        raise UsageError(f'{origin} has no kernel with types: write its signature, as in @cuda.jit("void(float32[:])")')
    return found
