"""The catalogue knows what the compilers say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cases.discovery import find_cases
from harness.cases.load import load_case
from harness.causes import catalogue, causes_in_log, causes_of
from harness.causes.catalogue import _PRODUCTS, Cause, _cause
from harness.model import Case, Expectation, Status

from .test_corpus import EXCERPTS

CASES = Path(__file__).parents[2] / "cases"
CATALOGUE = catalogue()
EXAMPLES = [(name, text) for name, cause in CATALOGUE.items() for text in cause.examples]


def made(
    message: str = "",
    *,
    status: str = "rejected",
    stage: str = "compile",
    reason: str = "",
    log: str = "",
    backend: str = "nvrtc",
    target: str = "sm_80",
    toolkit: str = "12.4",
    **packages: str,
) -> dict[str, Any]:
    """What the catalogue looks at in a record."""
    return {
        "cell": "", "status": status, "stage": stage, "reason": reason, "log": log, "backend": backend, "library": "", "target": target, "toolkit": toolkit,
        "toolchain": {"requested": {"packages": packages}, "observed": {}},
        "diagnostics": [{"severity": "error", "message": message}] if message else [], "artifact": None, "verdict": "fail",
    }  # fmt: skip


def products(cause: Cause) -> str:
    """The product that a log of the cause shows, in lower case as in a path."""
    return next((name.lower() for name in _PRODUCTS if name in cause.title and cause.shown), "no product")


@pytest.mark.parametrize("name", [name for name, cause in CATALOGUE.items() if cause.shown])
def test_a_product_that_the_log_does_not_show_is_not_blamed(name: str) -> None:
    """nvcc and NVRTC say many of these words of other programs, too."""
    cause = CATALOGUE[name]
    assert cause.shown is not None
    for text in cause.examples:
        shown = name in [match.cause.name for match in causes_in_log(text)]
        assert not shown or cause.shown.found_in(text)


@pytest.mark.parametrize(("name", "text"), EXAMPLES)
def test_examples_are_found(name: str, text: str) -> None:
    """In a log the entry itself is told, and what comes before it in the table depends on a cell."""
    if CATALOGUE[name].where or CATALOGUE[name].status == {Status.UNAVAILABLE}:
        # A log cannot tell what only a cell decides, or what cumatrix itself says of a cell.
        assert name not in [match.cause.name for match in causes_in_log(text)] or len(causes_in_log(text)) > 1
        return
    found = causes_in_log(f"first line, of {products(CATALOGUE[name])}\n{text}\n")
    names = [match.cause.name for match in found]
    assert name in names
    assert all(CATALOGUE[other].where or other == name for other in names)
    assert found[0].line in (2, 3)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_is_whole(name: str) -> None:
    cause = CATALOGUE[name]
    assert cause.title
    assert not cause.title.endswith(".")
    assert cause.cause.endswith(".")
    assert cause.remedy.endswith(".")
    assert all(link.startswith("https://") for link in cause.links)
    assert bool(cause.where) >= bool(cause.when.text)
    assert cause.examples or cause.where or cause.stage or cause.pattern is None


def test_an_expression_that_re2_does_not_take_is_named() -> None:
    entry = {"title": "A", "cause": "B.", "remedy": "C.", "pattern": "a(?!b)"}
    with pytest.raises(ValueError, match=r"^some\.toml: name\.pattern is not a regular expression .* no lookahead"):
        _cause("some.toml", "name", entry)


EXPECTED = [
    pytest.param(case, rule, id=f"{case.name}:{rule.line}")
    for case in (load_case(path, CASES) for path in find_cases(CASES))
    for rule in case.expectations
    if rule.status is not Status.BUILT and rule.diagnostic
]


@pytest.mark.parametrize(("case", "rule"), EXPECTED)
def test_every_refusal_of_the_cases_is_known(case: Case, rule: Expectation) -> None:
    """Whatever a case expects a compiler to say has a cause and a remedy: the words stand in an example, or in a log of the corpus."""
    # How many bytes is no matter.
    assert rule.diagnostic is not None
    pattern = re.sub(r"0x[0-9a-f]+(?= )", "0x[0-9a-f]+", rule.diagnostic)
    known = [
        (cause, text)
        for cause in CATALOGUE.values()
        for text in cause.examples
        if rule.status in cause.status and re.search(pattern, text)
    ]
    if not known:
        logs = [item for item in EXCERPTS if item.cause != "none" and re.search(pattern, item.log)]
        assert logs, f"no example and no log of the corpus is what {case.name} expects: {rule.diagnostic}"
        return
    stage = rule.stage or next(iter(known[0][0].stage), "compile")
    log = products(known[0][0])
    backend = case.backends[0] if len(case.backends) == 1 else "nvrtc"
    assert causes_of(made(known[0][1], status=rule.status, stage=stage, log=log, backend=backend))


def test_what_the_backend_clang_lacks_is_what_a_host_compiler_lacks() -> None:
    record = made("'cuda/std/type_traits' file not found", backend="clang", toolkit="13.2")
    assert [match.cause.name for match in causes_of(record)] == ["toolkit-header-host"]


def test_the_condition_decides_between_causes() -> None:
    said = 'incomplete type "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float, void>" is not allowed'
    old = made(said, backend="cupy-jitify", cupy="13.0.0")
    assert causes_of(old)[0].cause.name == "jitify-caps-the-architecture"
    assert causes_of(made(said, backend="cupy-jitify", cupy="13.1.0"))[0].cause.name == "wmma-architecture"
    assert (
        causes_of(made(said, backend="cupy-jitify", cupy="13.0.0", target="sm_75"))[0].cause.name == "wmma-architecture"
    )
    assert causes_of(made(said))[0].cause.name == "wmma-architecture"


def test_the_stage_decides_between_causes() -> None:
    said = "Entry function 'k' uses too much shared data (0xc004 bytes, 0xc000 max)"
    assert causes_of(made(said, stage="link"))[0].cause.name == "shared-memory-link"
    assert causes_of(made(said, stage="assemble"))[0].cause.name == "shared-memory"


def test_a_deadline_needs_no_words() -> None:
    (match,) = causes_of(made(status="timed_out"))
    assert (match.cause.name, match.text) == ("deadline", "")


def test_what_was_built_has_causes_for_its_warnings_only() -> None:
    warning = "nvrtc: Architectures prior to '<compute/sm>_75' are deprecated"
    assert [match.cause.name for match in causes_of(made(warning, status="built"))] == ["deprecated-architecture"]
    assert causes_of(made(status="built", log="uses too much shared data")) == ()


def test_the_log_is_asked_where_the_diagnostics_say_nothing() -> None:
    record = made("something vague", log="ld: error\nUnsupported gpu architecture 'compute_50'\n")
    (match,) = causes_of(record)
    assert (match.cause.name, match.line) == ("unknown-architecture", 2)


def test_what_is_not_known_is_not_guessed() -> None:
    assert causes_of(made("expected a semicolon")) == ()
    assert causes_in_log("all is well\n") == ()


def test_who_speaks_decides_what_a_missing_name_is() -> None:
    """NVRTC never speaks as gcc does; a name that no file includes is an input of gcc's driver."""
    told = {text: [match.cause.name for match in causes_in_log(text)] for text in (
        'could not open source file "cub/block/block_reduce.cuh"',
        "fatal error: cub/block/block_reduce.cuh: No such file or directory",
        "a.cpp:1:10: fatal error: own: No such file or directory",
        "gcc: error: own: No such file or directory",
    )}  # fmt: skip
    assert list(told.values()) == [["nv-target"], ["toolkit-header-host"], ["header-not-found"], []]


