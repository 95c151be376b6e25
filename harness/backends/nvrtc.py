"""NVRTC through its C interface (https://docs.nvidia.com/cuda/nvrtc/).

It is the control that separates a library's fault from the compiler's.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.nvidia import nvjitlink, pch, tools
from harness.nvidia.launch import run_on_driver
from harness.protocol.backend import Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready

SUCCESS = 0
COMPILATION = 6


class Nvrtc:
    """The NVRTC of this process, which cannot load a second one.

    Raises
    ------
    Unavailable
        If the toolkit has none, or its release differs from the toolkit's.
    """

    def __init__(self, setup: Setup) -> None:
        self.lib = load(setup)
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"
        if self.version != setup.release:
            raise Unavailable(f"asked for NVRTC {setup.release}, the one that was loaded says {self.version}")

    @property
    def precompiles(self) -> bool:
        """Return whether it supports precompiled headers, as from CUDA 12.8 on."""
        return hasattr(self.lib, "nvrtcGetPCHHeapSize")

    def architectures(self) -> list[int]:
        """Return the compute capabilities that `nvrtcGetSupportedArchs` lists: ``[50, 52, …]``."""
        count = ctypes.c_int()
        self.lib.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self.lib.nvrtcGetSupportedArchs(numbers)
        return list(numbers)

    def compile(self, source: bytes, name: str, options: Sequence[str]) -> tuple[int, str, ctypes.c_void_p]:
        """Compile a program; return NVRTC's result code, its log, and the program for further queries."""
        program = ctypes.c_void_p()
        code = self.lib.nvrtcCreateProgram(ctypes.byref(program), source, os.fsencode(name), 0, None, None)
        if code != SUCCESS:
            return code, self.text(code), program
        argv = (ctypes.c_char_p * len(options))(*(os.fsencode(option) for option in options))
        code = self.lib.nvrtcCompileProgram(program, len(options), argv)
        return code, self._output(program, "ProgramLog").decode(errors="replace"), program

    def get(self, program: ctypes.c_void_p, kind: str) -> bytes:
        """Return the ``PTX``, ``CUBIN`` or ``LTOIR`` of a program; empty if it has none."""
        data = self._output(program, kind)
        return data.rstrip(b"\0") if kind == "PTX" else data

    def text(self, code: int) -> str:
        """Return the name of a result code."""
        name: bytes = self.lib.nvrtcGetErrorString(code)
        return name.decode()

    def _output(self, program: ctypes.c_void_p, kind: str) -> bytes:
        size = ctypes.c_size_t()
        ask = getattr(self.lib, f"nvrtcGet{kind}Size", None)  # 12.0 introduced LTOIR
        if ask is None or ask(program, ctypes.byref(size)) != SUCCESS or not size.value:
            return b""
        data = ctypes.create_string_buffer(size.value)
        getattr(self.lib, f"nvrtcGet{kind}")(program, data)
        return data.raw.rstrip(b"\0") if kind == "ProgramLog" else data.raw


def load(setup: Setup) -> ctypes.CDLL:
    """Load the toolkit's NVRTC for the whole process, its builtins first."""
    builtins, library = setup.library("libnvrtc-builtins"), setup.library("libnvrtc")
    if builtins is None or library is None:
        raise Unavailable(f"{setup.home} has no NVRTC")
    ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def macros(definitions: dict[str, Any]) -> list[str]:
    """Return definitions as ``-D`` options; true and false become 1 and 0."""
    return [f"-D{name}={int(value) if isinstance(value, bool) else value}" for name, value in definitions.items()]


def switches(job: Job) -> list[str]:
    """Return NVRTC's options for a case's named options; CuPy passes them on unchanged."""
    options = job.options
    return [
        *(["--relocatable-device-code=true"] if options.get("rdc") else []),
        *(["-G"] if options.get("debug") else []),
        *(["-lineinfo"] if options.get("lineinfo") else []),
        *(["--use_fast_math"] if options.get("fastmath") else []),
        *(f"--ptxas-options={option}" for option in options.get("ptxas", [])),
    ]


def options_of(setup: Setup, job: Job) -> list[str]:
    """Return NVRTC's options for a job, without the architecture.

    The toolkit's own headers are searched last, as with nvcc, unless the case puts them first.
    """
    options = job.options
    return [
        *([f"--std={options['std']}"] if "std" in options else []),
        *switches(job),
        *options.get("flags", []),
        *macros(job.definitions),
        *(f"-I{folder}" for folder in job.every_include(setup)),
    ]


