"""nvcc as the tools that it would run (``nvcc --dryrun``), run one by one.

So each tool's end is seen by itself, and what several cells have in common is done once (`harness.nvidia.step_cache`).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.nvidia.nvjitlink import NOT_LINKED_ALONE
from harness.nvidia.step_cache import StepCache
from harness.nvidia.tools import Hidden, Step, ask, check, run, start
from harness.protocol.backend import Job, Setup, Unavailable
from harness.protocol.wire import Product, Ready

_FIRST = 13
"""The first CUDA release whose wheels have nvcc (https://pypi.org/project/nvidia-cuda-nvcc/)."""
# Without the release, so that many releases are one line of a summary.
_NONE = "CUDA as installed from PyPI has no nvcc before 13.0: take one of this machine's with --toolkit local"
_VARIABLE = re.compile(r"#\$ (\w+)=(.*)")


def tool(setup: Setup) -> Path:
    """The toolkit's nvcc.

    Raises
    ------
    Unavailable
        When it has none.
    """
    path = setup.home / "bin" / "nvcc"
    if not path.is_file():
        raise Unavailable(_NONE)
    return path


def missing_from(release: str) -> str:
    """The reason why a CUDA release from wheels has no nvcc; empty if it has one."""
    return "" if int(release.split(".")[0]) >= _FIRST else _NONE


def describe(setup: Setup) -> Ready:
    """Versions of nvcc for a backend that uses it: see `harness.protocol.backend.Backend.prepare`."""
    nvcc = tool(setup)
    version = _release(ask(str(nvcc), "--version"), nvcc)
    codes = re.findall(r"sm_(\d+)", ask(str(nvcc), "--list-gpu-code"))
    compiler = os.environ.get("NVCC_CCBIN") or "gcc"
    return Ready(
        observed={"nvcc": version, "host_compiler": ask(compiler, "--version").splitlines()[0]},
        architectures=sorted(map(int, set(codes))),
        architectures_of=f"nvcc {version}",
    )


def plan(setup: Setup, job: Job, argv: Sequence[str]) -> Iterator[Step]:
    """The tools that ``nvcc`` with these options would run, in order.

    Raises
    ------
    Rejected, Crashed
        When nvcc itself refuses the options, or dies.
    Unavailable
        When it would run a CUDA tool from outside of the toolkit.
    """
    hidden = Hidden(job.definitions)
    # nvcc writes options into lines for a shell, and puts quotes around them that do not hold `$` and backquotes.
    dry = Step([str(tool(setup)), "--dryrun", "--keep", *map(hidden.hide, argv)])
    done = start(dry)
    if not done.whole:
        raise Unavailable(f"nvcc --dryrun printed {done.total} bytes, which are too many to be its steps")
    env: dict[str, str] = {}
    lines = []
    for line in done.said.splitlines():
        if variable := _VARIABLE.fullmatch(line.rstrip()):
            env[variable[1]] = variable[2]
        elif line.startswith("#$ --"):
            continue  # what nvcc does itself: it filters the list of dependencies
        elif line.startswith("#$ "):
            lines.append(line.removeprefix("#$ ").strip())
        else:
            job.say(hidden.back(line))
    if done.code:
        job.enter("compile")
    check(dry, done.code, done.said)
    for line in lines:
        step = Step.of_line(line, env, hidden)
        if step.program == "rm":
            continue
        ours = Path(step.path or "/").resolve().is_relative_to(setup.home.resolve())
        if not ours and step.program in ("cicc", "cudafe++", "ptxas", "fatbinary", "nvlink"):
            raise Unavailable(f"nvcc would run {step.path}, which is not of toolkit {setup.home.name}")
        yield step


def compile_unit(setup: Setup, job: Job, argv: Sequence[str]) -> None:
    """Run what nvcc would run for a translation unit, in the current folder; the device code is kept.

    Raises
    ------
    Ended
        As one of the tools ended.
    """
    job.command.append(shlex.join(["nvcc", *argv]))
    steps = StepCache(job)
    for step in plan(setup, job, argv):
        if not job.stages or job.stages[-1] != step.stage:
            job.enter(step.stage)
        if step.program == "cudafe++":
            steps.front_end(step)
        elif step.stage == "compile" and any(word.endswith(".cudafe1.cpp") for word in step.words):
            steps.host_pass(step)
        else:
            run(job, step)
        _keep_device_code(job, step)


def link_device_code(setup: Setup, job: Job, files: Sequence[str]) -> None:
    """Link relocatable code with libcudadevrt as ``nvcc -dlink`` does; what nvlink makes is kept.

    A toolkit without libcudadevrt leaves the stage out, as does ``-dc``, and the job's notes say so.
    """
    if job.one_of_several:
        job.notes.append(NOT_LINKED_ALONE)
        return
    if not (setup.home / "lib64" / "libcudadevrt.a").is_file():
        job.notes.append(f"not linked: CUDA {setup.release} has no libcudadevrt.a")
        return
    arch = [f"-arch={job.target}", "-dlto"] if job.lto else [f"-gencode=arch=compute_{job.arch},code={job.target}"]
    argv = ["-dlink", *arch, *files, "-o", "linked.o", "-lcudadevrt"]
    job.command.append(shlex.join(["nvcc", *argv]))
    for step in plan(setup, job, argv):
        job.enter("link")
        run(job, step)
        if step.program == "nvlink":
            _keep(job, step.output, "cubin")


def device_only(argv: Sequence[str], kind: str) -> list[str]:
    """The same options with the device pass alone (``-cubin`` or ``-ptx``) in place of the whole unit (``-c``)."""
    left, skip = [], False
    for word in argv:
        if skip:
            skip = False
        elif word in ("-o", "--dependency-output", "-MF"):
            skip = True
        elif word not in ("-c", "--compile", "--generate-dependencies-with-compile", "-MD", "-MMD"):
            left.append(word)
    return [*left, f"-{kind}", "-o", f"kernel.{kind}"]


def _keep_device_code(job: Job, step: Step) -> None:
    if step.program == "ptxas":
        relocatable = bool({"--compile-only", "-c"} & set(step.words))
        _keep(job, step.output, "object" if relocatable else "cubin")
    elif step.program == "cicc":
        _keep(job, step.output, "ptx")


def _keep(job: Job, name: str | None, kind: str) -> None:
    if name and Path(name).is_file():
        job.artifact = Product(str(Path(name).resolve()), kind)


def _release(text: str, nvcc: Path) -> str:
    found = re.search(r"V(\d+\.\d+\.\d+)", text)
    if not found:
        raise Unavailable(f"{nvcc} does not say its version")
    return found[1]
