"""The log of a cell: what tools said and what was printed, in the same words on every machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.diagnostics import clean
from harness.protocol.printed import cut

LOG_LIMIT = 64 << 10
"""How much of a log a record keeps, in characters, with what says that something was left out."""

_MADE = "made-by-cupy.cu"
_HASHED = re.compile(r"\b[0-9a-f]{32,64}\.cubin\.cu\b")
# What may be a path, with what stands before it; where Python's packages lie, all before it is one machine's.
_WORD = re.compile(r"[^\s'\":,;=]+")
_SITES = ("/site-packages/", "/dist-packages/")
_TIMES = re.compile(r"^.*\bCompile time = [\d.]+ ms\n?", re.MULTILINE)


@dataclass(frozen=True)
class Places:
    """Folders whose names differ from machine to machine, and from run to run.

    Parameters
    ----------
    scratch : Path
        The cell's own.
    source : Path
        The program, seen from whose folder names are written.
    home : Path
        The toolkit, ``$CUDA_HOME`` in logs and commands.
    root : Path or None
        The project's folder, from which names are written in the place of the program's.
    kept : Path
        What else cumatrix keeps, ``$CUMATRIX_HOME`` in commands.
    """

    scratch: Path
    source: Path
    home: Path
    kept: Path
    root: Path | None = None

    # Each is asked for several times, and leads through links as it did before.
    @cached_property
    def _home(self) -> Path:
        return self.home.resolve()

    @cached_property
    def _scratch(self) -> str:
        return str(self.scratch.resolve())

    @cached_property
    def _folders(self) -> list[str]:
        """The folder from which names are written, by its own name and without links, the longer one first."""
        near = self.root or self.source.absolute().parent
        return sorted({str(near), str(near.resolve())} - {"/"}, key=len, reverse=True)

    @cached_property
    def name(self) -> str:
        """What the program is called."""
        place = self.source.absolute()
        return place.relative_to(self.root).as_posix() if self.root and place.is_relative_to(self.root) else place.name

    def in_log(self, text: str) -> str:
        """A log without them."""
        text = clean(text).replace(f"{self.home}/", "$CUDA_HOME/")
        # CuPy hands the program to NVRTC under the hash of everything: the name that people know says more. A text that it made
        # itself, out of a program in Python, has lines of its own.
        name = _MADE if self.source.suffix == ".py" else self.name
        return _TIMES.sub("", _HASHED.sub(lambda _found: name, self._near(text)))

    def in_command(self, text: str) -> str:
        """A command without them."""
        text = _WORD.sub(lambda found: _from_packages(found[0]), self._apart(text))
        for folder, name in (
            (self.home, "$CUDA_HOME"), (self._home, "$CUDA_HOME"), (self.kept, "$CUMATRIX_HOME"),
        ):  # fmt: skip
            text = re.sub(rf"{re.escape(str(folder))}(?![\w.-])", name, text)
        return self._beside(text)

    def _near(self, text: str) -> str:
        return self._beside(self._apart(text))

    def _apart(self, text: str) -> str:
        """Without temporary folders."""
        text = text.replace(self._scratch, ".").replace(str(self.scratch), ".")
        return re.sub(r"(?:\./|/tmp/)tmp[a-z0-9_]{8}/", "", text)

    def _beside(self, text: str) -> str:
        """With the names of the program, and of what lies below its folder, as seen from there."""
        for folder in self._folders:
            text = re.sub(rf"(?<![\w./-]){re.escape(folder)}/", "", text)
            if self.root:
                text = re.sub(rf"(?<![\w./-])-I{re.escape(folder)}(?:/|(?![\w.-]))", "-I", text)
                text = re.sub(r"-I(?=[\s'\"]|$)", "-I.", text)
        return text


def _from_packages(word: str) -> str:
    """``-I…/site-packages/nvidia/include``."""
    place = max(map(word.rfind, _SITES))
    return word if place < 0 else f"{word[: word.find('/')]}…{word[place:]}"


def whole_log(said: str, printed: str, places: Places) -> str:
    """What tools said, then what was printed, with the middle left out where it is longer than `LOG_LIMIT`."""
    if places.source.suffix == ".py" and printed.strip():
        printed = f"--- printed while {places.name} ran, by the program or by what it called ---\n{printed}"
    return cut(places.in_log("\n".join(part.rstrip("\n") for part in (said, printed) if part.strip())), LOG_LIMIT)
