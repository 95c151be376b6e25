"""CuPy's RawModule through NVRTC."""

from harness.backends.cupy.backend import CupyBackend

backend = CupyBackend(jitify=False)
