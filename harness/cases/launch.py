"""``[[launch]]`` and ``[[verify]]``: read the tables, and evaluate them for one cell."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cases.schema import ARGUMENT
from harness.cases.sources import wrong_file
from harness.cases.toml import Key, Report, shown
from harness.cases.values import check_table
from harness.errors import did_you_mean
from harness.model.case import FILLS, SPELLINGS, TYPES, Argument, Case, LaunchRule, Variant, VerifyRule
from harness.model.cell import Cell
from harness.model.condition import Condition
from harness.model.expression import Expression, ExpressionError
from harness.protocol.messages import ArgumentSpec, CheckSpec, LaunchSpec

MAX_BYTES = 1 << 30


class LaunchReader:
    """Builds rules from checked tables, and evaluates each for every variant.

    Parameters
    ----------
    report : Report
        Report that collects problems.
    folder : Path
        Folder of the case.
    kernels : sequence of str
        Entries of the case, of all languages.
    variants : sequence of Variant
        Variants, whose definitions expressions may use.
    """

    def __init__(
        self,
        report: Report,
        folder: Path,
        kernels: Sequence[str],
        variants: Sequence[Variant],
    ) -> None:
        self.report, self.folder, self.kernels = report, folder, kernels
        self.variants = variants or (Variant(labels={}, definitions={}),)
        self.known = set.intersection(*(set(variant.definitions) for variant in self.variants))

    def launch(self, *, when: Condition, line: int, good: dict[str, Any]) -> LaunchRule | None:
        """Read one ``[[launch]]``; None if it has a problem."""
        place = next(n for n in itertools.count() if self.report.line(("launch", n)) == line)
        key: Key = ("launch", place)
        before = len(self.report.problems)
        kernel = good.get("kernel") or (self.kernels[0] if len(self.kernels) == 1 else "")
        if kernel not in self.kernels:
            wanted = "is missing: the case has several kernels" if not kernel else f"{shown(kernel)} is no entry"
            self.report.add((*key, "kernel"), wanted + did_you_mean(kernel, self.kernels))
        grid, block = (self._dimensions((*key, name), good.get(name, 1)) for name in ("grid", "block"))
        shared = self._expressions((*key, "shared"), [good.get("shared", 0)], least=0)
        arguments = self._arguments((*key, "arguments"), good.get("arguments", []))
        if len(self.report.problems) > before:
            return None
        return LaunchRule(
            when=when, line=line, kernel=kernel, grid=grid, block=block, shared=shared[0],
            opt_in=good.get("opt_in", False), cooperative=good.get("cooperative", False),
            arguments=arguments,
        )  # fmt: skip

    def verify(self, *, when: Condition, line: int, good: dict[str, Any]) -> VerifyRule | None:
        """Read one ``[[verify]]``; None if it has a problem."""
        name = good["reference"]
        if message := wrong_file(self.folder, name) or (None if name.endswith(".py") else "must be a Python file"):
            self.report.add(("verify", "reference"), message, line=line)
            return None
        tolerances = {key: float(good[key]) for key in ("rtol", "atol") if key in good}
        return VerifyRule(when=when, line=line, reference=self.folder / name, **tolerances)

    def _arguments(self, key: Key, items: Any) -> tuple[Argument, ...]:
        if not isinstance(items, list):
            self.report.add(key, f"must be a list of tables, not {shown(items)}")
            return ()
        found = [self._argument(key, index, item) for index, item in enumerate(items)]
        return tuple(argument for argument in found if argument)

    def _argument(self, key: Key, index: int, item: Any) -> Argument | None:
        before = len(self.report.problems)
        good = check_table(self.report, (*key, index), item, ARGUMENT)
        if len(self.report.problems) > before:
            return None
        array = good["type"].endswith("[]")
        kind = good["type"].removesuffix("[]")
        self._type(key, kind)
        for name, wanted in (("size", array), ("fill", array), ("seed", array), ("value", not array)):
            if name in good and not wanted:
                self.report.add((*key, name), f"does not belong to {'an array' if array else 'a number'}, {kind}")
        needed = "size" if array else "value"
        if needed not in good:
            self.report.add(
                (*key, needed), f"is missing: argument {index + 1} is {'an array' if array else 'a number'}"
            )
            return None
        fill = good.get("fill", "zeros")
        if isinstance(fill, bool) or (isinstance(fill, str) and fill not in FILLS):
            self.report.add((*key, "fill"), f"must be a number or one of {', '.join(FILLS)}, not {shown(fill)}")
        return Argument(
            name=good.get("name") or f"argument {index + 1}",
            type=kind,
            size=self._dimensions((*key, "size"), good["size"], most=8) if array else None,
            fill=fill,
            seed=good.get("seed", 0),
            value=None if array else next(iter(self._expressions((*key, "value"), [good["value"]], whole=False)), None),
        )

    def _type(self, key: Key, kind: str) -> None:
        for variant in self.variants:
            if type_of(kind, variant.definitions) is None:
                resolved = f" ({variant.definitions[kind]!r} in variant {variant.name})" if kind in self.known else ""
                names = [*TYPES, *SPELLINGS, *sorted(self.known)]
                self.report.add((*key, "type"), f"{shown(kind)}{resolved} is no type{did_you_mean(kind, names)}")
                return

    def _dimensions(self, key: Key, value: Any, *, most: int = 3) -> tuple[Expression, ...]:
        items = value if isinstance(value, list) else [value]
        if not 1 <= len(items) <= most:
            self.report.add(key, f"has {len(items)} dimensions; 1 to {most} are possible")
            return ()
        return tuple(self._expressions(key, items, least=1))

    def _expressions(
        self, key: Key, items: list[Any], *, least: int | None = None, whole: bool = True
    ) -> list[Expression]:
        found = []
        for item in items:
            try:
                expression = Expression.parse(item, self.known)
                for variant in self.variants:
                    value = expression(variant.definitions)
                    if whole and (value != int(value) or (least is not None and value < least)):
                        at = f" in variant {variant.name}" if variant.name else ""
                        raise ExpressionError(f"{expression.text!r} is {value}{at}, not a whole number from {least}")
                found.append(expression)
            except ExpressionError as error:
                self.report.add(key, str(error))
        return found


def type_of(kind: str, definitions: Mapping[str, Any]) -> str | None:
    """Return the element type of `kind` with these definitions; None if it is no type."""
    named = definitions.get(kind, kind)
    return SPELLINGS.get(named, named if named in TYPES else None) if isinstance(named, str) else None


def launches_for(cell: Cell) -> list[LaunchSpec]:
    """Return the launches of a cell: for each kernel the first rule that applies."""
    facts, definitions = cell.facts(), cell.variant.definitions
    verify = next((rule for rule in cell.case.verify if rule.when(facts)), None)
    chosen: dict[str, LaunchRule] = {}
    for rule in cell.case.launches:
        if rule.kernel not in chosen and rule.when(facts):
            chosen[rule.kernel] = rule

    def three(items: Sequence[Expression]) -> list[int]:
        return [*(int(item(definitions)) for item in items), 1, 1][:3]

    check = CheckSpec(str(verify.reference.resolve()), verify.rtol, verify.atol) if verify else None
    return [
        LaunchSpec(
            kernel=rule.kernel,
            grid=three(rule.grid),
            block=three(rule.block),
            shared=int(rule.shared(definitions)),
            opt_in=rule.opt_in,
            cooperative=rule.cooperative,
            arguments=[_resolved(argument, definitions) for argument in rule.arguments],
            verify=check,
        )
        for rule in chosen.values()
    ]


def _resolved(argument: Argument, definitions: Mapping[str, Any]) -> ArgumentSpec:
    return ArgumentSpec(
        name=argument.name,
        type=type_of(argument.type, definitions) or argument.type,
        shape=None if argument.size is None else [int(size(definitions)) for size in argument.size],
        fill=argument.fill,
        seed=argument.seed,
        value=None if argument.value is None else argument.value(definitions),
    )


def references_of(case: Case) -> list[Path]:
    """Return the files of a case that only checks of results read."""
    return list(dict.fromkeys(rule.reference for rule in case.verify))
