"""Detection of a project's compilable programs from its files, without running them."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from harness.backends import BACKENDS, host_backends
from harness.cases.kernel_texts import required_of
from harness.cases.preprocessor import host_signs
from harness.errors import UsageError
from harness.model import Case, OptionRule
from harness.model.condition import Condition
from harness.project.commands import Unit, units_of
from harness.project.config import definitions_of, split_flags
from harness.project.discovery import (
    INCLUDE,
    ProjectFiles,
    files_in,
    folder_of,
    header_of,
    headers_of,
    some,
)
from harness.project.python_ast import texts_of
from harness.project.setup_py import Extension, extensions_of
from harness.protocol.text import counted


@dataclass
class Found:
    """Programs detected in a project.

    Parameters
    ----------
    programs : list of dict
        Tables for ``[[programs]]``, with the keys of `harness.project.keys.NAMED`.
    why : list of str
        Short origin of each program.
    left_out : list of str
        Omitted files and options, with reasons.
    kinds : set of str
        Kinds of the programs: ``cuda``, ``torch`` (with PyTorch's headers), ``python`` (Numba's kernels).
    architectures : list of str
        Targets of the project's build, such as ``sm_80``; empty if unknown.
    kernels : dict
        Required kernels by file of CUDA C++, as in the configuration's ``kernels``, and a comment; None for files
        without such kernels.
    record : str
        Command that records the project's build, if some of its options are in `left_out`.
    """

    programs: list[dict[str, Any]] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    architectures: list[str] = field(default_factory=list)
    kernels: dict[str, tuple[list[str] | int | None, str]] = field(default_factory=dict)
    record: str = ""

    def require(self, project: ProjectFiles, names: Iterable[str], define: Sequence[str] = ()) -> None:
        """Add the required kernels of files that compile with these definitions."""
        macros = {name: str(value) for name, value in definitions_of(list(define)).items()}
        for name in names:
            found = required_of(project.text(name), macros)
            if found.names or found.comment:
                self.kernels[name] = (list(found.names) or found.count or None, found.comment)

    def add(self, table: dict[str, Any], why: str, kind: str = "") -> None:
        """Add a program; its kind follows from its table by default.

        A name that no configuration can contain is omitted.
        """
        if not all(text.isprintable() for text in _texts_in(table)):
            self.left_out.append(f"{why}: a name or an option with control characters")
            return
        self.programs.append({name: value for name, value in table.items() if value})
        self.why.append(why)
        self.kinds.add(kind or ("torch" if "extension" in table or table.get("language") == "torch" else "cuda"))


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value, including the keys of tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        for each in value.values():
            yield from _texts_in(each)
    elif isinstance(value, Iterable):
        for each in value:
            yield from _texts_in(each)


_JIT = re.compile(r"cuda\.jit|\bcuda\b.*\bjit\b")
_LARGEST = 2_000_000


def has_kernels(path: Path) -> bool:
    """Return whether a file has functions under ``cuda.jit``; True if the file is not readable as Python."""
    try:
        return any(True for _ in _kernels(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError, RecursionError):
        return True


def python_programs(root: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files with typed kernels, and a sentence for each kernel without types."""
    typed: list[str] = []
    left_out: list[str] = []
    for name in names:
        path = root / name
        text = path.read_text("utf-8", "replace") if path.stat().st_size <= _LARGEST else ""
        if not _JIT.search(text):
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        kernels = list(_kernels(tree))
        without = [kernel for kernel, has_types, inside in kernels if not has_types and not inside]
        if any(has_types and not inside for _, has_types, inside in kernels):
            typed.append(name)
        elif inner := [kernel for kernel, has_types, inside in kernels if has_types and inside]:
            left_out.append(f"{name}: kernel {inner[0]} is defined in a function, which only a call of it compiles")
        if without:
            which = f"{', '.join(without[:4])}{', …' if len(without) > 4 else ''}"
            left_out.append(
                f'{name}: kernel {which} has no types: say them in signatures = {{ {without[0]} = "void(float32[:])" }}'
            )
    return typed, left_out


