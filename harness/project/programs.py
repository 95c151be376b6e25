"""The programs of a configuration as cases."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS, host_backends
from harness.cases.load import project_at, read_variants
from harness.cases.rules import read_rules, required_kernels, rules_in
from harness.cases.sources import is_pattern, matching
from harness.cases.toml import Key, Report, shown
from harness.diagnostics import one_line
from harness.errors import UsageError, did_you_mean
from harness.model import Case, OptionRule, Variant
from harness.model.case import RequiredKernels
from harness.model.condition import Condition
from harness.project.commands import units_of
from harness.project.config import Config, TableReport, definitions_of, from_root, listed, only, split_flags
from harness.project.detect import RECORD_SETUP, has_kernels, rules_of_unit
from harness.project.python_ast import Text, texts_of
from harness.project.recording import read_kernels
from harness.project.setup_py import extensions_of
from harness.records.files import replace_files
from harness.toolkits.store import data_folder


def text_cases(path: Path, name: str) -> tuple[list[Case], list[str]]:
    """Create a case for each program in a file's strings, and list the programs that only running the file would reveal.

    A compiler needs a file. The text is written below cumatrix's data folder, under its hash, with a ``#line``
    directive, so messages name the Python file and its lines.

    Parameters
    ----------
    path : Path
        Python file.
    name : str
        Name of the file in records.
    """
    texts, unread = texts_of(path)
    cases = []
    names = Counter(text.name for text in texts)
    calls = Counter((text.call, text.name) for text in texts)
    for text in texts:
        # The calling function separates programs of the same name; the line separates those with the same function.
        called = text.name if names[text.name] == 1 else f"{text.call} {text.name}"
        called += f" in line {text.line}" if calls[text.call, text.name] > 1 else ""
        cases.append(_case(path, f"{name}:{called}", text))
    return cases, unread


def _case(path: Path, name: str, text: Text) -> Case:
    program = text.program(path.name)
    digest = hashlib.sha256(f"{path.absolute()}\0{name}\0{program}".encode("utf-8", "replace")).hexdigest()
    words = re.sub(r"[^A-Za-z0-9_.-]+", "-", name.rpartition(":")[2])[:40] or "text"
    place = data_folder() / "texts" / digest[:2] / digest[2:18] / f"{words}.cu"
    if not place.is_file():
        replace_files({place: program.encode("utf-8", "replace")})
    options = (OptionRule(when=Condition.always(), values={"flags": _absolute(text.options)}),) if text.options else ()
    return Case(
        name=name,
        path=place,
        program=hashlib.sha256(os.fsencode(f"{path.absolute()}:{name}")).hexdigest()[:12],
        title=one_line(f"{text.call} in line {text.line} of {path.name}", 200),
        sources={text.language: place},
        variants=(Variant(labels={}, definitions={}),),
        options=options,
    )


def _absolute(options: tuple[str, ...]) -> list[str]:
    """Return options with absolute include directories; relative ones start from the current folder, in which the program runs."""
    return [f"-I{os.path.abspath(word[2:])}" if word.startswith("-I") and len(word) > 2 else word for word in options]


LANGUAGES: Mapping[str, str] = {".cu": "cuda", ".cuh": "cuda", ".py": "python"}
"""Languages by suffix. A pattern ignores files with other suffixes."""

_NAMED = {**LANGUAGES, ".cpp": "cuda", ".cc": "cuda", ".cxx": "cuda"}
_LISTS = ("include", "flags", "exclude", "features", "links")
_GENERAL = ("include", "define", "std", "flags", "device-only", "toolkit-first", "options", "unsupported", "expect")
"""Top-level keys that apply to a file which no table names."""

_RULES = ("options", "unsupported", "expect")


def configured(config: Config) -> list[Case]:
    """Return a case per file that a configuration names, and per program of several files.

    Raises
    ------
    CaseError
        If the configuration has errors, all of them with file, line and key.
    """
    report = config.report()
    if not config.tables:
        return []
    top, *others = config.tables
    _known_kernels(config, report, top)
    cases: list[Case] = []
    if {"sources", "extension", "commands"} & set(top):
        cases += _Program(config, report, (), top).cases()
    for index, table in enumerate(others):
        whole = {
            name: value
            for name, value in top.items()
            if name not in ("sources", "extension", "commands", "together", *_RULES)
        }
        for name, value in table.items():
            whole[name] = [*listed(whole.get(name, [])), *listed(value)] if name in _LISTS else value
        whole["define"] = {**definitions_of(top.get("define")), **definitions_of(table.get("define"))}
        own = TableReport(report, ("programs", index))
        _known_kernels(config, own, table)
        # Top-level rules apply to every program, after the program's own; later options win.
        cases += _Program(config, own, ("programs", index), whole, above=(report, top)).cases()
    seen: dict[str, Case] = {}
    for case in cases:
        if seen.setdefault(case.name, case) is not case:
            report.add(
                ("programs",),
                f"{case.name} is named twice: give one of the programs a name, or leave the file out with exclude",
            )
    report.close()
    return cases


def _known_kernels(config: Config, report: Report, table: Mapping[str, Any]) -> None:
    """Report patterns of required kernels that match no file."""
    value = table.get("kernels")
    for pattern in value if isinstance(value, dict) else ():
        if not matching(config.root, [pattern]):
            report.add(("kernels", pattern), f"no file matches, seen from {config.root}")


def program_for(config: Config, file: Path) -> Case | None:
    """Return the configured program for a file, or the file alone with the top-level settings.

    The result is None if the project has neither.

    Raises
    ------
    CaseError
        As `configured`.
    """
    place = Path(os.path.abspath(file))
    for case in configured(config):
        if place in [Path(os.path.abspath(path)) for path in (*case.sources.values(), *case.together)]:
            return case
    general = [name for name in (config.tables[0] if config.tables else ()) if name in _GENERAL]
    if not general or not place.is_relative_to(config.root) or place.suffix not in _NAMED:
        return None
    table = {name: value for name, value in config.tables[0].items() if name in _GENERAL}
    report = config.report()
    cases = _Program(config, report, (), {**table, "sources": [place.relative_to(config.root).as_posix()]}).cases()
    report.close()
    return next((case for case in cases if place in map(Path, map(os.path.abspath, case.sources.values()))), None)


@dataclass(frozen=True)
class _Program:
    """A table of a configuration that names programs."""

    config: Config
    report: Report
    key: Key
    table: Mapping[str, Any]
    above: tuple[Report, Mapping[str, Any]] | None = None

    def cases(self) -> list[Case]:
        """Return the cases of the table; empty if the table has errors, which are reported."""
        before = len(self.report.problems)
        if "commands" in self.table:
            return self._of_commands()
        if "sources" not in self.table and "extension" not in self.table:
            self.report.add(("sources",), 'is missing: name files, as in sources = ["csrc/*.cu"]')
        found = self._extension() if "extension" in self.table else {}
        table = {
            **self.table,
            **{name: [*listed(self.table.get(name, [])), *value] for name, value in found.items() if name != "define"},
        }
        define = {**found.get("define", {}), **definitions_of(self.table.get("define"))}
        language = table.get("language") or ("torch" if "extension" in table else "")
        files = self._files(table, language)
        include = self._include(table)
        libraries, variants, parameters = read_variants(self.report, self.config.root, table)
        variants = tuple(
            Variant(labels=each.labels, libraries=each.libraries, definitions={**define, **each.definitions})
            for each in variants or (Variant(labels={}, definitions={}),)
        )
        rules = read_rules(self.report, self.config.root, _rules(table), [], variants, parameters)
        options, unsupported, expectations = rules["options"], rules["unsupported"], rules["expectations"]
        if self.above:
            more = read_rules(self.above[0], self.config.root, _rules(self.above[1]), [], variants, parameters)
            options = (*more["options"], *options)
            unsupported, expectations = (*unsupported, *more["unsupported"]), (*expectations, *more["expectations"])
        options = tuple(replace(rule, values=from_root(self.config.root, rule.values)) for rule in options)
        self._known_backends(table)
        own = self._options(table, include)
        kernels = self._kernels(table)
        if len(self.report.problems) > before:
            return []
        groups = [files] if table.get("together") else [[file] for file in files]
        cases = []
        for group in groups:
            spoken = [rules_in(self.config.place(name), parameters) for name in group]
            path = self.config.place(group[0])
            kind = language or _NAMED[path.suffix]
            whole = Case(
                name=self._name(group, files),
                path=path,
                title=table.get("title", f"{group[0]}, as the project compiles it"),
                features=tuple(table.get("features", ())),
                links=tuple(table.get("links", ())),
                sources={kind: path},
                together=tuple(self.config.place(name) for name in group[1:]),
                root=self.config.root,
                project=project_at(self.config.root, self.config.project),
                backends=tuple(table.get("backends", ())),
                kernels=kernels(group),
                libraries=libraries,
                variants=variants,
                unsupported=(*(rule for _, rules in spoken for rule in rules), *unsupported),
                expectations=(*(rule for rules, _ in spoken for rule in rules), *expectations),
            )
            if kind == "python":
                texts, _ = text_cases(path, whole.name)
                cases += [_of_text(each, whole, (*own, *options)) for each in texts]
                if not texts or has_kernels(path):
                    signatures = table.get("signatures", {})
                    cases.append(replace(whole, entries={kind: dict(signatures)} if signatures else {}))
                continue
            extra = host_backends() if kind == "cuda" and path.suffix != ".cu" else ()
            cases.append(replace(whole, options=(*(only(name, ["-x", "cu"]) for name in extra), *own, *options)))
        return cases

    def _of_commands(self) -> list[Case]:
        """Return a case per unit of a compilation database: for nvcc, with the options of the build."""
        for name in ("sources", "extension", "include", "define", "std", "flags", "together"):
            if name in self.table:
                self.report.add(
                    (name,), "does not go with commands, which have it: name other programs in [[programs]]"
                )
        self._known_backends(self.table)
        before = len(self.report.problems)
        place = self.config.root / self.table["commands"]
        try:
            units, counts = units_of(place), read_kernels(place)
        except UsageError as error:
            self.report.add(("commands",), str(error))
            return []
        missing = [unit.file for unit in units if not unit.file.is_file()]
        if missing:
            self.report.add(
                ("commands",),
                f"{os.path.relpath(missing[0], self.config.root)} is not there{f', nor {len(missing) - 1} more files' if len(missing) > 1 else ''}: record the build again",
            )
        if not units:
            self.report.add(("commands",), f"{self.table['commands']} has no unit of CUDA C++ (.cu)")
        libraries, variants, parameters = read_variants(self.report, self.config.root, self.table)
        rules = read_rules(self.report, self.config.root, _rules(self.table), [], variants, parameters)
        kernels = self._kernels(self.table)
        if len(self.report.problems) > before:
            return []
        names = [os.path.relpath(unit.file, self.config.root) for unit in units]
        numbers: Counter[str] = Counter()
        cases = []
        for name, unit in zip(names, units, strict=True):
            numbers[name] += 1
            unit_name = name if numbers[name] == 1 else f"{name} ({numbers[name]})"
            spoken, inapplicable = rules_in(unit.file)
            define = definitions_of(list(unit.define))
            cases.append(Case(
                name=unit_name,
                path=unit.file,
                title=self.table.get("title", f"{name}, as the project's build compiles it"),
                features=tuple(self.table.get("features", ())),
                links=tuple(self.table.get("links", ())),
                sources={"cuda": unit.file},
                root=self.config.root,
                project=project_at(self.config.root, self.config.project),
                backends=tuple(self.table.get("backends", host_backends())),
                kernels=kernels([name]) or (RequiredKernels(count=counts[unit_name]) if counts.get(unit_name) else None),
                ships=unit.targets,
                libraries=libraries,
                variants=tuple(
                    replace(each, definitions={**define, **each.definitions})
                    for each in variants or (Variant(labels={}, definitions={}),)
                ),
                options=(
                    *(only(host, ["-x", "cu"]) for host in host_backends() if unit.file.suffix != ".cu"),
                    *rules_of_unit(unit), *rules["options"],
                ),
                unsupported=(*inapplicable, *rules["unsupported"]),
                expectations=(*spoken, *rules["expectations"]),
            ))  # fmt: skip
        return cases

    def _extension(self) -> dict[str, Any]:
        path = self.config.root / self.table["extension"]
        try:
            found = extensions_of(path)
        except UsageError as error:
            self.report.add(("extension",), str(error))
            return {}
        wanted = [each for each in found if each.sources]
        if not wanted:
            what = (
                "has no CUDAExtension"
                if not found
                else "names no source (.cu) that can be told without running it: write sources"
            )
            self.report.add(("extension",), f"{self.table['extension']} {what}")
            return {}
        for each in wanted:
            for what in each.unread:
                self.report.add(
                    ("extension",),
                    f"{self.table['extension']}:{each.line}: {what}: only running it shows this; record the build "
                    f"(`{RECORD_SETUP}`), or write sources, include, define and flags",
                )
        base = os.path.dirname(self.table["extension"])
        # Folders that only a build creates are missing here; nvcc also ignores missing ones.
        there = [folder for each in wanted for folder in each.include if (self.config.root / base / folder).is_dir()]
        return {
            "sources": [os.path.join(base, name) for each in wanted for name in each.sources],
            "include": [os.path.join(base, folder) for folder in dict.fromkeys(there)],
            "flags": list(dict.fromkeys(flag for each in wanted for flag in each.flags)),
            "define": definitions_of([macro for each in wanted for macro in each.macros]),
        }

    def _files(self, table: Mapping[str, Any], language: str) -> list[str]:
        """Return the names of the program files, relative to the project's folder."""
        excluded = set(matching(self.config.root, listed(table.get("exclude", []))))
        files: dict[str, None] = {}
        for text in listed(table.get("sources", [])):
            if os.path.isabs(text) or not _inside(self.config.root, text):
                self.report.add(("sources",), f"{shown(text)} is not in the project ({self.config.root})")
                continue
            pattern = is_pattern(text)
            known = LANGUAGES if pattern else _NAMED
            there = [name for name in matching(self.config.root, [text]) if not pattern or Path(name).suffix in known]
            if not there:
                what = f"no file matches {shown(text)}" if pattern else f"there is no file {shown(text)}"
                self.report.add(("sources",), f"{what}, seen from {self.config.root}")
            for name in there:
                if Path(name).suffix not in known:
                    self.report.add(("sources",), f"{name} is neither CUDA C++ (.cu) nor Python (.py)")
                elif name not in excluded:
                    files[name] = None
        kinds = {_NAMED[Path(name).suffix] for name in files}
        if (language == "python" and "cuda" in kinds) or (language in ("cuda", "torch") and "python" in kinds):
            self.report.add(("language",), f"{language} is not the language of {next(iter(files))}")
        if table.get("together") and (len(kinds) > 1 or "python" in kinds):
            self.report.add(("together",), "files of one program are all CUDA C++")
        if table.get("together") and not table.get("name") and self.key:
            self.report.add(("name",), "is missing: what the program of these files is called")
        if not files and len(listed(table.get("sources", []))) and not self.report.problems:
            self.report.add(("exclude",), "leaves no file of sources")
        return list(files)

    def _kernels(self, table: Mapping[str, Any]) -> Callable[[Sequence[str]], RequiredKernels | None]:
        """Return a function from a program's files to its required kernels; the first matching pattern of a file counts."""
        value = table.get("kernels")
        if not isinstance(value, dict):
            return lambda _: required_kernels(value)
        by_file: dict[str, RequiredKernels | None] = {}
        for pattern, required in value.items():
            for name in matching(self.config.root, [pattern]):
                by_file.setdefault(name, required_kernels(required))

        def of(group: Sequence[str]) -> RequiredKernels | None:
            found = [each for name in group if (each := by_file.get(name))]
            return RequiredKernels.of_all(found) if found else None

        return of

    def _include(self, table: Mapping[str, Any]) -> list[str]:
        folders = []
        for text in listed(table.get("include", [])):
            place = Path(os.path.normpath(self.config.root / os.path.expanduser(text)))
            if not place.is_dir():
                self.report.add(("include",), f"there is no folder {shown(text)}, seen from {self.config.root}")
            folders.append(str(place.absolute()))
        return folders

    def _known_backends(self, table: Mapping[str, Any]) -> None:
        for name in table.get("backends", ()):
            if name not in BACKENDS:
                self.report.add(("backends",), f"unknown backend {shown(name)}{did_you_mean(name, BACKENDS)}")

    def _options(self, table: Mapping[str, Any], include: list[str]) -> list[OptionRule]:
        common: dict[str, Any] = {"include": include} if include else {}
        if "std" in table:
            common["std"] = table["std"]
        if table.get("device-only"):
            common["depth"] = "device"
        if table.get("toolkit-first"):
            common["toolkit_first"] = True
        flags = split_flags(table.get("flags", ()))
        for name in flags:
            if name and name not in BACKENDS:
                self.report.add(
                    ("flags",), f"{name}:{flags[name][0]}: unknown backend {shown(name)}{did_you_mean(name, BACKENDS)}"
                )
        common |= {"flags": flags.pop("")} if "" in flags else {}
        rules = [OptionRule(when=Condition.always(), values=common)] if common else []
        return [*rules, *(only(name, words) for name, words in flags.items() if name in BACKENDS)]

    def _name(self, group: Sequence[str], files: Sequence[str]) -> str:
        """Return the name of a program: ``csrc/softmax.cu``.

        A table with a name gives ``fast/softmax.cu``, or the name alone if all files form one program.
        """
        given = self.table.get("name", "")
        if self.table.get("together"):
            return given or self.config.root.name
        if not given:
            return group[0]
        common = (
            os.path.commonpath([os.path.dirname(name) for name in files])
            if len(files) > 1
            else os.path.dirname(files[0])
        )
        return f"{given}/{os.path.relpath(group[0], common or '.')}"


def _of_text(text: Case, whole: Case, options: Sequence[OptionRule]) -> Case:
    """Return the case of CUDA C++ in a string, with the configuration of its Python file; options of its call come last."""
    return replace(
        whole, name=text.name, path=text.path, title=text.title, sources=text.sources, options=(*options, *text.options)
    )


def _rules(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table[name] for name in _RULES if name in table}


def _inside(root: Path, text: str) -> bool:
    return Path(os.path.normpath(root / text)).is_relative_to(root)
