"""Reading one ``case.toml``."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.errors import CaseError, Problem, Report, shown
from harness.cases.keys import CASE, NAME
from harness.cases.parameters import read_variants
from harness.cases.rules import read_rules
from harness.cases.sources import read_programs
from harness.cases.tables import check_table
from harness.errors import did_you_mean
from harness.model.case import Case, Variant

FILE_NAME = "case.toml"
MAX_BYTES = 1_000_000
# tomllib needs memory by the square of a dotted key's length.
MAX_LINE = 4_000


def load_case(path: Path, root: Path) -> Case:
    """Read and check a case.

    Parameters
    ----------
    path : Path
        The ``case.toml``, at ``root/<topic>/<name>/case.toml``.
    root : Path
        The folder of cases.

    Raises
    ------
    CaseError
        With everything that is wrong, each with file, line and key.
    """
    path = Path(path)
    return read_case(read_text(path, root), path, root)


def read_text(path: Path, root: Path) -> str:
    """The text of a case file, without a byte order mark; raises `CaseError` as `load_case`."""
    return _read(path, display(path, root))


def read_case(text: str, path: Path, root: Path) -> Case:
    """Check the text of a case, which need not be in its file yet.

    Parameters
    ----------
    text : str
        Of the ``case.toml``.
    path, root : Path
        As for `load_case`.

    Raises
    ------
    CaseError
        As `load_case`.
    """
    shown_path = display(path, root)
    name = _name(path, Path(root), shown_path)
    data = _parse(text, shown_path)
    report = Report(shown_path, text)
    _check_integers(report, data)
    report.close()
    case = _case(report, name, path, data)
    report.close()
    assert case is not None  # a report without problems has a case
    return case


def display(path: Path, root: Path) -> str:
    """A path as messages show it: with the folder of cases in front, ``cases/wmma/x/case.toml``."""
    try:
        return (Path(root).resolve().name / path.resolve().relative_to(Path(root).resolve())).as_posix()
    except (AttributeError, TypeError, ValueError, OSError, RuntimeError):
        return path.as_posix()


def _case(report: Report, name: str, path: Path, data: dict[str, Any]) -> Case | None:
    good = check_table(report, (), data, CASE)
    sources, entries = read_programs(report, path.parent, good)
    _known_backends(report, good.get("backends", []))
    libraries, variants, parameters = read_variants(report, path.parent, good)
    kernels = list(dict.fromkeys(name for names in entries.values() for name in names))
    rules = read_rules(report, path.parent, good, kernels, variants, parameters)
    if report.problems:
        return None
    return Case(
        name=name,
        path=path,
        title=good["title"],
        description=good.get("description", "").strip(),
        features=tuple(good.get("features", ())),
        links=tuple(good.get("links", ())),
        sources=sources,
        entries=entries,
        backends=tuple(good.get("backends", ())),
        heavy=good.get("heavy", False),
        libraries=libraries,
        variants=variants or (Variant(labels={}, definitions={}),),
        **rules,
    )


def _known_backends(report: Report, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name not in BACKENDS:
            report.add(("backends",), f"entry {index + 1}: unknown backend {shown(name)}{did_you_mean(name, BACKENDS)}")


def _name(path: Path, root: Path, shown_path: str) -> str:
    try:
        # Where the file really lies counts: a link that leads out of the library is no case of it.
        parts = path.resolve().relative_to(root.resolve()).parts
    except (ValueError, OSError, RuntimeError):
        raise _failure(shown_path, f"lies outside the folder of cases, {root}") from None
    if len(parts) != 3 or parts[-1] != FILE_NAME or not all(re.match(NAME, part) for part in parts[:2]):
        message = f"a case lies at <topic>/<name>/{FILE_NAME} below the folder of cases"
        raise _failure(shown_path, f"{message}, with names of lower-case letters, digits, - _ and .")
    return "/".join(parts[:2])


def _read(path: Path, shown_path: str) -> str:
    try:
        if not path.is_file():
            raise _failure(shown_path, "there is no such file")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise _failure(shown_path, f"cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise _failure(shown_path, f"is larger than {MAX_BYTES // 1_000_000} MB, which no case needs")
    for bad, message in ((data.find(b"\0"), "has a NUL byte"), (_not_utf8(data), "is not UTF-8")):
        if bad >= 0:
            line = data[:bad].count(b"\n") + 1
            raise _failure(shown_path, f"{message}: is this a text file?", line)
    text = data.decode("utf-8-sig")
    for number, content in enumerate(text.split("\n"), start=1):
        if len(content) > MAX_LINE:
            raise _failure(shown_path, f"a line may have {MAX_LINE} characters, this one has {len(content)}", number)
    return text


def _not_utf8(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _parse(text: str, shown_path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _failure(shown_path, "is nested too deeply") from None
    except ValueError as error:
        # tomllib puts the place into the sentence; a number that is too long comes without one.
        match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = int(match[1]) if match and match[1] else text.count("\n") + 1 if match else 0
        message = str(error)[: match.start()] if match else str(error)
        raise _failure(shown_path, f"not valid TOML: {message}", line) from None


def _check_integers(report: Report, data: dict[str, Any]) -> None:
    """Integers have 64 bits in TOML; Python's have any number, and one that is longer than 4300 digits cannot even be shown."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), data)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*key, name), item) for name, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*key, index), item) for index, item in enumerate(value)]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            report.add(key, "is an integer that does not fit into 64 bits")


def _failure(file: str, message: str, line: int = 0) -> CaseError:
    return CaseError([Problem(file=file, line=line, key="", message=message)])
