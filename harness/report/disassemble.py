"""SASS, the machine's code, out of cubins: by nvdisasm, where a CUDA toolkit has one."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.elf import split
from harness.diagnostics import one_line
from harness.protocol import printed
from harness.toolkits import ToolkitStore
from harness.toolkits.local import find_local

NONE = (
    "SASS is not shown, because there is no nvdisasm here: `cumatrix toolkits install 13.5 --with nvdisasm` installs one "
    "(PyPI has it for CUDA 13.2 and later, which know sm_75 and later), and the next report shows it"
)

_SECONDS = 30.0
_OFFSET = re.compile(r"^( *)/\*[0-9a-f]{4,}\*/ {0,12}", re.MULTILINE)


class NotDisassembled(Exception):
    """There is no text; the message says why."""


@dataclass(frozen=True)
class Disassembler:
    """An nvdisasm.

    Parameters
    ----------
    tool : Path
        The program.
    version : str
        As it tells: ``"13.5.37"``.
    """

    tool: Path
    version: str

    def text(self, cubin: bytes, most: int) -> tuple[str, str]:
        """Disassembly of a cubin, without the middle if it exceeds `most` bytes; and warnings.

        Offsets of instructions are left out: one instruction more would change all lines after it. Branches go to labels.

        Raises
        ------
        NotDisassembled
            When it says no, or takes longer than half a minute.
        """
        with tempfile.TemporaryDirectory(prefix="cumatrix-") as folder:
            file = Path(folder, "kernel.cubin")
            file.write_bytes(cubin)
            try:
                done = printed.run(
                    [str(self.tool), "-c", str(file)], seconds=_SECONDS, errors=printed.Errors.APART, keep=most
                )
            except subprocess.TimeoutExpired:
                raise NotDisassembled(f"nvdisasm {self.version} was ended after {_SECONDS:.0f} s") from None
            except OSError as error:
                raise NotDisassembled(f"{self.tool} cannot be run: {error.strerror}") from None
        warned = one_line(done.errors.replace(str(file), "the cubin"))
        if done.code:
            raise NotDisassembled(f"nvdisasm {self.version} cannot read it: {warned or f'it ended with {done.code}'}")
        return _OFFSET.sub(r"\1", done.said).strip("\n") + "\n", warned


def find_disassemblers() -> list[Disassembler]:
    """Every nvdisasm of the installed toolkits, the newest first; then those of the machine's own CUDA and on the path."""
    installed = sorted(ToolkitStore().installed(), key=lambda item: _numbers(item.release), reverse=True)
    homes = [*(item.home for item in installed), *find_local().values()]
    on_path = shutil.which("nvdisasm")
    tools = [home / "bin" / "nvdisasm" for home in homes] + ([Path(on_path)] if on_path else [])
    found = (_asked(tool) for tool in dict.fromkeys(tool for tool in tools if tool.is_file()))
    return [each for each in found if each]


def sass(cubins: bytes, tools: Sequence[Disassembler], most: int) -> tuple[str, str]:
    """SASS of one cubin or of several that lie one after another, and who made it: the first tool that can.

    Parameters
    ----------
    cubins : bytes
        The artifact.
    tools : sequence of Disassembler
        Those that there are.
    most : int
        So many bytes of text for each cubin.

    Raises
    ------
    NotDisassembled
        When none can; with what the last one said.
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


def _asked(tool: Path) -> Disassembler | None:
    try:
        said = printed.run([str(tool), "--version"], seconds=_SECONDS).said
    except (OSError, subprocess.SubprocessError):
        return None  # not for this machine, or not whole: as if it were not there
    version = re.search(r"\bV(\d+(?:\.\d+)+)", said)
    return Disassembler(tool, version[1]) if version else None


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)]
