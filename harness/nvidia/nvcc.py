"""Runs nvcc as its separate steps (``nvcc --dryrun``), one by one.

The end of each tool is observed directly, and steps that several cells share run once.

A step is reused only if all of its inputs are equal byte for byte: the preprocessed text and the options. Its result,
refusals included, is therefore what the step would have produced again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.nvidia.nvjitlink import NOT_LINKED_ALONE
from harness.nvidia.tools import Hidden, Step, after, ask, check, run, start, tell
from harness.protocol import reads
from harness.protocol.backend import Job, Setup, Unavailable
from harness.protocol.messages import Product, Ready
from harness.protocol.process_output import Finished

# The device code for the assembler in the output of `fatbinary`.
_DATA = re.compile(r'(?:^"\.quad [^\n]*\n)+', re.MULTILINE)
# CUB and Thrust put the list of architectures into the names of their namespaces: THRUST_300001_SM_800_NS. Texts that
# differ in nothing else are equivalent, and a replacement of the same length keeps the mangled names in order.
_NAMED = re.compile(rb"\b((?:THRUST|CUB)_\d+_SM_)(\d+(?:_\d+)*)")
# In mangled names a digit may follow. A text has a single list, so nothing else begins like it.
_IN_NAMES = rb"((?:THRUST|CUB)_\d+_SM_)%b"
_SIZE = re.compile(r"\bfatbinData\[\d+\]")


class StepCache:
    """Cache of finished steps, in a folder that a program's cells share in a run; without a folder, every step runs.

    Parameters
    ----------
    job : Job
        The cell.
    """

    def __init__(self, job: Job) -> None:
        self.folder = Path(job.steps) if job.steps else None
        self.job = job
        # Resolved in each cell: resolving links counts as reading, and the cell that runs a step must not read more
        # than the others.
        self.cells = (job.scratch.parent, job.scratch.parent.resolve())

    def front_end(self, step: Step) -> None:
        """Run cudafe++ on the host's preprocessed text."""
        outputs = [
            after(step.words, name) for name in ("--gen_c_file_name", "--stub_file_name", "--module_id_file_name")
        ]
        self._once(step, step.line, Path(step.words[-1]), [name for name in outputs if name])

    def host_pass(self, step: Step) -> None:
        """Run the host compiler on cudafe++'s output, up to assembly; assembling embeds the device code."""
        out = step.output or ""
        (unit,) = (word for word in step.words if word.endswith(".cudafe1.cpp"))
        embedded = Path(unit).name.removesuffix(".cudafe1.cpp") + ".fatbin.c"
        if self.folder is None or not _embed_by_name(Path(embedded)):
            run(self.job, step)
            return
        assembly = Path(out).with_suffix(".s").name
        words = [assembly if word == out else "-S" if word == "-c" else word for word in step.words]
        self.compile(Step(words, step.env))
        assemble = [step.words[0], *(["-m64"] if "-m64" in words else []), "-c", assembly, "-o", out]
        run(self.job, Step(assemble, step.env))

    def compile(self, step: Step) -> None:
        """Run a C++ compilation; its preprocessed text and its options except the preprocessor's identify it."""
        if self.folder is None:
            run(self.job, step)
            return
        text = Path("step.ii")
        words = _without(step.words, {"-c": 0, "-S": 0, "-o": 1, "-MD": 0, "-MMD": 0, "-MF": 1})
        run(self.job, Step([*words, "-E", "-o", str(text)], step.env))
        options = [word for word in _without(step.words, {"-isystem": 1}) if not word.startswith(("-D", "-I"))]
        self._once(step, shlex.join(options), text, [step.output or "a.out"])

    def _once(self, step: Step, options: str, text: Path, outputs: Sequence[str]) -> None:
        if self.folder is None:
            run(self.job, step)
            return
        scratch, data = str(self.job.scratch), text.read_bytes()
        names = _names(data)
        readable = len(names) == 1 and not any(name.endswith(".o") for name in outputs)
        if readable:
            (name,) = names
            data = re.sub(_IN_NAMES % name, rb"\g<1>" + b"#" * len(name), data)
        digest = hashlib.sha256(f"{step.path}\0{options}\0".replace(scratch, ".").encode())
        digest.update(data.replace(scratch.encode(), b"."))
        mine = {"scratch": scratch, "name": names.pop().decode() if readable else ""}
        place = self.folder / digest.hexdigest()
        with open(f"{place}.lock", "w") as lock:
            # A process that dies releases the lock, and has put nothing into the cache.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.is_dir():
                records = self.job.scratch / "step.reads"
                records.touch()
                # Reads of this step count for every cell that reuses it.
                done = start(Step(step.words, {**step.env, reads.VARIABLE: str(records)}) if reads.followed() else step)
                # Files of this worker's cells are irrelevant to other cells.
                read = reads.without(records.read_bytes(), self.cells)
                reads.replay(read)
                if done.code >= 0:
                    kept: dict[str, Any] = {
                        "code": done.code,
                        "output": done.output,
                        "total": done.total,
                        "whole": done.whole,
                        "reads": read.decode("latin-1"),
                        **mine,
                    }
                    _put(place, outputs, kept)
                tell(self.job, step, done)
                check(step, done.code, done.output)
                return
        self.job.shared_steps.append(step.program)
        kept = _take(place, outputs, mine)
        reads.replay(kept["reads"].encode("latin-1"))
        tell(self.job, step, Finished(kept["code"], kept["output"], kept["total"], kept["whole"]))
        check(step, kept["code"], kept["output"])


