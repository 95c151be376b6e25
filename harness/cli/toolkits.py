"""``cumatrix toolkits``."""

from __future__ import annotations

import click
from rich.console import Console

from harness.errors import PartUnavailable
from harness.toolkits import RELEASES, ToolkitStore, parse_toolkits


@click.group()
def toolkits() -> None:
    """CUDA releases, from wheels on PyPI, by exact version.

    They are kept in CUMATRIX_HOME, by default the user's data folder.
    """


@toolkits.command("list")
def list_() -> int:
    """List the known releases, what each is made of, and which are installed."""
    store = ToolkitStore()
    for release in RELEASES.values():
        found = store.find(release.name)
        parts = " ".join(f"{name.removeprefix('nvidia-')}={version}" for name, version in release.packages.items())
        click.echo(f"{release.name}  {'installed' if found else '-':9}  {parts}")
    return 0


@toolkits.command()
@click.argument("releases", nargs=-1, required=True, metavar="V…")
@click.option("--force", is_flag=True, help="Install again what is already there.")
def install(releases: tuple[str, ...], force: bool) -> int:
    """Install releases: 12.4, 11.8,12.4..13.0 or all."""
    store, console = ToolkitStore(), Console(stderr=True, highlight=False)
    names = dict.fromkeys(name for ref in parse_toolkits(",".join(releases)) for name in (ref.release, ref.headers))
    for number, name in enumerate(names, 1):
        with console.status(f"CUDA {name} ({number} of {len(names)})"):
            toolkit = store.install(RELEASES[name], force=force)
        console.print(f"CUDA {name}: {toolkit.home}", soft_wrap=True)
    return 0


@toolkits.command()
@click.argument("release", metavar="V")
def path(release: str) -> int:
    """Print the CUDA_HOME of an installed release."""
    (ref,) = parse_toolkits(release)[:1]
    toolkit = ToolkitStore().find(ref.release)
    if toolkit is None:
        raise PartUnavailable(f"CUDA {ref.release} is not installed: run `cumatrix toolkits install {ref.release}`")
    click.echo(toolkit.home)
    return 0


@toolkits.command()
@click.argument("releases", nargs=-1, required=True, metavar="V…")
def remove(releases: tuple[str, ...]) -> int:
    """Remove installed releases."""
    store = ToolkitStore()
    for ref in parse_toolkits(",".join(releases)):
        click.echo(f"CUDA {ref.release}: {'removed' if store.remove(ref.release) else 'was not installed'}", err=True)
    return 0
