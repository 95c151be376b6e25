"""CuPy's RawModule, through NVRTC and through Jitify."""
