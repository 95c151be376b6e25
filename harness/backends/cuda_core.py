"""cuda.core's Program and Linker: NVRTC and nvJitLink through NVIDIA's Python bindings (cuda-core 0.2 to 1.2).

The bindings use NVRTC and nvJitLink that are already loaded, so this backend loads the toolkit's libraries first. The
bindings query the driver's version before they generate PTX or link, and query the device if no architecture is given.
The virtual device answers, as for numba-cuda.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import dataclasses
import importlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.backends.nvrtc import Nvrtc
from harness.nvidia import nvjitlink
from harness.nvidia.launch import run_on_driver
from harness.nvidia.virtual_driver import LINKER, virtual_driver
from harness.protocol.backend import Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready
from harness.protocol.text import decoded

_FLAGS = {
    "-G": "debug", "--device-debug": "debug", "-lineinfo": "lineinfo", "--generate-line-info": "lineinfo",
    "-use_fast_math": "use_fast_math", "--use_fast_math": "use_fast_math", "-w": "disable_warnings", "--disable-warnings": "disable_warnings",
    "-dlto": "link_time_optimization", "--dlink-time-opt": "link_time_optimization", "-dc": "relocatable_device_code", "--device-c": "relocatable_device_code",
    "-default-device": "device_as_default_execution_space", "--device-as-default-execution-space": "device_as_default_execution_space",
    "-restrict": "restrict", "--restrict": "restrict", "-device-int128": "device_int128", "--device-int128": "device_int128",
}  # fmt: skip
_VALUES = {
    "rdc": "relocatable_device_code", "relocatable-device-code": "relocatable_device_code", "ftz": "ftz", "prec-div": "prec_div",
    "prec-sqrt": "prec_sqrt", "fmad": "fma", "maxrregcount": "max_register_count", "std": "std", "ptxas-options": "ptxas_options",
    "Xptxas": "ptxas_options", "undefine-macro": "undefine_macro", "extra-device-vectorization": "extra_device_vectorization",
    "split-compile": "split_compile", "pre-include": "pre_include",
}  # fmt: skip
_LISTS = ("ptxas_options", "undefine_macro", "pre_include")


def options_of(setup: Setup, job: Job) -> dict[str, Any]:
    """Return the fields of ProgramOptions.

    The toolkit's own headers are searched last, as with nvcc. cuda.core itself adds no include directory.

    Raises
    ------
    Unsupported
        If a flag has no field.
    """
    case_options = job.options
    options: dict[str, Any] = {} if case_options.get("arch", "given") != "given" else {"arch": job.target}
    options |= {"std": case_options["std"]} if "std" in case_options else {}
    named = {"rdc": "relocatable_device_code", "debug": "debug", "lineinfo": "lineinfo", "fastmath": "use_fast_math"}
    options |= {field: True for name, field in named.items() if case_options.get(name)}
    options |= {"ptxas_options": list(case_options["ptxas"])} if case_options.get("ptxas") else {}
    for flag in case_options.get("flags", ()):
        take(flag, options)
    if job.definitions:
        options["define_macro"] = [
            (name, str(int(value) if isinstance(value, bool) else value)) for name, value in job.definitions.items()
        ]
    options["include_path"] = job.every_include(setup)
    return options


def link_options_of(job: Job) -> dict[str, Any]:
    """Return the fields of LinkerOptions."""
    return {"arch": f"sm_{job.arch}", **({"link_time_optimization": True} if job.lto else {})}


def kind_of(job: Job) -> str:
    """Return the format of the compiled program."""
    return "ptx" if job.virtual else "ltoir" if job.lto else "cubin"


def take(flag: str, options: dict[str, Any]) -> None:
    """Set the field of ProgramOptions that corresponds to an option of NVRTC.

    Raises
    ------
    Unsupported
        If no field corresponds to the option.
    """
    name, equals, value = flag.lstrip("-").partition("=")
    if flag in _FLAGS:
        options[_FLAGS[flag]] = True
    elif flag.startswith("-U") and not equals:
        options.setdefault("undefine_macro", []).append(flag[2:])
    elif equals and name in _VALUES:
        field = _VALUES[name]
        if field in _LISTS:
            options.setdefault(field, []).append(value)
        else:
            options[field] = {"true": True, "false": False}.get(value, int(value) if value.isdigit() else value)
    else:
        raise Unsupported(f"cuda.core's ProgramOptions has no word for {flag}")


class CudaCoreBackend:
    """`harness.protocol.backend.Backend` for cuda.core."""

    core: Any
    driver: ctypes.CDLL | None = None

    def prepare(self, setup: Setup) -> Ready:
        """Load the toolkit's libraries, the virtual device and the bindings."""
        self._check(setup)
        nvrtc = Nvrtc(setup)
        linker = setup.library("libnvJitLink")
        if linker is not None:
            ctypes.CDLL(str(linker), ctypes.RTLD_GLOBAL)
        if not setup.device:
            self.driver = virtual_driver(setup)
        with _no_ldconfig():
            self.core = _core()
            for module in ("nvrtc", "nvjitlink"):
                importlib.import_module(f"cuda.bindings.{module}")
        return Ready(
            observed={
                "cuda_core": version("cuda-core"),
                "cuda_bindings": version("cuda-bindings"),
                "nvrtc": nvrtc.version,
            },
            architectures=nvrtc.architectures(),
            architectures_of=f"NVRTC {nvrtc.version}",
        )

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile each file with `Program.compile`, and link relocatable code with `Linker`.

        The result is a cubin, or PTX for a virtual target.
        """
        if job.lto:
            nvjitlink.check_lto(setup, job)
        if self.driver is not None:
            major, minor = max(setup.version, (int(version("cuda-bindings").split(".")[0]), 0))
            self.driver.virtual_configure(1000 * major + 10 * minor, *job.capability, LINKER())
        codes = []
        for source in job.sources:
            codes.append(self._compile(setup, job, source))
            if job.together:
                job.complete()
        if job.relocatable:
            self._link(setup, job, codes)

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile as without a device, then load and launch through the driver API."""
        self.compile(setup, job)
        run_on_driver(job)

    def _check(self, setup: Setup) -> None:
        try:
            bindings, core = version("cuda-bindings"), version("cuda-core")
        except PackageNotFoundError as error:
            raise Unavailable(
                f"cuda.core needs {error.name}, which is not installed: install cuda-core[cu{setup.version[0]}]"
            ) from None
        if setup.version < (12, 0):
            raise Unsupported(f"cuda-core {core} needs CUDA 12 or later")
        if int(bindings.split(".")[0]) != setup.version[0]:
            raise Unsupported(
                f"cuda-bindings {bindings} is for CUDA {bindings.split('.')[0]}; CUDA {setup.release} needs cuda-core[cu{setup.version[0]}]"
            )

    def _compile(self, setup: Setup, job: Job, source: Path) -> Any:
        known = {each.name for each in dataclasses.fields(self.core.ProgramOptions)}
        options = {**({"name": source.name} if "name" in known else {}), **options_of(setup, job)}
        if unknown := sorted(options.keys() - known):
            raise Unsupported(f"cuda-core {version('cuda-core')} has no option {unknown[0]}")
        kind = kind_of(job)
        shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
        job.command.append(f"cuda.core.Program(code, 'c++', ProgramOptions({shown})).compile({kind!r})")
        job.enter("compile")
        with _refusals(job, implicit="arch" not in options):
            program = self.core.Program(decoded(source.read_bytes()), "c++", self.core.ProgramOptions(**options))
            code = program.compile(kind, logs=_Log(job))
        if kind == "cubin":
            job.enter("assemble")
        job.keep(_bytes(code), kind)
        return code

    def _link(self, setup: Setup, job: Job, codes: Sequence[Any]) -> None:
        if job.one_of_several:
            job.notes.append(nvjitlink.NOT_LINKED_ALONE)
            return
        if setup.version < (12, 3):
            job.notes.append(
                f"not linked: cuda.core links with the driver where nvJitLink is older than 12.3, and this one is of {setup.release}"
            )
            return
        found = nvjitlink.parts(setup)
        from_library = getattr(self.core.ObjectCode, "from_library", None) if hasattr(self.core, "ObjectCode") else None
        if (
            isinstance(found, str)
            and not job.lto
            and (calls := nvjitlink.runtime_calls([_bytes(code) for code in codes]))
        ):
            job.notes.append(nvjitlink.without_runtime(found, calls))
            return
        runtime = [from_library(str(found[1]))] if from_library and not isinstance(found, str) else []
        if not runtime:
            job.notes.append(
                "linked without libcudadevrt"
                + ("" if isinstance(found, str) else f": cuda-core {version('cuda-core')} takes no library")
            )
        options = link_options_of(job)
        shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
        job.command.append(
            f"cuda.core.Linker({'code, ' * len(codes)}{'libcudadevrt, ' if runtime else ''}options=LinkerOptions({shown})).link('cubin')"
        )
        job.enter("link")
        with _refusals(job, implicit=False):
            linker = self.core.Linker(*codes, *runtime, options=self.core.LinkerOptions(**options))
            linked = linker.link("cubin")
        job.say(linker.get_info_log() or "")
        job.keep(_bytes(linked), "cubin")


