"""The toolkit's own assembler, run on PTX that a compiler or library stopped at."""

from __future__ import annotations

import re
from pathlib import Path

from harness.nvidia.tools import Step, ask, start, tell
from harness.protocol.backend import Crashed, Job, Rejected, Setup, Unavailable
from harness.protocol.wire import Product


def version(setup: Setup) -> str:
    """``"12.4.131"``, as ``ptxas --version`` says."""
    return _release(_ask(setup, "--version"))


def architectures(setup: Setup) -> list[str]:
    """Names that ``ptxas --help`` lists for ``--gpu-name``, virtual ones included."""
    text = _ask(setup, "--help")
    start = text.find("--gpu-name")
    return sorted(set(re.findall(r"'((?:sm|compute)_\d+[af]?)'", text[start : start + 6000])))


def assemble(setup: Setup, job: Job, ptx: Path, *, relocatable: bool = False) -> Path:
    """Assemble for the job's target, as stage ``assemble``, with another toolkit's ptxas where the job has one.

    Raises
    ------
    Rejected, Crashed
        As ptxas ended.
    """
    job.enter("assemble")
    kind = "object" if relocatable else "cubin"
    out = job.scratch / f"artifact.{kind}"
    home = job.assembler.home if job.assembler else setup.home
    if job.assembler:
        job.observed["ptxas"] = _release(ask(str(home / "bin" / "ptxas"), "--version"))
    argv = [str(home / "bin" / "ptxas"), f"-arch=sm_{job.arch}", "-v", *job.options.get("ptxas", [])]
    argv += ["-c"] if relocatable else []
    argv += [str(ptx), "-o", str(out)]
    job.command.append(" ".join(argv))
    step = Step(argv)
    done = start(step)
    tell(job, step, done)
    if done.code < 0:
        raise Crashed(f"ptxas was ended by signal {-done.code}", signal=-done.code, stage="assemble")
    if done.code:
        raise Rejected("ptxas refused the PTX", stage="assemble")
    job.artifact = Product(str(out), kind)
    return out


def _ask(setup: Setup, flag: str) -> str:
    return ask(str(setup.home / "bin" / "ptxas"), flag)


def _release(text: str) -> str:
    found = re.search(r"V(\d+\.\d+\.\d+)", text)
    if not found:
        raise Unavailable("ptxas does not say its version")
    return found[1]
