"""PTX and SASS of cells with kept artifacts (``--keep-artifacts``), in files that the page loads on demand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.artifacts import split
from harness.diagnostics import hint, one_line
from harness.protocol import process_output
from harness.protocol.process_output import cut
from harness.protocol.text import clean
from harness.records import Record
from harness.records.files import ArtifactFolder
from harness.toolkits import ToolkitStore
from harness.toolkits.releases import find_local

NONE = (
    "SASS is not shown, because there is no nvdisasm here: `cumatrix toolkits install 13.5 --with nvdisasm` installs one "
    "(PyPI has it for CUDA 13.2 and later, which know sm_75 and later), and the next report shows it"
)

_SECONDS = 30.0
_OFFSET = re.compile(r"^( *)/\*[0-9a-f]{4,}\*/ {0,12}", re.MULTILINE)


class NotDisassembled(Exception):
    """An artifact without a disassembly. The message has the reason."""


@dataclass(frozen=True)
class Disassembler:
    """An nvdisasm.

    Parameters
    ----------
    tool : Path
        The program.
    version : str
        The version that it prints: ``"13.5.37"``.
    """

    tool: Path
    version: str

    def text(self, cubin: bytes, most: int) -> tuple[str, str]:
        """Return the disassembly of a cubin, without the middle if it exceeds `most` bytes, and the warnings.

        Offsets of instructions are omitted: otherwise, one additional instruction would change all lines after it.
        Branches go to labels.

        Raises
        ------
        NotDisassembled
            If nvdisasm fails or takes longer than half a minute.
        """
        with tempfile.TemporaryDirectory(prefix="cumatrix-") as folder:
            file = Path(folder, "kernel.cubin")
            file.write_bytes(cubin)
            try:
                done = process_output.run(
                    [str(self.tool), "-c", str(file)], seconds=_SECONDS, errors=process_output.Errors.APART, keep=most
                )
            except subprocess.TimeoutExpired:
                raise NotDisassembled(f"nvdisasm {self.version} was stopped after {_SECONDS:.0f} s") from None
            except OSError as error:
                raise NotDisassembled(f"{self.tool} cannot be run: {error.strerror}") from None
        warned = one_line(done.errors.replace(str(file), "the cubin"))
        if done.code:
            raise NotDisassembled(f"nvdisasm {self.version} cannot read it: {warned or f'it ended with {done.code}'}")
        return _OFFSET.sub(r"\1", done.output).strip("\n") + "\n", warned


def find_disassemblers() -> list[Disassembler]:
    """Return every nvdisasm of the installed toolkits, newest first, then those of the machine's own CUDA and on the path."""
    installed = sorted(ToolkitStore().installed(), key=lambda item: _numbers(item.release), reverse=True)
    homes = [*(item.home for item in installed), *find_local().values()]
    on_path = shutil.which("nvdisasm")
    tools = [home / "bin" / "nvdisasm" for home in homes] + ([Path(on_path)] if on_path else [])
    found = (_disassembler(tool) for tool in dict.fromkeys(tool for tool in tools if tool.is_file()))
    return [each for each in found if each]


def sass(cubins: bytes, tools: Sequence[Disassembler], most: int) -> tuple[str, str]:
    """Return the SASS of one or several concatenated cubins, and the name of the first tool that can disassemble them.

    Parameters
    ----------
    cubins : bytes
        The artifact.
    tools : sequence of Disassembler
        The available disassemblers.
    most : int
        The maximum number of bytes of text for each cubin.

    Raises
    ------
    NotDisassembled
        If no tool can disassemble them. The message contains the last tool's output.
    """
    problem = NotDisassembled(NONE)
    for tool in tools:
        try:
            texts, warnings = zip(*(tool.text(cubin, most) for cubin in split(cubins)), strict=True)
            warned = next(filter(None, warnings), "")
            return "\n".join(texts), f"nvdisasm {tool.version}" + (f", which says: {warned}" if warned else "")
        except NotDisassembled as error:
            problem = error
    raise problem


def _disassembler(tool: Path) -> Disassembler | None:
    try:
        output = process_output.run([str(tool), "--version"], seconds=_SECONDS).output
    except (OSError, subprocess.SubprocessError):
        return None  # a program for another machine or a damaged one counts as missing
    version = re.search(r"\bV(\d+(?:\.\d+)+)", output)
    return Disassembler(tool, version[1]) if version else None


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)]


LONGEST = 256 << 10
"""Maximum number of characters of one text. A longer text is reduced to its start and end."""

TOTAL = 64 << 20
"""Maximum number of characters of all texts of a report."""

MOST = 5000
"""Maximum number of texts of a report: nvdisasm takes a fifth of a second for each cubin, however small."""

_LARGEST = 64 << 20  # maximum size of an artifact in bytes
_AT_A_TIME = 50
_LONG = 200  # cubins: a message announces more than this


@dataclass(frozen=True)
class Code:
    """Kept artifacts of a report's cells.

    Parameters
    ----------
    folder : ArtifactFolder
        The folder of the artifacts.
    artifacts : Mapping
        Format by SHA-256.
    cells : Mapping
        Numbers of cells in the order of the matrix with the SHA-256 of their artifacts, by case.
    """

    folder: ArtifactFolder
    artifacts: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: ArtifactFolder, cells: Sequence[str], records: Mapping[str, Record]) -> Code:
        """Return the artifacts of these cells in a folder.

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
            if not record or not made or made["format"] == "hsaco":  # nvdisasm does not support AMD code
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
        hint = f"{place} has no artifact of these cells: cumatrix run --keep-artifacts {place} stores them"
        return () if self.artifacts else (hint,)

    def index(self, case: str) -> dict[str, Any]:
        """Return the names of the texts of a case's cells, whether each is PTX or SASS, and pairs of cell number and text number."""
        own = self.cells.get(case, ())
        place = {sha256: number for number, sha256 in enumerate(dict.fromkeys(sha256 for _, sha256 in own))}
        texts = [[name_of(sha256), "PTX" if self.artifacts[sha256] == "ptx" else "SASS"] for sha256 in place]
        return {"texts": texts, "cells": [[number, place[sha256]] for number, sha256 in own]}

    def texts(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield name and content of each text, made on all cores.

        The content is ``text`` and ``by``, or a sentence in ``problem``.
        """
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
            return {"problem": clean(f"the artifact cannot be shown: {error}")}
        return {"text": cut(clean(text), LONGEST), "by": by}


_TOO_MUCH = f"not shown: the texts of this report are {MOST} or have {TOTAL >> 20} MiB already; make one of fewer cells (cumatrix report --where)"


def name_of(sha256: str) -> str:
    """Return the file name of a text, without its suffix."""
    return f"code-{sha256[:32]}"
