"""Launch of an artifact through the driver API, for backends whose library has no device support.

It uses ctypes instead of cuda-bindings, because it also serves environments with a compiler only, and because installed
packages must not influence the control. The calls used here have had the same form since CUDA 9.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.protocol.backend import Ended, Job, Rejected, Unavailable, Unsupported
from harness.protocol.codec import zipped
from harness.protocol.messages import ArgumentSpec, LaunchSpec

_C_TYPES: Mapping[str, Any] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16,
    **{f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def numpy() -> Any:
    """Import NumPy from the environment under test."""
    try:
        import numpy
    except ImportError as error:
        raise Unavailable(f"a launch needs NumPy in the environment under test: {error}") from None
    return numpy


class Launch:
    """One launch: its host arrays, and the check of its results.

    Parameters
    ----------
    job : Job
        The cell.
    spec : LaunchSpec
        One of `Job.launches`.

    Attributes
    ----------
    values : list
        A NumPy array or a NumPy number for each argument.
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
        """Return a number as the ctypes value that the driver receives."""
        return _C_TYPES[self.arguments[index].type].from_buffer_copy(self.values[index].tobytes())

    def _value(self, argument: ArgumentSpec) -> Any:
        np, kind, shape = self.np, argument.type, argument.shape
        if shape is None:
            return _encode(np, np.asarray(argument.value, np.float64 if "float" in kind else kind), kind)[()]
        count, fill = int(np.prod(shape)), argument.fill
        if fill == "random":
            # The legacy generator's stream is the same in every NumPy.
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
        """Compare the results with the reference, as stage ``verify``.

        Parameters
        ----------
        results : list
            For each argument, the array after the launch; None for numbers.

        Raises
        ------
        Rejected
            If an element exceeds the tolerances.
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
                # NaN is the worst of all; 64-bit integers may differ by less than a float can represent.
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
    """Return the reference's function for a kernel; its module starts with the case's definitions."""
    space: dict[str, Any] = {"__name__": "reference", "__file__": str(path), **definitions}
    exec(compile(path.read_bytes(), str(path), "exec"), space)  # noqa: S102 (a case runs code by definition: SECURITY.md)
    if not callable(space.get(kernel)):
        raise NameError(f"it defines no function {kernel}")  # noqa: TRY004 (as Python raises for an undefined name)
    return space[kernel]


def _encode(np: Any, data: Any, kind: str) -> Any:
    """Convert numbers to their form in device memory; bfloat16 is the upper half of a float32, rounded to even."""
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


_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_CAPABILITY = (75, 76)
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
_LOG = 8192


class DriverError(Exception):
    """A driver call failed; the message has the error's name and description, and the call."""

    def __init__(self, call: str, code: int, name: str, words: str) -> None:
        super().__init__(f"{name}: {words} ({call})" if words else f"{name} ({call})")
        self.code, self.name = code, name


class Driver:
    """The driver with the first visible device.

    Parameters
    ----------
    context : bool
        Whether to make the device's primary context current, which loading and launching need.

    Raises
    ------
    Unavailable
        If there is no driver or no device.
    """

    def __init__(self, context: bool = True) -> None:
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Unavailable(f"the driver cannot be loaded: {error}") from None
        self.device = ctypes.c_int()
        self.context = ctypes.c_void_p()
        try:
            self.call("cuInit", 0)
            self.call("cuDeviceGet", ctypes.byref(self.device), 0)
            if context:
                self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
                self.call("cuCtxSetCurrent", self.context)
        except DriverError as error:
            raise Unavailable(f"the device cannot be used: {error}") from None

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function; raise `DriverError` if it fails."""
        code = getattr(self.lib, function)(*arguments)
        if code:
            raise DriverError(function, code, self._text("cuGetErrorName", code), self._text("cuGetErrorString", code))

    def _text(self, function: str, code: int) -> str:
        text = ctypes.c_char_p()
        if getattr(self.lib, function)(code, ctypes.byref(text)) or not text.value:
            return f"error {code}" if function == "cuGetErrorName" else ""
        return text.value.decode(errors="replace")

    def allow_shared(self, function: Any, size: int) -> None:
        """Set a kernel's limit of dynamic shared memory."""
        self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, size)

    @property
    def name(self) -> str:
        """The device's name."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, len(text), self.device)
        return text.value.decode(errors="replace")

    @property
    def capability(self) -> str:
        """Its compute capability: ``"9.0"``."""
        return "{}.{}".format(*map(self._attribute, _CAPABILITY))

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), which, self.device)
        return value.value

    def load(self, image: bytes) -> ctypes.c_void_p:
        """Load a cubin or PTX; on an error, the driver's log becomes a note of the exception."""
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(_LOG)
        keys = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG)
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), image + b"\0", 2, keys, values)
        except DriverError as error:
            if log.value and hasattr(error, "add_note"):  # Python 3.11 and later
                error.add_note(log.value.decode(errors="replace"))
            raise
        return module

    def function(self, module: ctypes.c_void_p, kernel: str) -> ctypes.c_void_p:
        """Return a kernel of a loaded module."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        return function

    def upload(self, data: bytes) -> ctypes.c_uint64:
        """Allocate device memory with this content."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))
        return pointer

    def download(self, pointer: ctypes.c_uint64, size: int) -> bytes:
        """Return the content of device memory."""
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, pointer, ctypes.c_size_t(size))
        return data.raw

    def launch(
        self, function: ctypes.c_void_p, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any],
        *, shared: int = 0, opt_in: bool = False, cooperative: bool = False,
    ) -> None:  # fmt: skip
        """Launch a kernel and wait for its end; arguments are ctypes values."""
        if opt_in:
            self.allow_shared(function, shared)
        places = [ctypes.cast(ctypes.pointer(argument), ctypes.c_void_p) for argument in arguments]
        parameters = (ctypes.c_void_p * max(len(places), 1))(*places)
        if cooperative:
            self.call("cuLaunchCooperativeKernel", function, *grid, *block, shared, None, parameters)
        else:
            self.call("cuLaunchKernel", function, *grid, *block, shared, None, parameters, None)
        self.call("cuCtxSynchronize")


