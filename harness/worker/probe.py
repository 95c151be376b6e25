"""Says what an interpreter's environment holds, as one line of JSON; run by path with any Python.

Takes the names of distributions on the command line; answers for each one that is there, and for all that it requires,
the version and a hash of the installed files' content.
"""

import hashlib
import json
import os
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def content(dist: Distribution) -> str:
    """Hash over RECORD; a file that is younger than RECORD, as after an edit by hand, is read."""
    record = dist.read_text("RECORD") or dist.read_text("METADATA") or ""
    digest = hashlib.sha256(record.encode())
    files = dist.files or []
    try:
        installed = max(os.stat(str(dist.locate_file(f))).st_mtime for f in files if str(f).endswith("/RECORD"))
    except (OSError, ValueError):
        return digest.hexdigest()
    for file in files:
        if file.hash is None or str(file).endswith(".pyc"):
            continue
        path = str(dist.locate_file(file))
        try:
            if os.stat(path).st_mtime > installed + 60:
                with open(path, "rb") as opened:
                    digest.update(str(file).encode() + hashlib.sha256(opened.read()).digest())
        except OSError:
            digest.update(b"missing " + str(file).encode())
    return digest.hexdigest()


def main() -> None:
    found, waiting = {}, [normal(name) for name in sys.argv[1:]]
    roots = set(waiting)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            dist = distribution(name)
        except PackageNotFoundError:
            continue
        needs = [normal(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in dist.requires or []]
        found[name] = {"version": dist.version, "content": content(dist), "requires": needs, "root": name in roots}
        waiting.extend(needs)
    version = ".".join(map(str, sys.version_info[:3]))
    print(json.dumps({"python": version, "executable": sys.executable, "distributions": found}))


if __name__ == "__main__":
    main()
