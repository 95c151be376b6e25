#!/usr/bin/env python3
"""Count habits of wording in docstrings, comments, documentation, scripts and templates, and fail if a count rises.

.ci/prose.py              compare with the counts in .ci/prose.toml
.ci/prose.py --list WORD  show every place with a habit
.ci/prose.py --update     write lower counts into .ci/prose.toml
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / ".ci" / "prose.toml"
HABITS = {
    "relative clause": re.compile(r"\A\s*(What|Whether|Why|Whose|Where|How|Who|Which|That)\b"),
    "beside": re.compile(r"\bbeside\b", re.IGNORECASE),
    "whoever": re.compile(r"\b(whoever|whatever is|whichever)\b", re.IGNORECASE),
    "nobody": re.compile(r"\b(nobody|anybody|somebody)\b", re.IGNORECASE),
    "told": re.compile(r"\b(is|are|was|were|be) (told|said|asked for|had|held against)\b", re.IGNORECASE),
    "stands": re.compile(r"\b(stands?|stood|lies?) (for|in|beside|behind|there|below|above|on)\b", re.IGNORECASE),
    "comes to": re.compile(r"\b(comes?|came) (to the same|to an end|of it)\b|\bwhat \w+ comes? to\b", re.IGNORECASE),
    "mend": re.compile(r"\bmend(s|ed|ing)?\b", re.IGNORECASE),
    "anew": re.compile(r"\banew\b", re.IGNORECASE),
    "where for if": re.compile(r"\bwhere (it|there|that|this|none|no|nothing|one|they)\b", re.IGNORECASE),
    "what as a noun": re.compile(r"\b(all|of|than|for|from|with|by|to) what\b", re.IGNORECASE),
    "of which": re.compile(r"\b(of|by|to|from|on|with) (which|whom|whose)\b", re.IGNORECASE),
}
"""Habits by name. The first pattern applies only to the beginning of a docstring."""
EVERYWHERE = ("nobody", "mend", "anew")
"""Habits that also count in scripts, templates and tables."""
_CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`[^`\n]*`")


def places() -> Iterator[tuple[str, str, int]]:
    """Yield name, file and line (from 1) of every habit."""
    for path in sorted([*ROOT.glob("harness/**/*.py"), *ROOT.glob("cumatrix/**/*.py")]):
        text = path.read_text("utf-8")
        for line, prose, is_docstring in [*_docstrings(text), *_comments(text)]:
            yield from _habits(path, line, prose, is_docstring=is_docstring)
    for path in sorted(
        path for kind in ("js", "css", "c", "html", "toml") for path in ROOT.glob(f"harness/**/*.{kind}")
    ):
        for name, file, line in _habits(path, 1, path.read_text("utf-8"), is_docstring=False):
            if name in EVERYWHERE:
                yield name, file, line
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]):
        text = _CODE.sub(lambda match: "\n" * match[0].count("\n"), path.read_text("utf-8"))
        yield from _habits(path, 1, text, is_docstring=False)


def _habits(path: Path, line: int, prose: str, *, is_docstring: bool) -> Iterator[tuple[str, str, int]]:
    prose = _INLINE.sub("``", prose)
    for name, pattern in HABITS.items():
        if name == "relative clause" and not is_docstring:
            continue
        for match in pattern.finditer(prose):
            yield name, str(path.relative_to(ROOT)), line + prose.count("\n", 0, match.start())


def _docstrings(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and text of each string statement: docstrings, and strings below a constant."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value, True


def _comments(text: str) -> Iterator[tuple[int, str, bool]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# "), False


def main() -> int:
    """Compare the counts with the baseline; return 1 if a count is higher."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="HABIT", help="show the places of one habit, or of 'all'")
    parser.add_argument("--update", action="store_true", help="write the present counts")
    options = parser.parse_args()
    found = list(places())
    if options.list:
        for name, path, line in found:
            if options.list in (name, "all"):
                print(f"{path}:{line}: {name}")
        return 0
    counts = Counter(name for name, _, _ in found)
    if options.update:
        BASELINE.write_text("".join(f'"{name}" = {counts[name]}\n' for name in HABITS), "utf-8")
        return 0
    allowed = tomllib.loads(BASELINE.read_text("utf-8"))
    risen = {name: counts[name] for name in HABITS if counts[name] > allowed.get(name, 0)}
    for name, count in risen.items():
        print(f"{name}: {count}, allowed {allowed.get(name, 0)}; `.ci/prose.py --list '{name}'` shows where")
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main())
