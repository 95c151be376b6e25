"""Device code in binaries: which SASS and PTX wheels, libraries and archives have, and which GPUs run it.

``docs/wheels.md`` describes the command. Nothing of a binary is executed.
"""
