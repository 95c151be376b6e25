"""What ``try`` does with a program of the host: nvcc's business, and not that of compilers of device code alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from harness.backends import BACKENDS
from harness.cases.host_program import host_signs
from harness.diagnostics import one_line
from harness.engine.environment import Environment
from harness.engine.line_up import default_toolkit
from harness.engine.nvcc_toolkit import toolkit_with_nvcc
from harness.engine.plan import choose_backends
from harness.engine.session import Request
from harness.model import Case, UnsupportedRule
from harness.model.condition import Condition
from harness.toolkits import ToolkitStore

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
