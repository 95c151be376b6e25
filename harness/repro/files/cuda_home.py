"""Assembles NVIDIA's wheels into one CUDA_HOME folder: bin, include, lib64, nvvm."""

import ctypes
import os
import re
import shutil
import sysconfig
from pathlib import Path

PLACES = {"bin": "bin", "include": "include", "lib": "lib64", "lib64": "lib64", "nvvm": "nvvm"}


def lay_out(home, wheels=None):
    """Lay out the wheels in the folder `wheels`, or in this environment, as the folder `home`; return its full path."""
    home = Path(home).absolute()
    site = Path(wheels or sysconfig.get_path("purelib")).absolute()
    part = home.with_name(f"{home.name}.{os.getpid()}")
    for file in [] if home.exists() else sorted(site.glob("nvidia/*/*/**/*")):
        folder, *rest = file.relative_to(site).parts[2:]
        if folder in PLACES and rest and file.is_file():
            place = Path(part, PLACES[folder], *rest)
            place.parent.mkdir(parents=True, exist_ok=True)
            if "bin" in place.parent.relative_to(part).parts:  # installed wheels may lack the executable bit
                shutil.copyfile(file, place)
                place.chmod(0o755)
            elif not place.exists():
                place.symlink_to(file)
    if part.exists():
        complete(part)
        try:
            part.rename(home)
        except OSError:  # another process was faster
            shutil.rmtree(part)
    if not home.exists():
        raise SystemExit(f"there are no wheels of NVIDIA in {site}: install them as README.md says")
    return str(home)


def complete(home):
    """Add the names under which compilers and libraries look for the wheels' files."""
    (home / "lib").symlink_to("lib64")
    nvvm = home / "nvvm" / "lib64"
    nvvm.mkdir(parents=True, exist_ok=True)
    for real in ("../../lib64/libnvvm.so.4", "libnvvm.so"):
        if (nvvm / real).exists():
            for name in ("libnvvm.so", "libnvvm.so.4"):
                if not (nvvm / name).exists():
                    (nvvm / name).symlink_to(real)
            break
    for library in sorted((home / "lib64").glob("lib*.so.*")):
        plain = library.with_name(re.sub(r"\.so\..*", ".so", library.name))
        if ".alt." not in library.name and not plain.exists():
            plain.symlink_to(library.name)


def find(home, stem):
    """Return the path of a library, or None."""
    found = [path for path in Path(home, "lib64").glob(f"{stem}.so*") if ".alt." not in path.name]
    return max(found, key=lambda path: len(path.name), default=None)


def load(home, *stems):
    """Load libraries, so that later lookups by name find them; return the last one."""
    library = None
    for stem in stems:
        path = find(home, stem)
        if path is None:
            raise SystemExit(f"{home} has no {stem}")
        library = ctypes.CDLL(str(path.resolve()), ctypes.RTLD_GLOBAL)
    return library
