"""The smallest architecture list for a set of GPUs, in each build system's syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.errors import UsageError
from harness.model import Target
from harness.model.compatibility import (
    RELEASES,
    TEGRA,
    Release,
    Way,
    answer,
    last_release_of_gpu,
    newer,
    release_of_gpu,
)
from harness.model.gpus import Gpu

_VLLM = "https://github.com/vllm-project/vllm/issues/56548"


@dataclass(frozen=True)
class Served:
    """The code that a GPU runs.

    Parameters
    ----------
    gpu : Gpu
        The GPU.
    code : Target
        A real target if the GPU runs it natively, a virtual one if the driver compiles it.
    """

    gpu: Gpu
    code: Target


@dataclass(frozen=True)
class ArchitectureList:
    """The architectures that a build generates code for.

    Parameters
    ----------
    real, virtual : tuple of Target
        Targets of SASS and of PTX, in order.
    served : tuple of Served
        Each GPU with the code that it runs.
    least : Release
        The first CUDA release that generates code for all of them.
    last : Release or None
        The last CUDA release that does; None if the newest does.
    warnings : tuple of str
        Known pitfalls, one sentence each.
    """

    real: tuple[Target, ...]
    virtual: tuple[Target, ...]
    served: tuple[Served, ...]
    least: Release
    last: Release | None = None
    warnings: tuple[str, ...] = field(default=())

    @property
    def torch(self) -> str:
        """``TORCH_CUDA_ARCH_LIST``: ``8.0;9.0a;12.0+PTX``."""
        found = {target: target.capability + target.suffix for target in self.real}
        for target in self.virtual:
            found[target.real] = f"{target.capability}{target.suffix}+PTX"  # PyTorch generates SASS for it, too
        return ";".join(found[target] for target in sorted(found, key=lambda each: each.sort_key))

    @property
    def cmake(self) -> str:
        """``CMAKE_CUDA_ARCHITECTURES`` and ``CUDAARCHS``: ``80-real;90a-real;120-virtual``."""
        return ";".join(
            [f"{target.number}-real" for target in self.real] + [f"{target.number}-virtual" for target in self.virtual]
        )

    @property
    def nvcc(self) -> list[str]:
        """nvcc's options."""
        return [f"-gencode arch={target.as_virtual},code={target}" for target in (*self.real, *self.virtual)]


def architectures(
    gpus: Sequence[Gpu], cuda: str = "", suffixes: Mapping[int, str] | None = None, *, forward: bool = False
) -> ArchitectureList:
    """Return the smallest list of architectures for some GPUs.

    Parameters
    ----------
    gpus : sequence of Gpu
        GPUs that the build is for.
    cuda : str
        The build's CUDA release; by default, the first with SASS for all GPUs.
    suffixes : Mapping, optional
        Suffixes that the kernels need, by compute capability: ``{90: "a"}``.
    forward : bool
        Whether to add PTX for future GPUs.

    Raises
    ------
    UsageError
        If no release generates code for all GPUs, or `cuda` generates none for one of them.
    """
    suffixes = suffixes or {}
    least, last = _range(gpus)
    by_release = [gpu for gpu in gpus if not cuda or _knows(cuda, gpu.cc)]
    if not cuda and last and newer(least, last) != last:
        raise UsageError(f"no CUDA release makes code for all of these GPUs: {_ends(gpus)}")
    real = _fewest([gpu.cc for gpu in by_release], suffixes)
    virtual, served = [], []
    for gpu in gpus:
        code = next((target for target in real if answer(target, gpu.cc).way is Way.NATIVE and gpu in by_release), None)
        if code is None:
            code = _ptx(gpu, cuda)
            virtual.append(code)
        served.append(Served(gpu, code))
    # The PTX of the newest target serves every GPU without SASS.
    if virtual:
        virtual = [max(virtual, key=lambda target: target.cc)]
        served = [Served(each.gpu, virtual[0]) if each.code.virtual else each for each in served]
    elif forward and real:
        plain = Target(virtual=True, cc=max(target.cc for target in real))
        virtual = [plain]
    found = ArchitectureList(
        tuple(real), tuple(virtual), tuple(served), least if not cuda else _release(cuda), None if cuda else last
    )
    return ArchitectureList(**{**vars(found), "warnings": tuple(_warnings(found))})


def _range(gpus: Sequence[Gpu]) -> tuple[Release, Release | None]:
    least, last = _release("9.0"), None
    for gpu in gpus:
        least = newer(least, release_of_gpu(gpu.cc))
        end = last_release_of_gpu(gpu.cc)
        if end and (last is None or newer(last, end) == last):
            last = end
    return least, last


def _release(cuda: str) -> Release:
    if cuda not in RELEASES:
        raise UsageError(f"no CUDA release {cuda} is known; the newest is {list(RELEASES)[-1]}")
    return RELEASES[cuda]


def _knows(cuda: str, cc: int) -> bool:
    release, first, last = _release(cuda), release_of_gpu(cc), last_release_of_gpu(cc)
    return first is not None and newer(release, first) == release and (last is None or newer(release, last) == last)


def _ends(gpus: Sequence[Gpu]) -> str:
    words = []
    for gpu in gpus:
        first, last = release_of_gpu(gpu.cc), last_release_of_gpu(gpu.cc)
        words.append(f"{gpu} from {first.cuda if first else '?'}" + (f" to {last.cuda}" if last else " on"))
    return ", ".join(words)


def _fewest(ccs: Sequence[int], suffixes: Mapping[int, str]) -> list[Target]:
    """Return the fewest real targets whose SASS runs on all compute capabilities."""
    chosen: list[Target] = []
    for cc in sorted(set(ccs)):
        plain = Target(virtual=False, cc=cc)
        if cc in suffixes:
            chosen.append(Target(virtual=False, cc=cc, suffix=suffixes[cc]))
        elif not any(answer(target, cc).way is Way.NATIVE for target in chosen):
            chosen.append(plain)
    return chosen


def _ptx(gpu: Gpu, cuda: str) -> Target:
    """Return the PTX that the driver compiles for a GPU unknown to the release."""
    last = last_release_of_gpu(gpu.cc)
    if last and newer(_release(cuda), last) != last:
        raise UsageError(f"CUDA {cuda} makes no code for {gpu}: the last release that does is {last.cuda}")
    known = [cc for cc in range(50, gpu.cc) if release_of_gpu(cc) and cc not in TEGRA and _knows(cuda, cc)]
    if not known:
        raise UsageError(f"CUDA {cuda} makes no code for {gpu}")
    return Target(virtual=True, cc=max(known))


def _warnings(found: ArchitectureList) -> list[str]:
    lines = []
    for each in found.served:
        release = release_of_gpu(each.gpu.cc)
        if each.code.virtual:
            lines.append(f"{each.gpu}: the driver compiles {each.code} at the first start, from {release} on")
        elif each.code.cc != each.gpu.cc and not each.code.suffix:
            lines.append(
                f"{each.gpu} runs code for {each.code}, which is not tuned for it: {each.gpu.cc // 10}.{each.gpu.cc % 10} adds its own"
            )
    for target in found.real:
        if target.suffix == "a":
            lines.append(
                f"{target} runs on {target.capability} alone; kernels without need of it are better built for {target.capability}, too"
            )
            lines.append(
                f"{target.capability} next to {target.capability}a is silently dropped by CMake functions that vLLM and others copy: {_VLLM}"
            )
    return lines
