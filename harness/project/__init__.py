"""A project's own configuration: ``[tool.cumatrix]`` in ``pyproject.toml``, or ``cumatrix.toml``."""

from harness.project.config import Config, read_config
from harness.project.find import found, here

__all__ = ["Config", "found", "here", "read_config"]
