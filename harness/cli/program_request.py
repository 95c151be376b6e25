"""From the options of commands that take a file without a case to the programs, and to what is asked to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cli.habits import rules_of, targets_of
from harness.cli.programs import place_of, programs_of, tried
from harness.cli.request import request_of
from harness.engine.session import Request
from harness.hints import hint
from harness.model import Case
from harness.project.commands import unit_of
from harness.project.units import with_unit


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
