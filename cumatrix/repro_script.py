"""Parts for the ``cumatrix repro`` script of a backend in another distribution (``repro`` of `cumatrix.backend.BackendInfo`).

The function that ``repro`` names accepts a `ReproTarget` and returns a `Script`. Only the scheduler imports this module: unlike
`cumatrix.backend`, it requires all of cumatrix.
"""

from harness.repro.script import Script, of_each, start
from harness.repro.subject import ReproTarget

__all__ = ["ReproTarget", "Script", "of_each", "start"]