def _names(data: bytes) -> set[bytes]:
    """Return the lists of architectures in the names of CUB's and Thrust's namespaces."""
    return {match[2] for match in _NAMED.finditer(data)}


def _take(place: Path, outputs: Sequence[str], mine: dict[str, str]) -> dict[str, Any]:
    """Copy files from the cache; in texts, replace the folder and the architectures of the cell that made them."""
    kept: dict[str, Any] = json.loads((place / "step.json").read_text("utf-8"))

    def own(data: bytes) -> bytes:
        data = data.replace(kept["scratch"].encode(), mine["scratch"].encode())
        return (
            re.sub(_IN_NAMES % kept["name"].encode(), rb"\g<1>" + mine["name"].encode(), data) if mine["name"] else data
        )

    for index, name in enumerate(outputs):
        source = place / str(index)
        if source.is_file():
            data = source.read_bytes()
            Path(name).write_bytes(data if name.endswith(".o") else own(data))
    kept["output"] = own(kept["output"].encode()).decode()
    return kept


def _put(place: Path, outputs: Sequence[str], kept: dict[str, Any]) -> None:
    temporary = place.with_name(f"{place.name}.{os.getpid()}")
    temporary.mkdir()
    for index, name in enumerate(outputs):
        if Path(name).is_file():
            shutil.copyfile(name, temporary / str(index))
    (temporary / "step.json").write_text(json.dumps(kept), "utf-8")
    os.replace(temporary, place)


def _embed_by_name(path: Path) -> bool:
    """Make the embedding file refer to the device code (``.incbin``) instead of containing it; return False on failure."""
    try:
        text = path.read_text("utf-8")
    except OSError:
        return False
    code = path.name.removesuffix(".c")
    if len(_DATA.findall(text)) != 1 or not Path(code).is_file():
        return False
    text = _DATA.sub(f'".incbin \\\\"{code}\\\\"\\\\n"\n', text)
    path.write_text(_SIZE.sub("fatbinData[]", text), "utf-8")
    return True


def _without(words: Sequence[str], options: dict[str, int]) -> list[str]:
    left, skip = [], 0
    for word in words:
        if skip:
            skip -= 1
        elif word in options:
            skip = options[word]
        else:
            left.append(word)
    return left


_FIRST = 13
"""The first CUDA release with nvcc in its wheels (https://pypi.org/project/nvidia-cuda-nvcc/)."""
# Without the release, so that a summary groups many releases.
_NONE = "CUDA as installed from PyPI has no nvcc before 13.0: take one of this machine's with --toolkit local"
_VARIABLE = re.compile(r"#\$ (\w+)=(.*)")


def tool(setup: Setup) -> Path:
    """Return the toolkit's nvcc.

    Raises
    ------
    Unavailable
        If the toolkit has no nvcc.
    """
    path = setup.home / "bin" / "nvcc"
    if not path.is_file():
        raise Unavailable(_NONE)
    return path


def missing_from(release: str) -> str:
    """Return the reason why a CUDA release from wheels has no nvcc; empty if it has one."""
    return "" if int(release.split(".")[0]) >= _FIRST else _NONE


def describe(setup: Setup) -> Ready:
    """Return nvcc's versions for a backend that uses it (`harness.protocol.backend.Backend.prepare`)."""
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
    """Yield the tools that ``nvcc`` with these options would run, in order.

    Raises
    ------
    Rejected, Crashed
        If nvcc itself refuses the options, or crashes.
    Unavailable
        If nvcc would run a CUDA tool from outside of the toolkit.
    """
    hidden = Hidden(job.definitions)
    # nvcc prints options as shell commands, but its quotes do not protect `$` and backquotes.
    dry = Step([str(tool(setup)), "--dryrun", "--keep", *map(hidden.hide, argv)])
    done = start(dry)
    if not done.whole:
        raise Unavailable(f"nvcc --dryrun printed {done.total} bytes, which are too many to be its steps")
    env: dict[str, str] = {}
    lines = []
    for line in done.output.splitlines():
        if variable := _VARIABLE.fullmatch(line.rstrip()):
            env[variable[1]] = variable[2]
        elif line.startswith("#$ --"):
            continue  # a step of nvcc itself: filtering the list of dependencies
        elif line.startswith("#$ "):
            lines.append(line.removeprefix("#$ ").strip())
        else:
            job.say(hidden.back(line))
    if done.code:
        job.enter("compile")
    check(dry, done.code, done.output)
    for line in lines:
        step = Step.of_line(line, env, hidden)
        if step.program == "rm":
            continue
        ours = Path(step.path or "/").resolve().is_relative_to(setup.home.resolve())
        if not ours and step.program in ("cicc", "cudafe++", "ptxas", "fatbinary", "nvlink"):
            raise Unavailable(f"nvcc would run {step.path}, which is not of toolkit {setup.home.name}")
        yield step


def compile_unit(setup: Setup, job: Job, argv: Sequence[str]) -> None:
    """Run nvcc's steps for a translation unit in the current folder, and keep the device code.

    Raises
    ------
    Ended
        If a tool fails.
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
    """Link relocatable code with libcudadevrt as ``nvcc -dlink`` does, and keep nvlink's output.

    With ``-dc``, or if the toolkit has no libcudadevrt, the stage is skipped with a note.
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
    """Return the same options for the device pass alone (``-cubin`` or ``-ptx``) instead of the whole unit (``-c``)."""
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
