"""Options of nvcc as people are used to them, for ``try``: what each means to the compilers that are asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from harness.backends import BACKENDS
from harness.cli.command import Command
from harness.errors import UsageError, did_you_mean

NVCC = tuple(info.name for info in BACKENDS.values() if info.nvcc)
"""Backends that run nvcc."""


@dataclass(frozen=True)
class Habit:
    """One option.

    Parameters
    ----------
    names : tuple of str
        As it may be written; the last is what compilers are given.
    form : str
        What they are given, where the value is not told apart by ``=``; empty for a flag or ``NAME=VALUE``.
    value : str
        What its value is; empty for a flag.
    host : bool
        Whether it is for the host's part alone, which only nvcc has.
    """

    names: tuple[str, ...]
    value: str = ""
    form: str = ""
    host: bool = False

    @property
    def key(self) -> str:
        """Name of the parameter that click gives."""
        return "habit_" + re.sub(r"\W", "_", self.names[-1].strip("-"))

    def flags(self, given: Any) -> list[str]:
        """Options for compilers."""
        if not self.value:
            return [self.names[-1]] if given else []
        return [f"{self._form}{item}" for item in given]

    def says(self, flag: str) -> bool:
        """Return whether compilers receive `flag` for this option."""
        return flag.startswith(self._form) if self.value else flag == self.names[-1]

    @property
    def _form(self) -> str:
        return self.form or f"{self.names[-1]}="


HABITS = (
    Habit(("--device-debug", "-G")),
    Habit(("--generate-line-info", "-lineinfo")),
    Habit(("-use_fast_math", "--use_fast_math")),
    Habit(("-maxrregcount", "--maxrregcount"), "N"),
    Habit(("-ftz", "--ftz"), "BOOL"),
    Habit(("-prec-div", "--prec-div"), "BOOL"),
    Habit(("-prec-sqrt", "--prec-sqrt"), "BOOL"),
    Habit(("-fmad", "--fmad"), "BOOL"),
    Habit(("-Xptxas", "--ptxas-options"), "OPTIONS"),
    Habit(("-U", "--undefine-macro"), "NAME", "-U"),
    Habit(("--disable-warnings", "-w")),
    Habit(("-O", "--optimize"), "LEVEL", "-O", host=True),
    Habit(("--debug", "-g"), host=True),
    Habit(("-Xcompiler", "--compiler-options"), "OPTIONS", host=True),
    Habit(("-expt-relaxed-constexpr", "--expt-relaxed-constexpr"), host=True),
    Habit(("-expt-extended-lambda", "--expt-extended-lambda"), host=True),
    Habit(("-extended-lambda", "--extended-lambda"), host=True),
)
_RELOCATABLE = ("-rdc", "--rdc", "--relocatable-device-code")


def habits(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    more = [
        click.option(*habit.names, habit.key, hidden=True, multiple=True)
        if habit.value
        else click.option(*habit.names, habit.key, hidden=True, is_flag=True)
        for habit in HABITS
    ]
    more += [
        click.option(*_RELOCATABLE, "habit_rdc", type=click.Choice(["true", "false"]), hidden=True),
        click.option("-dc", "--device-c", "habit_dc", is_flag=True, hidden=True),
        click.option("-arch", "--gpu-architecture", "habit_arch", hidden=True),
        click.option("-gencode", "--generate-code", "habit_gencode", multiple=True, hidden=True),
    ]
    for option in more:
        command = option(command)
    return command


class TryCommand(Command):
    """Reads ``--rdc`` without a value as nvcc's users write it, and ``-rdc=true``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        said = [
            f"{word}=true" if word in _RELOCATABLE and after not in ("true", "false") else word
            for word, after in zip(args, [*args[1:], ""], strict=True)
        ]
        return super().parse_args(ctx, said)


