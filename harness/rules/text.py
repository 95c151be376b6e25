"""Rules as conditions are written."""

from __future__ import annotations

from collections.abc import Sequence

from harness.rules.table import Box, Table


def spell_rule(table: Table, boxes: Sequence[Box]) -> str:
    """A condition that holds in any of the boxes, what they have in common once: ``rdc and (cc < "7.0" or toolkit < "12.4")``."""
    if len(boxes) == 1:
        return _all(_parts(table, boxes[0]))
    common = [
        axis for axis in sorted(boxes[0]) if all(axis in box and box[axis].text == boxes[0][axis].text for box in boxes)
    ]
    shared = _parts(table, {axis: boxes[0][axis] for axis in common})
    rest = [_parts(table, {axis: each for axis, each in box.items() if axis not in common}) for box in boxes]
    rest.sort(key=lambda parts: (len(parts), parts))
    alternatives = " or ".join(f"({_all(parts)})" if len(parts) > 1 else _all(parts) for parts in rest)
    return _all([*shared, (alternatives, True)])


def _parts(table: Table, box: Box) -> list[tuple[str, bool]]:
    return [(box[axis].text, box[axis].loose) for axis in range(len(table.axes)) if axis in box]


def _all(parts: Sequence[tuple[str, bool]]) -> str:
    """Parts of a conjunction; those with an ``or`` are in parentheses next to others."""
    if len(parts) == 1:
        return parts[0][0]
    return " and ".join(f"({text})" if loose else text for text, loose in parts)
