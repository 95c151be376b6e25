"""What a project has that can be compiled: read from its files, none of which is run."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cases.host_program import host_signs
from harness.errors import UsageError
from harness.project.commands import Unit, units_of
from harness.project.extension import Extension, extensions_of
from harness.project.python_kernels import python_programs
from harness.project.strings import texts_of

_SKIPPED = frozenset("node_modules __pycache__ site-packages dist venv third_party 3rdparty external vendor".split())
_MOST_FILES, _LARGEST = 50_000, 2_000_000
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]{1,300})"|<([^>\n]{1,300})>)', re.MULTILINE)
_TORCH = re.compile(r"(?:torch|ATen|c10)/")
_HEADERS = (".h", ".cuh", ".hpp", ".hh", ".inl")


@dataclass
class Found:
    """What was found.

    Parameters
    ----------
    programs : list of dict
        Tables for ``[[programs]]``, with the keys of `harness.project.keys.NAMED`.
    why : list of str
        For each, in a few words, where it is from.
    left_out : list of str
        What was seen and is not in them, each with the reason.
    """

    programs: list[dict[str, Any]] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, table: dict[str, Any], why: str) -> None:
        """Note a program; what no configuration can name is left out."""
        if not all(text.isprintable() for text in _texts(table)):
            self.left_out.append(f"{why}: a name or an option with control characters")
            return
        self.programs.append({name: value for name, value in table.items() if value})
        self.why.append(why)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, names of tables included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Iterable):
        for each in value:
            yield from _texts(each)


@dataclass(frozen=True)
class _Project:
    root: Path
    files: tuple[str, ...]

    def named(self, *suffixes: str) -> list[str]:
        return [name for name in self.files if name.endswith(suffixes)]

    def text(self, name: str) -> str:
        path = self.root / name
        if path.stat().st_size > _LARGEST:
            return ""
        return path.read_text("utf-8", "replace")


def look(root: Path) -> Found:
    """Look at a project: setup.py, compile_commands.json, other CUDA C++, Python with Numba's kernels; what a build system says counts first."""
    files = tuple(_files(root))
    project = _Project(root, tuple(name for name in files if name.isprintable()))
    found = Found()
    found.left_out += [
        f"{name}: its name has control characters"
        for name in files
        if not name.isprintable() and name.endswith((".cu", ".py"))
    ]
    taken: set[str] = set()
    for name in [name for name in project.files if os.path.basename(name) == "setup.py"]:
        taken |= _extensions(project, name, found)
    for name in _databases(root):
        taken |= _units(project, name, found, taken)
    if any(os.path.basename(name) == "CMakeLists.txt" for name in project.files) and not list(_databases(root)):
        found.left_out.append(
            "options of CMakeLists.txt: `cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON` writes build/compile_commands.json, which init reads"
        )
    _loose(project, [name for name in project.named(".cu") if name not in taken], found)
    typed, without = python_programs(project.root, project.named(".py"))
    found.left_out += without
    if typed:
        found.add({"sources": typed}, f"Python with Numba's kernels: {_some(typed)}")
    return found


def programs_in(root: Path) -> list[str]:
    """Names of the programs below a folder: CUDA C++ (``.cu``), and Python with kernels of Numba or CUDA C++ in texts."""
    project = _Project(root, tuple(_files(root)))
    kernels = [
        name
        for name in project.named(".py")
        if re.search(r"\bjit\b|RawKernel|RawModule|load_inline", project.text(name))
    ]
    python = [name for name in kernels if texts_of(root / name)[0] or python_programs(root, [name]) != ([], [])]
    return sorted([*project.named(".cu"), *python])


def folders_of_headers(root: Path, file: Path) -> list[str]:
    """Folders of a project in which the headers of a program are found that do not lie beside it, as seen from `root`."""
    project = _Project(root, tuple(_files(root)))
    headers = _headers(project)
    name = file.relative_to(root).as_posix()
    included = _INCLUDE.findall(file.read_text("utf-8", "replace"))
    return list(dict.fromkeys(folder for pair in included for folder in _folder_of(project, name, pair, headers)))


def _headers(project: _Project) -> dict[str, list[str]]:
    """Headers of a project by the last part of their path."""
    headers: dict[str, list[str]] = {}
    for name in project.named(*_HEADERS):
        headers.setdefault(os.path.basename(name), []).append(name)
    return headers


