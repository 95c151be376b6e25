"""``cumatrix arch``: the architectures to build for a set of GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.cli.command import Command
from harness.cli.options import RESULTS
from harness.cli.terminal import say, say_json
from harness.cli.wheel import GPUS
from harness.errors import NothingToRun
from harness.model import Target
from harness.model.gpus import Gpu
from harness.project.current import here
from harness.wheels.architectures import ArchitectureList, architectures


@click.command(cls=Command)
@click.argument("gpus", type=GPUS)
@click.option(
    "-t",
    "--toolkit",
    "toolkit",
    default="",
    metavar="V",
    help="The CUDA release of the build. Default: the first that supports all GPUs.",
)
@click.option("--ptx", is_flag=True, help="Add PTX for future GPUs.")
@click.option(
    "--project",
    is_flag=True,
    help="Read this project's records: the suffixes that its kernels need, and the cost of each entry.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else there.")
def arch(gpus: list[Gpu], toolkit: str, *, ptx: bool, project: bool, as_json: bool) -> int:
    """Print the smallest list of architectures for GPUS.

    GPUS are names or compute capabilities: 'RTX 3090,H100,RTX 5090', sm_80..sm_90. The output is the list in the syntax
    of PyTorch, CMake and nvcc, the CUDA release that it needs, and warnings. With -t, GPUs that this release does not
    support get PTX, which the driver compiles.

    \b
    cumatrix arch 'RTX 3090,H100,B200,RTX 5090'
    cumatrix arch 'RTX 4090,RTX 5090' -t 12.4
    cumatrix run -a sm_90,sm_90a && cumatrix arch H100 --project
    """
    measured = _measured() if project else Measured({}, {})
    found = architectures(gpus, toolkit, measured.suffixes, forward=ptx)
    if as_json:
        say_json(_to_json(found, measured))
        return 0
    say(f'TORCH_CUDA_ARCH_LIST="{found.torch}"')
    say(f'CMAKE_CUDA_ARCHITECTURES="{found.cmake}"')
    say(f'CUDAARCHS="{found.cmake}"')
    say(" ".join(found.nvcc))
    say(_needs(found, toolkit))
    for each in found.served:
        say(f"{each.gpu}: {each.code}, {'compiled by the driver' if each.code.virtual else 'native'}")
    for cc, suffix in measured.suffixes.items():
        say(f"suffix {suffix} for sm_{cc}: kernels of the records build for sm_{cc}{suffix} and not for sm_{cc}")
    for target, cost in measured.costs.items():
        if Target.parse(target) in (*found.real, *found.virtual):
            say(f"{target} costs {cost.seconds:.2f} s and {cost.size / 1000:.1f} kB a cell (mean of {cost.cells})")
    for line in found.warnings:
        say(f"note: {line}", err=True)
    return 0


def _needs(found: ArchitectureList, toolkit: str) -> str:
    if toolkit:
        return f"CUDA {toolkit}"
    end = f" to {found.last.cuda}" if found.last else " or later"
    return f"CUDA {found.least.cuda}{end}"


@dataclass(frozen=True)
class Cost:
    """Mean seconds and bytes of a target's cells."""

    seconds: float
    size: float
    cells: int


@dataclass(frozen=True)
class Measured:
    """Facts of a project's records: suffixes by compute capability, costs by target."""

    suffixes: Mapping[int, str]
    costs: Mapping[str, Cost]


def _measured() -> Measured:
    from harness.records import merge, read_records  # only --project needs this import

    folder = Path(here().option("results") or RESULTS)
    if not folder.exists():
        raise NothingToRun(f"there are no records in {folder}: `cumatrix run -a sm_90,sm_90a` makes some")
    read = read_records([folder])
    for warning in read.warnings:
        say(f"cumatrix: {warning}", err=True)
    return measured_of(merge(read.records, read.plans).records)


def measured_of(records: Iterable[Mapping[str, Any]]) -> Measured:
    """Return the required suffixes and the costs, from targets of the same program and toolchain."""
    status: dict[tuple[str, ...], dict[Target, str]] = defaultdict(dict)
    sizes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for record in records:
        target = Target.parse(record["target"])
        key = tuple(str(record[name]) for name in ("case", "variant", "backend", "toolkit"))
        status[key][target] = record["status"]
        if record["status"] == "built" and record["artifact"] and not record["cached"]:
            sizes[record["target"]].append((record["seconds"], record["artifact"]["bytes"]))
    suffixes: dict[int, str] = {}
    for of_program in status.values():
        for target, outcome in of_program.items():
            plain = of_program.get(Target(virtual=target.virtual, cc=target.cc))
            # A family-specific target serves more GPUs than an architecture-specific one.
            if target.suffix and outcome == "built" and plain == "rejected" and suffixes.get(target.cc) != "f":
                suffixes[target.cc] = target.suffix
    costs = {
        target: Cost(
            sum(seconds for seconds, _ in pairs) / len(pairs), sum(size for _, size in pairs) / len(pairs), len(pairs)
        )
        for target, pairs in sizes.items()
    }
    return Measured(dict(sorted(suffixes.items())), costs)


def _to_json(found: ArchitectureList, measured: Measured) -> dict[str, Any]:
    return {
        "schema": 1,
        "torch": found.torch,
        "cmake": found.cmake,
        "nvcc": found.nvcc,
        "cuda": {"least": found.least.cuda, "last": found.last.cuda if found.last else ""},
        "gpus": [
            {"target": f"sm_{each.gpu.cc}", "name": each.gpu.name, "code": str(each.code), "way": "jit" if each.code.virtual else "native"}
            for each in found.served
        ],
        "suffixes": {f"sm_{cc}": suffix for cc, suffix in measured.suffixes.items()},
        "costs": {target: vars(cost) for target, cost in measured.costs.items()},
        "warnings": list(found.warnings),
    }  # fmt: skip
