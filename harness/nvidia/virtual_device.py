"""A CUDA device that compiles and links but never runs: what a library needs where it asks a driver for one.

`VirtualDevice` is the device and its linker, the toolkit's own ptxas and nvJitLink. `harness.nvidia.virtual_driver`
offers it to libraries that call libcuda through ctypes from Python, ``native/libcuda.c`` to all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.nvidia import nvjitlink, ptxas
from harness.protocol.backend import Ended, Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.job import Options

# Kinds of the driver's linker inputs (CUjitInputType) that matter here, and what nvJitLink calls all of them.
PTX, LIBRARY = 1, 4
_KINDS = {
    0: nvjitlink.INPUT_CUBIN,
    PTX: nvjitlink.INPUT_PTX,
    2: nvjitlink.INPUT_FATBIN,
    3: nvjitlink.INPUT_OBJECT,
    LIBRARY: nvjitlink.INPUT_LIBRARY,
}
# Options of the driver's linker (CUjit_option) that ptxas and nvJitLink have too.
MAX_REGISTERS, LINE_INFO = 0, 13

# PTX ISA by CUDA release, from the "PTX ISA" document's release notes; what NVVM writes as `.version`.
_ISA = {"11.8": "7.8", "12.5": "8.5", "12.6": "8.5", "12.7": "8.6", "12.8": "8.7", "12.9": "8.8"}


def isa_of(release: str) -> str:
    """PTX ISA of a CUDA release: ``"8.4"`` for 12.4."""
    major, minor = release.split(".")
    return _ISA.get(release, f"{int(major) - 4}.{minor}")


def release_of(isa: str, asked: str) -> str:
    """The CUDA release that has this PTX ISA; `asked` where it is one of several."""
    if isa_of(asked) == isa:
        return asked
    major, minor = isa.split(".")
    known = {value: release for release, value in reversed(_ISA.items())}
    return known.get(isa, f"{int(major) + 4}.{minor}")


def directives(ptx: str) -> tuple[str, str]:
    """``.version`` and ``.target`` of a PTX: ``("8.4", "sm_80")``; empty where it has none."""
    version = re.search(r"^\.version\s+([\d.]+)", ptx, re.MULTILINE)
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    return (version[1] if version else ""), (target[1] if target else "")


def read_back(setup: Setup, job: Job, library: str, ptx: str) -> None:
    """Read back the artifact, and its NVVM.

    Raises
    ------
    Unavailable, Unsupported
        When it differs from the request.
    """
    isa, target = directives(ptx)
    job.observed["ptx"] = isa
    job.observed["nvvm"] = release_of(isa, setup.release)
    if isa != isa_of(setup.release):
        used = ", ".join(str(path) for path in loaded("libnvvm")) or "no library that can be seen"
        raise Unavailable(
            f"asked for the NVVM of CUDA {setup.release}, whose PTX is {isa_of(setup.release)}, "
            f"and got PTX {isa}: another NVVM was loaded ({used})"
        )
    if target != f"sm_{job.arch}":
        if target.rstrip("af") == f"sm_{job.arch}".rstrip("af"):
            raise Unsupported(f"{library} builds {target} for this device, not sm_{job.arch}")
        raise Unavailable(f"asked for sm_{job.arch}, {library} built {target}")


class VirtualDevice:
    """The device of one cell: its target's compute capability, and the toolkit's own linking.

    Parameters
    ----------
    setup, job
        The toolkit and the cell.
    library : str
        Who compiles, for messages: ``"numba 0.59.1"``.

    Attributes
    ----------
    ended : Ended or None
        Why linking ended the cell, if it did: the library only sees an error code of the driver.
    fault : Exception or None
        A mistake in the stand-in itself, which a library may have dressed up as an error of its own.
    launched : callable
        Reports the number of omitted launches.
    images : int
        Programs that were linked here.
    """

    def __init__(self, setup: Setup, job: Job, library: str) -> None:
        self.setup, self.job, self.library = setup, job, library
        self.ended: Ended | None = None
        self.fault: Exception | None = None
        self.launches = 0
        self.launched: Callable[[], int] = lambda: self.launches
        self.images = 0

    def check(self, ptx: str) -> None:
        """Read back what was built: see `read_back`."""
        read_back(self.setup, self.job, self.library, ptx)

    def link(self, inputs: list[tuple[int, bytes | Path]], options: dict[int, int]) -> bytes | None:
        """The driver's linker, replaced by the toolkit's tools; None when it ends the cell."""
        try:
            self.images += 1
            image = self._link(inputs, options)
            self.job.complete()
            return image
        except Ended as end:
            self.ended = end
            return None

    def _link(self, inputs: list[tuple[int, bytes | Path]], options: dict[int, int]) -> bytes:
        """One PTX alone is assembled, as for other backends; anything more goes through nvJitLink."""
        flags = [f"-maxrregcount={options[MAX_REGISTERS]}"] if options.get(MAX_REGISTERS) else []
        flags += ["-lineinfo"] if options.get(LINE_INFO) else []
        programs = [data for kind, data in inputs if kind == PTX and isinstance(data, bytes)]
        for program in programs[:1]:
            self.check(program.decode(errors="replace"))
        # Libraries look for libcudadevrt wherever they please; it has to be of nvJitLink's release.
        others = [(k, d) for k, d in inputs if not (isinstance(d, Path) and d.name == "libcudadevrt.a")]
        if self.job.virtual:
            self.job.keep(programs[0], "ptx")
            return programs[0]
        if len(programs) == len(others) == 1:
            relocatable = len(inputs) > 1
            ptx = self.job.keep(programs[0].rstrip(b"\0"), "ptx")
            # The lists are shared with the real job: only the options differ.
            asked: Options = {**self.job.options, "ptxas": [*flags, *self.job.options.get("ptxas", [])]}
            job = replace(self.job, options=asked)
            ptxas.assemble(self.setup, job, ptx, relocatable=relocatable)
            if relocatable:
                nvjitlink.link_with_runtime(self.setup, job)
            self.job.artifact = job.artifact
            assert job.artifact is not None
            return Path(job.artifact.path).read_bytes()
        return self._link_all(others, len(others) < len(inputs), flags)

    def _link_all(self, inputs: list[tuple[int, bytes | Path]], runtime: bool, flags: list[str]) -> bytes:
        library = self.setup.library("libnvJitLink")
        if library is None:
            raise Unavailable(f"CUDA {self.setup.release} has no nvJitLink (it came with 12.0): the program needs it")
        parts = nvjitlink.parts(self.setup)
        items = [(_KINDS[kind], data) for kind, data in inputs]
        if runtime and isinstance(parts, str):
            raise Unavailable(f"{parts}: the program needs it")
        if runtime and not isinstance(parts, str):
            items.append((nvjitlink.INPUT_LIBRARY, parts[1]))
        linker = nvjitlink.Linker(library)
        self.job.enter("link")
        self.job.observed["nvjitlink"] = linker.version
        argv = [f"-arch=sm_{self.job.arch}", *flags]
        names = [str(data) if isinstance(data, Path) else "PTX" for _, data in items]
        self.job.command.append(" ".join(["nvJitLink", *argv, *names]))
        try:
            cubin, remarks = linker.link(argv, items)
        except nvjitlink.LinkError as error:
            self.job.say(str(error))
            raise Rejected("nvJitLink refused", stage="link") from None
        self.job.say(remarks)
        self.job.keep(cubin, "cubin")
        return cubin

    def attribute(self, number: int) -> int:
        """A device attribute (CUdevice_attribute)."""
        return device_attribute(number, self.job.capability)


def device_attribute(number: int, capability: tuple[int, int]) -> int:
    """Attributes of a device of a compute capability, by number (CUdevice_attribute)."""
    return {75: capability[0], 76: capability[1], **_ATTRIBUTES}.get(number, 0)


# Threads, dimensions, shared and constant memory, warp, registers, processors; unified addressing; cooperative launch.
_ATTRIBUTES = {1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 9: 65536}
_ATTRIBUTES |= {10: 32, 12: 65536, 16: 16, 39: 2048, 41: 1, 81: 49152, 82: 65536, 95: 1, 97: 49152}


def loaded(*stems: str) -> list[Path]:
    """Real paths of this process's libraries whose names begin with one of `stems`."""
    with open("/proc/self/maps") as file:
        paths = {Path(line.split(None, 5)[5].rstrip("\n")) for line in file if line.count("/")}
    return sorted(path for path in paths if path.name.startswith(stems))


def foreign(setup: Setup) -> list[Path]:
    """Loaded parts of some other CUDA than the toolkit's."""
    own = _libraries(setup.home)
    return [path for path in loaded("libnvvm", "libnvrtc", "libnvJitLink", "libcudart") if path not in own]


@cache
def _libraries(home: Path) -> frozenset[Path]:
    """Real paths of a toolkit's libraries: looked for once, before cells are forked."""
    return frozenset(path.resolve() for folder in ("lib64", "nvvm/lib64") for path in (home / folder).glob("*.so*"))
