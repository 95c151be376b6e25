"""The reason for a build without a kernel, from the text of the program."""

from __future__ import annotations

import re
from pathlib import Path

from harness.cases.kernel_texts import why_no_kernels
from harness.model import Target
from harness.protocol.messages import CellJob
from harness.protocol.process_output import Unreadable, read_plain

NOTE = "no kernel came out: "
_MOST = 2 << 20
_DEFINE = re.compile(r"(?:-D|--define-macro=)([A-Za-z_]\w*)(?:=(.*))?", re.DOTALL)


def note_of(job: CellJob, name: str, *, nvcc: bool) -> str:
    """A note on why no kernel came out of a cell; empty where the texts do not tell it.

    Parameters
    ----------
    job : CellJob
        The cell.
    name : str
        The program's name in messages.
    nvcc : bool
        Whether nvcc compiles it, and not NVRTC.
    """
    if job.source.suffix == ".py":
        return ""
    texts: dict[str, str] = {}
    for path in (job.source, *job.together):
        try:
            texts[name if path == job.source else path.name] = read_plain(Path(path), _MOST).decode("utf-8", "replace")
        except (OSError, Unreadable):
            return ""
    reason = why_no_kernels(texts, _macros(job, nvcc=nvcc))
    return f"{NOTE}{reason}" if reason else ""


def _macros(job: CellJob, *, nvcc: bool) -> dict[str, str]:
    given = {name: str(int(value) if isinstance(value, bool) else value) for name, value in job.definitions.items()}
    flags = [found for flag in job.options.get("flags", []) if (found := _DEFINE.fullmatch(flag))]
    return {
        "__CUDACC__": "1",
        **({} if nvcc else {"__CUDACC_RTC__": "1"}),
        "__CUDA_ARCH__": str(Target.parse(job.target).cc * 10),
        **given,
        **{found[1]: found[2] or "1" for found in flags},
    }
