"""ptxas, called directly for PTX programs."""

from __future__ import annotations

from harness.nvidia import tools
from harness.nvidia.launch import run_on_driver
from harness.protocol.backend import Job, Setup, Unsupported
from harness.protocol.messages import Ready


def options_of(job: Job) -> list[str]:
    """Return ptxas's options: the case's own, and those that a user passes with ``-Xptxas``."""
    return [*job.options.get("ptxas", []), *(flag.partition("=")[2] for flag in job.options.get("flags", []))]


class PtxasBackend:
    """`harness.protocol.backend.Backend` for the assembler."""

    def prepare(self, setup: Setup) -> Ready:
        version = tools.version(setup)
        numbers = {
            int(name.removeprefix("sm_").rstrip("af")) for name in tools.architectures(setup) if name.startswith("sm_")
        }
        return Ready(observed={"ptxas": version}, architectures=sorted(numbers), architectures_of=f"ptxas {version}")

    def compile(self, setup: Setup, job: Job) -> None:
        """Assemble for a real architecture; for a virtual one, PTX is already the result."""
        if job.virtual:
            raise Unsupported(f"ptxas makes code for real architectures, and {job.target} is a virtual one")
        job.options = {**job.options, "ptxas": options_of(job)}
        for source in job.sources:
            tools.assemble(setup, job, source, relocatable=bool(job.options.get("rdc")))
            if job.together:
                job.complete()

    def execute(self, setup: Setup, job: Job) -> None:
        """Assemble as without a device, then pass the code to the driver."""
        self.compile(setup, job)
        run_on_driver(job)


backend = PtxasBackend()