LOOK_ALIKES = {
    "std without the header that PyTorch guards": (
        "a.cpp(3): error C2872: 'std': ambiguous symbol\nC:\\torch\\a.h",
        "",
    ),
    "std in another header of PyTorch's": ("C:\\torch\\nn\\pimpl.h(123): error C2872: 'std': ambiguous symbol", ""),
    "a type of the project's with the name of one of NEON's": (
        'own.h(1): error: identifier "__Int8x8_t" is undefined',
        "",
    ),
    "relocatable code of a file, without the device link": (
        "a.obj : error LNK2001: unresolved external symbol __fatbinwrap_66_a_cu",
        "device-link-missing",
    ),
    "a texture that nvcc does not know": ('a.cu(1): error: identifier "tex2D" is undefined', "texture-references"),
    "a texture that gcc does not know": (
        "a.hpp:1:2: error: 'tex2D' was not declared in this scope",
        "cuda-source-to-host-compiler",
    ),
    "newer IR": ("NVVM: <unnamed> (1, 2): parse expected binary operation in atomicrmw", "nvvm-parse"),
    "a type of the project's own, declared twice": ('own.h(1): error: invalid redeclaration of type name "CUuuid"', ""),
    "a limit of elements that is not Triton's": ("error: Maximum allowed number of elements is 4096 in triton", ""),
    "an architecture that a library refuses": ("Unsupported CUDA architecture: sm75", ""),
    "a symbol of another toolchain's": ("a.o: undefined reference to `__hip_fatbin'", ""),
    "a function of C++ that is called like one of CUDA's": (
        "a.o: undefined reference to `cudaScale(float*, int)'",
        "undefined-host-symbol",
    ),
    "a function of CUDA's": ("a.o: undefined reference to `cudaMalloc'", "undefined-cuda-library"),
    "a symbol that MSVC imports": (
        "a.obj : error LNK2019: unresolved external symbol __imp_f",
        "undefined-host-symbol",
    ),
    "__shfl for an architecture that had it": ('a.cu(1): error: identifier "__shfl" is undefined', "warp-without-mask"),
    "half of the program's own": (
        'error: more than one operator "<" matches these operands:\n            operand types are: Half < Half',
        "",
    ),
    "a package without CUDA that is not PyTorch's": ("RuntimeError: Not compiled with GPU support", ""),
    "a type that Numba does not know": ("numba: cannot determine Numba type of <class 'cupy.Kernel'>", ""),
    "what follows from an error in a header of CUB's": (
        """/usr/include/cub/a.cuh(1): error: expected a ";"\n/usr/include/cub/a.cuh(2): error: namespace "std" has no member "x"\n""",
        "",
    ),
    "what follows from an error in a program": (
        'a.cu(1): error: expected a ";"\na.cu(2): error: namespace "std" has no member "x"\n',
        "std-include",
    ),
    "a header of the program's own that is called like CUDA's": (
        "a.cu(1) : fatal error C1083: Cannot open include file: 'cuda_util.h': No such file or directory",
        "header-not-found",
    ),
    "a header of CUDA's that Visual Studio misses": (
        "fatal error C1083: Cannot open include file: 'cuda_runtime.h': No such file or directory",
        "toolkit-header-host",
    ),
    "a header of the C library's that gcc misses": (
        "a.cu:1:10: fatal error: stddef.h: No such file or directory",
        "host-header-missing",
    ),
    "an operand of the program's own that is too wide": (
        "a.cu(1): error: asm operand type size(8) does not match type/size implied by constraint 'r'",
        "asm-operands",
    ),
    "what is no inline variable": (
        'a.cu(1): error: inline specifier allowed on function declarations only\na.cu(1): error: expected a ";"',
        "",
    ),
    "halves that CUDA's own header does not convert": (
        'cuda_fp16.hpp(1): error: no suitable conversion function from "const __half" to "unsigned short" exists',
        "",
    ),
    "a number for a half": (
        'a.cu(1): error: no suitable constructor exists to convert from "unsigned short" to "__half"',
        "",
    ),
    "a function that another file defines": (
        "ptxas fatal   : Unresolved extern function '_Z12linear_Indexi'",
        "separate-compilation",
    ),
    "NCCL without a word of memory": ("NCCL error in: a.hpp:317, unhandled system error", "nccl-failed"),
    "two runtimes": ("cudart.lib(cudart64_110.dll) : error LNK2005: cudaFree already defined in cudart_static.lib", ""),
    "a template of the program's own": ("a.cu:1:1: error: no template named 'texture'", ""),
    "an unknown option of the host's": ("c++: error: unrecognized command line option ‘-mfoo’", ""),
    "a number of Python's": ("TypeError: must be real number, not str", ""),
    "a misspelt name in code for HIP": (
        "a.hip:1:1: error: unknown type name 'bfloat'; did you mean 'hip_bfloat16'?",
        "",
    ),
    "cuDNN that is new enough": ("Loaded runtime CuDNN library: 9.10.1", ""),
    "a code that is not CUDA's": ("nvcc fatal   : 'maxrregcount=x': expected a number", "nvcc-number"),
    "a name of std's in a log without its compiler": (
        'error: namespace "std" has no member "uintptr_t"',
        "std-include",
    ),
    "a library's header below a project's folder": (
        "a.cu:1:10: fatal error: third_party/glm/glm/glm.hpp: No such file or directory",
        "library-header",
    ),
    "a header below a project's folder": (
        "a.cu:1:10: fatal error: third_party/own/own.hpp: No such file or directory",
        "header-not-found",
    ),
    "an #error of the program's own": ('a.hpp:1:2: error: #error "needs __CUDACC__VER"', "error-directive"),
    "a DNN that is not cuDNN": ("RuntimeError: the DNN model is not found", ""),
    "architectures that a project names": ("-- CMAKE_CUDA_ARCHITECTURES is set to 80", ""),
    "a toolkit that is not wanted": ("-- Looking for a CUDA compiler - NOTFOUND", ""),
    "a function of the project's own, in a log where a library lacks another": (
        "/usr/bin/ld: warning: libx.so.1, needed by liby.so, not found\n/usr/bin/ld: a.o: undefined reference to `mine()'",
        "undefined-host-symbol",
    ),
    "a library that lacks a function, and finds all libraries": (
        "/usr/bin/ld: liby.so: undefined reference to `theirs()'",
        "undefined-host-symbol",
    ),
    "an extension of the project's own with a function of RAPIDS's": (
        "ImportError: /home/u/mine.cpython-38-x86_64-linux-gnu.so: undefined symbol: _ZN4cudf2io8read_csvEv",
        "undefined-host-symbol",
    ),
    "a function of the project's own in RAPIDS's folder": (
        "ImportError: /env/site-packages/cudf/_lib/csv.so: undefined symbol: _ZN4mine2io8read_csvEv",
        "undefined-host-symbol",
    ),
    "an x of the program's own": ('src/arch/CUDA/Half.h(96): error: identifier "x" is undefined', ""),
    "a header of the project's own, with its line": (
        'fatal error: own_cuda.h: No such file or directory  #include "own_cuda.h"',
        "header-not-found",
    ),
    "a name that begins as OptiX's": ('a.cu(3): error: identifier "optixir_of" is undefined', ""),
    "a name of the program's own, in gcc's words for C": (
        "a.c:3:5: error: ‘mine’ undeclared (first use in this function)",
        "",
    ),
    "an error 804 that is not CUDA's": ("mysql error 804: no such table", ""),
    "an instruction that came later": (
        "ptxas a.ptx, line 3; error   : Feature 'cp.async' requires .target sm_80 or higher",
        "ptx-feature",
    ),
    "a host compiler that is not there": (
        "nvcc fatal   : Failed to preprocess host compiler properties.",
        "host-compiler-missing",
    ),
    "a policy that is not set": (
        "CMake Warning (dev) at CMakeLists.txt:3 (find_package):\n  Policy CMP0146 is not set: The FindCUDA module is removed.\n",
        "",
    ),
    "a library's function without a version": (
        "/usr/bin/ld: liby.so: undefined reference to `cudaMalloc'",
        "undefined-cuda-library",
    ),
    "a type of the project's own that ends as cuSPARSE's": ('a.cu(3): error: identifier "myInfo_t" is undefined', ""),
    "a path that is not Windows's": ("bitsandbytes: argument of type 'PosixPath' is not iterable", ""),
    "a constant of the Video Codec SDK": (
        'a.cu(1): error: identifier "NV_ENC_PRESET_DEFAULT_GUID" is undefined',
        "",
    ),
    "a call with too few arguments in a log that names cuCtxCreate elsewhere": (
        "a.cu(1): error: too few arguments in function call\n      mine(1);\n            ^\na.cu(9): warning: cuCtxCreate is old",
        "",
    ),
    "a template of C++ that gcc does not parse": (
        "a.cpp:3:17: error: expected primary-expression before '<' token",
        "",
    ),
    "a function of the host in a log that shows a destructor elsewhere": (
        "nvrtc: a.cu(1): error: A function without execution space annotations (__host__/__device__/__global__) is considered a host function, and host functions are not allowed in JIT mode.\n  void f() {}\n       ^\n  struct S { virtual ~S() = default; };",
        "nvrtc-host-function",
    ),
    "two functions of one name in a log that shows shared memory elsewhere": (
        'a.cu(5): error: declaration is incompatible with previous "f"\n  int f(int);\n      ^\na.cu(9): warning: x\n  extern __shared__ int s[];\n',
        "",
    ),
    "a program that crashes": ("a.sh: line 1: 99 Segmentation fault (core dumped) ./a.out", ""),
    "an assertion of the program's own": ("Assertion failed: (n == 3), function f, file a.c, line 3", ""),
    "a global of two modules that is no function of C++": (
        "error: Linking globals named 'shared': symbol multiply defined!",
        "",
    ),
    "a backend of JAX's without a device": ("jax: Unable to initialize backend 'cuda': no supported devices found", ""),
    "a class of the program's own that GCC does not parse": (
        "a.hpp:3:9: error: global qualification of class name is invalid before ':' token\n    3 | struct ::mine::A : ::mine::B",
        "",
    ),
    "a name of CUDA's in code that is not HIP's": (
        "a.cu:3:9: error: use of undeclared identifier '__cvta_generic_to_shared'",
        "",
    ),
    "a call of the program's own that clang cannot resolve": (
        "a.cpp:8:7: error: no matching function for call to 'cudaMemAdviseAll'",
        "",
    ),
    "a built-in name in a program in a folder called cuda": (
        'cuda/kernel.cu(1): error: identifier "__mine" is undefined\na.h(3): note: here',
        "builtin-undefined",
    ),
    "a synchronisation of the host's that gcc does not know": (
        "a.cpp:3:1: error: 'cudaDeviceSynchronize' was not declared in this scope",
        "cuda-api-undeclared",
    ),
    "a function of the program's own with PyTorch's types": (
        'torch: a.obj : error LNK2001: unresolved external symbol "class at::Tensor __cdecl mine(class at::Tensor)" (?mine@@YA?AVTensor@at@@V12@@Z)',
        "undefined-host-symbol",
    ),
    "a function of nvcc's own that is called like libdevice's": (
        "/usr/bin/ld: a.o: undefined reference to `__nv_init_managed_rt'",
        "",
    ),
    "a volatile double": (
        'error: no instance of overloaded function "atomicAdd" matches the argument list\n            argument types are: (volatile double *, double)',
        "atomic-type",
    ),
    "a float for a float2": (
        'error: no instance of overloaded function "atomicAdd" matches the argument list\n            argument types are: (float2 *, float)',
        "atomic-type",
    ),
    "a project's folder that is called cuda": (
        'src/cuda/a.cuh(30): error: declaration is incompatible with "void f(int)" (declared at line 5 of a.h)',
        "",
    ),
    "a half that gcc does not know": ("a.cpp:3:1: error: '_Float16' was not declared in this scope", ""),
    "parameter packs of the program's own": ("a.cu:3:1: error: parameter packs not expanded with '...':", ""),
    "make, which CMake does not find": (
        'CMake Error: CMake was unable to find a build program corresponding to "Unix Makefiles".  CMAKE_MAKE_PROGRAM is not set.',
        "",
    ),
    "an option that another tool does not know": ("error: invalid option: --with-cuda", ""),
    "ninja, without which the build goes on": (
        "UserWarning: Attempted to use ninja as the BuildExtension backend but we could not find ninja..\nerror: command 'nvcc' failed",
        "",
    ),
    "a program that make runs and that crashes": ("make: *** [Makefile:12: run] Segmentation fault (core dumped)", ""),
    "an operation that PyTorch does not support": (
        "/usr/local/cuda/nvvm/bin/cicc -arch compute_80\nRuntimeError: unsupported operation: more than one element",
        "",
    ),
    "a driver's file that a container cannot mount": (
        "nvidia-container-cli: mount error: file creation failed: libnvidia-ptxjitcompiler.so.1: file exists: unknown",
        "",
    ),
    "a frame of the host's stack": (
        "a.cpp:12:17: error: stack frame size (131096) exceeds limit (131056) in function 'f' [-Werror,-Wframe-larger-than]",
        "",
    ),
    "a CUDA version that is not PyTorch's": (
        "import torch\nERROR: this binary was compiled with CUDA 12.4, but the driver supports 12.2 only",
        "",
    ),
    "a namespace that is not WMMA's": (
        """gemm_wmma.cu(12): error: name followed by "::" must be a class or namespace name\n    foo::bar x;\n    ^""",
        "",
    ),
    "a launch on several devices that fails": ("cudaLaunchCooperativeKernelMultiDevice failed: out of", ""),
    "a file of NVRTC's that another program does not find": ("removing libnvrtc-builtins.so.11.2 failed", ""),
    "a GPU that is too old for Numba": (
        "numba.cuda.cudadrv.error.NvvmSupportError: GPU compute capability 3.0 is not supported(requires >=3.5)",
        "numba-capability",
    ),
    "a program that Windows does not start": ("error: CreateProcess: No such file or directory", ""),
    "a library of TensorRT": (
        "Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: no file",
        "",
    ),
    "an extension that Windows does not load": (
        "ImportError: DLL load failed while importing fused_ssim_cuda: The specified procedure could not be found.",
        "windows-dll",
    ),
    "a header of CUDA's in a build for CUDA": (
        "a.cpp:1:10: fatal error: cuda_runtime.h: No such file or directory",
        "toolkit-header-host",
    ),
    "an internal error of another library's": ("AttributeError: 'NoneType' object has no attribute 'is_error'", ""),
    "a build that does without nvcc": ("Could not find nvcc.  Using runtime compiler", ""),
    "an image that is invalid because it was not compiled": (
        "[22:42] Program compile log: nvrtc: error: failed to load builtins\nError: device kernel image is invalid",
        "nvrtc-builtins",
    ),
    "an assembler's error in a program's own log": (
        "compile log: ptxas fatal   : Unresolved extern function '__nv_sinf'\nno CUDA-capable device is detected",
        "libdevice-not-linked",
    ),
    "what FindCUDA's script prints before another file's error": (
        "CMake Error at a.cu.o.cmake:206 (message):\n  Error generating\n  a.cu.o\n\n\nnvcc fatal   : Unsupported gpu architecture 'compute_60'",
        "unknown-architecture",
    ),
    "a namespace of CUDA's in a program": ("a.cpp:1:4: error: '::cuda' has not been declared", ""),
    "a kernel that refuses its GPU": (
        "This kernel only supports sm120.\ncudaErrorLaunchFailure: unspecified launch failure",
        "kernel-guard",
    ),
    "a builtin of the host compiler's in device code": (
        'a.cu(1): error: calling a __host__ function("__builtin_isnan") from a __global__ function("k") is not allowed',
        "host-builtin",
    ),
    "a conversion that a crash follows": (
        "UNREACHABLE executed: Unsupported conversion from f16 to f16",
        "float-conversion",
    ),
    "a cuDNN status that a header does not declare": (
        "a.cpp:3:1: error: 'CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED' was not declared in this scope",
        "library-api-undeclared",
    ),
    "a module of Python's own that is not there": ("ModuleNotFoundError: No module named 'mine'", ""),
    "a list that is too short": ("IndexError: list index out of range", ""),
    "a list of the program's own in an extension's build": (
        "torch/utils/cpp_extension.py\nIndexError: list index out of range",
        "",
    ),
    "a target of the program's own that make does not know": ("make: *** No rule to make target 'install'.  Stop.", ""),
    "an attribute of another module": ("AttributeError: module 'mine' has no attribute 'library'", ""),
    "a command of the project's own that CMake does not know": (
        'CMake Error at CMakeLists.txt:45 (mine):\n  Unknown CMake command "mine".',
        "",
    ),
    "a DLL of CUDA's that Windows does not find": (
        "ImportError: DLL load failed while importing cublas: The specified module could not be found.",
        "shared-library-missing",
    ),
    "a package that CMake looks for and does without": (
        "-- Could NOT find MPI (missing: MPI_C_FOUND)\na.cpp:1:1: error: expected a declaration",
        "",
    ),
    "a static assertion that a comment has": (
        "a.cu(1): error: expected a declaration\n  // static assertion failed",
        "",
    ),
    "a library's own word for a failure": ("RuntimeError: MINE_STATUS_EXECUTION_FAILED", ""),
    "a compiler that the shell does not find": ("gcc: No such file or directory", "host-compiler-missing"),
    "a file that is not there in a program's own words": ("FileNotFoundError: [WinError 3] mine", ""),
    "a header of CUDA's by the path of its folder": (
        "a.h:24:31: fatal error: cuda/include/cuda.h: No such file or directory",
        "header-not-found",
    ),
    "a number that another program expects": ("error: 'x': expected a number", ""),
    "a header that Intel's compiler does not find": (
        'a.cpp(3): catastrophic error: cannot open source file "vector"\ncompilation aborted for a.cpp (code 4)',
        "header-not-found",
    ),
    "a header that Visual Studio's editor does not find": (
        'E1696\tcannot open source file "cuda_runtime.h"',
        "header-not-found",
    ),
    "a library's warning before an error of another cause": (
        "2022-01-01 11:37:51.345475: W tensorflow/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'\nModuleNotFoundError: No module named 'mine'",
        "",
    ),
    "a template that lacks its keyword, in a project for CUDA": (
        "nvcc -c b.cu\na.cpp:10:9: error: expected primary-expression before ‘<’ token\n   10 |   x.f<int>();\n      |      ^",
        "",
    ),
    "a header of the program's own with a name of a sample's": (
        "a.cpp:1:10: fatal error: exception.h: No such file or directory",
        "header-not-found",
    ),
    "a symbol of pybind11's in a module without PyTorch": (
        "ImportError: mine.so: undefined symbol: _ZN8pybind116detail19get_local_internalsEv",
        "undefined-host-symbol",
    ),
    "a line that tells the version of PyTorch's CUDA": ("PyTorch compiled with CUDA 11.3\nmine failed", ""),
    "a refusal of a library's at run time": ("RuntimeError: FP8 is not supported for this GPU architecture", ""),
    "a kernel of a library's for one architecture": ("RuntimeError: this kernel is only supported on sm_90", ""),
    "a product of a library's for some architectures": ("RuntimeError: fp8 is only supported for SM89 and above", ""),
    "a type that a library refuses, with tiles": ("RuntimeError: fp8 is not supported on sm_80\nuse another tile", ""),
    "a stack of JavaScript's": ("RangeError: Maximum call stack size exceeded", ""),
    "a processor that LLVM does not know": ("'znver5' is not a recognized processor for this target", ""),
    "a float added to a half": (
        'a.cu(3): error: no instance of overloaded function "atomicAdd" matches the argument list\n            argument types are: (__half *, float)',
        "atomic-type",
    ),
    "a template of the host's for one type": (
        'a.cu(9): error: calling a __host__ function("std::max<float> ") from a __global__ function("k") is not allowed',
        "host-function-called",
    ),
    "a function of the host's, in clang's words": (
        "a.cu:5:3: error: reference to __host__ function 'f' in __device__ function",
        "host-function-called",
    ),
    "a class of CUB's, in clang's words": (
        "a.cu:5:3: error: no member named 'Max' in namespace 'cub'",
        "std-removed-names",
    ),
    "inline PTX with a mistake": ("ptxas a.ptx, line 3; fatal   : Parsing error near '.': syntax error", "asm-syntax"),
    "an incomplete type next to CUTLASS": (
        "own/a.cu(3): error: incomplete type is not allowed\n  Foo x;\n      ^\ncutlass::arch::Sm80",
        "",
    ),
    "CMake's question for a function, before its own error": (
        "/usr/bin/ld: CheckSymbolExists.c:(.text+0x1b): undefined reference to `pthread_create'\nCMake Error at CMakeLists.txt:8 (message):\n  mine",
        "",
    ),
    "a line that informs, before an error without a known cause": (
        "INFO: this library requires at least C++17\nKeyError: 'x'",
        "",
    ),
    "a symbol of the program's own in a library of Visual C++": (
        "msvcrt.lib(exe_main.obj) : error LNK2019: unresolved external symbol main",
        "",
    ),
    "an extension that lacks what PyTorch's own library lacks": (
        "ImportError: /env/torch_scatter/_C.so: undefined symbol: _ZTIN2at4TypeE",
        "torch-abi",
    ),
    "NCCL's function, which a library of PyTorch's lacks": (
        "ImportError: /env/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister",
        "nccl-older",
    ),
    "a cuda_runtime.h that a file includes": (
        "a.cpp:1:10: fatal error: cuda_runtime.h: No such file or directory",
        "toolkit-header-host",
    ),
    "another header on the command line": (
        "<command-line>:0:0: fatal error: own.h: No such file or directory",
        "header-not-found",
    ),
    "a colon in a program of its own": ("C:\\own\\ptx.cuh(9,2): error C2059: syntax error: ':'", ""),
    "a member of a class of its own": ('a.cu(1): error: class "own::cub" has no member "FlagHeads"', ""),
    "an incomplete type of its own": (
        'torch/a.cu(1): error: incomplete class type "own::Tensor" is not allowed',
        "",
    ),
    "a pointer to an incomplete type": (
        "torch/a.cu(1): error: expression must be a pointer to a complete object type",
        "",
    ),
    "a function of its own with another noexcept": (
        "a.cpp:1:2: error: declaration of 'void cospi_table(int)' has a different exception specifier",
        "",
    ),
    "an #error that demands a standard": ("a.h:3:2: error: #error Own requires at least c++14 support.", "cpp-dialect"),
    "an #error that demands an older standard": (
        "a.h:3:2: error: #error Own needs C++14 or older",
        "error-directive",
    ),
    "an #error that demands an ABI": (
        "a.h:3:2: error: #error Own must have the C++11 ABI",
        "error-directive",
    ),
    "a package of its own that is deprecated": ("THIS PROJECT 'own-cu13' IS DEPRECATED", ""),
    "a variable of the program's own that the linker does not find": (
        "a.obj : error LNK2001: unresolved external symbol _tls_index_own",
        "undefined-host-symbol",
    ),
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_has_its_own_cause(name: str) -> None:
    log, expected = LOOK_ALIKES[name]
    assert next((match.cause.name for match in causes_in_log(log)), "") == expected


def test_hostile_logs() -> None:
    """No escape sequence gets out, and no log makes the patterns slow."""
    (match,) = causes_in_log("\x1b]0;title\x07\x1b[31minvalid device function\x1b[0m")
    assert match.text == "invalid device function"
    assert causes_in_log("uses too much shared data " * 20_000)
    assert causes_in_log("declaration is incompatible with " * 50_000) == ()
    assert causes_in_log('identifier "__nv' + "a" * 200_000) == ()


HOSTILE = {
    "messages": "".join(
        f'k.cu({n}): error: identifier "x{n}" is undefined\n  f(x{n});\n    ^\n' for n in range(20_000)
    ),
    "lines of no form": "".join(f"step {n}: this does not look good, error {n}\n" for n in range(40_000)),
    "unknown types": "".join(
        f'k.cu({n}): error: attribute "__global__" does not apply here\nk.cu({n}): error: identifier "T{n}" is undefined\n'
        for n in range(15_000)
    ),
    "types beneath a message": ("k.cu(1): error: x\n" + "     y\n" * 38) * 5000,
    "blanks": (" " * 900 + "x\n") * 2000,
    "the linker's": ("a: " * 1300 + "undefined reference to\n") * 500,
    "names": ("std::" * 700 + " error\n") * 500,
    "near": "error: host functions are not allowed in JIT mode\n" + "virtual ~A() " * 100_000,
    "CMake's": "CMake Error at a:1 (b):\n  x\n" * 40_000,
}


# The others take seconds each.
QUICK = ("types beneath a message", "blanks", "near")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in HOSTILE]
)
def test_long_logs_end(name: str) -> None:
    """In a process of its own: an expression that backtracks cannot be interrupted."""
    code = "import sys; from harness.causes import explain_log; explain_log(sys.stdin.read())"
    subprocess.run([sys.executable, "-c", code], input=HOSTILE[name].encode(), check=True, timeout=120)
