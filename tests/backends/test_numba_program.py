"""Running a Python program, and assigning the blame for an exception; without Numba."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.backends.numba import backend as numba
from harness.backends.numba.program import jit_options, outcome
from harness.backends.python_program import Program, described, from_elsewhere, in_short, is_ptxas_error, tidy
from harness.nvidia.virtual_driver import VirtualDevice
from harness.protocol.backend import Job, Rejected, Setup, Unavailable


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Restore the process of the tests: a program normally runs in its own process, and changes it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    folder, scratch = tmp_path / "case", tmp_path / "cell-0a1b"
    folder.mkdir()
    scratch.mkdir()
    return Job("cell", folder / "axpy.py", {}, {}, "sm_80", {}, [], scratch=scratch)


@pytest.fixture
def device(tmp_path: Path, job: Job) -> VirtualDevice:
    return VirtualDevice(Setup(tmp_path, "12.4", "12.4", [], tmp_path / "tools"), job, "numba 0.59.1")


class Library:
    """A library with a name and no other information."""

    library = "numba 0.59.1"
    modules: tuple[str, ...] = ("numba",)

    def check_libraries(self, setup: Setup) -> None:
        """No module was loaded."""

    def kernel_class(self) -> type:
        raise NotImplementedError

    def types_of(self, signature: str) -> tuple[Any, Any]:
        raise NotImplementedError


def program_of(job: Job, text: str) -> Program:
    job.source.write_text(text)
    program = Program(job, {"JIT_OPTIONS": jit_options(job)})
    program.run()
    return program


def test_definitions_and_options_are_there_before_the_program_runs(job: Job) -> None:
    job.definitions = {"SIZE": 21}
    job.options = {"cache": True, "debug": False, "std": "c++17"}
    module = program_of(job, "TWICE = 2 * SIZE\nGIVEN = dict(JIT_OPTIONS)\n").module
    assert module.TWICE == 42
    assert module.GIVEN == {"cache": True, "debug": False}


SHOWS = """
import sys, os
import json, helper, package.part
from package import inner
seen = {
    "name": __name__, "argv": sys.argv, "first": sys.path[0], "main": sys.modules["__main__"].__dict__ is globals(),
    "file": __file__, "helper": helper.VALUE, "part": package.part.VALUE, "inner": inner.VALUE,
    "data": open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "n.txt")).read(),
    "here": open("data/n.txt").read(), "listed": sorted(name for name in os.listdir() if name != "seen.json"),
    "cached": __cached__, "spec": __spec__, "package": __package__, "doc": __doc__,
}
with open("seen.json", "w") as file:
    json.dump(seen, file)