class NvrtcBackend:
    """`harness.protocol.backend.Backend` for NVRTC itself."""

    nvrtc: Nvrtc
    precompiled: pch.Precompiled | None = None

    def prepare(self, setup: Setup) -> Ready:
        self.nvrtc = Nvrtc(setup)
        self.precompiled = pch.Precompiled(self._built) if self.nvrtc.precompiles else None
        return Ready(
            observed={"nvrtc": self.nvrtc.version},
            architectures=self.nvrtc.architectures(),
            architectures_of=f"NVRTC {self.nvrtc.version}",
        )

    def ahead(self, setup: Setup, job: Job, alike: int, pulse: Callable[[], None]) -> None:
        """Prepare the headers at the program's beginning (`harness.protocol.backend.Ahead`)."""
        if self.precompiled:
            self.precompiled.ahead(setup, job, alike, lambda blank: self.compile(setup, blank), pulse)

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile to a cubin with NVRTC's built-in ptxas, or to PTX for a virtual architecture."""
        if job.options.get("arch", "given") != "given":
            raise Unsupported("NVRTC asks no device: without an architecture it builds for one of its own choice")
        if job.virtual and (job.assembler or job.linker or "compile_for" in job.options):
            raise Unsupported(f"nothing is finished for {job.target}, a virtual architecture")
        if job.lto:
            nvjitlink.check_lto(setup, job)
        for source in job.sources:
            self._compile(setup, job, source)
            if job.together:
                job.complete()
        if job.relocatable or job.linker:
            nvjitlink.link_with_runtime(setup, job)

    def _compile(self, setup: Setup, job: Job, source: Path) -> None:
        argv = [f"--gpu-architecture={job.made_for}", *options_of(setup, job)]
        job.command.append("nvrtcCompileProgram " + " ".join(argv))
        job.enter("compile")
        # With the full path as its name, quoted headers are found next to the program, as nvcc finds them.
        code, log, program = self._compiled(setup, job, source, argv)
        job.say(log)
        if code != SUCCESS:
            stage = "assemble" if is_ptxas_error(log) else "compile"
            if stage == "assemble":
                job.enter(stage)
            if code != COMPILATION or not log.strip():
                job.say(f"error: {self.nvrtc.text(code)}")
            raise Rejected(self.nvrtc.text(code), stage=stage)
        if job.virtual:
            job.keep(self.nvrtc.get(program, "PTX"), "ptx")
            return
        cubin = self.nvrtc.get(program, "CUBIN")
        if cubin:
            job.enter("assemble")
            job.keep(cubin, "cubin")
        elif job.lto:
            made = self.nvrtc.get(program, "LTOIR")
            if not made:
                raise Unsupported(f"NVRTC {self.nvrtc.version} hands no LTO IR out (nvrtcGetLTOIR came with 12.0)")
            job.keep(made, "ltoir")
        else:
            ptx = job.keep(self.nvrtc.get(program, "PTX"), "ptx")
            if job.assembler or not job.linker:
                tools.assemble(setup, job, ptx, relocatable=bool(job.options.get("rdc")))

    def _compiled(self, setup: Setup, job: Job, source: Path, argv: list[str]) -> tuple[int, str, ctypes.c_void_p]:
        """Compile with NVRTC, and with a precompiled header if there is one, which changes only the time."""
        text = source.read_bytes()
        if self.precompiled:
            early = self.precompiled.early(setup, job, text, argv, macros(job.definitions))
            if early:
                code, log, program = self.nvrtc.compile(early.text, str(source), early.options)
                made = b"" if code else self.nvrtc.get(program, "PTX")
                if code in (SUCCESS, COMPILATION) and early.usable(log, made):
                    return code, pch.behind(early.log, log), program
        return self.nvrtc.compile(text, str(source), argv)

    def _built(self, text: bytes, name: str, options: Sequence[str]) -> tuple[bool, str]:
        code, log, _ = self.nvrtc.compile(text, name, options)
        return code == SUCCESS, log

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile as without a device, then load and launch through the driver API."""
        self.compile(setup, job)
        run_on_driver(job)


def is_ptxas_error(log: str) -> bool:
    """Return whether the errors in an NVRTC log come from its built-in assembler."""
    return bool(re.search(r"^ptxas\b.*\b(error|fatal)\b", log, re.MULTILINE)) and not re.search(
        r"^(?!ptxas).*\): (catastrophic )?error", log, re.MULTILINE
    )


backend = NvrtcBackend()
