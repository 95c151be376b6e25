"""Device code in binaries: the SASS and PTX that wheels, libraries and archives ship, and the GPUs that run it.

``docs/wheels.md`` describes the command. Nothing of a binary is executed.
"""
