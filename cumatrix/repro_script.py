"""Parts for the script of ``cumatrix repro`` of a backend in another distribution (`cumatrix.backend.BackendInfo`'s ``repro``).

The function takes a `ReproTarget` and returns a `Script`. Only the scheduler imports it: unlike `cumatrix.backend`, this module needs all of cumatrix.
"""

from harness.repro.script import Script, of_each, start
from harness.repro.subject import ReproTarget

__all__ = ["ReproTarget", "Script", "of_each", "start"]
