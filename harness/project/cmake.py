"""Read the CUDA parts of ``CMakeLists.txt`` without running it, with the usual commands alone."""

from __future__ import annotations

import glob
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.project.commands import Unit, read_command

_CONDITION_WORD = re.compile(r'"((?:\\.|[^"\\])*)"|([()])|([^\s()"]+)')
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_FALSE = frozenset({"", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"})
_TRUE = frozenset({"ON", "YES", "TRUE", "Y"})
_UNARY = frozenset({"COMMAND", "POLICY", "TARGET", "TEST", "EXISTS", "IS_DIRECTORY", "IS_SYMLINK", "IS_ABSOLUTE"})
_BINARY = re.compile(
    r"MATCHES|(?:STR|VERSION_|PATH_)?EQUAL|(?:STR|VERSION_)?(?:LESS|GREATER)(?:_EQUAL)?|IN_LIST|IS_NEWER_THAN"
)

# A build with CUDA on Linux.
_HERE = re.compile(r"UNIX|LINUX|(?:\w+_)?(?:CUDA|CUDAToolkit|CUDATOOLKIT|GPU|NVCC)(?:_FOUND)?")
_ELSEWHERE = re.compile(
    r"\b(?:WIN32|MSVC|MINGW|APPLE|ANDROID|HIP|ROCM|USE_ROCM|USE_HIP|Windows|Darwin|QNX|CMAKE_CROSSCOMPILING)\b"
)
_UNSAID = re.compile(r"CMAKE_\w+|PROJECT_\w+|BUILD_TESTING|\w+_FOUND")
"""Variables that CMake, or what it finds, sets."""


def holds(condition: str, names: Mapping[str, Sequence[str]]) -> bool | None:
    """Evaluate a condition for a build with CUDA on Linux and default options.

    Parameters
    ----------
    condition : str
        What stands between the parentheses of ``if()`` or ``elseif()``.
    names : mapping of str to sequence of str
        Variables that are set. One that is not is false, as in CMake, unless it asks for CUDA or CMake itself sets it.

    Returns
    -------
    bool or None
        None where only CMake knows.
    """
    return _Condition([match.groups() for match in _CONDITION_WORD.finditer(condition)], names).value()


class _Condition:
    def __init__(self, words: list[tuple[str | None, ...]], names: Mapping[str, Sequence[str]]) -> None:
        self.words, self.names = words, names

    def value(self, depth: int = 0) -> bool | None:
        """AND and OR from left to right, as CMake has them."""
        result = self._negated(depth)
        while self.words and (word := self._bare()) in ("AND", "OR"):
            self.words.pop(0)
            other = self._negated(depth)
            if (decisive := word == "OR") in (result, other):
                result = decisive
            else:
                result = None if None in (result, other) else not decisive
        return result

    def _negated(self, depth: int) -> bool | None:
        odd = False
        while self._bare() == "NOT":
            self.words.pop(0)
            odd = not odd
        found = self._atom(depth)
        return found if found is None else found != odd

    def _atom(self, depth: int) -> bool | None:
        if not self.words or depth > 20:
            return None
        quoted, parenthesis, word = self.words.pop(0)
        if parenthesis == "(":
            inner = self.value(depth + 1)
            if self.words and self.words[0][1] == ")":
                self.words.pop(0)
            return inner
        if word in _UNARY or word == "DEFINED":
            asked = self._take()
            if word == "DEFINED" and not _UNSAID.fullmatch(asked):
                return asked in self.names
            return True if asked in self.names else None
        if _BINARY.fullmatch(operator := self._bare() or ""):
            self.words.pop(0)
            return self._compared(word if quoted is None else quoted, operator, self._take())
        return self._said(word or "") if quoted is None else _truth(self._filled(quoted))

    def _compared(self, left: str | None, operator: str, right: str) -> bool | None:
        """Texts that are the same or not; numbers, versions and patterns are left to CMake."""
        if _ELSEWHERE.search(right):
            return False
        first = " ".join(self.names.get(left or "", [self._filled(left or "")]))
        second = self._filled(right)
        if operator not in ("STREQUAL", "EQUAL") or "${" in first + second or _UNSAID.fullmatch(first):
            return None
        return first == second

    def _said(self, word: str) -> bool | None:
        if _ELSEWHERE.fullmatch(word):
            return False
        if _HERE.fullmatch(word):
            return True
        if (alone := _truth(self._filled(word))) is not None:
            return alone
        if word in self.names:
            value = " ".join(self.names[word])
            if "${" in value:
                return None
            return value.upper() not in _FALSE and not value.upper().endswith("-NOTFOUND")
        return None if "${" in word or _UNSAID.fullmatch(word) else False

    def _filled(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: " ".join(self.names.get(match[1], [match[0]])), text)

    def _bare(self) -> str | None:
        return self.words[0][2] if self.words else None

    def _take(self) -> str:
        return next((text for text in self.words.pop(0) if text is not None), "") if self.words else ""


def _truth(text: str) -> bool | None:
    """The value of a constant; None for anything else."""
    if text.upper() in _FALSE or text.upper().endswith("-NOTFOUND"):
        return False
    return True if text.upper() in _TRUE or re.fullmatch(r"[1-9]\d*", text) else None


LISTS = "CMakeLists.txt"
_LARGEST, _MOST, _DEEPEST = 1_000_000, 5_000, 12

_COMMENT = re.compile(r'#\[(=*)\[.*?\]\1\]|("(?:\\.|[^"\\])*")|#[^\n]*', re.DOTALL)
_COMMAND = re.compile(r'\b([A-Za-z_]\w*)[ \t]*\(((?:"(?:\\.|[^"\\])*"|\((?:[^()]|\([^()]*\))*\)|[^()"])*)\)')
_WORD = re.compile(r'"((?:\\.|[^"\\])*)"|([^\s;"]+)')
_NAME = re.compile(r"\$\{(\w+)\}")
_LANGUAGE = re.compile(r"\$<\$<(?:AND:)?\$?<?COMPILE_LANGUAGE:([\w,]+)>[^:]*:(.*)>")
_BUILD = re.compile(r"\$<(?:BUILD_INTERFACE):(.*)>")
_UNKNOWN = re.compile(r"\$\{(?!CUDA)\w*\}|\$ENV\{\w*\}|\$<.*")
_KINDS = frozenset(
    "STATIC SHARED MODULE OBJECT EXCLUDE_FROM_ALL PUBLIC PRIVATE INTERFACE BEFORE AFTER SYSTEM WIN32".split()
)
_TARGETS = frozenset({"add_library", "add_executable", "cuda_add_library", "cuda_add_executable"})


@dataclass
class _Target:
    folder: Path
    sources: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)


@dataclass
class Built:
    """Translation units of a project's build.

    Parameters
    ----------
    units : list of Unit
        Each ``.cu`` of each target.
    architectures : list of str
        Those of ``CMAKE_CUDA_ARCHITECTURES`` that are numbers: ``80``, ``90a``.
    unread : list of str
        What was passed over, each with its file.
    """

    units: list[Unit] = field(default_factory=list)
    architectures: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def built_by(root: Path) -> Built:
    """Read the CMakeLists.txt of a folder, and those that it adds."""
    reader = _Reader(root)
    reader.read(root, {"CMAKE_SYSTEM_NAME": ["Linux"], "CMAKE_SYSTEM_PROCESSOR": [platform.machine()]}, [], 0)
    unknown: list[str] = []
    for name, target in reader.targets.items():
        for source in dict.fromkeys(target.sources):
            file = Path(os.path.normpath(target.folder / source))
            if file.suffix != ".cu":
                continue
            if not file.is_file() or "$" in source:
                reader.built.unread.append(f"{source} of {name}: there is no such file without a build")
                continue
            words = [word for word in target.options if "$" not in word]
            reader.built.units.append(read_command(["nvcc", *reader.common, *words], target.folder, file))
            unknown += [found[0] for word in target.options if (found := _UNKNOWN.search(word))]
    if unknown:
        words = list(dict.fromkeys(unknown))
        more = f" and {len(words) - 6} more" if len(words) > 6 else ""
        reader.built.unread.append(f"{', '.join(words[:6])}{more}: known once the build is configured")
    return reader.built


@dataclass
class _Reader:
    root: Path
    built: Built = field(default_factory=Built)
    targets: dict[str, _Target] = field(default_factory=dict)
    common: list[str] = field(default_factory=list)
    read_so_far: int = 0

    def read(self, folder: Path, names: dict[str, list[str]], options: Sequence[str], depth: int) -> None:
        """One folder: `names` are the variables, `options` those of the folders above."""
        text = self.text(folder / LISTS, depth)
        if text is None:
            return
        place = _Folder(
            self,
            folder,
            {**names, "CMAKE_CURRENT_SOURCE_DIR": [str(folder)], "CMAKE_CURRENT_LIST_DIR": [str(folder)]},
            list(options),
            depth,
        )
        if depth == 0:
            place.names |= {name: [str(folder)] for name in ("CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR")}
        place.follow(text)
        if depth == 0:
            self._languages(place)

    def text(self, path: Path, depth: int) -> str | None:
        """A file of the project; None where there is nothing to read."""
        self.read_so_far += 1
        try:
            if depth > _DEEPEST or self.read_so_far > _MOST or not path.is_file() or path.stat().st_size > _LARGEST:
                return None
            return path.read_text("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def _languages(self, place: _Folder) -> None:
        standard = place.names.get("CMAKE_CUDA_STANDARD") or place.names.get("CMAKE_CXX_STANDARD") or []
        self.common = [f"-std=c++{word}" for word in standard[:1] if word.isdigit()]
        self.common += [
            word for text in place.names.get("CMAKE_CUDA_FLAGS", []) for word in text.split() if "${" not in word
        ]
        if place.names.get("CMAKE_CUDA_SEPARABLE_COMPILATION", ["OFF"])[0].upper() in ("ON", "TRUE", "1"):
            self.common.append("-rdc=true")
        for word in place.names.get("CMAKE_CUDA_ARCHITECTURES", []):
            if match := re.fullmatch(r"(\d{2,3}[af]?)(?:-real|-virtual)?", word):
                self.built.architectures.append(match[1])


@dataclass
class _Folder:
    reader: _Reader
    folder: Path
    names: dict[str, list[str]]
    options: list[str]
    depth: int

    def follow(self, text: str) -> None:
        for command, words in _live(text, self.names):
            self.run(command, words)

    def run(self, command: str, raw: str) -> None:
        words = list(self._words(raw))
        first, rest = (words[0], words[1:]) if words else ("", [])
        match command:
            case "set" if first:
                self.names[first] = rest[: rest.index("CACHE")] if "CACHE" in rest else rest
            case "option" if first:
                self.names.setdefault(first, rest[1:2] or ["OFF"])
            case "include" if first:
                self._include(first)
            case "list" if first.upper() == "APPEND" and rest:
                self.names[rest[0]] = [*self.names.get(rest[0], []), *rest[1:]]
            case "string" if first.upper() == "APPEND" and rest:
                self.names[rest[0]] = [" ".join([*self.names.get(rest[0], []), *rest[1:]])]
            case "file" if first.upper() in ("GLOB", "GLOB_RECURSE") and rest:
                self.names[rest[0]] = list(self._glob(rest[1:], deep=first.upper() == "GLOB_RECURSE"))
            case "add_subdirectory" if first:
                self.reader.read(
                    Path(os.path.normpath(self.folder / first)), dict(self.names), self.options, self.depth + 1
                )
            case "include_directories":
                self.options += [f"-I{self._place(word)}" for word in words if word not in _KINDS]
            case "add_compile_definitions" | "add_definitions":
                self.options += [word if word.startswith("-") else f"-D{word}" for word in words]
            case "add_compile_options":
                self.options += list(_cuda_only(words))
            case _ if command in _TARGETS and first:
                sources = [word for word in rest if word not in _KINDS]
                self.reader.targets[first] = _Target(self.folder, sources, self.options)
            case _ if command.startswith(("target_", "set_target_")) and first in self.reader.targets:
                self._of_target(command, self.reader.targets[first], [word for word in rest if word not in _KINDS])

    def _include(self, name: str) -> None:
        """A file of the project, or a module of it; those that come with CMake say nothing of sources."""
        folders = [".", *self.names.get("CMAKE_MODULE_PATH", [])]
        files = [self.folder / folder / end for folder in folders for end in (name, f"{name}.cmake")]
        for file in (Path(os.path.normpath(file)) for file in files):
            if not file.is_relative_to(self.reader.root) or (text := self.reader.text(file, self.depth + 1)) is None:
                continue
            self.depth += 1
            self.follow(text)
            self.depth -= 1
            return

    def _of_target(self, command: str, target: _Target, words: Sequence[str]) -> None:
        # Options of the folder are shared until a target has its own.
        match command:
            case "target_sources":
                target.sources += words
            case "target_include_directories":
                target.options = [
                    *target.options,
                    *(f"-I{self._place(word)}" for word in words if "INSTALL_INTERFACE" not in word),
                ]
            case "target_compile_definitions":
                target.options = [*target.options, *(f"-D{word.removeprefix('-D')}" for word in _cuda_only(words))]
            case "target_compile_options":
                target.options = [*target.options, *_cuda_only(words)]
            case "target_compile_features":
                target.options = [
                    *target.options,
                    *(f"-std=c++{word[-2:]}" for word in words if re.fullmatch(r"cuda_std_\d\d", word)),
                ]
            case "set_target_properties":
                pairs = dict(zip(words[1::2], words[2::2], strict=False))
                if pairs.get("CUDA_SEPARABLE_COMPILATION", "").upper() in ("ON", "TRUE", "1"):
                    target.options = [*target.options, "-rdc=true"]

    def _place(self, word: str) -> str:
        found = _BUILD.fullmatch(word)
        return os.path.normpath(self.folder / (found[1] if found else word))

    def _glob(self, patterns: Sequence[str], *, deep: bool) -> Iterator[str]:
        for pattern in patterns:
            if pattern in ("CONFIGURE_DEPENDS", "LIST_DIRECTORIES", "RELATIVE", "true", "false"):
                continue
            full = os.path.join(self.folder, pattern)
            full = os.path.join(os.path.dirname(full), "**", os.path.basename(full)) if deep else full
            if Path(os.path.normpath(full)).is_relative_to(self.reader.root):
                yield from sorted(glob.glob(full, recursive=deep))[:_MOST]

    def _words(self, raw: str) -> Iterator[str]:
        for match in _WORD.finditer(raw):
            word = match[1] if match[1] is not None else match[2]
            alone = _NAME.fullmatch(word)
            if alone and match[1] is None:
                yield from self.names.get(alone[1], [word])
            else:
                yield _NAME.sub(lambda found: " ".join(self.names.get(found[1], [found[0]])), word)


def _cuda_only(words: Sequence[str]) -> Iterator[str]:
    """Options for CUDA C++: those of other languages, in CMake's own expressions, are left out."""
    for word in words:
        found = _LANGUAGE.fullmatch(word)
        if found and "CUDA" in found[1].split(","):
            yield from found[2].split(";")
        elif "$<" not in word:
            yield word


def _live(text: str, names: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """The commands of a file, without those of functions, and of branches that are not taken; `names` is read as they are reached."""
    branches: list[tuple[bool, bool]] = []  # of each if(): whether this branch is taken, whether one was
    inside = 0
    for match in _COMMAND.finditer(_COMMENT.sub(lambda found: found[2] or "", text)):
        command, raw = match[1].lower(), match[2]
        match command:
            case "function" | "macro":
                inside += 1
            case "endfunction" | "endmacro":
                inside = max(0, inside - 1)
            case "if":
                taken = holds(raw, names) is not False
                branches.append((taken, taken))
            case "elseif" | "else" if branches:
                taken = not branches[-1][1] and (command == "else" or holds(raw, names) is not False)
                branches[-1] = (taken, taken or branches[-1][1])
            case "endif" if branches:
                branches.pop()
            case _ if not inside and all(taken for taken, _ in branches):
                yield command, raw
