"""Device code in binaries: the SASS and PTX in wheels, libraries and archives, and the GPUs that run it.

``docs/wheels.md`` describes the command. Nothing in a binary is executed.
"""
