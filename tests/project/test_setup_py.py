"""A setup.py, parsed and never executed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.project.setup_py import extensions_of

from .conftest import Configure
from .test_programs import cases_of

SETUP = """
import os
from glob import glob
from pathlib import Path
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

raise SystemExit("this file must not be run")
HERE = Path(__file__).resolve().parent
this_dir = os.path.dirname(os.path.abspath(__file__))
include = [os.path.join(this_dir, "include"), str(HERE / "missing")]
nvcc = ["-O3", f"-DBITS={32}"]
arch = os.environ["ARCH"].split(";")
setup(
    ext_modules=[
        CUDAExtension(
            name="mine._C",
            sources=["csrc/bind.cpp"] + sorted(glob("csrc/*.cu")) + [os.path.join("csrc", d, "shift.cu") for d in ["deep"]],
            include_dirs=include,
            define_macros=[("N", "4"), ("FAST", None)],
            extra_compile_args={"cxx": ["-O2"], "nvcc": nvcc + arch},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""


def test_what_can_be_told_is_told_and_the_rest_is_named(project: Path) -> None:
    (project / "setup.py").write_text(SETUP)
    (found,) = extensions_of(project / "setup.py")
    assert (found.name, found.line) == ("mine._C", 16)
    assert found.sources == ("csrc/scale.cu", "csrc/deep/shift.cu")
    assert found.host == ("csrc/bind.cpp",)
    assert found.include == ("include", "missing")
    assert found.macros == ("N=4", "FAST")
    assert found.flags == ("-O3", "-DBITS=32")
    assert len(found.unread) == 1 and "os.environ['ARCH'].split(';')" in found.unread[0]


def test_a_class_that_is_chosen_first_is_followed(project: Path) -> None:
    (project / "setup.py").write_text(
        "from torch.utils.cpp_extension import CUDAExtension, CppExtension\n"
        "extension = CUDAExtension if True else CppExtension\nextension('a', sources=['csrc/scale.cu'])\n"
    )
    assert [found.sources for found in extensions_of(project / "setup.py")] == [("csrc/scale.cu",)]


GROWN = """
import os, torch
from torch.utils.cpp_extension import CUDAExtension

def extensions():
    sources = ["csrc/bind.cpp", "csrc/scale.cu"]
    nvcc = ["-O3"]
    if os.environ.get("LINES"):
        nvcc += ["-lineinfo"]
    macros = [("A", None)]
    macros.append(("B", None))
    return CUDAExtension("a", sources, define_macros=macros, extra_compile_args={"nvcc": nvcc})
"""


def test_lists_that_grow_are_named_and_not_guessed(project: Path) -> None:
    (project / "setup.py").write_text(GROWN)
    (found,) = extensions_of(project / "setup.py")
    assert (found.sources, found.host) == (("csrc/scale.cu",), ("csrc/bind.cpp",))
    assert (found.macros, found.flags) == ((), ())
    assert found.unread == ("extra_compile_args in line 12: nvcc", "define_macros in line 12: macros")


@pytest.mark.parametrize(
    "text",
    [
        "if A:\n    s = ['csrc/scale.cu']\nelif B:\n    s = ['csrc/deep/shift.cu']\n",
        "def f():\n    s = ['csrc/scale.cu']\ndef g():\n    s = []\n",
        "s = find()\n",
    ],
)
def test_what_nobody_can_tell_is_not_guessed(project: Path, text: str) -> None:
    (project / "setup.py").write_text(f"{text}CUDAExtension('a', sources=s, include_dirs=['include'])\n")
    (found,) = extensions_of(project / "setup.py")
    assert found.sources == () and found.include == ("include",) and found.unread


def test_what_is_no_python_is_told_with_its_line(project: Path) -> None:
    (project / "setup.py").write_text("import os\nx = = 1\n")
    with pytest.raises(UsageError, match=r"^setup\.py:2: cannot be read as Python"):
        extensions_of(project / "setup.py")


def test_a_configuration_takes_an_extension_as_it_is_built(configure: Configure, project: Path) -> None:
    (project / "setup.py").write_text(SETUP.replace("nvcc + arch", "nvcc"))
    cases = cases_of(configure('extension = "setup.py"\nflags = ["-lineinfo"]\ndefine = { N = 5 }\n'))
    assert list(cases) == ["csrc/scale.cu", "csrc/deep/shift.cu"]
    case = cases["csrc/scale.cu"]
    assert list(case.sources) == ["torch"]
    assert case.variants[0].definitions == {"N": 5, "FAST": 1}
    (options,) = [rule.values for rule in case.options]
    assert options == {"include": [str(project / "include")], "flags": ["-lineinfo", "-O3", "-DBITS=32"]}


def test_an_extension_with_unknown_options_is_refused(configure: Configure, project: Path) -> None:
    (project / "setup.py").write_text(SETUP)
    with pytest.raises(UsageError, match=r"setup\.py:16: extra_compile_args in line \d+: os\.environ.*init --record"):
        cases_of(configure('extension = "setup.py"\n'))


def test_an_extension_without_cuda_is_told(configure: Configure, project: Path) -> None:
    (project / "setup.py").write_text("CUDAExtension('a', sources=find())\n")
    with pytest.raises(UsageError, match="names no source"):
        cases_of(configure('extension = "setup.py"\n'))


@pytest.mark.parametrize("pattern", ['"/**/*.cu"', '"/**"', '"../**/*.cu"', '"/*/*/*.cu"'])
def test_the_whole_machine_is_not_looked_through(project: Path, pattern: str) -> None:
    (project / "setup.py").write_text(
        f'CUDAExtension(name="m", sources=["csrc/scale.cu"], include_dirs=glob({pattern}, recursive=True))\n'
    )
    (found,) = extensions_of(project / "setup.py")
    assert found.include == () and found.unread


def test_a_pipe_is_refused(project: Path) -> None:
    os.mkfifo(project / "setup.py")
    with pytest.raises(UsageError, match=r"setup\.py is no file"):
        extensions_of(project / "setup.py")
