"""Running a case's Python program, and telling whose fault an exception is; without Numba."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends import numba
from harness.backends.api import Ended, Job, Rejected, Setup, Unavailable, Unsupported
from harness.worker.numba_program import described, execute, from_elsewhere, said_by_ptxas, select, tidy
from harness.worker.virtual_device import VirtualDevice


@pytest.fixture
def job(tmp_path: Path) -> Job:
    folder, scratch = tmp_path / "case", tmp_path / "cell-0a1b"
    folder.mkdir()
    scratch.mkdir()
    return Job("cell", folder / "kernel.py", {}, {}, "sm_80", {}, [], scratch)


@pytest.fixture
def device(tmp_path: Path, job: Job) -> VirtualDevice:
    return VirtualDevice(Setup(tmp_path, "12.4", "12.4", [], tmp_path / "tools"), job, "numba 0.59.1")


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> numba.NumbaBackend:
    made = numba.NumbaBackend()
    monkeypatch.setattr(made, "library", "numba 0.59.1", raising=False)
    monkeypatch.setattr(made, "check_libraries", lambda setup: None)
    return made


def kernel(name: str = "k", *, arguments: int = 0, overloads: tuple[Any, ...] = ()) -> SimpleNamespace:
    code = SimpleNamespace(co_argcount=arguments)
    return SimpleNamespace(py_func=SimpleNamespace(__name__=name, __code__=code), overloads=dict.fromkeys(overloads))


def test_definitions_and_options_are_there_before_the_program_runs(job: Job, device: VirtualDevice) -> None:
    job.source.write_text("TWICE = 2 * SIZE\nGIVEN = dict(JIT_OPTIONS)\n")
    job.definitions = {"SIZE": 21}
    job.options = {"cache": True, "debug": False, "std": "c++17"}
    module = execute(job, device)
    assert module.__name__ == "kernel"
    assert module.TWICE == 42
    assert module.GIVEN == {"cache": True, "debug": False}


def test_the_program_runs_in_the_cells_own_folder(job: Job, device: VirtualDevice) -> None:
    (job.source.parent / "beside_it.py").write_text("VALUE = 7\n")
    (job.source.parent / "data.cu").write_text("text")
    job.source.write_text(
        "from pathlib import Path\nfrom beside_it import VALUE\n"
        "TEXT = (Path(__file__).parent / 'data.cu').read_text()\n"
    )
    module = execute(job, device)
    assert (module.VALUE, module.TEXT) == (7, "text")
    assert Path(str(module.__file__)).is_relative_to(job.scratch)


def test_a_program_of_any_name_is_the_module_kernel(job: Job, device: VirtualDevice) -> None:
    job.source = job.source.with_name("some_file.py")
    job.source.write_text("NAME = __name__\n")
    assert execute(job, device).NAME == "kernel"


def test_a_program_may_stumble_over_results_that_a_virtual_launch_did_not_compute(
    job: Job, device: VirtualDevice
) -> None:
    job.source.write_text("assert False\n")
    with pytest.raises(AssertionError):
        execute(job, device)
    device.launches = 1
    job.scratch = job.scratch.with_name("another")
    job.scratch.mkdir()
    execute(job, device)
    assert job.notes == ["the program went on after a launch that did nothing, and ended with AssertionError"]


def test_kernels_without_arguments_need_no_signature(job: Job) -> None:
    assert [name for name, _, _ in select(job, {"k": kernel()})] == ["k"]


def test_what_was_compiled_already_is_taken_as_it_was(job: Job) -> None:
    found = select(job, {"k": kernel(arguments=1, overloads=(("a",), ("b",)))})
    assert [arguments for _, _, arguments in found] == [("a",), ("b",)]


def test_a_kernel_with_arguments_asks_for_their_types(job: Job) -> None:
    with pytest.raises(Unsupported, match="k takes arguments: give their types"):
        list(select(job, {"k": kernel(arguments=1)}))


@pytest.mark.parametrize(
    ("entries", "kernels", "words"),
    [({}, {}, "defines no CUDA kernel$"), ({"x": "void()"}, {"k": kernel()}, "no CUDA kernel x, only k")],
)
def test_a_program_without_the_kernel_is_the_cases_fault(job: Job, entries: Any, kernels: Any, words: str) -> None:
    job.entries = entries
    with pytest.raises(Ended, match=words) as caught:
        list(select(job, kernels))
    assert caught.value.status == "harness_error"


def run(job: Job, device: VirtualDevice, backend: numba.NumbaBackend, text: str) -> None:
    job.source.write_text(text)
    with backend.outcome(job, device):
        execute(job, device)


def test_an_exception_of_the_program_is_a_rejection_with_its_place(
    job: Job, device: VirtualDevice, backend: numba.NumbaBackend
) -> None:
    with pytest.raises(Rejected) as caught:
        run(job, device, backend, "\nraise KeyError('x')\n")
    assert caught.value.stage == "compile"
    assert job.logs == ["KeyError: 'x'\n  kernel.py:2: raise KeyError('x')"]


def test_a_syntax_error_is_a_rejection_with_its_place(
    job: Job, device: VirtualDevice, backend: numba.NumbaBackend
) -> None:
    with pytest.raises(Rejected):
        run(job, device, backend, "def k(:\n")
    assert job.logs[0].startswith("SyntaxError: ")
    assert job.logs[0].endswith("\n  kernel.py:1: def k(:")


def test_a_mistake_of_our_own_is_no_rejection(job: Job, device: VirtualDevice, backend: numba.NumbaBackend) -> None:
    fault = TypeError("ours")
    device.fault = fault
    with pytest.raises(TypeError, match="ours"):
        run(job, device, backend, "raise ValueError('dressed up')\n")


def test_the_linkers_refusal_comes_before_the_librarys_words_for_it(
    job: Job, device: VirtualDevice, backend: numba.NumbaBackend
) -> None:
    device.ended = Rejected("ptxas refused the PTX", stage="assemble")
    with pytest.raises(Rejected, match="ptxas refused"):
        run(job, device, backend, "raise RuntimeError('LinkerError')\n")
    assert job.logs == []


def test_a_refusal_that_the_program_hid_still_counts(
    job: Job, device: VirtualDevice, backend: numba.NumbaBackend
) -> None:
    device.ended = Unavailable("another NVVM")
    with pytest.raises(Unavailable, match="another NVVM"):
        run(job, device, backend, "pass\n")


def test_a_driver_function_that_is_lacking_is_our_fault(
    job: Job, device: VirtualDevice, backend: numba.NumbaBackend
) -> None:
    with pytest.raises(RuntimeError, match="missing function"):
        run(job, device, backend, "raise RuntimeError('Driver missing function: cuTexRefCreate')\n")


def test_running_out_of_memory_is_no_rejection(job: Job, device: VirtualDevice, backend: numba.NumbaBackend) -> None:
    with pytest.raises(MemoryError):
        run(job, device, backend, "raise MemoryError\n")


def test_a_part_that_cannot_be_loaded_is_unavailable(
    job: Job, device: VirtualDevice, backend: numba.NumbaBackend
) -> None:
    with pytest.raises(Unavailable, match=r"misses a part of CUDA 12\.4"):
        run(job, device, backend, "class NvrtcSupportError(Exception): pass\nraise NvrtcSupportError('no NVRTC')\n")


def test_the_assembler_inside_a_linker_is_told_from_it(
    job: Job, device: VirtualDevice, backend: numba.NumbaBackend
) -> None:
    text = "ERROR_PTX_COMPILE (4)\\nnvJitLink error log: ptxas error   : Entry function 'k' uses too much shared data"
    with pytest.raises(Rejected) as caught:
        run(job, device, backend, f'raise RuntimeError("{text}")\n')
    assert caught.value.stage == "assemble"


def test_warnings_are_kept_once(job: Job, device: VirtualDevice, backend: numba.NumbaBackend) -> None:
    run(job, device, backend, "import warnings\nfor _ in range(2):\n    warnings.warn('slow')\n")
    assert job.logs == ["UserWarning: slow"]


def test_our_own_exceptions_are_our_own() -> None:
    with pytest.raises(AttributeError) as caught:
        tidy(1, 2)  # type: ignore[arg-type]
    assert not from_elsewhere(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        'File "/tmp/cell-0a1b/program/kernel.py", line 4:',
        'File "../../tmp/cell-0a1b/program/kernel.py", line 4:',
        'File "program/kernel.py", line 4:',
        '\x1b[1mFile "\x1b[31mprogram/kernel.py", line 4:\x1b[0m',
    ],
)
def test_a_text_reads_the_same_in_every_folder(job: Job, text: str) -> None:
    assert tidy(text, job) == 'File "kernel.py", line 4:'


def test_the_class_comes_first(job: Job) -> None:
    assert described(ValueError("first\nsecond"), job) == "ValueError: first\nsecond"


def test_ptxas_is_recognized_by_its_errors() -> None:
    assert said_by_ptxas("ptxas fatal   : Unresolved extern function 'f'")
    assert not said_by_ptxas("ptxas info    : 0 bytes gmem")


def test_the_interfaces_modules_import_the_standard_library_only(tmp_path: Path) -> None:
    import subprocess
    import sys

    package = Path(numba.__file__).parents[2]
    code = f"import sys; sys.path.insert(0, {str(package)!r})\nimport harness.backends.numba_cuda\n"
    code += "print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
