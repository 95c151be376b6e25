"""CuPy's RawModule through NVRTC."""

from harness.backends.cupy import CupyBackend

backend = CupyBackend(jitify=False)
