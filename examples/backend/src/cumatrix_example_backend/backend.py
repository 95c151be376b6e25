"""The backend. It runs under the interpreter of the environment under test: the standard library, `cumatrix.backend`, and the library, inside functions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cumatrix.backend import Job, Nvrtc, Ready, Rejected, Setup, Unavailable, Unsupported, run_on_driver, virtual_driver


class ExampleBackend:
    """`cumatrix.backend.Backend` for cuda.core's Program."""

    core: Any

    def prepare(self, setup: Setup) -> Ready:
        """Load everything, in the process that cells are forked from."""
        try:
            core, bindings = version("cuda-core"), version("cuda-bindings")
        except PackageNotFoundError as error:
            raise Unavailable(f"{error.name} is not installed") from None
        if int(bindings.split(".")[0]) != setup.version[0]:
            raise Unsupported(f"cuda-bindings {bindings} is not for CUDA {setup.release}")
        # The bindings take what is loaded already, and this is the NVRTC of the toolkit that was asked for.
        nvrtc = Nvrtc(setup)
        if not setup.device:
            virtual_driver(setup).virtual_configure(1000 * setup.version[0], 8, 0, None)
        import cuda.core

        if not hasattr(cuda.core, "Program"):
            raise Unsupported(f"this example is for cuda-core 0.5 and later, not {core}")
        self.core = cuda.core
        return Ready(
            observed={"nvrtc": nvrtc.version, "cuda_core": core},
            architectures=nvrtc.architectures(),
            architectures_of=f"NVRTC {nvrtc.version}",
        )

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile one cell, in a process of its own; returning means that it was built."""
        if job.options.get("flags") or job.options.get("rdc"):
            raise Unsupported("this example takes no options")
        kind = "ptx" if job.virtual else "cubin"
        options = self.core.ProgramOptions(
            arch=job.target,
            name=job.source.name,
            include_path=[*job.include_next_to_source(setup), *setup.include],
            define_macro=[(name, str(value)) for name, value in job.definitions.items()] or None,
        )
        job.command.append(f"cuda.core.Program(code, 'c++', ProgramOptions(arch={job.target!r}, …)).compile({kind!r})")
        job.enter("compile")
        try:
            code = self.core.Program(job.source.read_text("utf-8"), "c++", options).compile(kind).code
        except Exception as error:
            log = str(error).partition("compilation log:")[2]
            if not log:
                raise  # a fault of ours, or of the machine
            job.say(log)
            raise Rejected(
                "NVRTC refused", stage="assemble" if "ptxas error" in log or "\nptxas" in log else "compile"
            ) from None
        if kind == "cubin":
            job.enter("assemble")
        job.keep(bytes(code), kind)

    def execute(self, setup: Setup, job: Job) -> None:
        """On a real device: the same, and on to a checked result."""
        self.compile(setup, job)
        run_on_driver(job)


backend = ExampleBackend()
