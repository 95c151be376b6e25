"""hipRTC through its C interface (https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_rtc.html), for AMD GPUs."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from pathlib import Path

from harness.backends import hip
from harness.protocol.backend import Job, Rejected, Setup, Unsupported
from harness.protocol.messages import Ready

SUCCESS = 0
# Comgr compiles a copy in a folder with a different name each time.
_COPY = re.compile(r"[^\s'\"]*/comgr-[0-9a-f]+/input/(?:CompileSource|[\w.+-]+)")


class Hiprtc:
    """hipRTC in a ROCm installation: a separate library, or up to ROCm 5.2 a part of the HIP runtime."""

    def __init__(self, setup: Setup) -> None:
        self.lib = ctypes.CDLL(str(hip.library(setup, "libhiprtc", "libamdhip64")))
        self.lib.hiprtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.lib.hiprtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def compile(self, source: bytes, name: str, options: Sequence[str]) -> tuple[int, str, bytes]:
        """Compile a program; return hipRTC's result code, its log and the code object."""
        program = ctypes.c_void_p()
        code = self.lib.hiprtcCreateProgram(ctypes.byref(program), source, os.fsencode(name), 0, None, None)
        if code != SUCCESS:
            return code, self.text(code), b""
        argv = (ctypes.c_char_p * len(options))(*(os.fsencode(option) for option in options))
        code = self.lib.hiprtcCompileProgram(program, len(options), argv)
        log = self._output(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        return code, log, b"" if code else self._output(program, "Code")

    def text(self, code: int) -> str:
        """Return the name of a result code."""
        name: bytes = self.lib.hiprtcGetErrorString(code)
        return name.decode()

    def _output(self, program: ctypes.c_void_p, kind: str) -> bytes:
        size = ctypes.c_size_t()
        if getattr(self.lib, f"hiprtcGet{kind}Size")(program, ctypes.byref(size)) != SUCCESS or not size.value:
            return b""
        data = ctypes.create_string_buffer(size.value)
        getattr(self.lib, f"hiprtcGet{kind}")(program, data)
        return data.raw


class HiprtcBackend:
    """`harness.protocol.backend.Backend` for hipRTC."""

    hiprtc: Hiprtc
    comgr: hip.Comgr

    def prepare(self, setup: Setup) -> Ready:
        self.hiprtc, self.comgr = Hiprtc(setup), hip.Comgr(setup)
        return Ready(
            observed={"hip": hip.version(setup), "hiprtc": self.hiprtc.version, "comgr": self.comgr.version},
            targets=self.comgr.targets(),
        )

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile each file to a code object.

        ROCm 5.2's hipRTC aborts on a processor that Comgr does not list. It receives such a processor only with the
        case's ``every_target``.
        """
        hip.check(job, "hipRTC")
        if job.target not in self.comgr.targets() and not job.options.get("every_target"):
            raise Unsupported(f"Comgr {self.comgr.version} of ROCm {setup.release} knows no {job.target}")
        os.chdir(job.scratch)
        for source in job.sources:
            self._compile(job, source)
            if job.together:
                job.complete()

    def _compile(self, job: Job, source: Path) -> None:
        argv = [f"--offload-arch={job.target}", *hip.options_of(job)]
        job.command.append("hiprtcCompileProgram " + " ".join(argv))
        job.enter("compile")
        code, log, image = self.hiprtc.compile(source.read_bytes(), source.name, argv)
        job.say(_COPY.sub(lambda _: str(source), log))
        if code != SUCCESS:
            if not log.strip("\0 \n"):
                job.say(f"error: {self.hiprtc.text(code)}")
            raise Rejected(self.hiprtc.text(code), stage="compile")
        job.keep(image, "hsaco")

    def execute(self, setup: Setup, job: Job) -> None:
        """Raise, because cumatrix does not look for AMD devices; no cell comes here."""
        raise Unsupported("cumatrix runs nothing on AMD GPUs")


backend = HiprtcBackend()