def _kernels(tree: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool, bool]]:
    """Yield functions under ``cuda.jit``: name, whether the decorator has types, and whether it is nested in a function."""
    for node in ast.iter_child_nodes(tree):
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            call = decorator if isinstance(decorator, ast.Call) else None
            function = call.func if call else decorator
            if (
                isinstance(function, ast.Attribute)
                and function.attr == "jit"
                and isinstance(function.value, ast.Name)
                and function.value.id == "cuda"
            ):
                device = call and any(keyword.arg == "device" for keyword in call.keywords)
                if not device and isinstance(node, ast.FunctionDef):
                    yield node.name, bool(call and call.args), inside
        yield from _kernels(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


RECORD_CMAKE = "cumatrix init --record -- sh -c 'cmake -B fresh && cmake --build fresh'"
RECORD_SETUP = "cumatrix init --record --with torch=2.11 -- python setup.py build_ext"
"""Commands that record builds whose options are known only at build time."""

_WORDS = {"torch": "with PyTorch's headers", "host": "programs of the host, for nvcc", "device": "device code"}
_TORCH = re.compile(r"(?:torch|ATen|c10)/")


def kind_of(project: ProjectFiles, name: str, headers: Mapping[str, list[str]]) -> str:
    """Return the kind of a file: ``torch``, ``host`` or ``device``.

    ``torch`` is CUDA C++ with PyTorch's headers. ``host`` is a program that compilers of device code reject. The
    project's own headers count as part of the file, recursively.
    """
    kind, waiting, seen = "device", [name], {name}
    while waiting:
        file = waiting.pop()
        text = project.text(file)
        for quoted, pointed in INCLUDE.findall(text):
            if _TORCH.match(quoted or pointed):
                return "torch"
            header = header_of(project, file, (quoted, pointed), headers)
            if header and header not in seen:
                seen.add(header)
                waiting.append(header)
        if host_signs(text):
            kind = "host"
    return kind


def loose(project: ProjectFiles, names: list[str], found: Found, settings: Mapping[str, dict[str, Any]]) -> None:
    """Add files that no build system lists, grouped by kind and include directories.

    Parameters
    ----------
    project, names : ProjectFiles, list of str
        The project, and names of its files.
    found : Found
        Receiver of the programs.
    settings : Mapping
        Settings of each ``setup.py`` without a list of files. They apply to files with PyTorch's headers in its folder
        and below.
    """
    headers = headers_of(project)
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name in names:
        text = project.text(name)
        included = INCLUDE.findall(text)
        kind = kind_of(project, name, headers)
        folders = dict.fromkeys(folder for pair in included for folder in folder_of(project, name, pair, headers))
        groups.setdefault((kind, tuple(folders)), []).append(name)
    found.require(project, names)
    for (kind, include), files in groups.items():
        table: dict[str, Any] = {"sources": _patterns(project, files, names), "include": list(include)}
        words = _WORDS[kind]
        if kind == "torch":
            table["language"] = "torch"
            for setup, more in settings.items():
                if all(os.path.dirname(setup) in ("", *map(str, PurePath(name).parents)) for name in files):
                    table = {**more, **table, "include": list(dict.fromkeys([*more["include"], *include]))}
                    words = f"{words}, with the options of {setup}"
        elif kind == "host":
            table["backends"] = list(host_backends())
        found.add(table, f"CUDA C++, {words}: {some(files)}")


def _patterns(project: ProjectFiles, files: list[str], others: list[str]) -> list[str]:
    """Return a pattern for all files of a folder, or the file names if the folder has others."""
    found: dict[str, None] = {}
    for name in files:
        folder = os.path.dirname(name)
        of_folder = [each for each in project.named(".cu") if os.path.dirname(each) == folder]
        whole = len(of_folder) > 1 and set(of_folder) <= set(files) and set(of_folder) <= set(others)
        found[os.path.join(folder, "*.cu") if whole else name] = None
    return list(found)


def look(root: Path) -> Found:
    """Detect the programs of a project.

    The sources in order: setup.py, compile_commands.json, other CUDA C++, and Python with Numba's kernels or with CUDA
    C++ in strings. A build system takes precedence over the files alone.
    """
    vendored: dict[str, str] = {}
    files = tuple(files_in(root, vendored))
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
    if not databases:
        _note_cmake(project, found)
    found.left_out += [
        f"{folder}: {why}; name its files in sources if they are yours"
        for folder, why in sorted(vendored.items())
        if any((root / folder).rglob("*.cu"))
    ]
    loose(project, [name for name in project.named(".cu") if name not in taken], found, settings)
    typed, without = python_programs(project.root, project.named(".py"))
    found.left_out += without
    if typed:
        found.add({"sources": typed}, f"Python with Numba's kernels: {some(typed)}", "python")
    _texts(project, typed, found)
    return found


def of_database(root: Path, name: str) -> Found:
    """Return the program table for the compilation database of a recorded build."""
    found = Found()
    units = units_of(root / name)
    folders = dict.fromkeys(folder for unit in units for folder in (*unit.include, *unit.system))
    found.left_out += [f"{folder}: it is not there after the build" for folder in folders if not os.path.isdir(folder)]
    targets = dict.fromkeys(target for unit in units for target in unit.targets)
    found.architectures += [target for target in targets if target.startswith("sm_")]
    ships = f"; the project ships {', '.join(targets)}" if targets else ""
    found.add({"commands": name}, f"{counted(len(units), 'unit')} of the project's own build{ships}")
    _note_dropped(units, name, found)
    return found


def _note_dropped(units: Iterable[Unit], name: str, found: Found) -> None:
    dropped = Counter(
        word
        for unit in units
        for word in unit.dropped
        if not word.startswith(("-arch", "-gencode", "--generate-code", "--gpu-"))
    )
    if dropped:
        found.left_out.append(f"options in {name} that cumatrix does not know: {' '.join(dropped)}")


def _texts(project: ProjectFiles, typed: Collection[str], found: Found) -> None:
    """Add CUDA C++ in strings of Python files; files with Numba's kernels already contain their strings."""
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
    """Return the programs below a folder: CUDA C++ (``.cu``), and Python with Numba's kernels or CUDA C++ in strings."""
    project = ProjectFiles(root, tuple(files_in(root)))
    kernels = [
        name
        for name in project.named(".py")
        if re.search(r"\bjit\b|RawKernel|RawModule|load_inline", project.text(name))
    ]
    python = [name for name in kernels if texts_of(root / name)[0] or python_programs(root, [name]) != ([], [])]
    return sorted([*project.named(".cu", ".CU"), *python])


def folders_of_headers(root: Path, file: Path) -> list[str]:
    """Return the project's folders with a program's headers, except the program's own folder, relative to `root`."""
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
    unread = [f"{name}:{each.line}: {what}" for each in extensions for what in each.unread]
    if unread:
        found.left_out += unread
        found.record = RECORD_SETUP
    host = [source for each in extensions for source in each.host]
    if host:
        found.left_out.append(
            f"{', '.join(host[:4])}{', …' if len(host) > 4 else ''} of {name}: for the host's compiler alone"
        )
    sources = [os.path.normpath(os.path.join(base, source)) for each in extensions for source in each.sources]
    missing = [source for source in sources if not (project.root / source).is_file()]
    found.left_out += [f"{source} of {name}: there is no such file" for source in missing]
    there = [source for source in sources if source not in missing]
    found.require(project, there, [macro for each in extensions for macro in each.macros])
    if there and not missing and not unread:
        found.add({"extension": name}, f"CUDAExtension in {name}: {some(there)}")
    elif there:
        found.add(_of_extensions(extensions, base, there, project.root), f"CUDAExtension in {name}: {some(there)}")
    elif extensions:
        # The files are known only at run time, but their options are known.
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


_LISTS = "CMakeLists.txt"
_OPTIONS_OF_CMAKE = re.compile(
    r"^[ \t]*(?:(?:target_|add_)?(?:compile_)?(?:definitions|options)|(?:target_)?include_directories|set_(?:source_files|target)_properties"
    r"|set[ \t]*\([ \t]*CMAKE_CUDA_\w+|configure_file|add_custom_command|find_package)\b",
    re.IGNORECASE | re.MULTILINE,
)


def _note_cmake(project: ProjectFiles, found: Found) -> None:
    """Report the lines of each ``CMakeLists.txt`` of a CUDA project that only CMake can evaluate."""
    lists = [name for name in project.files if os.path.basename(name) == _LISTS]
    if not any(re.search(r"\bCUDA\b", project.text(name)) for name in lists):
        return
    found.record = found.record or RECORD_CMAKE
    for name in lists:
        text = project.text(name)
        lines = [text.count("\n", 0, match.start()) + 1 for match in _OPTIONS_OF_CMAKE.finditer(text)]
        if lines:
            more = ", …" if len(lines) > 12 else ""
            found.left_out.append(
                f"{name}:{lines[0]}: options that CMake sets, in line {', '.join(map(str, lines[:12]))}{more}"
            )


def _units(project: ProjectFiles, units: list[Unit], name: str, found: Found, taken: set[str]) -> set[str]:
    groups: dict[tuple[Any, ...], list[str]] = {}
    of: dict[str, Unit] = {}
    headers = headers_of(project)
    for unit in units:
        if not unit.file.resolve().is_relative_to(project.root.resolve()):
            found.left_out.append(f"{unit.file} of {name}: is outside the project")
            continue
        file = unit.file.resolve().relative_to(project.root.resolve()).as_posix()
        if file in taken or file in of or not unit.file.is_file():
            continue
        of[file] = unit
        kind = kind_of(project, file, headers)
        groups.setdefault((unit.include, unit.system, unit.define, unit.std, unit.rdc, unit.flags, kind), []).append(
            file
        )
    _note_dropped(units, name, found)
    for group, files in groups.items():
        table = _table(of[files[0]], files, project.root, device=group[-1] == "device")
        if group[-1] == "torch":
            table["language"] = "torch"
        elif group[-1] == "host":
            table["backends"] = list(host_backends())
        found.require(project, files, table["define"])
        found.add(table, f"commands of {name}: {some(files)}")
    return set(of)


def _table(unit: Unit, files: list[str], root: Path, *, device: bool) -> dict[str, Any]:
    # Compilers of device code have no -isystem.
    system = [folder for folder in unit.system if os.path.isdir(folder)]
    folders = [folder for folder in unit.include if os.path.isdir(folder)] + (system if device else [])
    return {
        "sources": sorted(files),
        "include": [
            os.path.relpath(folder, root) if Path(folder).is_relative_to(root) else folder for folder in folders
        ],
        "define": list(unit.define),
        "std": unit.std if re.fullmatch(r"(c|gnu)\+\+[0-9]{2}", unit.std) else "",
        "flags": [*unit.flags, *([] if device else [f"nvcc:-isystem={folder}" for folder in system])],
        "options": [{"rdc": True}] if unit.rdc else [],
    }


def rules_of_unit(unit: Unit) -> list[OptionRule]:
    """Return the options of a unit as rules of a case."""
    common: dict[str, Any] = {"include": list(unit.include)} if unit.include else {}
    common |= {"std": unit.std} if unit.std else {}
    common |= {"rdc": True} if unit.rdc else {}
    flags = split_flags(unit.flags)
    common |= {"flags": flags.pop("")} if "" in flags else {}
    rules = [OptionRule(when=Condition.always(), values=common)] if common else []
    nvcc = " or ".join(f'backend == "{each.name}"' for each in BACKENDS.values() if each.nvcc)
    for name, given in flags.items():
        when = Condition.parse(nvcc if name in host_backends() else f'backend == "{name}"')
        rules.append(OptionRule(when=when, values={"flags": given}))
    if unit.system:
        # Only nvcc can search directories after the toolkit's headers.
        behind = [f"-isystem={folder}" for folder in unit.system]
        rules.append(OptionRule(when=Condition.parse(nvcc), values={"flags": behind}))
        rules.append(OptionRule(when=Condition.parse(f"not ({nvcc})"), values={"include": list(unit.system)}))
    return rules


def with_unit(case: Case, unit: Unit, source: Path) -> Case:
    """Return the program with the options of its unit; the case's own options take precedence.

    Parameters
    ----------
    case : Case
        The program.
    unit : Unit
        Unit of the program in the build.
    source : Path
        Path of the ``compile_commands.json``, which distinguishes the cells.
    """
    rules = rules_of_unit(unit)
    define = definitions_of(list(unit.define))
    words = f"--compile-commands={os.path.relpath(source)}"
    variants = tuple(
        replace(each, definitions={**define, **each.definitions}, options=f"{words} {each.name}".strip())
        for each in case.variants
    )
    return replace(case, options=(*rules, *case.options), variants=variants)
