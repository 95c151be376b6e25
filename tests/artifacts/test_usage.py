"""Usage lines of ptxas -v in build logs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.artifacts import kernels_of_log
from harness.toolkits import Installed

LOG = """
nvcc -c k.cu
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3onePf' for 'sm_80'
ptxas info    : Function properties for _Z3onePf
    80 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 4096+0 bytes smem, 360 bytes cmem[0]
ptxas info    : Compiling entry function '_Z3twoPf' for 'sm_90a'
ptxas info    : Function properties for _Z3twoPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 6 registers, 352 bytes cmem[0]
"""


def test_kernels_of_a_build_log() -> None:
    assert kernels_of_log(LOG) == [
        ({"name": "_Z3onePf", "num_regs": 255, "shared_bytes": 4096, "spill_bytes": 16}, "sm_80"),
        ({"name": "_Z3twoPf", "num_regs": 6, "shared_bytes": 0, "spill_bytes": 0}, "sm_90a"),
    ]
    assert [target for _, target in kernels_of_log(LOG, "sm_90a")] == ["sm_90a"]
    assert kernels_of_log("Used 6 registers\n") == []


@pytest.mark.parametrize("release", ["11.8", "12.9", "13.5"])
def test_of_real_ptxas(toolkit: Callable[[str], Installed], tmp_path: Path, release: str) -> None:
    ptx = tmp_path / "k.ptx"
    ptx.write_text(
        ".version 7.5\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
        ".shared .align 4 .b8 s[2048];\n.reg .b32 a; .reg .b64 q; ld.param.u64 q, [p]; st.shared.u32 [s], 1; ld.shared.u32 a, [s]; st.global.u32 [q], a; ret; }\n"
    )
    done = subprocess.run(
        [toolkit(release).home / "bin" / "ptxas", "-v", "-arch=sm_80", ptx, "-o", tmp_path / "k.cubin"],
        capture_output=True,
        text=True,
        check=True,
    )
    ((kernel, target),) = kernels_of_log(done.stdout + done.stderr)
    assert (kernel["name"], kernel["shared_bytes"], kernel["spill_bytes"], target) == ("k", 2048, 0, "sm_80")
    assert kernel["num_regs"] > 0
