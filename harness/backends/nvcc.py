"""nvcc, called directly for a whole translation unit or for its device pass."""

from __future__ import annotations

import os

from harness.backends.nvrtc import macros
from harness.nvidia import nvcc
from harness.nvidia.launch import run_on_driver
from harness.protocol.backend import Job, Setup, Unsupported
from harness.protocol.messages import Ready


def include_of(setup: Setup, job: Job) -> list[str]:
    """Return the include directories for ``-I``.

    nvcc's own directories need no option and are searched last, unless the headers are of another release.
    """
    next_to_source = [] if job.toolkit_first else job.include_next_to_source(setup)
    return [*next_to_source, *(setup.include if setup.headers != setup.release else [])]


def behind_toolkit(setup: Setup, job: Job) -> list[str]:
    """Return options for include directories that are searched after the toolkit's.

    Every ``-I`` is searched before any ``-isystem``.

    nvcc passes ``include`` with ``-I``, and from CUDA 13 on ``include/cccl`` with ``-isystem``, after the user's. So
    the toolkit's directories are passed too, first; a directory that is passed twice counts at its first position.
    """
    if not job.toolkit_first:
        return []
    toolkit = setup.include if setup.headers == setup.release else []
    return [word for folder in (*toolkit, *job.include_next_to_source(setup)) for word in ("-isystem", folder)]


def options_of(job: Job) -> list[str]:
    """Return nvcc's options for a job, without architecture, output and include directories."""
    options = job.options
    return [
        *([f"-std={options['std']}"] if "std" in options else []),
        *(["-rdc=true"] if options.get("rdc") else []),
        *(["-G"] if options.get("debug") else []),
        *(["-lineinfo"] if options.get("lineinfo") else []),
        *(["-use_fast_math"] if options.get("fastmath") else []),
        *(word for option in ["-v", *options.get("ptxas", [])] for word in ("-Xptxas", option)),
        *options.get("flags", []),
        *macros(job.definitions),
    ]


class NvccBackend:
    """`harness.protocol.backend.Backend` for nvcc itself."""

    def prepare(self, setup: Setup) -> Ready:
        return nvcc.describe(setup)

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile a whole unit (``-c``), unless the case or the user requests only the device pass."""
        depth = job.options.get("depth", "unit")
        if depth == "extension":
            raise Unsupported("nvcc alone makes no extension of PyTorch")
        if job.options.get("arch", "given") != "given":
            raise Unsupported("nvcc asks no device: without an architecture it builds for one of its own choice")
        os.chdir(job.scratch)
        if job.lto and job.together:
            raise Unsupported(
                "link-time optimization (-dlto) of several files is a build's own business: try one of them"
            )
        if job.lto and job.virtual:
            raise Unsupported("link-time optimization (-dlto) makes code for a real architecture")
        objects = []
        for number, source in enumerate(job.sources, 1):
            product = f"kernel-{number}.o" if job.together else "kernel.o"
            argv = [
                # nvcc reports that -dlto conflicts with -gencode.
                f"-arch={job.target}" if job.lto else f"-gencode=arch={job.options.get('compile_for', f'compute_{job.arch}')},code={job.target}",
                *options_of(job), *(f"-I{folder}" for folder in include_of(setup, job)), *behind_toolkit(setup, job), "-c", str(source), "-o", product,
            ]  # fmt: skip
            if depth == "device":
                argv = nvcc.device_only(argv, "ptx" if job.virtual else "ltoir" if job.lto else "cubin")
            nvcc.compile_unit(setup, job, argv)
            if job.together:
                job.complete()
            made = job.artifact.parts[-1].path if job.together and job.artifact else "kernel.cubin"
            objects.append(product if depth == "unit" else "kernel.ltoir" if job.lto else made)
        if (job.lto or job.relocatable) and not job.virtual:
            nvcc.link_device_code(setup, job, objects)

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile as without a device, then pass the device code to the driver: a host program is left to the user."""
        self.compile(setup, job)
        run_on_driver(job)


backend = NvccBackend()
