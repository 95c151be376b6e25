"""Compiles programs with NVRTC in one plain process: what peers.py compares with. Each argument is a file that says what to compile.

Prints a line for each of several, ``built`` or ``refused``; of a single one, the exit code tells.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.nvidia.nvrtc import SUCCESS, Nvrtc
from harness.protocol.wire import Setup


def main() -> None:
    """Compile what the arguments name, one after another."""
    nvrtc, failed = None, False
    for path in map(Path, sys.argv[1:]):
        ask = json.loads(path.read_text("utf-8"))
        if nvrtc is None:
            home, release = Path(ask["home"]), ask["release"]
            nvrtc = Nvrtc(Setup(home=home, release=release, headers=release, include=[], tools=Path()))
        source = Path(ask["source"])
        code, _, program = nvrtc.compile(source.read_bytes(), str(source), ask["options"])
        built = code == SUCCESS and bool(nvrtc.get(program, "CUBIN") or nvrtc.get(program, "PTX"))
        failed = failed or not built
        print(path.stem, "built" if built else "refused", flush=True)
    sys.stdout.flush()
    os._exit(int(failed))


if __name__ == "__main__":
    main()
