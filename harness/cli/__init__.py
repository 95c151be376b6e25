"""The command ``cumatrix``."""

import os
import stat
import sys


def _keep_bytecode() -> None:
    """Under ``PYTHONDONTWRITEBYTECODE``, keep compiled modules in the user's cache folder: they save a third of each start.

    A folder that others can write to is not used, since its content is executed.
    """
    # An installer or an earlier start may have compiled the modules.
    if not sys.dont_write_bytecode or sys.pycache_prefix or os.path.exists(__spec__.cached or ""):
        return
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "cumatrix", "bytecode")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        kept = os.stat(folder)
    except OSError:
        return
    if kept.st_uid == os.geteuid() and not kept.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        sys.pycache_prefix, sys.dont_write_bytecode = folder, False


_keep_bytecode()

from harness.cli.main import main  # noqa: E402 (compiled modules are found from here on)

__all__ = ["main"]