"""


def lay_out(folder: Path) -> None:
    for name, text in {
        "helper.py": "from package.inner import VALUE\n", "package/__init__.py": "", "package/part.py": "VALUE = 2\n",
        "package/inner.py": "VALUE = 3\n", "data/n.txt": "4\n",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def test_it_runs_as_python_runs_it(job: Job, tmp_path: Path) -> None:
    import json

    lay_out(job.source.parent)
    job.source.write_text(SHOWS)
    command = [sys.executable, "-B", str(job.source)]
    subprocess.run(command, cwd=job.source.parent, check=True)
    expected = json.loads((job.source.parent / "seen.json").read_text())
    (job.source.parent / "seen.json").unlink()
    before = sorted(job.source.parent.rglob("*"))
    Program(job).run()
    assert json.loads((job.scratch / "work" / "case" / "seen.json").read_text()) == expected
    assert sorted(job.source.parent.rglob("*")) == before


def test_nothing_is_written_beside_the_program(job: Job) -> None:
    lay_out(job.source.parent)
    before = {path: path.read_bytes() for path in job.source.parent.rglob("*") if path.is_file()}
    program_of(
        job, "import sys; sys.dont_write_bytecode = False\nimport helper\nopen('data/n.txt', 'w').write('5')\n"
        "assert open('data/n.txt').read() == '5'\nopen('out.txt', 'w').write('6')\n",
    )  # fmt: skip
    after = {path: path.read_bytes() for path in job.source.parent.rglob("*") if path.is_file()}
    assert after == {**before, job.source: job.source.read_bytes()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\nraise KeyError('x')\n", "KeyError: 'x' at axpy.py:2: raise KeyError('x')"),
        ("def k(:\n", "SyntaxError: invalid syntax at axpy.py:1"),
        ("raise SystemExit(3)\n", "SystemExit: axpy.py ended itself with exit code 3 at axpy.py:1: raise SystemExit(3)"),
        ("import sys\nsys.exit('no\\nmore')\n", "SystemExit: axpy.py ended itself with exit code 1: no at axpy.py:2: "),
        ("import argparse\np = argparse.ArgumentParser()\np.add_argument('n')\np.parse_args()\n",
         "SystemExit: axpy.py ended itself with exit code 2: the following arguments are required: n at axpy.py:4: "),
        ("n = input('how many? ')\n", "EOFError: EOF when reading a line (it asks for input, and there is none here) at "),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt: axpy.py:1: raise KeyboardInterrupt"),
        ("class Odd(BaseException): pass\nraise Odd('x')\n", "Odd: x at axpy.py:2: raise Odd('x')"),
        ("class Mute(Exception):\n def __str__(self): raise KeyError\nraise Mute\n",
         "Mute: (its text cannot be told: KeyError) at axpy.py:3: raise Mute"),
        ("import json\njson.loads('{')\n", "JSONDecodeError: Expecting property name"),
        ("open(__file__, 'a')\n", "PermissionError: [Errno 13] cumatrix keeps the files next to a program unchanged"),
    ],
)  # fmt: skip
def test_what_ends_a_program_early_is_kept(
    job: Job, text: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with open("/dev/null") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        failure = program_of(job, text).failure
    assert failure is not None
    assert in_short(failure, job).startswith(words)


@pytest.mark.parametrize("text", ["pass\n", "raise SystemExit\n", "import sys\nsys.exit(0)\n"])
def test_a_program_may_end_itself(job: Job, text: str) -> None:
    assert program_of(job, text).failure is None


def test_a_text_that_python_does_not_take_is_the_programs_fault(job: Job) -> None:
    assert isinstance(program_of(job, "x = 1\0").failure, (SyntaxError, ValueError))


def test_closed_streams_are_opened_again(job: Job) -> None:
    before = sys.stdout
    program_of(job, "import sys, io\nsys.stdout = io.StringIO()\nsys.stdout.close()\n")
    assert sys.stdout is before


def run(job: Job, device: VirtualDevice, text: str) -> None:
    """A cell in which nothing was compiled."""
    with outcome(Library(), job, device):
        program = program_of(job, text)
        if program.failure:
            raise program.failure


def test_an_exception_of_the_program_is_a_rejection_with_its_place(job: Job, device: VirtualDevice) -> None:
    with pytest.raises(Rejected) as caught:
        run(job, device, "\nraise KeyError('x')\n")
    assert caught.value.stage == "compile"
    assert job.logs == ["KeyError: 'x'\n  axpy.py:2: raise KeyError('x')"]


def test_words_of_the_program_do_not_look_like_a_compilers(job: Job, device: VirtualDevice) -> None:
    with pytest.raises(Rejected):
        run(job, device, "raise ValueError('x\\nkernel.cu(3): error: made up\\nTypingError: made up')\n")
    assert [line for line in job.logs[0].splitlines() if not line.startswith(" ")] == ["ValueError: x"]


def test_a_class_that_no_log_shows_as_an_error_is_called_one(job: Job, device: VirtualDevice) -> None:
    with pytest.raises(Rejected):
        run(job, device, "class Odd(Warning): pass\nraise Odd('x')\n")
    assert job.logs[0].startswith("error: Odd: x\n")


def test_a_syntax_error_is_a_rejection_with_its_place(job: Job, device: VirtualDevice) -> None:
    with pytest.raises(Rejected):
        run(job, device, "def k(:\n")
    assert job.logs[0].startswith("SyntaxError: ")
    assert "\n  axpy.py:1: def k(:" in job.logs[0]


def test_the_place_is_that_of_the_file_beside_it(job: Job, device: VirtualDevice) -> None:
    (job.source.parent / "helper.py").write_text("\n\nraise KeyError('there')\n")
    with pytest.raises(Rejected):
        run(job, device, "import helper\n")
    assert job.logs[0].endswith("\n  helper.py:3: raise KeyError('there')")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_thing.at_all\n", "no module no_such_thing is there: install what has it, as in"),
        ("from json import no_such_name\n", "cannot import name 'no_such_name' from 'json': install a version"),
    ],
)
def test_what_a_program_needs_and_does_not_find_is_unavailable(
    job: Job, device: VirtualDevice, text: str, words: str
) -> None:
    with pytest.raises(Unavailable, match=r"axpy\.py needs more than is installed") as caught:
        run(job, device, text)
    assert words in caught.value.reason
    assert f"`{sys.executable} -m pip install" in caught.value.reason
    assert "no-such-thing" in caught.value.reason or "json" in caught.value.reason


def test_a_mistake_of_our_own_is_no_rejection(job: Job, device: VirtualDevice) -> None:
    device.fault = TypeError("ours")
    with pytest.raises(TypeError, match="ours"):
        run(job, device, "raise ValueError('dressed up')\n")


def test_the_linkers_refusal_comes_before_the_librarys_words_for_it(job: Job, device: VirtualDevice) -> None:
    device.ended = Rejected("ptxas refused the PTX", stage="assemble")
    with pytest.raises(Rejected, match="ptxas refused"):
        run(job, device, "raise RuntimeError('LinkerError')\n")
    assert job.logs == []


def test_a_refusal_that_the_program_hid_still_counts(job: Job, device: VirtualDevice) -> None:
    device.ended = Unavailable("another NVVM")
    with pytest.raises(Unavailable, match="another NVVM"):
        run(job, device, "pass\n")


def test_a_driver_function_that_is_lacking_is_our_fault(job: Job, device: VirtualDevice) -> None:
    with pytest.raises(RuntimeError, match="missing function"):
        run(job, device, "raise RuntimeError('Driver missing function: cuTexRefCreate')\n")


def test_running_out_of_memory_is_no_rejection(job: Job, device: VirtualDevice) -> None:
    with pytest.raises(MemoryError):
        run(job, device, "raise MemoryError\n")


def test_a_part_that_cannot_be_loaded_is_unavailable(job: Job, device: VirtualDevice) -> None:
    with pytest.raises(Unavailable, match=r"misses a part of CUDA 12\.4"):
        run(job, device, "class NvrtcSupportError(Exception): pass\nraise NvrtcSupportError('no NVRTC')\n")


def test_warnings_are_kept_once(job: Job, device: VirtualDevice) -> None:
    run(job, device, "import warnings\nfor _ in range(2):\n    warnings.warn('slow')\n")
    assert job.logs == ["UserWarning: slow"]


def test_our_own_exceptions_are_our_own() -> None:
    with pytest.raises(AttributeError) as caught:
        tidy("text", 2)  # type: ignore[arg-type]
    assert not from_elsewhere(caught.value)


def test_a_text_reads_the_same_in_every_folder(job: Job) -> None:
    work = job.scratch / "work" / "case"
    work.mkdir(parents=True)
    for name in (job.source, work / job.source.name, "../case/axpy.py", "cell-0a1b/work/case/axpy.py"):
        for text in (f'File "{name}", line 4:', f'\x1b[1mFile "\x1b[31m{name}", line 4:\x1b[0m'):
            with in_folder(work if str(name).startswith("..") else job.scratch.parent):
                expected = 'File "axpy.py", line 4:'
                assert tidy(text.replace("../case", "../../../case"), job) == expected, name


@contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


def test_the_class_comes_first(job: Job) -> None:
    assert described(ValueError("first\nsecond"), job) == "ValueError: first\n  second"


def test_ptxas_is_recognized_by_its_errors() -> None:
    assert is_ptxas_error("ptxas fatal   : Unresolved extern function 'f'")
    assert is_ptxas_error(
        "error: nvJitLinkError: ERROR_PTX_COMPILE (4)\nLinker error log: ptxas error   : Entry function 'f' uses"
    )
    assert is_ptxas_error(
        "error: nvJitLinkError: ERROR_INTERNAL (6)\nnvJitLink error log: error   : Entry function 'f' uses"
    )
    assert not is_ptxas_error("ptxas info    : 0 bytes gmem")


def test_the_interfaces_modules_import_the_standard_library_only() -> None:
    package = Path(numba.__file__).parents[3]
    code = f"import sys; sys.path.insert(0, {str(package)!r})\nimport harness.backends.numba.numba_cuda\n"
    code += "print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
