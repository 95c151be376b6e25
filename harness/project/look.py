"""What a project has that can be compiled: read from its files, none of which is run."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.project.cmake import LISTS, built_by
from harness.project.commands import Unit, units_of
from harness.project.extension import Extension, extensions_of
from harness.project.files import INCLUDE, ProjectFiles, files_in, folder_of, headers_of, some
from harness.project.loose import kind_of, loose
from harness.project.python_kernels import python_programs
from harness.project.seen import Found
from harness.project.strings import texts_of


def look(root: Path) -> Found:
    """Look at a project: setup.py, compile_commands.json or CMakeLists.txt, other CUDA C++, Python with Numba's kernels or CUDA C++ in texts; what a build system says counts first."""
    files = tuple(files_in(root))
    project = ProjectFiles(root, tuple(name for name in files if name.isprintable()))
    found = Found()
    found.left_out += [
        f"{name}: its name has control characters"
        for name in files
        if not name.isprintable() and name.endswith((".cu", ".py"))
    ]
    taken: set[str] = set()
    settings: dict[str, dict[str, Any]] = {}
    for name in [name for name in project.files if os.path.basename(name) == "setup.py"]:
        taken |= _extensions(project, name, found, settings)
    databases = list(_databases(root))
    for name in databases:
        taken |= _database(project, name, found, taken)
    if not databases and not taken and not settings and (root / LISTS).is_file():
        taken |= _cmake(project, found, taken)
    loose(project, [name for name in project.named(".cu") if name not in taken], found, settings)
    typed, without = python_programs(project.root, project.named(".py"))
    found.left_out += without
    if typed:
        found.add({"sources": typed}, f"Python with Numba's kernels: {some(typed)}", "python")
    _texts(project, typed, found)
    return found


def _texts(project: ProjectFiles, typed: Collection[str], found: Found) -> None:
    """Note CUDA C++ in texts of Python files; those of files with Numba's kernels are programs of theirs."""
    by_kind: dict[str, list[str]] = {}
    for name in project.named(".py"):
        texts, unread = texts_of(project.root / name)
        found.left_out += [f"{os.path.join(os.path.dirname(name), sentence)}" for sentence in unread]
        if texts and name not in typed:
            by_kind.setdefault(max(text.language for text in texts), []).append(name)
    for kind, names in by_kind.items():
        calls = "load_inline" if kind == "torch" else "RawKernel, RawModule"
        found.add({"sources": names}, f"CUDA C++ in texts of Python ({calls}): {some(names)}", kind)


def programs_in(root: Path) -> list[str]:
    """Names of the programs below a folder: CUDA C++ (``.cu``), and Python with kernels of Numba or CUDA C++ in texts."""
    project = ProjectFiles(root, tuple(files_in(root)))
    kernels = [
        name
        for name in project.named(".py")
        if re.search(r"\bjit\b|RawKernel|RawModule|load_inline", project.text(name))
    ]
    python = [name for name in kernels if texts_of(root / name)[0] or python_programs(root, [name]) != ([], [])]
    return sorted([*project.named(".cu"), *python])


def folders_of_headers(root: Path, file: Path) -> list[str]:
    """Folders of a project in which the headers of a program are found that do not lie beside it, as seen from `root`."""
    project = ProjectFiles(root, tuple(files_in(root)))
    headers = headers_of(project)
    name = file.relative_to(root).as_posix()
    included = INCLUDE.findall(file.read_text("utf-8", "replace"))
    return list(dict.fromkeys(folder for pair in included for folder in folder_of(project, name, pair, headers)))


def _databases(root: Path) -> Iterator[str]:
    for pattern in ("compile_commands.json", "*/compile_commands.json", "*/*/compile_commands.json"):
        yield from sorted(path.relative_to(root).as_posix() for path in root.glob(pattern) if path.is_file())


