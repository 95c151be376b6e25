"""The stored facts about NVRTC's builtin headers, and the options for which a precompiled header is built."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.nvidia import pch
from harness.nvidia.pch import for_header
from harness.toolkits import Installed

ROOT = Path(__file__).parents[2]


def test_texts_in_a_library() -> None:
    numbers = random.Random(9)
    pieces = [
        b"\0" * 3,
        b"\xff\x80",
        *(bytes(numbers.choices(b" #abc\t\n~", k=length)) for length in (1, 199, 200, 201, 5000)),
    ]
    for _ in range(200):
        data = b"".join(numbers.choices(pieces, k=numbers.randrange(9)))
        assert pch._texts_in(data) == re.findall(rb"[\t\n\v\f\r -~]{200,}", data)


def test_options_for_which_one_header_is_made() -> None:
    same = for_header(["-arch=sm_80", "--std=c++11", "-arch=sm_80", "--device-c"])
    assert same == for_header(["--std=c++11", "--relocatable-device-code=true", "--gpu-architecture=compute_80"])
    assert for_header(["-arch=sm_80"]) == for_header(["-arch=compute_80"])
    for others in (["-arch=sm_80", "-arch=sm_90"], ["-arch=sm_80a"], ["-arch=sm_80", "-dlto"], ["-arch=sm_80", "-I/a"]):
        assert for_header(others) != for_header(["-arch=sm_80"])
    assert for_header(["-I/a", "-I/b"]) != for_header(["-I/b", "-I/a"])


# One header of NVRTC, and programs with other options: whether NVRTC uses the header, and whether the artifact is the same.
SHARED = """\
import os, sys
from pathlib import Path
from harness.backends.nvrtc import Nvrtc
from harness.protocol.messages import Setup
home, release = Path(sys.argv[1]), sys.argv[2]
nvrtc = Nvrtc(Setup(home=home, release=release, headers=release, include=[], tools=Path()))
text = b"#include <mma.h>\\n"
program = text + b'extern "C" __global__ void f(float *a) { *a = __half2float(__float2half(*a)) / 3; }'

def compiled(text, *options):
    code, log, made = nvrtc.compile(text, "f.cu", ["--pch-messages=true", f"-I{home}/include", *options])
    assert not code, log
    return log, nvrtc.get(made, "CUBIN") or nvrtc.get(made, "PTX")

nvrtc.compile(b"", "nothing.cu", ["--pch-dir=.", "--pch"])
os.fork() or (compiled(text, *sys.argv[3].split(), "--create-pch=header.pch"), os._exit(0))
assert os.wait()[1] == 0
for options in sys.argv[4:]:
    if not os.fork():
        log, made = compiled(program, *options.split(), "--use-pch=header.pch")
        os._exit(("using precompiled header" in log) + 2 * (made == compiled(program, *options.split())[1]))
    print(os.wait()[1] >> 8)
"""


@pytest.mark.compilers
@pytest.mark.parametrize("release", ["12.9", "13.5"])
def test_nvrtc_takes_these_options_for_the_same(
    toolkit: Callable[[str], Installed], tmp_path: Path, release: str
) -> None:
    alike = ["-arch=sm_80", "-arch=sm_80 --gpu-architecture=sm_80", "-arch=compute_80"]
    relocatable = [
        f"{options} {flag}" for options in alike[:2] for flag in ("--device-c", "-dc", "--relocatable-device-code=true")
    ]
    for made_for, programs in ((alike[1], alike), (relocatable[0], relocatable)):
        assert all(for_header(each.split()) == for_header(made_for.split()) for each in programs)
        argv = [sys.executable, "-c", SHARED, str(toolkit(release).home), release, made_for, *programs]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
        assert done.stdout.split() == ["3"] * len(programs), done.stderr
