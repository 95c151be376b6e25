"""A script, and the lines that the scripts of all backends have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from harness import native
from harness.backends.cupy import c_table
from harness.repro.subject import CUDA, HEADERS, ReproTarget

SCRIPT = "repro.py"
"""Its name."""

BUILT = 'print(f"built: {len(image)} bytes, sha256 {hashlib.sha256(image).hexdigest()}")\n'
"""The end of a script that has an image."""

JOINED = 'image = b"".join(images)\n'
"""The step before it, if the images of several files are not linked."""

_FILES = Path(__file__).with_name("files")


@dataclass(frozen=True)
class Script:
    """A script and its files.

    Parameters
    ----------
    text : str
        The script.
    files : tuple of str
        Names in `files/` that it needs.
    """

    text: str
    files: tuple[str, ...]

    def contents(self) -> dict[str, bytes]:
        """Every file by its name in the folder."""
        found = {SCRIPT: self.text.encode()}
        for name in self.files:
            # Each library has a stand-in for the GPU of its own, of one name.
            plain = "virtual_gpu.py" if name.startswith("virtual_gpu_") else name
            # How functions of CuPy are put in the place of others imports nothing of cumatrix as it is.
            own = Path(c_table.__file__) if name == "c_table.py" else _FILES.joinpath(name)
            found[plain] = own.read_bytes()
        if "virtual_driver.py" in self.files:
            found["virtual_gpu.c"] = native.source("libcuda.c").encode()
        return found


def start(subject: ReproTarget, *imports: str) -> str:
    """Imports, and the toolkit."""
    beside = ("cuda_home", "cupy_program", "link", "virtual_gpu")
    names = sorted({"os", *(name for name in imports if name not in beside)})
    own = sorted({"cuda_home", *imports} - set(names))
    head = f"# {subject.record['cell']}".encode("ascii", "replace").decode()
    lines = [" ".join(head.split()), *(f"import {name}" for name in names), "", *(f"import {name}" for name in own)]
    return "\n".join(lines) + "\n\nos.chdir(os.path.dirname(os.path.abspath(__file__)))\n" + cuda_of(subject)


def of_each(subject: ReproTarget, lines: str) -> str:
    """Lines that compile the file `source` and put what comes out behind `images`, for each file of the program."""
    names = list_of(list(map(str, subject.job.sources)))
    return f"images = []\nfor source in {names}:\n{indent(lines, '    ')}"


def cuda_of(subject: ReproTarget) -> str:
    """Lines that lay out the toolkit, or take the one of this machine."""
    toolkit = subject.cell.toolchain.toolkit
    if toolkit.local:
        first = f'cuda = os.environ["CUDA_HOME"]  # where CUDA {toolkit.release} lies on this machine\n'
        first += f"os.path.lexists({text_of(CUDA)}) or os.symlink(cuda, {text_of(CUDA)})\n"
    else:
        wheels = f', "{CUDA}-wheels"' if subject.library else ""
        first = f"cuda = cuda_home.lay_out({text_of(CUDA)}{wheels})  # NVIDIA's wheels as one CUDA_HOME\n"
    if toolkit.headers != toolkit.release:
        first += f"headers = cuda_home.lay_out({text_of(HEADERS)}, {text_of(HEADERS + '-wheels')})  # CUDA {toolkit.headers}\n"
    return first


def host_of(subject: ReproTarget, *variables: str) -> str:
    """Lines that name a requested host compiler; change the first variable if it is elsewhere."""
    host = subject.cell.toolchain.host
    if not host.name:
        return ""
    first = text_of(variables[0])
    said = " ".join(host.version.encode("ascii", "replace").decode().split())
    lines = f"# The host compiler: {said}\n"
    lines += f"os.environ.setdefault({first}, {text_of(host.program or host.name)})\n"
    return lines + "".join(f"os.environ[{text_of(name)}] = os.environ[{first}]\n" for name in variables[1:])


def text_of(value: str) -> str:
    """A text as Python writes it, with double quotes where that can be."""
    return f'"{value}"' if value.isprintable() and value.isascii() and not set(value) & set('"\\') else repr(value)


def words_of(words: Sequence[str]) -> str:
    """Words with commas between."""
    return ", ".join(map(text_of, words))


def list_of(words: Sequence[str]) -> str:
    """A list of words on one line."""
    return f"[{words_of(words)}]"


def lines_of(words: Sequence[str]) -> str:
    """A list of words, on lines of their own where they are many."""
    line = list_of(words)
    return line if len(line) < 100 else "[\n" + "".join(f"    {text_of(word)},\n" for word in words) + "]"
