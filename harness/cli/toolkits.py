"""``cumatrix toolkits``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from harness.cases.discovery import load_cases
from harness.cli import complete
from harness.cli.command import CommandGroup
from harness.cli.terminal import console_for, say
from harness.errors import PartUnavailable, UsageError
from harness.model import HeaderLibrary, ToolkitRef
from harness.toolkits import LIBRARIES, RELEASES, LibraryStore, ToolkitStore, parse_toolkits
from harness.toolkits.download import pinned
from harness.toolkits.header_libraries import needed, parse_library
from harness.toolkits.releases import PARTS, find_local, parse_parts, parts_among


@click.group(cls=CommandGroup)
def toolkits() -> None:
    """Install and remove CUDA releases from PyPI's wheels.

    They are stored in CUMATRIX_HOME, by default the user's data folder.
    """


@toolkits.command("list")
def list_() -> int:
    """List known CUDA releases with their wheels, this machine's own toolkits, and header libraries, with the installed ones.

    In brackets: wheels of another release, if a release's own wheels lack headers. After "with": further installed
    parts.
    """
    store = ToolkitStore()
    store.sweep()
    LibraryStore().sweep()
    for release in RELEASES.values():
        found = store.find(release.name)
        wheels = " ".join(
            f"{name.removeprefix('nvidia-')}={version}"
            + (f" (of CUDA {release.borrowed[name]})" if name in release.borrowed else "")
            for name, version in release.packages.items()
        )
        parts = parts_among(found.packages, release.name) if found else []
        more = f"  with {', '.join(parts)}" if parts else ""
        say(f"{release.name}  {'installed' if found else '-':9}  {wheels}{more}")
    for name, home in find_local().items():
        say(f"{name}@local  {home}")
    for library in LIBRARIES.values():
        versions = [found.release for found in LibraryStore().installed(library)]
        say(f"{library.name}  {'installed ' + ' '.join(versions) if versions else '-'}")
    return 0


@toolkits.command()
@click.argument("releases", nargs=-1, metavar="[V|LIBRARY==V]…", shell_complete=complete.toolkits)
@click.option("--cases", "with_cases", is_flag=True, help="Also every header library that the cases name.")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path("cases"), show_default=True, help="Folder of cases."
)
@click.option(
    "--with",
    "with_parts",
    metavar="PART,…",
    help=f"Further parts of CUDA, or all: {', '.join(PARTS)}. Some are hundreds of megabytes.",
)
@click.option("--force", is_flag=True, help="Reinstall installed releases.")
def install(releases: tuple[str, ...], with_cases: bool, folder: Path, with_parts: str | None, force: bool) -> int:
    """Install releases: 12.4, 11.8,12.4..13.0 or all; and header libraries: cutlass==3.5.1.

    An installed release keeps its parts.
    """
    if not releases and not with_cases:
        raise UsageError("nothing to install: name a release such as 12.4 or a library such as cutlass==3.5.1")
    console = console_for(sys.stderr)

    def tell(text: str) -> None:
        console.print(text, soft_wrap=True)

    store, libraries = ToolkitStore(tell=tell), LibraryStore(tell=tell)
    wanted = [parse_library(text) for text in releases if "==" in text]
    # The machine's own toolkit needs no installation, and scripts may name it like any other.
    releases = tuple(text for text in releases if "==" not in text and not all(r.local for r in parse_toolkits(text)))
    names = dict.fromkeys(name for ref in _from_wheels(releases) for name in (ref.release, ref.headers))
    if with_parts is not None and not names:
        raise UsageError("--with needs a CUDA release to install parts for, such as 13.0")
    _check_pinned(releases, names)
    parts = parse_parts(with_parts, names) if with_parts is not None else []
    wanted += needed(load_cases(folder)) if with_cases else []
    store.sweep()
    libraries.sweep()
    _install(store, libraries, wanted, names, parts, console, force=force)
    return 0


def _install(
    store: ToolkitStore,
    libraries: LibraryStore,
    wanted: Sequence[tuple[HeaderLibrary, str]],
    names: Collection[str],
    parts: Sequence[str],
    console: Console,
    *,
    force: bool,
) -> None:
    for library, version in wanted:
        with console.status(Text(f"{library.name} {version}")):
            found = libraries.install(library, version, force=force)
        console.print(f"{library.name} {version}: {found.home}", soft_wrap=True)
    for number, name in enumerate(names, 1):
        with console.status(Text(f"CUDA {name} ({number} of {len(names)})")):
            toolkit = store.install(RELEASES[name], parts, force=force)
        has = parts_among(toolkit.packages, name)
        console.print(f"CUDA {name}{' with ' if has else ''}{', '.join(has)}: {toolkit.home}", soft_wrap=True)


@toolkits.command()
@click.argument("release", metavar="V", shell_complete=complete.toolkits)
def path(release: str) -> int:
    """Print the CUDA_HOME of an installed release."""
    (ref,) = parse_toolkits(release)[:1]
    toolkit = ToolkitStore().of(ref)[0]
    if toolkit is None:
        raise PartUnavailable(f"CUDA {ref.release} is not installed: run `cumatrix toolkits install {ref.release}`")
    say(toolkit.home)
    return 0


@toolkits.command()
@click.argument("releases", nargs=-1, required=True, metavar="V|LIBRARY==V…", shell_complete=complete.toolkits)
def remove(releases: tuple[str, ...]) -> int:
    """Remove installed releases and header libraries."""
    store, libraries = ToolkitStore(), LibraryStore()
    store.sweep()
    libraries.sweep()
    for text in (text for text in releases if "==" in text):
        removed = libraries.remove(*parse_library(text))
        say(f"{text}: {'removed' if removed else 'was not installed'}", err=True)
    for ref in _from_wheels(tuple(text for text in releases if "==" not in text)):
        say(f"CUDA {ref.release}: {'removed' if store.remove(ref.release) else 'was not installed'}", err=True)
    return 0


def _check_pinned(texts: Iterable[str], names: Iterable[str]) -> None:
    """Raise `UsageError` for a release with unknown wheels, unless it is named exactly instead of by a range."""
    exact = {name.strip() for text in texts for name in text.replace("+headers", ",").split(",")}
    for name in names:
        unknown = [f"{wheel} {v}" for wheel, v in RELEASES[name].packages.items() if pinned(wheel, v) is None]
        if unknown and name not in exact:
            raise UsageError(
                f"cumatrix does not know the wheels of CUDA {name} ({', '.join(unknown)}): name that release exactly to install it, or leave it out"
            )


def _from_wheels(releases: tuple[str, ...]) -> list[ToolkitRef]:
    refs = parse_toolkits(",".join(releases)) if releases else []
    for ref in refs:
        if ref.local:
            raise UsageError(
                f"CUDA {ref} is this machine's own; only releases out of wheels are installed and removed here"
            )
    return refs
