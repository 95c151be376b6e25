"""Release of an nvJitLink, with real ones."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from harness.nvidia.nvjitlink import Linker
from harness.toolkits import Installed


@pytest.mark.compilers
@pytest.mark.parametrize("release", ["12.4", "12.9", "13.0"])
def test_it_is_called_by_the_entry_points_of_its_newest_release(
    toolkit: Callable[[str], Installed], release: str
) -> None:
    library = toolkit(release).home / "lib64" / f"libnvJitLink.so.{release.partition('.')[0]}"
    names = re.findall(rb"__nvJitLinkCreate_(\d+)_(\d+)\0", library.read_bytes())
    linker = Linker(library)
    assert linker.version == release == "{}.{}".format(*max((int(major), int(minor)) for major, minor in names))
