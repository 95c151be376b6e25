"""Tests of the contract that every backend keeps. Derive a class from `BackendContract` in a test module, and pytest runs them.

::

    from cumatrix.contract import BackendContract

    class TestMine(BackendContract):
        backend = "mine"
        toolkit = "12.9"
        python = "/path/to/an/environment/bin/python"

The tests compile their programs with the real backend, in one run. They require pytest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cumatrix._results import Cell, Results
from cumatrix._run import try_

_CUDA = {
    "good.cu": "__global__ void good(float *x) { x[threadIdx.x] *= 2; }\n",
    "again.cu": "__global__ void good(float *x) { x[threadIdx.x] *= 2; }\n",
    "refused.cu": "__global__ void refused(int *x) {\n    *x = missing_releases;\n}\n",
    "shared.cu": "__global__ void shared(float *x) {\n    __shared__ float s[12289];\n    s[threadIdx.x] = x[0];\n    __syncthreads();\n    x[0] = s[threadIdx.x ^ 1];\n}\n",
    "defined.cu": "#if FOUR != 4\n#error FOUR is not 4\n#endif\n__global__ void defined(int *x) { *x = FOUR; }\n",
    "headed.cu": '#include "contract_header.h"\n__global__ void headed(int *x) { *x = FROM_THE_HEADER; }\n',
}
_PYTHON = {
    "good.py": "from numba import cuda\n@cuda.jit('void(float32[:])')\ndef good(x):\n    x[cuda.threadIdx.x] *= 2\n",
    "again.py": "from numba import cuda\n@cuda.jit('void(float32[:])')\ndef good(x):\n    x[cuda.threadIdx.x] *= 2\n",
    "refused.py": "from numba import cuda\n@cuda.jit('void(int32[:])')\ndef refused(x):\n    x[0] = missing_releases\n",
    "shared.py": "from numba import cuda, float32\n@cuda.jit('void(float32[:])')\ndef shared(x):\n    s = cuda.shared.array(12289, float32)\n"
    "    s[cuda.threadIdx.x] = x[0]\n    cuda.syncthreads()\n    x[0] = s[cuda.threadIdx.x ^ 1]\n",
    "defined.py": "from numba import cuda\n@cuda.jit('void(int32[:])')\ndef defined(x):\n    x[0] = FOUR\n",
}
_HIP = {
    name.replace(".cu", ".hip"): "#include <hip/hip_runtime.h>\n" + text.replace("[12289]", "[16385]")
    for name, text in _CUDA.items()
}
PROGRAMS: Mapping[str, Mapping[str, str]] = {"cuda": _CUDA, "hip": _HIP, "python": _PYTHON}
"""Texts of the programs, by language and file name."""


class BackendContract:
    """The tests. A derived class sets the attributes that name the backend.

    Attributes
    ----------
    backend : str
        The backend's name.
    toolkit : str
        A CUDA release that the backend supports and that supports `target`. Its ptxas rejects 49156 bytes of static shared memory (12.4 to
        12.6 do not). ``rocm`` for HIP.
    target, virtual : str
        A real and a virtual architecture that the backend builds for. `virtual` is empty if the backend produces no PTX.
    unknown : str
        An architecture that `toolkit` does not support.
    language : str
        ``cuda``, ``hip`` or ``python``.
    python : str
        The interpreter of an environment with the backend's library; empty for the interpreter of the tests.
    options : dict
        Further keywords of `cumatrix.try_`.
    """

    backend: ClassVar[str] = ""
    toolkit: ClassVar[str] = "12.9"
    target: ClassVar[str] = "sm_80"
    virtual: ClassVar[str] = "compute_80"
    unknown: ClassVar[str] = "sm_88"
    language: ClassVar[str] = "cuda"
    python: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}

    _compiled: ClassVar[Results | None] = None

    @classmethod
    def interpreter(cls) -> str:
        """Return `python`. Override it to create the environment first."""
        return cls.python

    @pytest.fixture
    def cells(self, tmp_path_factory: pytest.TempPathFactory) -> Results:
        """Compile all programs, once per class."""
        kind = type(self)
        if "_compiled" not in vars(kind):
            kind._compiled = self._compile(tmp_path_factory.mktemp("contract"))
        assert kind._compiled is not None
        return kind._compiled

    def _compile(self, folder: Path) -> Results:
        assert self.backend, "say which backend is tested: backend = …"
        (folder / "include").mkdir()
        (folder / "include" / "contract_header.h").write_text("#define FROM_THE_HEADER 7\n")
        files = []
        for name, text in PROGRAMS[self.language].items():
            files.append(folder / name)
            files[-1].write_text(text)
        arguments: dict[str, Any] = {
            "backend": self.backend, "toolkit": self.toolkit, "cache": False, "define": {"FOUR": 4},
            "target": [target for target in (self.target, self.virtual, self.unknown) if target], **self.options,
        }  # fmt: skip
        if python := self.interpreter():
            arguments["python"] = python
        if self.language != "python":
            arguments["include"] = folder / "include"
        return try_(files, **arguments)

    def _cell(self, cells: Results, program: str, target: str) -> Cell:
        suffix = {"python": ".py", "hip": ".hip"}.get(self.language, ".cu")
        found = [each for each in cells if each.case.startswith(program + suffix) and each.target == target]
        assert len(found) == 1, f"{program} has {len(found)} cells for {target}"
        return found[0]

    def test_no_cell_is_a_fault_of_the_backend(self, cells: Results) -> None:
        """The backend itself neither fails nor lacks a part."""
        faults = [
            repr(each) for each in cells if each.status in ("harness_error", "unavailable", "crashed", "timed_out")
        ]
        assert faults == []

    def test_builds_for_the_requested_target(self, cells: Results) -> None:
        """The artifact is a cubin or a code object for the target, and lists the kernel with its resources."""
        cell = self._cell(cells, "good", self.target)
        assert cell.status == "built", repr(cell)
        assert cell.artifact["format"] == ("hsaco" if self.language == "hip" else "cubin")
        assert cell.artifact["target"].rstrip("af") == self.target.rstrip("af")
        assert any("good" in kernel.name for kernel in cell.kernels)
        assert all(kernel.registers for kernel in cell.kernels)

    def test_makes_ptx_for_a_virtual_target(self, cells: Results) -> None:
        """A virtual architecture yields PTX only."""
        if not self.virtual:
            pytest.skip("the backend makes no PTX")
        cell = self._cell(cells, "good", self.virtual)
        assert (cell.status, cell.artifact["format"]) == ("built", "ptx"), repr(cell)

    def test_a_refusal_is_in_the_compiler_s_words(self, cells: Results) -> None:
        """A missing name is `rejected` at `compile`, and the message contains it."""
        cell = self._cell(cells, "refused", self.target)
        assert (cell.status, cell.stage) == ("rejected", "compile"), repr(cell)
        assert "missing_releases" in cell.message
        assert cell.log.strip()
        if self.language != "python":
            assert cell.diagnostics[0].line == (3 if self.language == "hip" else 2)

    def test_what_the_assembler_refuses_is_refused(self, cells: Results) -> None:
        """The compiler accepts more than 48 KiB of static shared memory, and ptxas rejects it. For AMD GPUs, the compiler rejects more than 64 KiB."""
        cell = self._cell(cells, "shared", self.target)
        assert cell.status == "rejected", repr(cell)
        assert cell.stage in (("compile",) if self.language == "hip" else ("assemble", "link"))

    def test_definitions_and_include_directories_reach_the_compiler(self, cells: Results) -> None:
        """The program uses a macro, or a constant of a module, and a header of an include directory."""
        assert self._cell(cells, "defined", self.target).built
        if self.language != "python":
            assert self._cell(cells, "headed", self.target).built

    def test_an_architecture_that_nothing_knows_is_not_applicable(self, cells: Results) -> None:
        """The cell is `unsupported` with a reason, and does not fail."""
        cell = self._cell(cells, "good", self.unknown)
        assert cell.status == "unsupported", repr(cell)
        assert cell.reason

    def test_versions_are_those_of_what_was_loaded(self, cells: Results) -> None:
        """The loaded library reports a version of the requested release."""
        observed = self._cell(cells, "good", self.target).toolchain["observed"]
        assert observed["python"]
        if self.language == "hip":
            assert observed["hip"].startswith(f"{cells[0].toolkit.removesuffix('@rocm')}.")
            return
        assert observed["ptxas"].startswith(f"{self.toolkit}.")
        for name in ("nvrtc", "nvjitlink"):
            assert observed.get(name, self.toolkit).split(".")[:2] == self.toolkit.split(".")

    def test_reports_its_command_and_stages(self, cells: Results) -> None:
        """The cell has a command that a reader can repeat, and its stages are in order."""
        cell = self._cell(cells, "good", self.target)
        assert cell.command
        order = ["preprocess", "compile", "assemble", "link"]
        assert [order.index(stage) for stage in cell.stages] == sorted(order.index(stage) for stage in cell.stages)
        assert "compile" in cell.stages

    def test_the_same_program_gives_the_same_code(self, cells: Results) -> None:
        """A cell leaves no state that changes the next cell."""
        first, second = (self._cell(cells, name, self.target) for name in ("good", "again"))
        assert [(each.name, each.registers) for each in first.kernels] == [
            (each.name, each.registers) for each in second.kernels
        ] or self.language == "python"
        assert first.artifact["bytes"] == second.artifact["bytes"] or self.language == "python"
