"""Variables of a worker's environment: everything is set here, and nothing is inherited but the path."""

from __future__ import annotations

import os
import re

from harness.protocol.wire import CLAIMED_LANDLOCK


def clean_environment(cuda_home: str) -> dict[str, str]:
    """Variables of a worker: nothing of the user's that could change an outcome but the path, and no CUDA but the toolkit's."""
    folders = [
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(folder) and not _has_cuda(folder)
    ]
    return {
        "PATH": os.pathsep.join([f"{cuda_home}/bin", *folders]),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "CUDA_HOME": cuda_home,
        "CUDA_PATH": cuda_home,
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        # A fork server must have one thread when it forks.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        # Huge pages for the heap (glibc 2.35 and later): a forked child faults in a quarter of the pages.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        # Set by coverage.py, when it measures cumatrix's own tests: workers are measured with it. The other is of tests, too.
        **{name: os.environ[name] for name in ("COVERAGE_PROCESS_CONFIG", CLAIMED_LANDLOCK) if name in os.environ},
    }


def plain_path(cuda_home: str) -> str:
    """``PATH`` of cells that compile inside their own process: the toolkit's tools and the system's."""
    return os.pathsep.join([f"{cuda_home}/bin", "/usr/local/bin", "/usr/bin", "/bin"])


def _has_cuda(folder: str) -> bool:
    return bool(re.search(r"cuda", folder, re.IGNORECASE)) or any(
        os.path.exists(os.path.join(folder, tool)) for tool in ("nvcc", "ptxas")
    )
