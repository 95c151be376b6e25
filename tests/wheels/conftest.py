"""Fatbins of real tools: ptxas, fatbinary and nvcc of CUDA 13.0."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.toolkits import Installed

Tool = Callable[..., None]

BODY = "".join(f"    add.u32 %r1, %r1, {number};\n    mul.lo.u32 %r1, %r1, %r1;\n" for number in range(40))
PTX = """\
.version {isa}
.target {target}
.address_size 64
.visible .entry _ZN5flash16flash_fwd_kernelILi{number}EEEvPi(.param .u64 out) {{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
{body}    st.global.u32 [%rd1], %r1;
    ret;
}}
"""
SOURCE = "template <int N> __global__ void scale(float *x) { x[threadIdx.x] *= N; }\ntemplate __global__ void scale<2>(float *);\n"


class Tools:
    """Tools of a toolkit that run in a folder."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self.folder = home, folder

    def run(self, tool: str, *words: str) -> None:
        """Run a tool."""
        path = f"{self.home / 'bin'}:/usr/bin:/bin"
        done = subprocess.run(
            [self.home / "bin" / tool, *words], cwd=self.folder, capture_output=True, text=True, env={"PATH": path}
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def ptx(self, target: str, isa: str = "9.0", number: int = 1) -> str:
        """Return PTX with a kernel."""
        name = f"{target}-{number}.ptx"
        (self.folder / name).write_text(PTX.format(isa=isa, target=target, number=number, body=BODY))
        return name

    def cubin(self, target: str, number: int = 1, *options: str) -> str:
        """Return a cubin of that kernel."""
        name = f"{target}-{number}{''.join(options)}.cubin"
        self.run("ptxas", f"-arch={target}", *options, self.ptx(target, number=number), "-o", name)
        return name

    def fatbin(self, name: str, *images: tuple[str, str], mode: str = "none", ident: str = "") -> Path:
        """Return a fatbin of some targets, each with its kind."""
        words = [
            f"--image3=kind={kind},sm={target.partition('_')[2]},file={self.cubin(target) if kind == 'elf' else self.ptx(target)}"
            for kind, target in images
        ]
        named = [f"--ident={ident}"] if ident else []
        self.run("fatbinary", "-64", "--create", name, f"--compress-mode={mode}", "--compress-all", *named, *words)
        return self.folder / name

    def objects(self, name: str, *options: str) -> Path:
        """Return nvcc's artifact of a program."""
        (self.folder / "scale.cu").write_text(SOURCE)
        self.run("nvcc", *options, "scale.cu", "-o", name)
        return self.folder / name


@pytest.fixture
def tools(toolkit: Callable[[str], Installed], tmp_path: Path) -> Tools:
    """Return the tools of CUDA 13.0."""
    folder = tmp_path / "made"
    folder.mkdir()
    return Tools(toolkit("13.0").home, folder)
