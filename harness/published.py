"""The published matrix: its location and manifest."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import harness
from harness.answers.cells import own_of
from harness.backends import library_of
from harness.cases.bundled import digest_of, packaged_cases
from harness.cases.discovery import find_cases
from harness.records import Record, at_stage, weight
from harness.records.merge import agreement_key
from harness.records.record import RecordError

RECORDS, ANSWERS, MANIFEST, README = "results.parquet", "answers.json.gz", "manifest.json", "README.md"
"""Files of a published matrix."""

ENVIRONMENT = "published"
"""Environment of all its records, which separates them from others."""

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The inputs of a matrix.

    Parameters
    ----------
    made : str
        Day of its newest run, ``2026-01-31``.
    cells, answered : int
        Cells, and those that a compiler answered.
    cases : Mapping[str, str]
        Digest by case (`harness.cases.digest`).
    value : Mapping
        All of it.
    """

    made: str
    cells: int
    answered: int
    cases: Mapping[str, str]
    value: Mapping[str, Any]


def published_folder() -> Path | None:
    """The matrix that this installation has: in the wheel inside the package, in a checkout in ``reports/matrix``; None without one."""
    package = Path(harness.__file__).resolve().parent
    places = (package / "matrix_library", package.parent / "reports" / "matrix")
    return next((place for place in places if (place / MANIFEST).is_file()), None)


def stale_cases(made_of: Mapping[str, str]) -> list[str]:
    """Cases of a matrix that are another program in this installation, or that it does not have, by name.

    Parameters
    ----------
    made_of : Mapping[str, str]
        Digest by case: `Manifest.cases`, or some of them.
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
    """The content of ``manifest.json``.

    Raises
    ------
    RecordError
        When it is none.
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
        raise RecordError(f"{path}: is no manifest of a published matrix: {error}") from None


_TARGETS = 2


@dataclass(frozen=True, kw_only=True)
class ToolchainSample:
    """Cells of one toolchain, and what compiles them again.

    Parameters
    ----------
    backend, library, toolkit : str
        The toolchain.
    cases, targets : tuple of str
        Their cells are compiled, in every variant.
    cells : tuple of Record
        The published ones among these.
    """

    backend: str
    library: str
    toolkit: str
    cases: tuple[str, ...]
    targets: tuple[str, ...]
    cells: tuple[Record, ...]

    @property
    def words(self) -> list[str]:
        """Words of the command ``cumatrix run`` that compiles them."""
        tool = ["--with", f"{library_of(self.backend)}={self.library}"] if self.library else []
        return ["run", *self.cases, "-b", self.backend, *tool, "-t", self.toolkit, "-a", ",".join(self.targets), "--no-cache"]  # fmt: skip


def sample_of(
    records: Iterable[Record],
    count: int,
    *,
    parts: int,
    seed: str,
    seconds: float = 2.0,
    backends: Collection[str] = (),
    toolkits: Collection[str] = (),
) -> list[ToolchainSample]:
    """Choose cells.

    Parameters
    ----------
    records : iterable of Record
        The published ones.
    count : int
        How many cells at least, where there are as many.
    parts : int
        Of how many toolchains.
    seed : str
        The same gives the same sample.
    seconds : float
        Slower cells are omitted, and so are those of header libraries and of requested host compilers, which would have to be
        installed.
    backends, toolkits : collection of str
        Only of these; of all where left out.
    """
    random = Random(seed)  # noqa: S311 - a sample keeps no secret
    chains: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if _fit(record, seconds) and (not backends or record["backend"] in backends) and (not toolkits or record["toolkit"] in toolkits):  # fmt: skip
            chains.setdefault((record["backend"], record["library"], record["toolkit"]), []).append(record)
    chosen = random.sample(sorted(chains), min(parts, len(chains)))
    found: list[ToolchainSample] = []
    # What a toolchain with few cells leaves of its share, those with more take.
    for place, chain in enumerate(sorted(chosen, key=lambda chain: (len(chains[chain]), chain))):
        left = count - sum(len(part.cells) for part in found)
        found.append(_part(chain, chains[chain], -(-left // (len(chosen) - place)), random))
    return found


def _fit(record: Record, seconds: float) -> bool:
    return (
        weight(record) == 2
        and record["status"] != "timed_out"
        and record["seconds"] <= seconds
        and "+" not in record["toolkit"]
        and not record["toolchain"]["requested"].get("libraries")
        and not record.get("host_compiler")
    )


def _part(chain: tuple[str, str, str], records: Sequence[Record], count: int, random: Random) -> ToolchainSample:
    names = sorted({record["target"] for record in records})
    targets = random.sample(names, min(_TARGETS, len(names)))
    by_case: dict[str, list[Record]] = {}
    for record in records:
        if record["target"] in targets:
            by_case.setdefault(record["case"], []).append(record)
    cells: list[Record] = []
    cases = []
    for case in random.sample(sorted(by_case), len(by_case)):
        # One case with very many variants would be the whole sample.
        if len(cells) < count and len(by_case[case]) <= max(4, count // 2):
            cases.append(case)
            cells += by_case[case]
    backend, library, toolkit = chain
    return ToolchainSample(backend=backend, library=library, toolkit=toolkit, cases=tuple(cases), targets=tuple(targets), cells=tuple(cells))  # fmt: skip


def contradictions(published: Iterable[Record], fresh: Mapping[str, Record]) -> list[str]:
    """Published cells that came out differently, or not at all, a sentence each.

    A machine that was too slow contradicts nothing, nor does one whose own host compiler is another.
    """
    found = []
    for record in published:
        now = fresh.get(record["cell"])
        if now is None:
            found.append(f"{record['cell']}: published, and not compiled anew")
        elif (
            now["status"] != "timed_out" and _host(now) == _host(record) and agreement_key(now) != agreement_key(record)
        ):
            found.append(f"{record['cell']}: published as {_told(record)}; now {_told(now)}")
    return found


def _host(record: Record) -> str:
    """First number of the machine's own host compiler: ``gcc 12``; empty where none had a part in it."""
    return own_of(record["backend"], "", record["toolchain"]).partition(".")[0]


def _told(record: Record) -> str:
    first = record["diagnostics"][0]["message"] if record["diagnostics"] else record["reason"]
    return ": ".join(filter(None, (at_stage(record["status"], record["stage"]), first)))


def digests_of(cases: Path) -> dict[str, str]:
    """Digest by case, of a folder of cases; none where there is none."""
    if not cases.is_dir():
        return {}
    return {str(path.parent.relative_to(cases)): digest_of(path.parent) for path in find_cases(cases)}