def _files(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name for name in folders
            if not name.startswith(".") and name not in _SKIPPED and not name.startswith("build")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg")) and not os.path.exists(os.path.join(folder, name, "case.toml"))
        )  # fmt: skip
        for name in sorted(names):
            count += 1
            if count > _MOST_FILES:
                return
            if not os.path.isfile(os.path.join(folder, name)):
                continue  # a pipe may have no end
            yield Path(os.path.relpath(os.path.join(folder, name), root)).as_posix()


def _databases(root: Path) -> Iterator[str]:
    for pattern in ("compile_commands.json", "*/compile_commands.json", "*/*/compile_commands.json"):
        yield from sorted(path.relative_to(root).as_posix() for path in root.glob(pattern) if path.is_file())


def _extensions(project: _Project, name: str, found: Found) -> set[str]:
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
        found.add({"extension": name}, f"CUDAExtension in {name}: {_some(there)}")
    elif there:
        found.add(_of_extensions(extensions, base, there, project.root), f"CUDAExtension in {name}: {_some(there)}")
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


def _units(project: _Project, name: str, found: Found, taken: set[str]) -> set[str]:
    try:
        units = units_of(project.root / name)
    except UsageError as error:
        found.left_out.append(str(error))
        return set()
    groups: dict[tuple[Any, ...], list[str]] = {}
    for unit in units:
        if not unit.file.resolve().is_relative_to(project.root.resolve()):
            found.left_out.append(f"{unit.file} of {name}: lies outside of the project")
            continue
        file = unit.file.resolve().relative_to(project.root.resolve()).as_posix()
        if file in taken or not unit.file.is_file():
            continue
        groups.setdefault((unit.include, unit.define, unit.std, unit.rdc, unit.flags), []).append(file)
        taken = {*taken, file}
    dropped = Counter(
        word
        for unit in units
        for word in unit.dropped
        if not word.startswith(("-arch", "-gencode", "--generate-code", "--gpu-"))
    )
    if dropped:
        found.left_out.append(f"options in {name} that cumatrix does not know: {' '.join(list(dropped)[:8])}")
    for files in groups.values():
        unit = next(
            each for each in units if each.file.resolve().relative_to(project.root.resolve()).as_posix() == files[0]
        )
        found.add(_table(unit, files, project.root), f"commands of {name}: {_some(files)}")
    return {file for files in groups.values() for file in files}


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


def _loose(project: _Project, names: list[str], found: Found) -> None:
    """Files that no build system tells of, by kind and by the include directories that their headers are found in."""
    headers = _headers(project)
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name in names:
        text = project.text(name)
        included = _INCLUDE.findall(text)
        kind = (
            "torch"
            if any(_TORCH.match(quoted or pointed) for quoted, pointed in included)
            else "host"
            if host_signs(text)
            else "device"
        )
        folders = dict.fromkeys(folder for pair in included for folder in _folder_of(project, name, pair, headers))
        groups.setdefault((kind, tuple(folders)), []).append(name)
    for (kind, include), files in groups.items():
        table: dict[str, Any] = {"sources": _patterns(project, files, names), "include": list(include)}
        if kind == "torch":
            table["language"] = "torch"
        elif kind == "host":
            table["backends"] = ["nvcc"]
        words = {"torch": "with PyTorch's headers", "host": "programs of the host, for nvcc", "device": "device code"}[
            kind
        ]
        found.add(table, f"CUDA C++, {words}: {_some(files)}")


def _folder_of(project: _Project, name: str, pair: tuple[str, str], headers: Mapping[str, list[str]]) -> Iterator[str]:
    """The folder of the project in which a header is found that does not lie beside the program."""
    quoted, pointed = pair
    wanted = quoted or pointed
    if quoted and (project.root / os.path.dirname(name) / quoted).is_file():
        return
    for header in headers.get(os.path.basename(wanted), ()):
        if header == wanted or header.endswith(f"/{wanted}"):
            yield header.removesuffix(wanted).rstrip("/") or "."
            return


def _patterns(project: _Project, files: list[str], others: list[str]) -> list[str]:
    """Patterns for files that are all of a folder's; the files themselves where it has others, too."""
    found: dict[str, None] = {}
    for name in files:
        folder = os.path.dirname(name)
        of_folder = [each for each in project.named(".cu") if os.path.dirname(each) == folder]
        whole = len(of_folder) > 1 and set(of_folder) <= set(files) and set(of_folder) <= set(others)
        found[os.path.join(folder, "*.cu") if whole else name] = None
    return list(found)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
