"""CuPy's RawModule through Jitify."""

from harness.backends.cupy.backend import CupyBackend

backend = CupyBackend(jitify=True)