def refused(error: DriverError, stage: str, say: Any) -> Rejected:
    """Return the refusal for a failed driver call, and log the driver's message."""
    say("\n".join([f"error: {error}", *getattr(error, "__notes__", ())]))
    return Rejected(str(error), stage=stage)


def run_on_driver(job: Job) -> None:
    """Load the job's artifact, launch the kernels as the case describes, and check their results.

    Raises
    ------
    Rejected
        At ``load``, ``launch`` or ``verify``.
    """
    assert job.artifact is not None
    if job.together and job.artifact.parts:
        raise Unsupported("files of one program are loaded when they are linked with each other: rdc = true")
    if job.artifact.format == "object":
        raise Unavailable(f"relocatable device code that was not linked cannot be loaded: {'; '.join(job.notes)}")
    image = Path(job.artifact.path).read_bytes()
    job.enter("load")
    driver = Driver()
    functions = load_on(driver, job, image, job.entries)
    if not job.launches:
        job.notes.append("loaded; the case does not say how to launch")
    for spec in job.launches:
        launch_on(driver, functions[spec.kernel], Launch(job, spec))


def load_on(driver: Driver, job: Job, image: bytes, names: Iterable[str]) -> dict[str, ctypes.c_void_p]:
    """Load an image, and return its kernels by name.

    Raises
    ------
    Rejected
        At ``load``.
    """
    job.command.append("cuModuleLoadDataEx")
    try:
        module = driver.load(image)
        return {name: driver.function(module, name) for name in names}
    except DriverError as error:
        raise refused(error, "load", job.say) from None


def launch_on(driver: Driver, function: ctypes.c_void_p, launch: Launch, hidden: int = 0) -> None:
    """Launch a loaded kernel, and check its results.

    Parameters
    ----------
    driver : Driver
        The device.
    function : c_void_p
        The kernel.
    launch : Launch
        Its grid, block and arguments.
    hidden : int
        Number of unused pointers that the kernel takes after the arguments.

    Raises
    ------
    Rejected
        At ``launch`` or ``verify``.
    """
    job = launch.job
    try:
        job.enter("launch")
        job.command.append(str(launch))
        memory = {
            index: driver.upload(value.tobytes())
            for index, value in enumerate(launch.values)
            if launch.arguments[index].shape is not None
        }
        arguments = [memory.get(i) or launch.c_value(i) for i in range(len(launch.values))]
        driver.launch(
            function, launch.grid, launch.block, [*arguments, *[ctypes.c_uint64()] * hidden],
            shared=launch.shared, opt_in=launch.opt_in, cooperative=launch.cooperative,
        )  # fmt: skip
        results = [
            launch.np.frombuffer(driver.download(memory[i], value.nbytes), value.dtype).reshape(value.shape)
            if i in memory
            else None
            for i, value in enumerate(launch.values)
        ]
    except DriverError as error:
        raise refused(error, "launch", job.say) from None
    launch.verify(results)
