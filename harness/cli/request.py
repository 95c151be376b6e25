"""From the options that commands share to what is asked to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.backends import BACKENDS
from harness.cases.preprocessor import host_signs
from harness.cli.files import place_of, programs_of, tried
from harness.cli.nvcc_options import rules_of, targets_of
from harness.diagnostics import one_line
from harness.engine.environment import Environment
from harness.engine.environments import default_toolkit
from harness.engine.header_libraries import Finder
from harness.engine.plan import choose_backends, toolkit_with_nvcc
from harness.engine.request import Request
from harness.hints import hint
from harness.model import Case, UnsupportedRule
from harness.model.condition import Condition
from harness.project.commands import unit_of
from harness.project.detect import with_unit
from harness.protocol.messages import Limits
from harness.toolkits import ToolkitStore


def request_of(options: Mapping[str, Any], **more: Any) -> Request:
    """The request that the shared options make, with a command's own fields."""
    return Request(
        backends=options["backends"],
        toolkits=options["toolkits"],
        targets=options["targets"],
        where=options["where"],
        python=options["python"],
        environment=options["environment"],
        require=tuple(options["require"]),
        cache=not options["no_cache"],
        limits=Limits(seconds=options["timeout"], memory=options["memory"], rlimits=dict(options["rlimits"])),
        memory=options["total_memory"],
        device=options["device"],
        sanitize=options["sanitize"],
        headers=tuple(options["header_libraries"]),
        finder=Finder(offline=options["offline"]),
        libraries=tuple(options["libraries"]),
        offline=options["offline"],
        trace=options["trace"],
        earlier=tuple(options["earlier"]),
        executor=options["executor"],
        host_compilers=tuple(options["host_compilers"]),
        artifacts=options["keep_artifacts"],
        **more,
    )


def programs_asked(files: Sequence[Path], options: Mapping[str, Any]) -> list[Case]:
    """A case for each file, with the options that click has read."""
    rules = rules_of(options, options["extra"])
    cases = programs_of(
        files, include=options["include"], define=options["define"], rules=rules, signatures=options["signature"]
    )
    return of_build(cases, options["compile_commands"])


def of_build(cases: Sequence[Case], database: Path | None) -> list[Case]:
    """The programs as a build compiles them, where one is named; says what of its command lines is left out."""
    if not database:
        return list(cases)
    found = []
    for case in cases:
        source = next(iter(case.sources.values()))
        unit = unit_of(database, source)
        if unit.dropped:
            hint(f"{case.name}: of its command line in {database} is left out: {' '.join(unit.dropped)}")
        built = with_unit(case, unit, database)
        found.append(built if case.program else tried(built, place_of(source)))
    return found


def program_request(options: Mapping[str, Any], **more: Any) -> Request:
    """The request that such options make."""
    asking = {**options, "targets": targets_of(options)}
    return request_of(asking, include=tuple(folder.resolve() for folder in options["include"]), **more)


DEVICE_ONLY = tuple(info.name for info in BACKENDS.values() if "cuda" in info.languages and not info.nvcc)
"""Backends that take CUDA C++ and have no pass of the host."""
_ALL_FOR_THE_DEVICE = ("-default-device", "--device-as-default-execution-space")


def with_nvcc(
    request: Request,
    case: Case,
    environment: Environment,
    store: ToolkitStore,
    console: Console,
    others: Sequence[Environment] = (),
    newest: str = "",
) -> tuple[Request, Case]:
    """The request and the case as they are meant for a program of the host; any other file's are left as they are.

    Where nobody names backends, those that compile device code alone are not applicable, and a toolkit that has an nvcc is
    taken unless one is named: `newest`, or what fits the environment. A backend that is named is asked all the same.
    """
    named = None if request.backends in (None, "all") else choose_backends(request.backends, environment)
    signs = _signs(case, request.include)
    if not signs:
        return request, case
    what = f"a host program ({', '.join(signs)})"
    if named:
        asked = ", ".join(info.name for info in named if info.name in DEVICE_ONLY)
        if asked:
            _say(console, f"{case.name} is {what}: {asked} will refuse it, nvcc compiles it (leave -b out)")
        return request, case
    toolkits = request.toolkits or newest or toolkit_with_nvcc(default_toolkit(environment), store)
    taken = "" if request.toolkits else f", of CUDA {toolkits}"
    _say(
        console, f"{case.name} is {what}: nvcc compiles it{taken}; NVRTC and CuPy, for device code alone, are left out"
    )
    rule = UnsupportedRule(
        when=Condition.parse(" or ".join(f'backend == "{name}"' for name in DEVICE_ONLY), {}),
        reason=f"{what}, and this backend compiles device code alone: nvcc is what compiles it",
    )
    chosen = [info.name for info in choose_backends(request.backends, environment, others)]
    backends = ",".join(dict.fromkeys([*chosen, "nvcc"]))
    return (
        replace(request, backends=backends, toolkits=toolkits),
        replace(case, unsupported=(rule, *case.unsupported)),
    )


def _say(console: Console, text: str) -> None:
    console.print(one_line(text), markup=False, soft_wrap=True)


def _signs(case: Case, include: Iterable[Path]) -> list[str]:
    flags = [flag for rule in case.options for flag in rule.values.get("flags", ())]
    if "cuda" not in case.sources or any(flag.startswith(_ALL_FOR_THE_DEVICE) for flag in flags):
        return []
    macros = {name: str(value) for name, value in case.variants[0].definitions.items()}
    found = host_signs(case.sources["cuda"].read_text("utf-8"), macros)
    # Somebody may have headers of these names for NVRTC.
    return [
        str(sign) for sign in found
        if sign.kind != "header" or not any((folder / sign.what.strip("<>")).is_file() for folder in include)
    ]  # fmt: skip
