"""PTX and SASS of cells with kept artifacts (``--keep-artifacts``), in files that the page loads on demand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from harness.hints import hint
from harness.protocol.printed import cut
from harness.records import Record
from harness.records.artifact_folder import ArtifactFolder
from harness.report.disassemble import Disassembler, NotDisassembled, find_disassemblers, sass
from harness.report.text import clean

LONGEST = 256 << 10
"""Characters of one text; of a longer one, the start and the end are shown."""

TOTAL = 64 << 20
"""Characters of all texts of a report."""

MOST = 5000
"""Texts of a report: nvdisasm takes a fifth of a second for each cubin, however small."""

_LARGEST = 64 << 20  # bytes of an artifact that is read
_AT_A_TIME = 50
_LONG = 200  # cubins; from this number on, a message announces them


@dataclass(frozen=True)
class Code:
    """Kept artifacts of a report's cells.

    Parameters
    ----------
    folder : ArtifactFolder
        Where it lies.
    artifacts : Mapping
        Format by SHA-256.
    cells : Mapping
        By case: number of a cell, in the order of the matrix, and SHA-256 of its artifact.
    """

    folder: ArtifactFolder
    artifacts: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: ArtifactFolder, cells: Sequence[str], records: Mapping[str, Record]) -> Code:
        """Artifacts of these cells in a folder.

        Parameters
        ----------
        folder : ArtifactFolder
            The folder.
        cells : sequence of str
            Ids, in the order of the matrix.
        records : Mapping
            Records by id of their cell.
        """
        artifacts: dict[str, str] = {}
        found: dict[str, list[tuple[int, str]]] = {}
        for number, cell in enumerate(cells):
            record = records.get(cell)
            made = record["artifact"] if record and record["status"] == "built" else None
            if not record or not made:
                continue
            kind, sha256 = made["format"], made["sha256"]
            if sha256 in artifacts or folder.has(kind, sha256, made["bytes"]):
                artifacts.setdefault(sha256, kind)
                found.setdefault(record["case"], []).append((number, sha256))
        return cls(folder, artifacts, found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence if the folder has no artifact of these cells."""
        place = self.folder.path
        said = f"nothing in {place} was built by these cells: cumatrix run --keep-artifacts {place} keeps it there"
        return () if self.artifacts else (said,)

    def index(self, case: str) -> dict[str, Any]:
        """Texts of a case's cells: the texts' names, whether they are PTX or SASS, and pairs of a cell's and a text's number."""
        own = self.cells.get(case, ())
        place = {sha256: number for number, sha256 in enumerate(dict.fromkeys(sha256 for _, sha256 in own))}
        texts = [[name_of(sha256), "PTX" if self.artifacts[sha256] == "ptx" else "SASS"] for sha256 in place]
        return {"texts": texts, "cells": [[number, place[sha256]] for number, sha256 in own]}

    def texts(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Name and content of each text, made on all cores: ``text`` and ``by``, or ``problem``, a sentence in their place."""
        cubins = sum(kind != "ptx" for kind in self.artifacts.values())
        tools = find_disassemblers() if cubins else []
        if tools and cubins > _LONG:
            hint(f"{min(cubins, MOST)} cubins are disassembled, which takes a fifth of a second each on one core")
        left, names = TOTAL, list(self.artifacts)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for start in range(0, len(names), _AT_A_TIME):
                some = names[start : start + _AT_A_TIME]
                made = (
                    pool.map(lambda sha256: self._text(sha256, tools), some) if left > 0 and start < MOST else iter(())
                )
                for sha256 in some:
                    content = next(made, {"problem": _TOO_MUCH})
                    left -= len(content.get("text", ""))
                    yield name_of(sha256), content

    def _text(self, sha256: str, tools: Sequence[Disassembler]) -> dict[str, str]:
        kind, by = self.artifacts[sha256], ""
        try:
            data = self.folder.read(kind, sha256, _LARGEST)
            if kind == "ptx":
                text = data.rstrip(b"\0").decode("utf-8", "replace")
            else:
                text, by = sass(data, tools, LONGEST)
        except NotDisassembled as error:
            return {"problem": clean(str(error))}
        except (OSError, ValueError) as error:
            return {"problem": clean(f"what was kept cannot be shown: {error}")}
        return {"text": cut(clean(text), LONGEST), "by": by}


_TOO_MUCH = f"not shown: the texts of this report are {MOST} or have {TOTAL >> 20} MiB already; make one of fewer cells (cumatrix report --where)"


def name_of(sha256: str) -> str:
    """The file name of a text, without its suffix."""
    return f"code-{sha256[:32]}"