def _extensions(project: ProjectFiles, name: str, found: Found, settings: dict[str, dict[str, Any]]) -> set[str]:
    text = project.text(name)
    if "CUDAExtension" not in text:
        return set()
    try:
        extensions = extensions_of(project.root / name)
    except UsageError as error:
        found.left_out.append(str(error))
        return set()
    base = os.path.dirname(name)
    found.left_out += [f"{name}:{each.line}: {what}" for each in extensions for what in each.unread]
    host = [source for each in extensions for source in each.host]
    if host:
        found.left_out.append(
            f"{', '.join(host[:4])}{', …' if len(host) > 4 else ''} of {name}: for the host's compiler alone"
        )
    sources = [os.path.normpath(os.path.join(base, source)) for each in extensions for source in each.sources]
    missing = [source for source in sources if not (project.root / source).is_file()]
    found.left_out += [f"{source} of {name}: there is no such file" for source in missing]
    there = [source for source in sources if source not in missing]
    if there and not missing:
        found.add({"extension": name}, f"CUDAExtension in {name}: {some(there)}")
    elif there:
        found.add(_of_extensions(extensions, base, there, project.root), f"CUDAExtension in {name}: {some(there)}")
    elif extensions:
        # Which files they are is only known once it runs; with what they are compiled is known all the same.
        settings[name] = _of_extensions(extensions, base, [], project.root)
    return set(there)


def _of_extensions(extensions: Iterable[Extension], base: str, sources: list[str], root: Path) -> dict[str, Any]:
    include = [os.path.normpath(os.path.join(base, folder)) for each in extensions for folder in each.include]
    return {
        "sources": sources,
        "language": "torch",
        "include": [folder for folder in dict.fromkeys(include) if (root / folder).is_dir()],
        "define": list(dict.fromkeys(macro for each in extensions for macro in each.macros)),
        "flags": list(dict.fromkeys(flag for each in extensions for flag in each.flags)),
    }


def _database(project: ProjectFiles, name: str, found: Found, taken: set[str]) -> set[str]:
    try:
        units = units_of(project.root / name)
    except UsageError as error:
        found.left_out.append(str(error))
        return set()
    return _units(project, units, name, found, taken)


def _cmake(project: ProjectFiles, found: Found, taken: set[str]) -> set[str]:
    built = built_by(project.root)
    found.left_out += built.unread
    found.left_out.append(
        f"what only running {LISTS} would tell: `cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON` writes "
        "build/compile_commands.json, which init reads in its place"
    )
    found.architectures += [f"sm_{each}" for each in built.architectures]
    return _units(project, built.units, LISTS, found, taken)


def _units(project: ProjectFiles, units: list[Unit], name: str, found: Found, taken: set[str]) -> set[str]:
    groups: dict[tuple[Any, ...], list[str]] = {}
    of: dict[str, Unit] = {}
    for unit in units:
        if not unit.file.resolve().is_relative_to(project.root.resolve()):
            found.left_out.append(f"{unit.file} of {name}: lies outside of the project")
            continue
        file = unit.file.resolve().relative_to(project.root.resolve()).as_posix()
        if file in taken or file in of or not unit.file.is_file():
            continue
        of[file] = unit
        kind = kind_of(project.text(file))
        groups.setdefault((unit.include, unit.define, unit.std, unit.rdc, unit.flags, kind), []).append(file)
    dropped = Counter(
        word
        for unit in units
        for word in unit.dropped
        if not word.startswith(("-arch", "-gencode", "--generate-code", "--gpu-"))
    )
    if dropped:
        found.left_out.append(f"options in {name} that cumatrix does not know: {' '.join(list(dropped)[:8])}")
    for group, files in groups.items():
        table = _table(of[files[0]], files, project.root)
        if group[-1] == "torch":
            table["language"] = "torch"
        elif group[-1] == "host":
            table["backends"] = ["nvcc"]
        found.add(table, f"commands of {name}: {some(files)}")
    return set(of)


def _table(unit: Unit, files: list[str], root: Path) -> dict[str, Any]:
    folders = [folder for folder in unit.include if os.path.isdir(folder)]
    return {
        "sources": sorted(files),
        "include": [
            os.path.relpath(folder, root) if Path(folder).is_relative_to(root) else folder for folder in folders
        ],
        "define": list(unit.define),
        "std": unit.std if re.fullmatch(r"(c|gnu)\+\+[0-9]{2}", unit.std) else "",
        "flags": list(unit.flags),
        "options": [{"rdc": True}] if unit.rdc else [],
    }
