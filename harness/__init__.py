"""cumatrix: which CUDA code compiles with which compiler, library, toolkit and architecture.

The modules under :mod:`harness.backends` and :mod:`harness.worker` run inside other
interpreters and import the standard library only; keep this file free of imports for them.
"""

__version__ = "0.1.0"
