"""clang as a compiler of HIP for AMD GPUs, for device code only.

clang comes from ziglang's wheel in the environment under test, or else from the ROCm installation.

clang lists its commands (``-###``), and this module runs them one by one: clang generates an object, and lld links it
to a code object.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.backends import hip
from harness.backends.clang import Zig, messages_of, run_steps, target_of
from harness.nvidia.tools import Step, after, ask, start
from harness.protocol.backend import Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready

_FIRST = 13
"""The first clang with --no-gpu-bundle-output."""
_CLANG_LACKS = re.compile(r"invalid target ID|unsupported HIP gpu architecture")
_ROCM_LACKS = re.compile(r"cannot find ROCm device library for (gfx\w+|ABI version \d+, which requires ROCm [\d.]+)")


def options_of(job: Job) -> list[str]:
    """Return clang's options for a job at hipcc's default optimization, without the installation's folders and files."""
    optimized = job.options.get("debug") or any(flag.startswith("-O") for flag in job.options.get("flags", []))
    return [
        "-x", "hip", f"--offload-arch={job.target}", "--cuda-device-only", "--no-gpu-bundle-output",
        *([] if optimized else ["-O3"]), *hip.options_of(job),
    ]  # fmt: skip


class HipClangBackend:
    """`harness.protocol.backend.Backend` for clang with ``-x hip``."""

    clang: list[str]
    version: str
    bitcode: Path
    zig: Zig | None = None

    def prepare(self, setup: Setup) -> Ready:
        """Find clang, lld and the device libraries, without loading anything."""
        self.bitcode, observed = hip.device_libraries(setup), {"hip": hip.version(setup)}
        if importlib.util.find_spec("ziglang"):
            self.zig = Zig.find()
            self.clang = [str(self.zig.program), "clang", target_of(platform.machine())]
            self.clang += ["-resource-dir", str(self.zig.resources)]
            self.version = self.zig.version
            if int(self.version.split(".")[0]) < _FIRST:
                raise Unsupported(
                    f"clang {self.version} makes no code object without a bundle around it; {_FIRST} is the first that does"
                )
            return Ready(observed={**observed, **self.zig.observed})
        program = hip.clang(setup)
        self.clang = [str(program)]
        found = re.search(r"clang version (\d+\.\d+\.\d+)", ask(*self.clang, "--version"))
        self.version = found[1] if found else ""
        if not any((program.resolve().parent / name).is_file() for name in ("ld.lld", "lld")):
            major = self.version.split(".")[0]
            raise Unavailable(f"{program} links code for AMD GPUs with lld, and there is none: install lld-{major}")
        return Ready(observed={**observed, "clang": self.version})

    def compile(self, setup: Setup, job: Job) -> None:
        """Run the device pass of each file."""
        hip.check(job, "clang")
        os.chdir(job.scratch)
        for source in job.sources:
            self._compile(setup, job, source)
            if job.together:
                job.complete()

    def _compile(self, setup: Setup, job: Job, source: Path) -> None:
        folders = [f"--rocm-path={setup.home}", f"--rocm-device-lib-path={self.bitcode}"]
        argv = [*folders, *options_of(job), str(source), "-o", "kernel.hsaco"]
        name = ["zig", "clang"] if self.zig else [Path(self.clang[0]).name]
        job.command.append(shlex.join([*name, *argv]))
        job.enter("compile")
        run_steps(job, self._plan(setup, job, argv))
        job.keep(Path("kernel.hsaco").read_bytes(), "hsaco")

    def _plan(self, setup: Setup, job: Job, argv: Sequence[str]) -> Iterator[Step]:
        """Yield the commands that clang would run; an error of the driver itself is a refusal."""
        done = start(Step([*self.clang, "-###", *argv]))
        words = messages_of(done.output)
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
            words = ["kernel.o" if word in objects else word for word in command]
            if self.zig and words[0] == "lld":  # ziglang has no program of that name
                words[:3] = [str(self.zig.program), "ld.lld"]
            yield Step(words)

    def execute(self, setup: Setup, job: Job) -> None:
        """Raise, because cumatrix does not look for AMD devices; no cell comes here."""
        raise Unsupported("cumatrix runs nothing on AMD GPUs")


backend = HipClangBackend()
