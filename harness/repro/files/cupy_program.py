"""Runs a CuPy program, and stops at the first kernel that CuPy does not compile."""

import re
import sys
import traceback
from contextlib import contextmanager

import virtual_gpu

# CuPy's messages if it needs a device, or a CUDA library that does not compile.
WANTED = re.compile(
    r"cudaError[A-Z]|CUDA_ERROR_[A-Z]|^(CUBLAS|CUFFT|CURAND|CUSOLVER|CUSPARSE|NCCL)_?[A-Z]|lib(cu|nccl)\w*\.so"
)


class Ended(Exception):
    """The outcome of the program, if CuPy raised nothing."""


@contextmanager
def watched():
    """Watch CuPy's compiler inside the context."""
    from cupy.cuda import compiler

    original, refused = compiler._compile_module_with_cache, []

    def heard(*arguments, **keywords):
        try:
            return original(*arguments, **keywords)
        except Exception as error:
            refused.append(error)
            raise

    compiler._compile_module_with_cache = heard
    raised = None
    try:
        yield
    except SystemExit as end:
        raised = Ended(f"SystemExit: {sys.argv[0]} ended itself with exit code {end.code}") if end.code else None
    except Exception as error:  # noqa: BLE001 (told below)
        raised = error
    finally:
        compiler._compile_module_with_cache = original
    if refused:
        raise refused[0]
    if virtual_gpu.lacking:
        raise Ended(f"CUDADriverError: CUDA_ERROR_NOT_FOUND: named symbol not found: {virtual_gpu.lacking[0]}")
    if raised is not None:
        if not (virtual_gpu.loaded and (WANTED.search(str(raised)) or not by_cupy(raised))):
            raise raised
        # Nothing was computed, so the program's own checks may fail.
        print(f"the program ended early, on a stand-in for a GPU: {type(raised).__name__}: {raised}")


def by_cupy(error):
    """Return whether CuPy took part in an exception."""
    names = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(name.split(".")[0] in ("cupy", "cupyx", "cupy_backends") for name in names)
