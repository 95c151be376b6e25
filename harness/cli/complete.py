"""Shell completion of backends, releases, architectures, libraries and cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import FishComplete, add_completion_class

from harness.backends import BACKENDS
from harness.errors import UsageError
from harness.libraries import with_releases

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]

_BEGUN = re.compile(r"^(?:.*(?:,|\.\.))?")
"""Pattern of the text before the last item of a list or range."""


def in_list(names: Callable[[], Iterable[str]]) -> Complete:
    """Return a completion of the last item of ``a,b`` or ``a..b``, without items that are already named."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # only shells need this import

        match = _BEGUN.match(incomplete)
        before = match[0] if match else ""
        begun, taken = incomplete[len(before) :], set(before.rstrip(",").split(","))
        return [CompletionItem(f"{before}{name}") for name in names() if name.startswith(begun) and name not in taken]

    return complete


def _backends() -> Iterable[str]:
    return (*BACKENDS, "all")


def _toolkits() -> Iterable[str]:
    from harness.tables import read_table  # loads tomllib; help stays fast

    return (*sorted(read_table("toolkits/releases.toml"), key=_numbers), "all", "local")


def _numbers(release: str) -> list[int]:
    return [int(number) for number in release.split(".")]


def _targets() -> Iterable[str]:
    from harness.model.target import KNOWN_TARGETS, VENDORS  # help stays fast

    return (*map(str, KNOWN_TARGETS), "native", "all", *VENDORS)


def _libraries() -> Iterable[str]:
    return (f"{name}=" for name in with_releases())


def _header_libraries() -> Iterable[str]:
    from harness.tables import read_table

    return (f"{name}=" for name in read_table("toolkits/libraries.toml"))


def _host_compilers() -> Iterable[str]:
    from harness.engine.program_axes import on_path

    return (*(compiler.name for compiler in on_path()), "all")


backends, toolkits, targets = in_list(_backends), in_list(_toolkits), in_list(_targets)
libraries, header_libraries = in_list(_libraries), in_list(_header_libraries)
host_compilers = in_list(_host_compilers)


def cases(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete topics and names of cases in the folders of ``--cases``, without reading a case."""
    from click.shell_completion import CompletionItem

    given = ctx.params.get("cases") or ("cases",)
    folders: Sequence[str | Path] = given if isinstance(given, list | tuple) else (given,)
    named = sorted(
        {
            path.parent.relative_to(folder).as_posix()
            for folder in folders
            for path in Path(folder).glob("*/*/case.toml")
        }
    )
    topics = dict.fromkeys(name.partition("/")[0] for name in named)
    # Offer topics first, since all names at once would fill pages.
    offered = [*topics, *(name for name in named if "/" in incomplete)]
    return [CompletionItem(name) for name in offered if name.startswith(incomplete)]


EXAMPLE = """'cc >= "8.0" and backend == "numba"'"""


def where_option(example: str, what: str = "Only cells for which this holds") -> Callable[[Any], Any]:
    """Return the option ``--where``.

    Parameters
    ----------
    example : str
        Useful condition for this command.
    what : str
        Effect of the condition on the command.
    """
    return click.option(
        "--where",
        metavar="CONDITION",
        callback=_not_empty,
        help=f"{what}. Example: {example}. Names: docs/selection.md.",
    )


def _not_empty(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse an empty condition, for example from an unset variable, which would select everything."""
    if value is not None and not value.strip():
        raise UsageError(f"--where has no condition: write one, as in {EXAMPLE}")
    return value


_SPLIT = 'string split ","'


@add_completion_class
class FishWords(FishComplete):
    """Completion for fish.

    click's script would split a completion from its type at every comma instead of the first.
    """

    source_template = FishComplete.source_template.replace(_SPLIT, 'string split -m 1 ","')
