"""``cumatrix try``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from harness.cli.axes import axes, request_of
from harness.cli.perform import perform
from harness.cli.signatures import entries_of
from harness.engine.session import cells_of, workshop_for
from harness.errors import UsageError
from harness.model import Case, OptionRule, Variant
from harness.model.condition import Condition

_MACRO = re.compile(r"[A-Za-z_]\w*")


@click.command("try")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@axes
@click.option(
    "-I",
    "include",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A further include directory.",
)
@click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help="A macro, or a constant of a Python module.")
@click.option("--std", metavar="STD", help="C++ dialect, such as c++17.")
@click.option(
    "--option",
    "extra",
    multiple=True,
    metavar="OPTION",
    help="An option for the compiler, as it is: --option=-lineinfo.",
)
@click.option("--device-only", is_flag=True, help="nvcc: leave the host pass out.")
@click.option(
    "--signature", multiple=True, metavar="NAME=SIG", help="Signature of a Numba kernel: 'axpy=void(float32[:])'."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Also keep the records in a file."
)
def try_(file: Path, include: tuple[Path, ...], define: tuple[str, ...], std: str | None, extra: tuple[str, ...],
         device_only: bool, signature: tuple[str, ...], out: Path | None, as_json: bool, jobs: int | None, **options: Any) -> int:  # fmt: skip
    """Where does this file compile?

    FILE is CUDA C++ (.cu) or a module with Numba kernels (.py). It is compiled as it stands: the toolkit's own include
    directories are added and nothing else, unless asked for. Everything that a compiler refuses exits with 1.

    \b
    cumatrix try kernel.cu -t 11.8,12.4,13.0 -a sm_70..sm_120
    cumatrix try kernel.cu -I include -D N=4 --std c++17 --option=-default-device
    """
    case = _case(file, define, std, extra, signature, device_only)
    request = request_of(options, include=tuple(folder.resolve() for folder in include))
    workshop = workshop_for(request)
    cells = cells_of(request, workshop.environment, [case], workshop.devices)
    return perform(cells, workshop, out=out, as_json=as_json, jobs=jobs, table=True)


def _case(
    file: Path,
    define: tuple[str, ...],
    std: str | None,
    extra: tuple[str, ...],
    signature: tuple[str, ...],
    device_only: bool,
) -> Case:
    languages = {".cu": "cuda", ".cuh": "cuda", ".cpp": "cuda", ".py": "python"}
    if file.suffix not in languages:
        raise UsageError(f"{file} is neither CUDA C++ (.cu) nor Python (.py)")
    try:
        file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from None
    language = languages[file.suffix]
    values: dict[str, Any] = {"flags": list(extra)}
    if device_only:
        values["depth"] = "device"
    if std:
        values["std"] = std.removeprefix("-std=").removeprefix("--std=")
    entries = entries_of(file, signature)
    return Case(
        name=file.name,
        path=file,
        title=f"{file.name}, as it stands",
        sources={language: file},
        entries={language: entries} if entries else {},
        variants=(Variant(labels={}, definitions=dict(_definition(text) for text in define)),),
        options=(OptionRule(when=Condition.always(), values=values),),
    )


def _definition(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not _MACRO.fullmatch(name):
        raise UsageError(f"-D {text!r}: {name!r} is not the name of a macro")
    if not equals:
        return name, 1
    return name, int(value) if re.fullmatch(r"-?\d+", value) else value
