"""Source files without a case, as cases, with their names, languages and kernels."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS, host_backends
from harness.cases.rules import rules_in
from harness.cases.values import SIGNATURES
from harness.cli.command import split_program
from harness.cli.options import spell
from harness.diagnostics import hint, one_line
from harness.errors import UsageError, did_you_mean
from harness.model import Case, OptionRule, Variant
from harness.model.condition import Condition
from harness.project.current import here
from harness.project.detect import has_kernels, programs_in
from harness.project.programs import configured, program_for, text_cases
from harness.records.merge import DIGITS

_CUDA = (".cu", ".cuh", ".cpp")
_PTX = ".ptx"
_HIP = ".hip"
_CPP = {"cuda", "hip"}  # languages whose compilers take options
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"](hip/|cuda)", re.MULTILINE)
_COMPILED = (".cubin", ".fatbin", ".o", ".so")
# Kernels that CuPy writes itself. RawKernel and RawModule are not among them: they receive the source.
_WRITTEN = re.compile(r"\b(?:ElementwiseKernel|ReductionKernel|rawkernel|fuse|name_expressions)\b")
# Any Python file with a kernel contains at least one of these words.
_KERNELS = re.compile(r"\bjit\b|RawKernel|RawModule|load_inline|ElementwiseKernel|ReductionKernel|rawkernel|\bfuse\b")
SUFFIXES = (*_CUDA, _HIP, _PTX, ".py")


def languages_of(file: Path) -> tuple[str, ...]:
    """Return the languages of a file, as in ``[source]`` of a case; imports decide between Python's languages.

    Raises
    ------
    UsageError
        If no backend has the file's language, the file cannot be read, or it is Python without kernels.
    """
    suffix = file.suffix.lower()
    if suffix in _COMPILED:
        raise UsageError(f"{file} is compiled code: name its source (.cu, .hip, .py) or its PTX (.ptx), which other versions can compile")  # fmt: skip
    if suffix not in SUFFIXES:
        raise UsageError(f"{file} is neither CUDA C++ (.cu) nor HIP (.hip) nor Python (.py) nor PTX (.ptx)")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    if suffix == _HIP:
        return ("hip",)
    if suffix in _CUDA:
        included = set(_INCLUDE.findall(data))
        return ("hip",) if included == {b"hip/"} else ("cuda", "hip") if b"hip/" in included else ("cuda",)
    if suffix == _PTX:
        return ("ptx",)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {file}: it is not UTF-8, as Python expects ({error})") from None
    imported = _imported(text)
    by_import = {package: info.languages[0] for info in BACKENDS.values() for package in info.imports}
    found = [language for package, language in by_import.items() if package in imported]
    # A file may also import a library indirectly, through another file in its folder.
    if not found and not _KERNELS.search(text) and _is_alone(text):
        raise UsageError(
            f"{file} has no kernels: no function under @cuda.jit or @triton.jit, no kernel of CuPy, and no CUDA C++ in a string"
        )
    # Such a file may create Numba's or CuPy's kernels; kernels of a DSL name their package.
    maybe = [language for package, language in by_import.items() if package in text or language in ("cupy", "python")]
    return tuple(dict.fromkeys(found or maybe))


def _is_alone(text: str) -> bool:
    """Return whether a program imports only the standard library; False if it is not valid Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    is_relative = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    packages = {name.partition(".")[0] for name in _imported(text)}
    return not is_relative and packages <= sys.stdlib_module_names


