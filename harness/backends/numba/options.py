"""Options of a case that Numba cannot be given: such a cell is not applicable, since another program than asked for would be compiled."""

from __future__ import annotations

from typing import Any

from harness.protocol.backend import Job, Unsupported

JIT_OPTIONS = ("cache", "debug", "opt", "lineinfo", "fastmath")


def jit_options(job: Job) -> dict[str, Any]:
    """The content of a program's ``JIT_OPTIONS``."""
    return {name: value for name, value in job.options.items() if name in JIT_OPTIONS}


def check_options(job: Job) -> None:
    """Look at the options before anything is compiled. Those of C++ alone (``std``, ``include``) do not concern Python, and are passed over.

    Raises
    ------
    Unsupported
        For an option that Numba has no word for, or that the program does not take up.
    """
    options = job.options
    if options.get("arch", "implicit") == "given":
        raise Unsupported("Numba builds for the compute capability of its device: no architecture can be given")
    if options.get("rdc"):
        raise Unsupported("Numba takes no word on relocatable code (rdc): what needs libcudadevrt it links by itself")
    for name in ("flags", "ptxas"):
        if options.get(name):
            raise Unsupported(f"Numba takes no options for compilers ({name}); its own stand in @cuda.jit(…)")
    wanted = [name for name in JIT_OPTIONS if options.get(name)]
    if wanted and "JIT_OPTIONS" not in job.source.read_text("utf-8", "replace"):
        asked = ", ".join(f"{name}=True" for name in wanted)
        raise Unsupported(
            f"{job.source.name} does not use JIT_OPTIONS, so {asked} would not reach Numba: @cuda.jit(**JIT_OPTIONS)"
        )
