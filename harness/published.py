"""The published matrix: its location and manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
from harness.cases.discovery import find_cases
from harness.cases.sources import digest_of, packaged_cases
from harness.records.record import RecordError

RECORDS, ANSWERS, MANIFEST, README = "results.parquet", "answers.json.gz", "manifest.json", "README.md"
"""Files of a published matrix."""

ENVIRONMENT = "published"
"""Environment name of all its records, which separates them from other records."""

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The inputs of a matrix.

    Parameters
    ----------
    made : str
        Day of its newest run, ``2026-01-31``.
    cells, answered : int
        Number of cells, and of cells that a compiler answered.
    cases : Mapping[str, str]
        Digest by case (`harness.cases.sources.digest_of`).
    value : Mapping
        The content of the file.
    """

    made: str
    cells: int
    answered: int
    cases: Mapping[str, str]
    value: Mapping[str, Any]


def published_folder() -> Path | None:
    """Return the folder of the installed matrix, in the package or in a checkout's ``reports/matrix``; None if there is none."""
    package = Path(harness.__file__).resolve().parent
    places = (package / "matrix_library", package.parent / "reports" / "matrix")
    return next((place for place in places if (place / MANIFEST).is_file()), None)


def stale_cases(made_of: Mapping[str, str]) -> list[str]:
    """Return the names of a matrix's cases that this installation has in another version or not at all.

    Parameters
    ----------
    made_of : Mapping[str, str]
        Digest by case: `Manifest.cases`, or a part of it.
    """
    library = packaged_cases()
    return sorted(
        case for case, digest in made_of.items()
        if not (library / case / "case.toml").is_file() or digest_of(library / case) != digest
    )  # fmt: skip


def is_published(folder: Path) -> bool:
    """Return whether a folder is a published matrix: readers of result folders skip it."""
    return (folder / MANIFEST).is_file() and (folder / RECORDS).is_file()


def read_manifest(folder: Path) -> Manifest:
    """Read ``manifest.json``.

    Raises
    ------
    RecordError
        If the file is no manifest, or a newer cumatrix wrote it.
    """
    path = folder / MANIFEST
    try:
        value = json.loads(path.read_bytes())
        if value["schema"] > SCHEMA:
            raise RecordError(f"{path}: made by a newer cumatrix: update cumatrix")
        return Manifest(
            made=str(value["made"]),
            cells=int(value["cells"]),
            answered=int(value["answered"]),
            cases={str(case): str(digest) for case, digest in value["cases"].items()},
            value=value,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{path}: is not the manifest of a published matrix: {error}") from None


def digests_of(cases: Path) -> dict[str, str]:
    """Return the digests of a folder's cases, by case; none if the folder is missing."""
    if not cases.is_dir():
        return {}
    return {str(path.parent.relative_to(cases)): digest_of(path.parent) for path in find_cases(cases)}
