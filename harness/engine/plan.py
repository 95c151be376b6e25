"""From cases and axes to cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from harness.backends import BACKENDS, BackendInfo
from harness.engine.devices import Devices
from harness.engine.environment import Environment
from harness.errors import UsageError, did_you_mean
from harness.model import Case, Cell, Target, Toolchain, ToolkitRef


def choose_backends(names: str | None, environment: Environment) -> list[BackendInfo]:
    """Backends by name; without names NVRTC, nvcc and every one whose library is installed.

    Raises
    ------
    UsageError
        On an unknown name.
    """
    if names is None:
        return [info for info in BACKENDS.values() if not info.distributions or _installed(info, environment)]
    if names.strip() == "all":
        return list(BACKENDS.values())
    chosen = {}
    for name in filter(None, (item.strip() for item in names.split(","))):
        if name not in BACKENDS:
            raise UsageError(f"unknown backend {name!r}{did_you_mean(name, BACKENDS)}")
        chosen[name] = BACKENDS[name]
    if not chosen:
        raise UsageError(f"no backend is named; known are {', '.join(BACKENDS)}")
    return list(chosen.values())


def _installed(info: BackendInfo, environment: Environment) -> bool:
    return bool(environment.version_of(*info.distributions)) and not environment.version_of(*info.excludes)


def plan(
    cases: Iterable[Case],
    backends: Sequence[BackendInfo],
    toolkits: Sequence[ToolkitRef],
    targets: Sequence[Target],
    environment: Environment,
    expression: str | None = None,
    *,
    devices: Devices | None = None,
    nvcc_of: Callable[[ToolkitRef], bool] = lambda toolkit: True,
) -> list[Cell]:
    """Every cell of a selection, ordered by toolchain, so that each worker process serves its cells in one go.

    A backend takes the cases that have a source in one of its languages. Targets that are a device's own run on it, the
    others without one.

    Parameters
    ----------
    nvcc_of : callable
        Whether cells of nvcc alone are wanted for a toolkit: where nobody named the backend, only those that have one.

    Raises
    ------
    UsageError
        When `expression` cannot be read.
    """
    keep = _Expression(expression) if expression else None
    cells = []
    for info in backends:
        for toolkit in toolkits:
            if info.name == "nvcc" and not nvcc_of(toolkit):
                continue
            toolchain = Toolchain(
                backend=info.name,
                library=library_of(info, environment, toolkit),
                toolkit=toolkit,
                environment=environment.name,
                packages=environment.packages,
            )
            for name, group in _by_device(targets, devices).items():
                cells += [
                    cell
                    for cell in _cells(cases, info, replace(toolchain, device=name), group)
                    if keep is None or keep.matches(cell.id)
                ]
    return cells


def library_of(info: BackendInfo, environment: Environment, toolkit: ToolkitRef) -> str:
    """Version of the library behind a backend, as toolchains spell it; empty where there is none.

    ``14.2.0+wheels`` is a CuPy that takes CUDA's headers from wheels in its environment.
    """
    found = environment.version_of(*info.distributions)
    if found is None:
        return ""
    versions = {name: entry["version"] for name, entry in environment.distributions.items()}
    return found[1] + info.form(found[1], toolkit.headers, versions)


def _by_device(targets: Sequence[Target], devices: Devices | None) -> dict[str, list[Target]]:
    """Targets by the name of the device that they run on, those without one first."""
    groups: dict[str, list[Target]] = {"": []}
    for target in targets:
        groups.setdefault(devices.name_for(target) if devices else "", []).append(target)
    return groups


def _cells(cases: Iterable[Case], info: BackendInfo, toolchain: Toolchain, targets: Sequence[Target]) -> Iterator[Cell]:
    for case in cases:
        if info.language(case):
            for variant in case.variants:
                for target in targets:
                    yield Cell(case=case, variant=variant, toolchain=toolchain, target=target)


class _Expression:
    """``-k``: words that cell ids must contain, with ``and``, ``or``, ``not`` and parentheses, as in pytest."""

    def __init__(self, text: str) -> None:
        self.tokens = re.findall(r"\(|\)|[^\s()]+", text)
        if len(self.tokens) > 200:
            raise UsageError(f"cannot read -k: it may have 200 words and parentheses, this one has {len(self.tokens)}")
        self.place = 0
        self.test = self._either()
        if self.place != len(self.tokens):
            raise UsageError(f"cannot read -k {text!r}: unexpected {self.tokens[self.place]!r}")

    def matches(self, text: str) -> bool:
        return self.test(text.lower())

    def _peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _either(self):
        left = self._both()
        while self._peek() == "or":
            self.place += 1
            left = (lambda a, b: lambda text: a(text) or b(text))(left, self._both())
        return left

    def _both(self):
        left = self._one()
        while self._peek() == "and":
            self.place += 1
            left = (lambda a, b: lambda text: a(text) and b(text))(left, self._one())
        return left

    def _one(self):
        token = self._peek()
        self.place += 1
        if token == "not":
            inner = self._one()
            return lambda text: not inner(text)
        if token == "(":
            inner = self._either()
            if self._peek() != ")":
                raise UsageError("cannot read -k: a parenthesis is not closed")
            self.place += 1
            return inner
        if token in ("", ")", "and", "or"):
            raise UsageError(
                f"cannot read -k: a word is missing before {token!r}"
                if token
                else "cannot read -k: a word is missing at its end"
            )
        return lambda text: token.lower() in text
