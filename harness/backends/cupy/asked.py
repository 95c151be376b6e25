"""What RawModule is asked for."""

from __future__ import annotations

from typing import Any

from harness.backends.nvrtc import macros, switches
from harness.protocol.backend import Job, Setup


def keywords_of(setup: Setup, job: Job, jitify: bool) -> dict[str, Any]:
    """What RawModule is given beside the text, on a device."""
    # CuPy launches cooperatively what was compiled with this argument, and nothing else.
    cooperative = bool(job.options.get("enable_cooperative_groups")) or any(
        launch.cooperative for launch in job.launches
    )
    keywords: dict[str, Any] = {"options": options_of(setup, job, job.target), "backend": "nvrtc"}
    keywords |= {"jitify": True} if jitify else {}
    return keywords | ({"enable_cooperative_groups": True} if cooperative else {})


def options_of(setup: Setup, job: Job, built: str, *, macros_too: bool = True) -> tuple[str, ...]:
    """What RawModule is given as its options; `built` is the architecture, where the case names it itself."""
    given = job.options.get("arch", "implicit") == "given"
    return (
        *([f"--std={job.options['std']}"] if "std" in job.options else []),
        *([f"-arch={built}"] if given else []),
        *switches(job),
        *job.options.get("flags", []),
        *(macros(job.definitions) if macros_too else ()),
        # The toolkit's own are left to CuPy, which finds them by CUDA_PATH and puts what it bundles before them.
        *(f"-I{folder}" for folder in job.include_beside(setup)),
    )
