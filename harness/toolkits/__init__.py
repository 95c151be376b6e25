"""CUDA releases out of PyPI's wheels, by exact version, each laid out as a CUDA_HOME."""

from harness.toolkits.releases import RELEASES, Release, parse_toolkits
from harness.toolkits.store import Toolkit, ToolkitStore

__all__ = ["RELEASES", "Release", "Toolkit", "ToolkitStore", "parse_toolkits"]
