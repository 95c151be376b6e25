"""Hooks of mkdocs: pages from outside docs/, generated pages, and links to files that are not on the site."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

ELSEWHERE = {
    "CONTRIBUTING.md": "project/contributing.md", "CHANGELOG.md": "project/changelog.md", "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/code_of_conduct.md", "benchmarks/README.md": "project/benchmarks.md", "README.md": "index.md",
}  # fmt: skip
"""Paths on the site, by path in the repository."""

_LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_NAMED = re.compile(r"\[([^\[\]]*)\]\{(title='[^']*')\}")
_CODE = re.compile(r"(`+[^`]*`+)")
_FENCE = re.compile(r"^(```|~~~)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/ and the generated pages."""
    for source, place in ELSEWHERE.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, place, content=relinked(text, source, place)))
    files.append(File.generated(config, "reference/commands.md", content=commands()))
    files.append(File.generated(config, "reference/package.md", content=package()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of pages in docs/."""
    place = page.file.src_uri
    return markdown if page.file.generated_by else relinked(markdown, f"docs/{place}", place)


def relinked(text: str, source: str, place: str) -> str:
    """Rewrite the links of a page for the site. A file that is not on the site is named instead of linked.

    Parameters
    ----------
    text : str
        The page, with links as in the repository.
    source, place : str
        Path of the page in the repository, and on the site.

    Raises
    ------
    PluginError
        If a link leads to a missing file.
    """

    def rewrite(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        if not (ROOT / target).exists():
            raise PluginError(f"{source}: {match[1]} is not there")
        if target.startswith("docs/") and not target.startswith("docs/schemas/") and (ROOT / target).is_file():
            page = target.removeprefix("docs/")
        elif target in ELSEWHERE:
            page = ELSEWHERE[target]
        else:
            return f"]{{title='{target} in the repository'}}"
        return f"]({posixpath.relpath(page, posixpath.dirname(place) or '.')}{match[2] or ''})"

    lines, fenced = [], False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        lines.append(
            line
            if fenced
            else "".join(
                part if part.startswith("`") else _plain(_LINK.sub(rewrite, part)) for part in _CODE.split(line)
            )
        )
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return _NAMED.sub(r"<span \2>\1</span>", text)


def commands() -> str:
    """Return a page with the help of every command."""
    from harness.cli.main import cumatrix

    os.environ["COLUMNS"] = "110"
    parts = ["# Commands\n", "As `cumatrix … --help` prints them.\n"]
    for words, command, context in _commands(
        cumatrix, click.Context(cumatrix, info_name="cumatrix", terminal_width=110, max_content_width=110)
    ):
        parts += [f"## {words}\n", "```text", command.get_help(context), "```\n"]
    return "\n".join(parts)


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, click.Context(inner, parent=context, info_name=name))


def package() -> str:
    """Return a page with the docstrings of the public package."""
    names = [
        "run",
        "iter_run",
        "try_",
        "iter_try",
        "read",
        "explain",
        "ask",
        "bisect",
        "repro",
        "Results",
        "Cell",
        "Diagnostic",
        "Kernel",
        "Explanation",
        "Cause",
        "Answer",
        "Finding",
        "ToolAnswer",
        "Bisection",
        "Border",
        "Reproduction",
    ]
    from cumatrix import _PLACES

    lines = [
        "# The package\n",
        "`import cumatrix`; [From Python](../api.md) shows it at work.\n",
        "## Functions and results\n",
    ]
    lines += [f"::: {_PLACES[name]}.{name}\n" for name in names]
    lines += ["## Keywords\n", *(f"::: cumatrix._run.{name}\n" for name in ("Options", "TryOptions"))]
    lines += [
        "## Errors\n",
        *(
            f"::: {_PLACES[name]}.{name}\n"
            for name in ("CumatrixError", "UsageError", "RecordError", "NothingToRun", "PartUnavailable")
        ),
    ]
    lines += [
        "## For backends of other distributions\n",
        "::: cumatrix.contract.BackendContract\n",
        "::: harness.backends.BackendInfo\n",
    ]
    return "\n".join(lines)
