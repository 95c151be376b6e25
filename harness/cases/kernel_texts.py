"""Kernels in the text of a program, found without a compiler, and the reasons why a build lacks them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.cases.preprocessor import SourceLine, all_lines
from harness.model import Target
from harness.protocol.messages import CellJob
from harness.protocol.process_output import Unreadable, read_plain

_TOKEN = re.compile(r"[A-Za-z_]\w*|\S")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"[A-Z_][A-Z0-9_]*")
# Words with parentheses in front of a kernel's name: __launch_bounds__(256), __attribute__((used)).
_ATTRIBUTE = re.compile(r"__\w+__|decltype|alignas|noexcept|requires")
_GLOBAL = "__global__"
# Headers without kernels: those of the C++ library and of CUDA.
_PUBLIC = re.compile(
    r"<(?:\w+|(?:std|assert|math|float|limits|string|time|mma|cuda|curand_|cooperative_groups)\w*\.h|(?:cuda|cub|thrust|nv|cooperative_groups)/[^>]*)>"
)
_LONGEST = 400  # tokens of a head; the head of a kernel is shorter


class Form(StrEnum):
    """Forms of a kernel in a text."""

    DEFINED = "defined"
    TEMPLATE = "template"
    INSTANCE = "instance"
    DECLARED = "declared"


@dataclass(frozen=True, kw_only=True)
class KernelText:
    """A kernel in a text.

    Parameters
    ----------
    name : str
        Name without namespaces; empty if a macro makes the name.
    line : int
        Line of ``__global__``, from 1.
    form : Form
        A definition, a template, an explicit instance of a template, or a declaration.
    live : bool
        Whether the compiler reaches the kernel, according to the text.
    guard : str
        Outermost enclosing condition that is not known to hold.
    """

    name: str
    line: int
    form: Form
    live: bool
    guard: str


@dataclass(frozen=True)
class KernelsOfText:
    """The kernels of a text, and whether the text may have others.

    Parameters
    ----------
    kernels : tuple of KernelText
        Kernels, in order.
    hidden : bool
        Whether a macro contains ``__global__``, or an included header is neither CUDA's nor the C++ library's.
    """

    kernels: tuple[KernelText, ...]
    hidden: bool


def kernels_of(text: str, macros: Mapping[str, str]) -> KernelsOfText:
    """Read the kernels of CUDA C++, ignoring comments and string literals.

    Parameters
    ----------
    text : str
        CUDA C++ source.
    macros : Mapping
        Definitions before the first line.
    """
    found, defined, hidden = [], set[str](), False
    head: list[str] = []
    begin: SourceLine | None = None
    for line in all_lines(text, macros):
        if line.directive == "define":
            hidden |= _GLOBAL in line.text
            defined.update(_WORD.findall(line.text)[:1])
        elif line.directive == "include":
            hidden |= not _PUBLIC.match(line.text)
        for token in () if line.directive else _TOKEN.findall(line.text):
            if token in "{};":
                if begin and (kernel := _kernel(head, token, begin, defined)):
                    found.append(kernel)
                head, begin = [], None
            elif len(head) < _LONGEST:
                head.append(token)
                if token == _GLOBAL and begin is None:
                    begin = line
    return KernelsOfText(tuple(found), hidden)


def _kernel(head: Sequence[str], end: str, line: SourceLine, macros: set[str]) -> KernelText | None:
    if end == "}":
        return None
    place = head.index(_GLOBAL)
    before = " ".join(head[:place])
    name = _name(head[place + 1 :])
    if "template" in head[:place]:
        form = (
            Form.TEMPLATE if re.search(r"template < (?!>)", before) else Form.INSTANCE if end == ";" else Form.DEFINED
        )
        if end == ";" and form is Form.TEMPLATE:
            form = Form.DECLARED
    else:
        form = Form.DEFINED if end == "{" else Form.DECLARED
    made = name in macros or bool(_MACRO.fullmatch(name))
    return KernelText(
        name="" if made else name, line=line.number, form=form, live=line.live, guard=line.guard
    )  # fmt: skip


def _name(tokens: Sequence[str]) -> str:
    """Return the name in front of the parameters; empty for the arguments of a macro."""
    place = 0
    while place < len(tokens):
        if tokens[place] != "(":
            place += 1
            continue
        behind = _behind(tokens, place)
        owner = _owner(tokens[:place])
        if not _ATTRIBUTE.fullmatch(owner):
            return "" if tokens[behind : behind + 1] == ["("] else owner
        place = behind
    return ""


def _behind(tokens: Sequence[str], place: int) -> int:
    """Return the position after the parenthesis that closes the one at `place`."""
    depth = 0
    for number in range(place, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[number], 0)
        if not depth:
            return number + 1
    return len(tokens)


def _owner(tokens: Sequence[str]) -> str:
    """Return the word in front of a parenthesis, without template arguments."""
    depth = 0
    for token in reversed(tokens):
        depth += {">": 1, "<": -1}.get(token, 0)
        if not depth and token != "<":
            return token if _WORD.fullmatch(token) else ""
    return ""


_SHOWN = 3


def why_no_kernels(texts: Mapping[str, str], macros: Mapping[str, str]) -> str:
    """Return the reason why a build has no kernels; empty if the texts do not prove one.

    Parameters
    ----------
    texts : Mapping
        CUDA C++ by file name.
    macros : Mapping
        Definitions before the first line, including the architecture.
    """
    reasons = []
    for name, text in texts.items():
        found = kernels_of(text, macros)
        if not found.kernels and found.hidden:
            return ""
        if not found.kernels:
            reasons.append(f"{name} has no {_GLOBAL} function")
        there = {each.name for each in found.kernels if each.form is not Form.DECLARED}
        explained = [
            _why(each, name) for each in found.kernels if each.form is not Form.DECLARED or each.name not in there
        ]
        if not all(explained):
            return ""
        reasons += explained
    more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    return "; ".join(reasons[:_SHOWN]) + more


def _why(kernel: KernelText, file: str) -> str:
    place = f"{kernel.name or 'a kernel'} ({file}:{kernel.line})"
    if kernel.guard:
        return f"{place} is behind `{kernel.guard}`"
    if kernel.form is Form.TEMPLATE:
        return f"{place} is a template without an instance"
    return f"{place} is declared, not defined" if kernel.form is Form.DECLARED else ""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """Kernels that a build of a text must contain.

    Parameters
    ----------
    names : tuple of str
        Definitions and explicit instances without a guard.
    count : int
        Minimum number of kernels without such names: 1 for a kernel behind a guard or with a name from a macro, 0 for
        templates alone.
    comment : str
        Reason for a number instead of names; empty for names.
    """

    names: tuple[str, ...] = ()
    count: int = 0
    comment: str = ""


def required_of(text: str, macros: Mapping[str, str]) -> Requirement:
    """Return the requirement that follows from a text; parameters as for `kernels_of`."""
    kernels = [each for each in kernels_of(text, macros).kernels if each.guard != "#if 0"]
    whole = [each for each in kernels if each.form in (Form.DEFINED, Form.INSTANCE)]
    names = tuple(dict.fromkeys(each.name for each in whole if each.name and not each.guard))
    if names:
        return Requirement(names=names)
    for each in whole:
        what = f"is behind `{each.guard}`" if each.guard else "has its name from a macro"
        return Requirement(count=1, comment=f"the kernel in line {each.line} {what}")
    for each in kernels:
        if each.form is Form.TEMPLATE:
            what = f"{each.name or 'the kernel'} in line {each.line} is a template"
            return Requirement(comment=f"{what}: require by name what a run shows of it")
    return Requirement()


NOTE = "no kernel came out: "
_MOST = 2 << 20
_DEFINE = re.compile(r"(?:-D|--define-macro=)([A-Za-z_]\w*)(?:=(.*))?", re.DOTALL)


def note_of(job: CellJob, name: str, *, nvcc: bool) -> str:
    """Return a note on why a cell has no kernels; empty if the texts do not prove a reason.

    Parameters
    ----------
    job : CellJob
        The cell.
    name : str
        Name of the program in messages.
    nvcc : bool
        Whether nvcc compiles the cell, instead of NVRTC.
    """
    if job.source.suffix == ".py":
        return ""
    texts: dict[str, str] = {}
    for path in (job.source, *job.together):
        try:
            texts[name if path == job.source else path.name] = read_plain(Path(path), _MOST).decode("utf-8", "replace")
        except (OSError, Unreadable):
            return ""
    reason = why_no_kernels(texts, _macros(job, nvcc=nvcc))
    return f"{NOTE}{reason}" if reason else ""


def _macros(job: CellJob, *, nvcc: bool) -> dict[str, str]:
    given = {name: str(int(value) if isinstance(value, bool) else value) for name, value in job.definitions.items()}
    flags = [found for flag in job.options.get("flags", []) if (found := _DEFINE.fullmatch(flag))]
    return {
        "__CUDACC__": "1",
        **({} if nvcc else {"__CUDACC_RTC__": "1"}),
        "__CUDA_ARCH__": str(Target.parse(job.target).cc * 10),
        **given,
        **{found[1]: found[2] or "1" for found in flags},
    }
