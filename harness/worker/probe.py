"""Says what an interpreter's environment holds (`harness.protocol.probes.Interpreter`), as one line of JSON; run by path with any Python.

Takes the names of distributions on the command line; answers for each one that is there, and for all that it requires,
the version.
"""

import json
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


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
        found[name] = {"version": dist.version, "requires": needs, "root": name in roots}
        waiting.extend(needs)
    version = ".".join(map(str, sys.version_info[:3]))
    print(json.dumps({"python": version, "distributions": found}))


if __name__ == "__main__":
    main()
