"""A project's own configuration: ``[tool.cumatrix]`` in ``pyproject.toml``, or ``cumatrix.toml``."""
