"""Arguments of a launch, and the check of what it computed against a case's reference in NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.protocol.backend import Ended, Job, Rejected, Unavailable
from harness.protocol.job import ArgumentSpec, LaunchSpec
from harness.protocol.python39 import zipped

_C_TYPES: Mapping[str, Any] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16,
    **{f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def numpy() -> Any:
    """NumPy of the environment under test."""
    try:
        import numpy
    except ImportError as error:
        raise Unavailable(f"a launch needs NumPy in the environment under test: {error}") from None
    return numpy


class Launch:
    """One launch: its host arrays before, and the check of them afterwards.

    Parameters
    ----------
    job : Job
        The cell.
    spec : LaunchSpec
        One of `Job.launches`.

    Attributes
    ----------
    values : list
        By argument, a NumPy array, or a NumPy number.
    """

    def __init__(self, job: Job, spec: LaunchSpec) -> None:
        self.job, self.np = job, numpy()
        self.kernel, self.arguments, self.check = spec.kernel, spec.arguments, spec.verify
        self.grid, self.block = tuple(spec.grid), tuple(spec.block)
        self.shared, self.opt_in, self.cooperative = spec.shared, spec.opt_in, spec.cooperative
        self.values = [self._value(argument) for argument in self.arguments]

    def __str__(self) -> str:
        shown = f"{self.kernel}[{_dims(self.grid)}, {_dims(self.block)}]"
        shown += f", {self.shared} bytes of shared memory{' (opt-in)' if self.opt_in else ''}" if self.shared else ""
        return shown + (", cooperative" if self.cooperative else "")

    def c_value(self, index: int) -> Any:
        """A number as ctypes passes it to the driver."""
        return _C_TYPES[self.arguments[index].type].from_buffer_copy(self.values[index].tobytes())

    def _value(self, argument: ArgumentSpec) -> Any:
        np, kind, shape = self.np, argument.type, argument.shape
        if shape is None:
            return _encode(np, np.asarray(argument.value, np.float64 if "float" in kind else kind), kind)[()]
        count, fill = int(np.prod(shape)), argument.fill
        if fill == "random":
            # The legacy generator's stream never changes from one NumPy to another.
            random = np.random.RandomState(argument.seed)
            whole = "float" not in kind
            low = 0 if kind.startswith("u") else -8
            data = random.randint(low, 9, count) if whole else random.uniform(-1, 1, count)
        elif fill == "sequence":
            data = np.arange(count)
        else:
            data = np.full(count, {"zeros": 0, "ones": 1}.get(str(fill), fill))
        return _encode(np, data, kind).reshape(shape)

    def verify(self, results: list[Any]) -> None:
        """Hold what came back against the reference, as stage ``verify``.

        Parameters
        ----------
        results : list
            By argument, the array as the kernel left it; None for numbers.

        Raises
        ------
        Rejected
            When some element is further off than the tolerances allow.
        """
        if self.check is None:
            self.job.notes.append(f"{self.kernel} ran to its end; the case does not say what it should compute")
            return
        np = self.np
        self.job.enter("verify")
        wanted = [
            value if argument.shape is None else _decode(np, value, argument.type).copy()
            for value, argument in zipped(self.values, self.arguments)
        ]
        try:
            _reference(Path(self.check.reference), self.kernel, self.job.definitions)(*wanted)
        except Exception as error:  # noqa: BLE001 (code of the case)
            name = Path(self.check.reference).name
            raise Ended(f"{name} of the case failed: {type(error).__name__}: {error}") from None
        rtol, atol = self.check.rtol, self.check.atol
        worst: list[tuple[float, str]] = []
        for argument, result, want in zipped(self.arguments, results, wanted):
            if argument.shape is None:
                continue
            got = _decode(np, result, argument.type)
            with np.errstate(all="ignore"):
                wide, expected = got.astype(np.float64), want.astype(np.float64)
                same = (got == want) | (np.isnan(wide) & np.isnan(expected))
                distance = np.where(same, 0.0, np.abs(wide - expected))
                allowed = atol + rtol * np.abs(expected)
                wrong = ~same & ~(distance <= allowed)
                if not wrong.any():
                    continue
                # An element that is no number is the worst of all; whole numbers of 64 bits may differ by less than a float shows.
                excess = np.where(wrong, np.nan_to_num(distance - allowed, nan=np.inf, posinf=np.inf), -1.0)
            index = np.unravel_index(int(np.argmax(excess)), excess.shape)
            place = ", ".join(str(int(number)) for number in index)
            worst.append(
                (
                    float(excess[index]),
                    (
                        f"{self.kernel}: {argument.name}[{place}] is {got[index]}, expected {want[index]} "
                        f"({int(wrong.sum())} of {wrong.size} elements differ by more than rtol {rtol:g}, atol {atol:g})"
                    ),
                )
            )
        if worst:
            worst.sort(key=lambda item: -item[0])
            for _, words in worst:
                self.job.say(f"error: wrong result in {words}")
            raise Rejected("wrong result", stage="verify")


def _reference(path: Path, kernel: str, definitions: Mapping[str, Any]) -> Any:
    """The reference's function of that kernel; its module has the case's definitions from the start."""
    space: dict[str, Any] = {"__name__": "reference", "__file__": str(path), **definitions}
    exec(compile(path.read_bytes(), str(path), "exec"), space)  # noqa: S102 (a case runs code by definition: SECURITY.md)
    if not callable(space.get(kernel)):
        raise NameError(f"it defines no function {kernel}")  # noqa: TRY004 (as Python says of a name that is not there)
    return space[kernel]


def _encode(np: Any, data: Any, kind: str) -> Any:
    """Numbers as in the device's memory: bfloat16 as the upper half of a float, rounded to even."""
    if kind != "bfloat16":
        return data.astype(kind)
    bits = data.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _decode(np: Any, data: Any, kind: str) -> Any:
    return data if kind != "bfloat16" else (data.astype(np.uint32) << 16).view(np.float32)


def _dims(values: tuple[int, ...]) -> str:
    used = [str(value) for value in values]
    while len(used) > 1 and used[-1] == "1":
        used.pop()
    return used[0] if len(used) == 1 else f"({', '.join(used)})"
