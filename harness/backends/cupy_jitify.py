"""CuPy's RawModule through Jitify."""

from harness.backends.cupy import CupyBackend

backend = CupyBackend(jitify=True)
