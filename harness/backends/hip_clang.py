"""clang as a compiler of HIP for AMD GPUs: that of a ROCm installation, for the device alone.

clang lists its commands (``-###``), which run one by one: clang makes an object, and lld links it to a code object.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.backends import hip
from harness.nvidia.tools import Step, after, ask, check, start, tell
from harness.protocol.backend import Crashed, Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready

_INTERNAL = 70
"""clang's exit code for an error that is its own (``report_fatal_error``)."""
_CLANG_LACKS = re.compile(r"invalid target ID|unsupported HIP gpu architecture")
_ROCM_LACKS = re.compile(r"cannot find ROCm device library for (gfx\w+|ABI version \d+, which requires ROCm [\d.]+)")


class HipClangBackend:
    """`harness.protocol.backend.Backend` for clang with ``-x hip``."""

    clang: Path
    version: str
    bitcode: Path

    def prepare(self, setup: Setup) -> Ready:
        """Look for clang, lld and the device libraries; nothing is loaded."""
        self.clang, self.bitcode = hip.clang(setup), hip.device_libraries(setup)
        found = re.search(r"clang version (\d+\.\d+\.\d+)", ask(str(self.clang), "--version"))
        self.version = found[1] if found else ""
        major = self.version.split(".")[0]
        if not any((self.clang.resolve().parent / name).is_file() for name in ("ld.lld", "lld")):
            raise Unavailable(f"{self.clang} links code for AMD GPUs with lld, and there is none: install lld-{major}")
        return Ready(observed={"hip": hip.version(setup), "clang": self.version})

    def compile(self, setup: Setup, job: Job) -> None:
        """The device pass of each file."""
        hip.check(job, "clang")
        os.chdir(job.scratch)
        for source in job.sources:
            self._compile(setup, job, source)
            if job.together:
                job.complete()

    def _compile(self, setup: Setup, job: Job, source: Path) -> None:
        optimized = job.options.get("debug") or any(flag.startswith("-O") for flag in job.options.get("flags", []))
        argv = [
            "-x", "hip", f"--offload-arch={job.target}", "--cuda-device-only", "--no-gpu-bundle-output",
            f"--rocm-path={setup.home}", f"--rocm-device-lib-path={self.bitcode}", *([] if optimized else ["-O3"]),
            *hip.options_of(job), str(source), "-o", "kernel.hsaco",
        ]  # fmt: skip
        job.command.append(shlex.join([self.clang.name, *argv]))
        job.enter("compile")
        for step in self._plan(setup, job, argv):
            job.enter(step.stage)
            done = start(step)
            tell(job, step, done)
            if done.code == _INTERNAL:
                raise Crashed("clang stopped with an internal error", signal=None, stage=step.stage)
            check(step, done.code, done.output)
        job.keep(Path("kernel.hsaco").read_bytes(), "hsaco")

    def _plan(self, setup: Setup, job: Job, argv: Sequence[str]) -> Iterator[Step]:
        """The commands that clang would run; what it says itself is kept, and an error of it is a refusal."""
        done = start(Step([str(self.clang), "-###", *argv]))
        words = [line for line in done.output.splitlines() if re.match(r"\S+: (?:error|warning|note): ", line)]
        job.say("\n".join(words))
        errors = "\n".join(line for line in words if ": error: " in line)
        if not job.options.get("every_target"):
            if _CLANG_LACKS.search(errors):
                raise Unsupported(f"clang {self.version} knows no {job.target}")
            if lacking := _ROCM_LACKS.search(errors):
                raise Unsupported(f"ROCm {setup.release} has no device library for {lacking[1]}")
        if done.code or errors:
            raise Rejected("clang refused its options", stage="compile")
        commands = [shlex.split(line) for line in done.output.splitlines() if line.startswith(' "')]
        objects = {after(command, "-o") for command in commands if "-cc1" in command}
        for command in commands:
            yield Step(["kernel.o" if word in objects else word for word in command])

    def execute(self, setup: Setup, job: Job) -> None:
        """AMD devices are not looked for, so that no cell comes here."""
        raise Unsupported("cumatrix runs nothing on AMD GPUs")


backend = HipClangBackend()
