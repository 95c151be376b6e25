"""Failures told from their cells: what was reported upstream, and what each release says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from harness.answers.names import LABELS
from harness.answers.spelling import spell_span
from harness.matrix.order import backend_key, natural_key, version_key
from harness.records import Record, weight
from harness.records.spell import failed_at
from harness.report.beside import is_own
from harness.report.text import one_line

_TARGETS = ("sm_80", "sm_90", "sm_86", "sm_89", "sm_75")
"""The architecture of a story: the first of them that was tried."""

_SAID = 240


@dataclass(frozen=True, kw_only=True)
class Story:
    """An upstream report.

    Parameters
    ----------
    name, link : str
        The issue.
    case : str
        The case that has the program.
    title, told : str
        What it is about, and what was found.
    backends : tuple of str
        Whose cells tell it.
    """

    name: str
    link: str
    case: str
    title: str
    told: str
    backends: tuple[str, ...]


STORIES = (
    Story(
        name="CuPy #8155",
        link="https://github.com/cupy/cupy/issues/8155",
        case="wmma/accumulator-16x16x8",
        title="A tensor-core fragment that Jitify alone calls an incomplete type",
        told="A kernel with a 16 x 16 x 8 accumulator compiled with NVRTC, and not with jitify=True. CuPy told NVRTC the architecture only after Jitify had compiled by itself; Jitify then guesses one, "
        "no newer than compute_75, and there the accumulator does not exist. CuPy 13.1.0 tells it first.",
        backends=("nvrtc", "cupy-nvrtc", "cupy-jitify"),
    ),
    Story(
        name="CuPy #8156",
        link="https://github.com/cupy/cupy/issues/8156",
        case="shared-memory/cupy-8156",
        title="Too much static shared memory, refused with a reason or without one",
        told="A kernel may have 49152 bytes (48 KiB) of static shared memory. With more, ptxas names the limit. With enable_cooperative_groups=True CuPy before 14 compiles relocatable code, whose size "
        "nobody checks, and has the driver link it: what the user sees is an invalid image, and no reason.",
        backends=("nvrtc", "cupy-nvrtc"),
    ),
    Story(
        name="Numba #9432",
        link="https://github.com/numba/numba/issues/9432",
        case="cooperative/numba-9432",
        title="Grid synchronisation that one release cannot cache",
        told="A kernel that calls cuda.cg.this_grid().sync() and is declared with cache=True cannot be lowered by Numba 0.59.0. Without the cache it can, and so it can with the releases before and after.",
        backends=("numba", "numba-cuda"),
    ),
)


def stories_of(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Stories with cells: each with its rows, one for each program, tool and range of versions, and the results of own and published cells."""
    by_case: dict[str, list[Record]] = {story.case: [] for story in STORIES}
    for record in records:
        if record["case"] in by_case and weight(record) == 2:
            by_case[record["case"]].append(record)
    found = []
    for story in STORIES:
        cells = [record for record in by_case[story.case] if record["backend"] in story.backends]
        target = next((name for name in _TARGETS if any(record["target"] == name for record in cells)), "")
        if target:
            rows = _rows([record for record in cells if record["target"] == target])
            found.append({**vars(story), "target": target, "rows": rows})
    return found


def _rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    places: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        places.setdefault((record["variant"], record["backend"], record["library"]), []).append(record)
    ordered = sorted(places, key=lambda place: (natural_key(place[0]), backend_key(place[1]), version_key(place[2])))
    told = [(place, _told(places[place], own=True), _told(places[place], own=False)) for place in ordered]
    rows = []
    for (variant, backend), of_tool in groupby(told, lambda item: item[0][:2]):
        for (own, published), run in groupby(of_tool, lambda item: item[1:]):
            versions = [place[2] for place, _, _ in run]
            rows.append(
                {"variant": variant, "tool": LABELS.get(backend, backend), "versions": spell_span(versions), "own": own, "published": published}
            )  # fmt: skip
    return rows


def _told(records: Sequence[Mapping[str, Any]], *, own: bool) -> list[dict[str, Any]]:
    """Outcomes of cells of one place with the CUDA releases that have them, in order."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in sorted(records, key=lambda record: version_key(record["toolkit"])):
        if is_own(record) == own and "+headers" not in record["toolkit"]:
            first = record["diagnostics"][0]["message"] if record["diagnostics"] else record["reason"]
            works = record["status"] == "built"
            outcome = "works" if works else failed_at(record).replace("_", " ")  # type: ignore[arg-type]
            found.setdefault((outcome, "" if works else one_line(first, _SAID)), []).append(record["toolkit"])
    return [
        {"works": outcome == "works", "outcome": outcome, "said": said, "toolkits": ", ".join(dict.fromkeys(toolkits))}
        for (outcome, said), toolkits in found.items()
    ]
