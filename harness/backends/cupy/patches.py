"""Replacements and wrappers for parts of CuPy: its driver's module and linker, NVRTC, and CuPy 13.0's Jitify.

CuPy up to 12 links libcuda, cudart and the mathematical libraries. Compiling uses none of them, except that cudart
reports the device's compute capability to Jitify. Only NVRTC is real. From 13 on, CuPy needs no stand-ins for these
libraries.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from harness import native
from harness.backends.cupy import headers
from harness.backends.nvrtc import is_ptxas_error
from harness.nvidia import nvjitlink
from harness.protocol import process_output
from harness.protocol.backend import Job, Rejected, Setup, Unavailable

# If CuPy up to 13.0 leaves the architecture to Jitify, Jitify queries the device and caps the architecture at this one
# (https://github.com/cupy/cupy/issues/8155).
_JITIFY_CAP = 75


class Loading(Exception):
    """Ends CuPy's compilation at the point where it would pass the image to the driver."""


class LinkFailed(Exception):
    """The driver's linker refuses; the message is CuPy's."""


class Listening:
    """Wraps CuPy's NVRTC module, and records the options of the last call, or of `every` call."""

    def __init__(self, nvrtc: Any, job: Job, *, every: bool) -> None:
        self._nvrtc, self._job, self._every = nvrtc, job, every

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nvrtc, name)

    def compileProgram(self, program: int, options: tuple[str, ...]) -> None:
        before = self._job.command if self._every else self._job.command[:1]
        self._job.command[:] = [*before, "nvrtcCompileProgram " + " ".join(options)]
        self._nvrtc.compileProgram(program, options)


class Module:
    """Replaces `cupy.cuda.function.Module`: stores the image instead of passing it to the driver."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.mapping: dict[str, str] = {}

    def load(self, image: bytes) -> None:
        job, artifact = self.job, self.job.artifact
        if artifact is None or Path(artifact.path).read_bytes() != image:
            job.keep(bytes(image), "cubin" if bytes(image[:4]) == b"\x7fELF" else "ptx")
        raise Loading

    def _set_mapping(self, mapping: dict[str, str]) -> None:
        self.mapping = mapping


class LinkState:
    """Replaces `cupy.cuda.function.LinkState`: uses the toolkit's nvJitLink instead of the driver's linker."""

    def __init__(self, setup: Setup, job: Job) -> None:
        self.setup, self.job = setup, job

    def add_ptr_data(self, data: bytes | str, name: str) -> None:
        image = data.encode() if isinstance(data, str) else bytes(data)
        if image[:4] == b"\x7fELF":
            # CuPy takes the last byte of a cubin for a terminator and cuts it off. The byte was a zero, and Python
            # stores a zero right behind the buffer. Without it, nvJitLink 13 refuses the object or crashes.
            image += b"\0"
        if not self.job.virtual:
            self.job.enter("assemble")
        self.job.keep(image, "object" if image[:4] == b"\x7fELF" else "ptx")

    def add_ptr_file(self, path: str) -> None:
        """Ignore libcudadevrt.a: `link_with_runtime` uses that of the same toolkit."""

    def complete(self) -> bytes:
        try:
            nvjitlink.link_with_runtime(self.setup, self.job)
        except Rejected as error:
            self.job.notes.append(
                "the driver's linker says no more than CUDA_ERROR_INVALID_PTX or so; the words are nvJitLink's"
            )
            raise LinkFailed(error.reason) from None
        assert self.job.artifact is not None
        return Path(self.job.artifact.path).read_bytes()


def no_runtime(original: Any, job: Job) -> Any:
    """Wrap CuPy's lookup of libcudadevrt, which does not search wheels: relocatable code is then refused."""

    def path() -> str:
        try:
            found: str = original()
        except RuntimeError as error:
            job.enter("link")
            job.say(f"RuntimeError: {error}")
            raise LinkFailed(str(error)) from None
        return found

    return path


def watched_module(original: Any, job: Job, *, several: bool) -> Any:
    """Return a `cupy.cuda.function.Module` that keeps the image before it loads it, and enters the stages.

    With `several`, each image is an artifact.
    """

    class Module(original):  # type: ignore[misc]  # a class of the CuPy that was loaded
        def load(self, image: bytes) -> None:
            kind = "cubin" if bytes(image[:4]) == b"\x7fELF" else "ptx"
            if kind == "cubin" and "assemble" not in job.stages:
                job.enter("assemble")
            job.keep(bytes(image), kind)
            if "link" in job.stages:
                job.leave_to_driver()
            if several:
                job.complete()
            job.enter("load")
            super().load(image)

    return Module


def watched_linker(original: Any, job: Job) -> Any:
    """Return a `cupy.cuda.function.LinkState`, the driver's linker, that enters its stages when it is used."""

    class LinkState(original):  # type: ignore[misc]  # a class of the CuPy that was loaded
        def add_ptr_data(self, data: Any, name: str) -> None:
            job.enter("assemble")
            job.enter("link")
            super().add_ptr_data(data, name)

    return LinkState


def with_detected_architecture(original: Any, arch: str) -> Any:
    """Wrap CuPy 13.0's Jitify so that it adds the options that its own query of the device would add.

    Jitify is linked with a static cudart, which accepts no stand-in for the driver. It puts the architecture before the
    options of its own compilations, but not into the options that it returns.
    """

    def jitify(source: str, options: tuple[str, ...], *rest: Any) -> Any:
        if any(option.startswith(("-arch", "--gpu-architecture")) for option in options):
            return original(source, options, *rest)
        detected = f"-arch=compute_{min(int(arch), _JITIFY_CAP)}"
        name, used, headers, names = original(source, (*options, detected), *rest)
        return name, tuple(option for option in used if option != detected), headers, names

    return jitify