def sibling_texts(file: Path, languages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages of a Python file whose strings with CUDA C++ are separate cases.

    Numba's language stays if the file has its own kernels, CuPy's if CuPy writes a kernel for it.
    """
    kinds = {"python": has_kernels(file), "cupy": bool(_WRITTEN.search(file.read_text("utf-8", "replace")))}
    return tuple(language for language in languages if kinds.get(language, True))


def _imported(text: str) -> set[str]:
    """Return the packages and modules that a program imports, with their parent packages.

    The result is empty if the text is not valid Python; the interpreter that runs it reports that.
    """
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    given = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    names += [f"{node.module}.{alias.name}" for node in given for alias in node.names]
    return {name[: place.start()] for name in names for place in re.finditer(r"\.|$", name)}


# Words through which a module can get names that its text does not contain.
_UNSEEN = {"*", "exec", "eval", "globals", "setattr", "vars"}


Entries = dict[str, dict[str, str]]
"""Kernels and their signatures by language, as in cases."""


def entries_of(files: Mapping[Path, Collection[str]], signatures: Iterable[str]) -> dict[Path, Entries]:
    """Return signatures by file, language and kernel.

    Parameters
    ----------
    files : Mapping
        Programs with their languages. A signature applies to Python programs that contain its name.
    signatures : iterable of str
        ``NAME=SIG`` as written.

    Raises
    ------
    UsageError
        If a signature is invalid, or names nothing in a program.
    """
    signed = {file: [each for each in spoken if each in SIGNATURES] for file, spoken in files.items()}
    signed = {file: spoken for file, spoken in signed.items() if spoken}
    found: dict[Path, Entries] = {}
    seen: set[str] = set()
    for text in signatures:
        name, _, signature = (part.strip() for part in text.partition("="))
        if not name.isidentifier() or not signature:
            raise UsageError(f"--signature {text!r} is not NAME=SIG, as in 'axpy=void(float32[:], float32)'")
        if not signed:
            raise UsageError(
                f"--signature {text!r}: there is no Python file with kernels of {_signature_owners(SIGNATURES)}, and only those have one"
            )
        if name in seen:
            raise UsageError(f"--signature names {name} twice: one call takes one signature of a kernel")
        seen.add(name)
        matches = [file for file in signed if _may_have(file, name)]
        if not matches:
            functions = [function for file in signed for function in _names(file)[0]]
            there = ", ".join(map(str, signed))
            raise UsageError(f"--signature: {there} has no kernel {name}{did_you_mean(name, functions)}")
        for file in matches:
            found.setdefault(file, {}).setdefault(_language(text, signature, signed[file]), {})[name] = signature
    return found


def _language(text: str, signature: str, spoken: Sequence[str]) -> str:
    """Return the program's language whose syntax the signature matches."""
    wrong = ""
    for language in spoken:
        form = SIGNATURES[language]
        if not re.fullmatch(form.pattern[1:-1], signature):
            continue
        try:
            ast.parse(signature if language == "python" else "0", mode="eval")
        except (SyntaxError, ValueError) as error:
            wrong = f" ({error.msg if isinstance(error, SyntaxError) else error})"
        else:
            return language
    forms = " or ".join(f"{SIGNATURES[language].example} for {SIGNATURES[language].of}" for language in spoken)
    raise UsageError(f"--signature {text!r}: {signature!r} cannot be read{wrong}; it has the form {forms}")


def _signature_owners(languages: Iterable[str]) -> str:
    return " or ".join(SIGNATURES[language].of for language in languages)


def _of_assembler(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compiler options that ptxas also accepts."""
    flags = [flag for flag in values["flags"] if flag.startswith("--ptxas-options=")]
    return {"flags": flags, **({"rdc": True} if values.get("rdc") else {})}


def _may_have(file: Path, name: str) -> bool:
    """Return whether a program's text may define a name; only running it would show."""
    functions, names = _names(file)
    return not names or name in functions or name in names or bool(names & _UNSEEN)


def _names(file: Path) -> tuple[list[str], set[str]]:
    """Return the functions and all other names in a program; empty if the program is not valid Python."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return [], set()  # the interpreter that runs the file reports the error
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.alias):
            names |= {node.name, node.asname or ""}
    return functions, names


_LONGEST = 160
_MACRO = re.compile(r"[A-Za-z_]\w*")


def programs_of(
    files: Sequence[Path],
    *,
    include: Sequence[Path],
    define: Sequence[str],
    rules: Mapping[tuple[str, ...], dict[str, Any]],
    signatures: Sequence[str],
) -> list[Case]:
    """Return a case per file; a file that is named twice counts once.

    Parameters
    ----------
    files : sequence of Path
        CUDA C++ or Python, or one program of a Python file (``ops.py:scale``).
    include : sequence of Path
        Further include directories, as written.
    define : sequence of str
        ``NAME`` or ``NAME=VALUE``.
    rules : Mapping
        Options by backends (`harness.cli.options.rules_of`).
    signatures : sequence of str
        ``KERNEL=SIGNATURE``.

    Raises
    ------
    UsageError
        If a file cannot be read, a file lacks a named program, or none of the files accepts an option.
    """
    split = [split_program(file) for file in files]
    whole = {file for file, text in split if not text}
    named = {(place_of(file), text) for file, text in split if file not in whole}
    places = {place_of(file): file for file, _ in split}
    languages = {place: languages_of(file) for place, file in places.items()}
    texts = {place: _texts(file, place) for place, file in places.items() if not _CPP & set(languages[place])}
    of_ptx = {backends: _of_assembler(values) for backends, values in rules.items()}
    if not any(_CPP & set(spoken) for spoken in languages.values()) and not any(texts.values()):
        taken = spell(of_ptx) if ("ptx",) in languages.values() else []
        lost = [word for word in [*spell(rules), *(f"-I{folder}" for folder in include)] if word not in taken]
        if lost:
            raise UsageError(
                f"{lost[0]} is an option for CUDA C++, and no file is CUDA C++: write Numba's options in @cuda.jit(…), CuPy's in options=(…); ptxas takes only -Xptxas"
            )
    definitions = dict(_definition(text) for text in define)
    signed = entries_of({file: languages[place] for place, file in places.items()}, signatures)
    cases = []
    for place, file in places.items():
        spoken_in, entries = languages[place], signed.get(file, {})
        options = [OptionRule(when=_only(backends), values=values) for backends, values in rules.items()]
        if "cuda" in spoken_in and file.suffix != ".cu":  # nvcc selects the language by suffix
            options.insert(0, OptionRule(when=_only(host_backends()), values={"flags": ["-x", "cu"]}))
        defined = [f"-D{name}={value}" for name, value in sorted(definitions.items())]
        of_cuda = [*spell(rules), *defined, *(f"-I{_shown(folder, place)}" for folder in include)]
        kernels = sorted(pair for of_language in entries.values() for pair in of_language.items())
        of_python = [*defined, *(f"--signature={name}={value}" for name, value in kernels)]
        words = of_cuda if _CPP & set(spoken_in) else spell(of_ptx) if "ptx" in spoken_in else of_python
        cases += [_of_text(each, of_cuda, definitions, options) for each in texts.get(place, ())]
        if texts.get(place):
            spoken_in = sibling_texts(file, spoken_in)
            if not spoken_in:
                continue
        own = program_for(here(), file) if file.suffix != ".py" or not entries else None
        if own:
            cases.append(_of_project(own, place, words, definitions, options if _CPP & set(spoken_in) else []))
            continue
        spoken, inapplicable = rules_in(file)
        cases.append(
            Case(
                name=_name(place),
                path=file,
                program=digest_of(place),
                title=f"{file.name}, as it stands",
                sources=dict.fromkeys(spoken_in, file),
                entries=entries,
                variants=(Variant(labels={}, definitions=definitions, options=_line(words)),),
                options=tuple(options) if {*_CPP, "ptx"} & set(spoken_in) else (),
                unsupported=inapplicable,
                expectations=spoken,
            )
        )
    return _named(cases, named) if named else cases


def _named(cases: Sequence[Case], named: Collection[tuple[Path, str]]) -> list[Case]:
    """Return the cases of whole files, and from other files only the named programs."""
    names = {f"{_name(place)}:{text}" for place, text in named}
    files = {_name(place) for place, _ in named}
    known = [case.name for case in cases if case.name.partition(":")[0] in files]
    for name in sorted(names.difference(known)):
        raise UsageError(
            f"{name.partition(':')[0]} has no program {name.partition(':')[2]!r}{did_you_mean(name, known)}"
        )
    return [case for case in cases if case.name not in known or case.name in names]


def names_of(files: Iterable[Path], include: Iterable[Path]) -> dict[str, str]:
    """Return the paths of programs, and include options, by their names in records."""
    found: dict[str, str] = {}
    for file in files:
        place = place_of(split_program(file)[0])
        found[_name(place)] = str(split_program(file)[0])
        found |= {f"-I{_shown(folder, place)}": f"-I{folder}" for folder in include}
    return found


def files_in(paths: Sequence[Path]) -> list[Path]:
    """Return the named files, and the programs in named folders: CUDA C++ (.cu), and Python with Numba's kernels or CUDA C++ in strings.

    Raises
    ------
    UsageError
        If a folder has no program.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            found[path] = None
            continue
        names = programs_in(path)
        if not names:
            raise UsageError(f"{path} has no CUDA C++ (.cu), and no Python with kernels")
        found |= dict.fromkeys(path / name for name in names)
    return list(found)


def unreadable(file: Path) -> str:
    """Return the reason why a program of a folder cannot be read; empty if it can."""
    try:
        with open(file, "rb"):
            return ""
    except OSError as error:
        return f"{file} cannot be read and is left out: {error.strerror}"


def _texts(file: Path, place: Path) -> list[Case]:
    cases, unread = text_cases(file, _name(place))
    for sentence in unread:
        hint(sentence)
    return cases


def _of_text(text: Case, words: Sequence[str], definitions: Mapping[str, Any], options: Sequence[OptionRule]) -> Case:
    """Return the case of a string in a Python file, with the project's configuration of that file."""
    own = next((case for case in configured(here()) if case.path == text.path), text)
    return replace(_with(own, words, definitions, options), program=text.program) if words else own


def _of_project(
    own: Case, place: Path, words: Sequence[str], definitions: Mapping[str, Any], options: Sequence[OptionRule]
) -> Case:
    """Return a configured program; with further options it differs from the program that `cumatrix run` compiles."""
    return tried(_with(own, words, definitions, options), place) if words else own


def tried(own: Case, place: Path) -> Case:
    """Return a project's program as `cumatrix try` compiles it, named by its path so the command can be repeated."""
    return replace(own, name=_name(place), program=digest_of(place))


def _with(own: Case, words: Sequence[str], definitions: Mapping[str, Any], options: Sequence[OptionRule]) -> Case:
    """Add the options of the command line after the program's own."""
    if not words:
        return own
    variants = tuple(
        replace(
            each,
            definitions={**each.definitions, **definitions},
            options=" ".join(filter(None, [each.name, _line(words)])),
        )
        for each in own.variants
    )
    return replace(own, variants=variants, options=(*own.options, *options))


def _only(backends: Sequence[str]) -> Condition:
    return Condition.parse(" or ".join(f'backend == "{name}"' for name in backends)) if backends else Condition.always()


def place_of(file: Path) -> Path:
    """Return the path of a file.

    A link in another folder is another program, because it has other headers next to it.
    """
    return file.absolute().parent.resolve() / file.name


def _inside(place: Path) -> str:
    """Return a path relative to the current folder; empty if it is outside."""
    try:
        return place.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return ""


def _name(place: Path) -> str:
    """Return the name of a program in records: ``kernel.cu``, ``other/kernel.cu``.

    Outside the current folder it is ``kernel.cu@3fa9c1``, since no record names a folder of the machine.
    """
    return one_line(_inside(place) or f"{place.name}@{digest_of(place)[:DIGITS]}")


def _shown(folder: Path, place: Path) -> str:
    """Return an include directory relative to the current folder, if that contains both it and the program."""
    folder = folder.resolve()
    inside = _inside(folder) if _inside(place) else ""
    return inside or f"{folder.name}@{digest_of(folder)[:DIGITS]}"


def digest_of(place: Path) -> str:
    """Return the key that separates programs of the same name in records."""
    return hashlib.sha256(os.fsencode(place)).hexdigest()[: 2 * DIGITS]


def _line(words: Sequence[str]) -> str:
    """Return options as one unique line. A long line is cut and ends with a digest of the whole."""
    text = " ".join(map(shlex.quote, words))
    line = one_line(text, _LONGEST)
    return (
        line
        if line == text
        else f"{line} #{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:DIGITS]}"
    )


def _definition(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not _MACRO.fullmatch(name):
        raise UsageError(f"-D {text!r}: {name!r} is not the name of a macro")
    if not equals:
        return name, 1
    return name, int(value) if re.fullmatch(r"-?\d+", value) else value