def targets_of(options: Mapping[str, Any]) -> str | None:
    """The axis of targets out of ``-a``, ``-arch`` and ``-gencode``; None where none is given."""
    asked = [options["targets"], options["habit_arch"]] if options["habit_arch"] else [options["targets"]]
    asked += [code for text in options["habit_gencode"] for code in _codes(text)]
    return ",".join(filter(None, asked)) or None


def _codes(text: str) -> list[str]:
    """``sm_80`` and more out of ``arch=compute_80,code=[sm_80,compute_80]``."""
    found = re.fullmatch(r"arch=(compute_\w+),code=(?:\\?\"|\[)?([\w,]+?)(?:\\?\"|\])?", text.replace(" ", ""))
    if not found:
        raise UsageError(f"-gencode {text!r} is not arch=compute_XY,code=sm_XY")
    from harness.model.target import TargetError, parse_targets  # completion stays fast

    try:
        (virtual,), codes = parse_targets(found[1]), parse_targets(found[2])
    except TargetError as error:
        raise UsageError(f"-gencode {text!r}: {error}") from None
    for code in codes:
        if code.as_virtual != virtual:
            raise UsageError(
                f"-gencode {text!r}: cumatrix compiles {code} from {code.as_virtual} alone; write arch={code.as_virtual}, or leave -gencode out"
            )
    return [str(code) for code in codes]


def rules_of(options: Mapping[str, Any], extra: Sequence[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Options of a case by the backends that they are for; those for all have the empty key.

    Parameters
    ----------
    options : Mapping
        What click has read.
    extra : sequence of str
        Values of ``--option``: ``-lineinfo``, or ``nvcc:-O3`` for one backend.
    """
    common: dict[str, Any] = {"flags": []}
    if options["std"]:
        common["std"] = options["std"].removeprefix("-std=").removeprefix("--std=")
    if options["habit_dc"] or options["habit_rdc"] == "true":
        common["rdc"] = True
    if options["device_only"]:
        common["depth"] = "device"
    if options["toolkit_first"]:
        common["toolkit_first"] = True
    rules: dict[tuple[str, ...], dict[str, Any]] = {(): common}
    given: Iterable[tuple[tuple[str, ...], list[str]]] = [
        *((NVCC if habit.host else (), habit.flags(options[habit.key])) for habit in HABITS),
        *(_one_backend(text) for text in extra),
    ]
    for backends, flags in given:
        if flags:
            rules.setdefault(backends, {"flags": []})["flags"] += flags
    return rules


def _one_backend(text: str) -> tuple[tuple[str, ...], list[str]]:
    found = re.fullmatch(r"([A-Za-z][\w-]*):(-.*)", text, re.DOTALL)
    if not found:
        return (), [text]
    if found[1] not in BACKENDS:
        raise UsageError(f"--option {text!r}: unknown backend {found[1]!r}{did_you_mean(found[1], BACKENDS)}")
    return (found[1],), [found[2]]


def spell(rules: Mapping[tuple[str, ...], Mapping[str, Any]]) -> list[str]:
    """The options as words of `try`, in one spelling however they were written: they identify a program."""
    words = []
    for backends, values in rules.items():
        words += [f"-std={values['std']}"] if "std" in values else []
        words += ["-rdc=true"] if values.get("rdc") else []
        words += ["--device-only"] if values.get("depth") == "device" else []
        words += ["--toolkit-first"] if values.get("toolkit_first") else []
        flags = values["flags"]
        known = [backends == NVCC or (not backends and _says(flag)) for flag in flags]
        if all(known):
            # Only the order of one option's own values means anything to a compiler. What is not known may be a value itself.
            words += sorted(flags, key=lambda flag: flag.partition("=")[0])
        else:
            prefix = "".join(f"{name}:" for name in backends)
            words += [flag if plain else f"--option={prefix}{flag}" for flag, plain in zip(flags, known, strict=True)]
    return words


def _says(flag: str) -> bool:
    return any(habit.says(flag) for habit in HABITS if not habit.host)
