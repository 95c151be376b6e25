"""The GPUs that run a library, by the rules of `harness.model.compatibility`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from harness.model import Target
from harness.model.compatibility import RULES, Release, Way, answer, best, newer, release_of_gpu, release_of_ptx
from harness.model.gpus import Gpu
from harness.wheels.entries import Code, Codes, Kind, Library, Unit
from harness.wheels.kernels import template_of


@dataclass(frozen=True)
class Coverage:
    """A library's coverage of one GPU.

    Parameters
    ----------
    gpu : Gpu
        The GPU.
    units : Mapping
        Number of the library's fatbins that run on the GPU in each way.
    isa : tuple of int
        The newest version of PTX that the driver compiles for the GPU; (0, 0) for none.
    why : str
        Why code is missing or may not run; empty if all of it runs.
    """

    gpu: Gpu
    units: Mapping[Way, int] = field(default_factory=dict)
    isa: tuple[int, int] = (0, 0)
    why: str = ""

    @property
    def total(self) -> int:
        """Number of fatbins."""
        return sum(self.units.values())

    @property
    def running(self) -> int:
        """Number of fatbins that run."""
        return self.units.get(Way.NATIVE, 0) + self.units.get(Way.JIT, 0)

    @property
    def way(self) -> Way:
        """The way the library runs: native only if all code that runs is native."""
        if self.units.get(Way.JIT):
            return Way.JIT
        return best([way for way, count in self.units.items() if count])

    @property
    def complete(self) -> bool:
        """Return whether every fatbin runs on the GPU."""
        return self.running == self.total

    @property
    def release(self) -> Release | None:
        """The first CUDA release whose driver compiles or links the library's code for this GPU.

        None if nothing is compiled, or if the version of the PTX is unknown.
        """
        if not self.units.get(Way.JIT):
            return None
        of_gpu = release_of_gpu(self.gpu.cc)
        if self.isa == (0, 0):  # SASS of relocatable code, which is linked again
            return of_gpu
        of_ptx = release_of_ptx(self.isa)
        return newer(of_ptx, of_gpu) if of_ptx else None


def coverage(library: Library, gpus: Sequence[Gpu]) -> list[Coverage]:
    """Return the coverage of a library for each GPU."""
    return [_coverage(library.kinds, library.parts, library.own, gpu) for gpu in gpus]


def _coverage(
    kinds: Mapping[tuple[Codes, bool | None], int], parts: Collection[Codes], own: Codes, gpu: Gpu
) -> Coverage:
    """Return the coverage of fatbins for a GPU.

    nvlink made the linked fatbins from `parts`. The library itself loads `own`.
    """
    units: Counter[Way] = Counter()
    isa, missing = (0, 0), set[Code]()
    again = bool(parts) and all(_best(codes, gpu.cc) in (Way.NATIVE, Way.JIT) for codes in parts)
    isa_again = max((_compiled(codes, gpu.cc) for codes in parts), default=(0, 0)) if again else (0, 0)
    for (codes, linked), count in kinds.items():
        if not codes:
            continue
        way = _best(codes, gpu.cc)
        if way is Way.JIT:
            isa = max(isa, _compiled(codes, gpu.cc))
        elif way is not Way.NATIVE and again and linked is not False:
            way, isa = (Way.JIT, max(isa, isa_again)) if linked else (Way.UNKNOWN, isa)
        units[way] += count
        if way in (Way.NONE, Way.UNKNOWN):
            missing |= codes
    if missing and any(linked is not False for _, linked in kinds):
        missing |= frozenset[Code]().union(*parts)
    why = _why(missing, gpu.cc, units) if missing else ""
    if missing and (way := _best(own, gpu.cc)) in (Way.NATIVE, Way.JIT):
        # A library may keep kernels for other GPUs there, as cuFFT does: together they count as one more fatbin.
        units[way] += 1
        isa = max(isa, _compiled(own, gpu.cc)) if way is Way.JIT else isa
        why += "; what the library loads itself has code"
    return Coverage(gpu, dict(units), isa, why)


def _best(codes: Codes, cc: int) -> Way:
    return best([_way(code, cc) for code in codes])


@lru_cache(maxsize=4096)
def _way(code: Code, cc: int) -> Way:
    kind, target, _ = code
    return answer(target, cc).way if kind in (Kind.SASS, Kind.PTX) else Way.NONE


def _compiled(codes: Iterable[Code], cc: int) -> tuple[int, int]:
    """Return the version of the PTX that the driver compiles: that of the highest target it accepts."""
    there = [code for code in codes if code[0] is Kind.PTX and _way(code, cc) is Way.JIT]
    return max(there, key=lambda code: (code[1].sort_key, code[2]))[2] if there else (0, 0)


def _why(codes: Iterable[Code], cc: int, units: Mapping[Way, int]) -> str:
    """Explain why code does not run: the nearest code, and its limits."""
    if not units.get(Way.NONE):
        rules = {
            answer(target, cc).rule
            for kind, target, _ in codes
            if kind is Kind.SASS and answer(target, cc).way is Way.UNKNOWN
        }
        return " ".join(RULES[rule].text for rule in sorted(rules or {"link"})).rstrip(".")
    sass = sorted({target for kind, target, _ in codes if kind is Kind.SASS}, key=lambda each: each.sort_key)
    ptx = sorted({target for kind, target, _ in codes if kind is Kind.PTX}, key=lambda each: each.sort_key)
    if not sass and not ptx:
        return "LTO IR or other code alone, which no driver loads"
    same = [target for target in sass if target.cc // 10 == cc // 10]
    words = [f"no SASS for {cc // 10}.x" if not same else _limits(same, "SASS")] if sass else []
    words.append(_limits(ptx, "PTX") if ptx else "no PTX")
    return ", ".join(words)


def _limits(targets: Sequence[Target], what: str) -> str:
    """Describe code that does not run: ``PTX of compute_90a (for 9.0 alone)``."""
    parts = []
    for target in targets:
        words = {"a": f"for {target.capability} alone", "f": f"for {target.cc // 10}.x from {target.capability} on"}
        parts.append(f"{target} ({words.get(target.suffix) or f'for {target.capability} and newer'})")
    return f"{what} of {', '.join(parts)}"


@dataclass(frozen=True)
class KernelGroup:
    """Kernels of one template that exist for the same targets.

    Parameters
    ----------
    template : str
        Name without template arguments.
    targets : tuple of Target
        Their targets.
    names : tuple of str
        Mangled names.
    missing : tuple of Gpu
        GPUs that run none of this code.
    """

    template: str
    targets: tuple[Target, ...]
    names: tuple[str, ...]
    missing: tuple[Gpu, ...]


def uneven(library: Library, gpus: Sequence[Gpu]) -> list[Unit]:
    """Return the fatbins that do not run on a GPU that runs other fatbins of the library.

    Return none if the program selects its fatbins itself.
    """
    if library.chooses_itself:
        return []
    runs = {codes: _running(codes, gpus) for codes in {unit.codes for unit in library.loaded}}
    together = frozenset[int]().union(*runs.values())
    return [unit for unit in library.loaded if unit.entries and runs[unit.codes] != together]


def _running(codes: Codes, gpus: Sequence[Gpu]) -> frozenset[int]:
    return frozenset(gpu.cc for gpu in gpus if _best(codes, gpu.cc) in (Way.NATIVE, Way.JIT))


def kernel_groups(library: Library, gpus: Sequence[Gpu]) -> list[KernelGroup]:
    """Return kernels grouped by template and targets, sorted by name."""
    groups: dict[tuple[str, frozenset[Target]], list[str]] = defaultdict(list)
    for name, targets in library.kernels.items():
        groups[template_of(name), targets].append(name)
    return sorted(
        (_group(template, targets, names, gpus) for (template, targets), names in groups.items()),
        key=lambda group: (group.template, [target.sort_key for target in group.targets]),
    )


def _group(template: str, targets: frozenset[Target], names: Sequence[str], gpus: Sequence[Gpu]) -> KernelGroup:
    ways = {gpu: best([answer(target, gpu.cc).way for target in targets]) for gpu in gpus}
    missing = tuple(gpu for gpu, way in ways.items() if way in (Way.NONE, Way.UNKNOWN))
    return KernelGroup(template, tuple(sorted(targets, key=lambda each: each.sort_key)), tuple(sorted(names)), missing)