def explain(job: Job, tap: Path | None, error: Exception, message: str = "") -> None:
    """Raise CuPy's refusal, with NVRTC's own log, which Jitify does not print, and always with CuPy's message.

    Parameters
    ----------
    job : Job
        The cell.
    tap : Path or None
        The recorded calls of NVRTC, if Jitify made them.
    error : Exception
        CuPy's exception.
    message : str
        NVRTC's log, if it is known otherwise.
    """
    words = str(error).strip()
    failed = [call for call in headers.heard(tap) if call.result] if tap else []
    log = message or (failed[-1].log if failed else words)
    stage = "assemble" if is_ptxas_error(log) else "compile"
    if stage == "assemble":
        job.enter(stage)
    job.say(log)
    if words not in log:
        job.say(f"{type(error).__name__}: {words}")
    raise Rejected(type(error).__name__, stage=stage) from None


# CuPy's compiler queries cudart for the version, the device and its compute capability (attributes 75 and 76).
_CUDART = """
#include <stdlib.h>
static int number(const char *name, int otherwise) { const char *text = getenv(name); return text ? atoi(text) : otherwise; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaRuntimeGetVersion(int *version) { *version = number("CUMATRIX_CUDA_VERSION", 0); return 0; }
int cudaDriverGetVersion(int *version) { *version = number("CUMATRIX_CUDA_VERSION", 0); return 0; }
int cudaDeviceGetAttribute(int *value, int attribute, int device) {
    int capability = number("CUMATRIX_COMPUTE_CAPABILITY", 0);
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 10 ? 32 : attribute == 1 ? 1024 : 1;
    return 0;
}
const char *cudaGetErrorString(int error) { return "no device: a stand-in for cudart"; }
const char *cudaGetErrorName(int error) { return "cudaErrorNoDevice"; }
"""
_OURS = set(re.findall(r"\b(cuda\w+)\(", _CUDART))
_MOST_SYMBOLS = 64 << 20  # bytes
_PREFIXES = {
    "libcudart": ("cuda", "__cuda"),
    "libcublas": ("cublas",),
    "libcufft": ("cufft",),
    "libcurand": ("curand",),
    "libcusparse": ("cusparse",),
    "libcusolver": ("cusolver",),
    "libnccl": ("nccl",),
}
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def load(setup: Setup, name: str) -> None:
    """Load stand-ins for all libraries that the extension modules of distribution `name` link, except NVRTC.

    Raises
    ------
    Unavailable
        If binutils or a C compiler is missing.
    """
    needed, undefined = _look(name)
    for soname in sorted(needed):
        symbols = undefined[soname] or set().union(*undefined.values())
        flags = []
        if undefined[soname]:  # the references use the library's own name as their version
            script = setup.tools / f"{soname}.map"
            setup.tools.mkdir(parents=True, exist_ok=True)
            script.write_text(f"{soname} {{ global: *; }};\n")
            flags = [f"-Wl,--version-script={script}"]
        library = native.build(setup.tools, soname, _source(soname, symbols), flags)
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def pretend(setup: Setup, capability: str) -> None:
    """Set the replies of cudart's stand-in; ``"80"`` is compute capability 8.0."""
    major, minor = setup.version
    os.environ["CUMATRIX_CUDA_VERSION"] = str(major * 1000 + minor * 10)
    os.environ["CUMATRIX_COMPUTE_CAPABILITY"] = capability


def _source(soname: str, symbols: Iterable[str]) -> str:
    stem = soname.split(".so")[0]
    if stem == "libcuda":
        wanted = sorted(symbol for symbol in symbols if re.match(r"cu[A-Z]", symbol))
        return "".join(f"int {symbol}() {{ return {_NO_DEVICE}; }}\n" for symbol in wanted)
    wanted = sorted(symbol for symbol in symbols if symbol.startswith(_PREFIXES[stem]) and symbol not in _OURS)
    return (_CUDART if stem == "libcudart" else "") + "".join(
        f"int {symbol}() {{ return {_NO_DEVICE}; }}\n" for symbol in wanted
    )


def _look(name: str) -> tuple[set[str], dict[str, set[str]]]:
    """Return the sonames that the extension modules need, and their undefined symbols by symbol version."""
    dist = distribution(name)
    modules = [str(dist.locate_file(file)) for file in dist.files or () if str(file).endswith(".so")]
    needed, undefined = set(), defaultdict(set)
    for module in modules:
        needed |= set(re.findall(r"\(NEEDED\).*\[(lib(?:cu|nccl)[^\]]*)\]", _run("readelf", "-dW", module)))
        for symbol, version in re.findall(
            r"^\s*[Uw] (\w+)(?:@+(\S+))?$", _run("nm", "-D", "--undefined-only", module), re.MULTILINE
        ):
            undefined[version].add(symbol)
    known = {soname for soname in needed if soname.split(".so")[0] in (*_PREFIXES, "libcuda")}
    return known, undefined


def _run(*argv: str) -> str:
    try:
        done = process_output.run(argv, seconds=120, errors=process_output.Errors.DROPPED, keep=_MOST_SYMBOLS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"CuPy up to 12 without a device needs {argv[0]} (binutils): {error}") from None
    if not done.whole:
        raise Unavailable(f"{argv[0]} printed {done.total} bytes about {argv[-1]}")
    return done.output