class _Log:
    """Receives cuda.core's log of a successful compilation."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def write(self, text: str) -> int:
        self._job.say(text)
        return len(text)


def _core() -> Any:
    """Return the module with Program: ``cuda.core``, or ``cuda.core.experimental`` before 0.5."""
    core = importlib.import_module("cuda.core")
    return core if hasattr(core, "Program") else importlib.import_module("cuda.core.experimental")


@contextmanager
def _no_ldconfig() -> Iterator[None]:
    """Keep cuda.pathfinder from querying ldconfig for libdl.

    ldconfig is statically linked, so its reads cannot be followed. Without it, pathfinder falls back to the soname.
    """
    find = ctypes.util.find_library
    ctypes.util.find_library = lambda name: None  # noqa: ARG005 (as the function is called)
    try:
        yield
    finally:
        ctypes.util.find_library = find


def _bytes(code: Any) -> bytes:
    data = code.code
    return data.encode() if isinstance(data, str) else bytes(data)


@contextmanager
def _refusals(job: Job, *, implicit: bool) -> Iterator[None]:
    """Convert cuda.core's exceptions into refusals by NVRTC or nvJitLink, with their messages; others propagate."""
    try:
        yield
    except Exception as error:
        kind, text = type(error).__name__, str(error)
        if kind == "NVRTCError":
            job.say(text.partition("compilation log:")[2].strip() or f"error: {text}")
            stage = "assemble" if re.search(r"^ptxas\b.*\b(error|fatal)\b", text, re.MULTILINE) else "compile"
            raise Rejected(text.partition(",")[0], stage=stage) from None
        if kind in ("nvJitLinkError", "LinkerError"):
            job.say(text.partition("log:")[2].strip() or f"error: {text}")
            raise Rejected("nvJitLink refused", stage="link") from None
        if implicit and kind == "CUDAError":
            raise Unsupported(
                f"without an architecture this cuda.core asks the CUDA runtime for the device: {text.strip()}"
            ) from None
        raise


backend = CudaCoreBackend()
