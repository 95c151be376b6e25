"""Programs in texts of a Python file, as cases."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from pathlib import Path

from harness.diagnostics import one_line
from harness.model import Case, OptionRule, Variant
from harness.model.condition import Condition
from harness.project.strings import Text, texts_of
from harness.records.atomic import replace_files
from harness.toolkits.store import data_folder


def text_cases(path: Path, name: str) -> tuple[list[Case], list[str]]:
    """A case for each program in a file, and what of it cannot be told without running it.

    A compiler needs a file: the text is written below cumatrix's data folder, under a hash of it, with a directive in front by which every
    message names the Python file and the line there.

    Parameters
    ----------
    path : Path
        The Python file.
    name : str
        What it is called in records.
    """
    texts, unread = texts_of(path)
    cases = []
    names = Counter(text.name for text in texts)
    calls = Counter((text.call, text.name) for text in texts)
    for text in texts:
        # Several of one name are told apart by what takes them, and where that is the same by their lines.
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
    """Include directories as they are found from the current folder, where the program would run."""
    return [f"-I{os.path.abspath(word[2:])}" if word.startswith("-I") and len(word) > 2 else word for word in options]
