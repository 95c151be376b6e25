"""Arguments of RawModule for a cell, except the text."""

from __future__ import annotations

from typing import Any

from harness.backends.nvrtc import macros, switches
from harness.protocol.backend import Job, Setup, Unsupported


def options_of(setup: Setup, job: Job, built: str, *, macros_too: bool = True) -> tuple[str, ...]:
    """Options of RawModule; `built` is the architecture, if the case names it itself.

    Raises
    ------
    Unsupported
        Where the toolkit's headers are to come first, and CuPy has none of a toolkit but those of wheels.
    """
    given = job.options.get("arch", "implicit") == "given"
    folders = job.include_beside(setup)
    if job.toolkit_first:
        if setup.wheels:
            raise Unsupported("CUDA's headers lie in wheels of CuPy's environment: there is no toolkit to put first")
        folders = [*job.toolkit_include(setup), *folders]
    return (
        *([f"--std={job.options['std']}"] if "std" in job.options else []),
        *([f"-arch={built}"] if given else []),
        *switches(job),
        *job.options.get("flags", []),
        *(macros(job.definitions) if macros_too else ()),
        # The toolkit's own are left to CuPy, which finds them by CUDA_PATH and puts what it bundles before them, unless the case has them first.
        *(f"-I{folder}" for folder in folders),
    )


def keywords_of(setup: Setup, job: Job, jitify: bool) -> dict[str, Any]:
    """Arguments of RawModule except the text, on a device."""
    # CuPy launches cooperatively what was compiled with this argument, and nothing else.
    cooperative = bool(job.options.get("enable_cooperative_groups")) or any(
        launch.cooperative for launch in job.launches
    )
    keywords: dict[str, Any] = {"options": options_of(setup, job, job.target), "backend": "nvrtc"}
    keywords |= {"jitify": True} if jitify else {}
    return keywords | ({"enable_cooperative_groups": True} if cooperative else {})
