"""cumatrix: which CUDA code compiles with which compiler, library, toolkit and architecture.

Modules below :mod:`harness.backends` and :mod:`harness.worker` run inside other interpreters and import the standard library
only. They import this file too: keep it free of imports.
"""

__version__ = "0.1.0"
