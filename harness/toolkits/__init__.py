"""CUDA releases and header libraries from PyPI's wheels by exact version, and local CUDA toolkits."""

from harness.toolkits.header_libraries import LIBRARIES, LibraryStore
from harness.toolkits.installed import Installed
from harness.toolkits.releases import RELEASES, Release, parse_toolkits
from harness.toolkits.store import ToolkitStore

__all__ = ["LIBRARIES", "RELEASES", "Installed", "LibraryStore", "Release", "ToolkitStore", "parse_toolkits"]
