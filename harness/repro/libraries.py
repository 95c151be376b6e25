"""Scripts for CuPy, Numba and cuda.core, which ask for a GPU."""

from __future__ import annotations

import pprint
from collections.abc import Sequence

from harness.backends import cuda_core as cuda_core_backend
from harness.backends.cupy.asked import options_of as cupy_options_of
from harness.backends.cupy.program import is_program
from harness.backends.numba.options import JIT_OPTIONS
from harness.errors import UsageError
from harness.repro.script import BUILT, JOINED, Script, lines_of, of_each, start, text_of
from harness.repro.subject import ReproTarget


def cupy(subject: ReproTarget) -> Script:
    """``RawModule``, or a program of CuPy's own API."""
    setup, job = subject.setup, subject.job
    jitify = subject.backend == "cupy-jitify"
    options = cupy_options_of(setup, job, job.target, macros_too=not is_program(job))
    more = ", jitify=True" if jitify else ""
    more += ", enable_cooperative_groups=True" if job.options.get("enable_cooperative_groups") else ""
    # CUDA_PATH is where CuPy takes CUDA's headers from; where they come in wheels it must know of no toolkit.
    if setup.wheels:
        path = (
            'for name in ("CUDA_PATH", "CUDA_HOME"):\n    os.environ.pop(name, None)  # the headers come in a wheel\n'
        )
    else:
        path = f'os.environ["CUDA_PATH"] = {"cuda" if setup.headers == setup.release else "headers"}\n'
    device = f'"{subject.cell.target.capability}", cuda, "{setup.release}"{", ptx=True" if job.virtual else ""}'
    used = f"virtual_gpu.use({device})  # only where this machine has no such GPU\n"
    if not job.toolkit_include(setup):
        path, used = "", used + _without_toolkit(subject)
    old = subject.series < (13, 0)
    files = ["cuda_home.py", "gpu.py", "link.py", "virtual_gpu_cupy.py"]
    files += [*(["nvrtc_log.c"] if jitify else []), *(["stand_ins.py"] if old else [])]
    if is_program(job):
        text = start(subject, "sys", "cupy_program", "virtual_gpu") + path + used + _run(subject, options, jitify)
        return Script(text, (*files, "c_table.py", "cupy_program.py", "cupy_runtime.py"))
    text = start(subject, "hashlib", "virtual_gpu") + path + used + f"""\

import cupy  # noqa: E402

with open({text_of(str(job.source))}, encoding="utf-8") as file:
    code = file.read()
options = {lines_of(options)}
module = cupy.RawModule(code=code, options=tuple(options), backend="nvrtc"{more})
module.compile()
image = virtual_gpu.images[-1] if virtual_gpu.images else b""
""" + BUILT.replace("print(", 'print("built and loaded" if not image else ', 1)  # fmt: skip
    return Script(text, tuple(files))


def _without_toolkit(subject: ReproTarget) -> str:
    """Lines that have CuPy find no toolkit, as on a machine with the driver alone."""
    lines = 'for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):\n    os.environ.pop(name, None)\n'
    lines += (
        "from cupy import _environment  # noqa: E402\n\n_environment._cuda_path = None  # there is no CUDA toolkit\n"
    )
    if subject.series >= (14, 0):
        lines += (
            "import cuda.pathfinder  # noqa: E402\n\ncuda.pathfinder.find_nvidia_header_directory = lambda name: None\n"
        )
    return lines


def _run(subject: ReproTarget, options: Sequence[str], jitify: bool) -> str:
    """Lines that run a program as cumatrix runs it."""
    given = {**subject.job.definitions, "OPTIONS": tuple(options), "JITIFY": jitify}
    program = text_of(str(subject.job.source))
    return f"""
sys.argv = [{program}]
sys.path.insert(0, os.path.dirname(os.path.abspath({program})))
globals().update({pprint.pformat(given, width=110)})  # what the program is given
with cupy_program.watched(), open({program}, encoding="utf-8") as file:
    exec(compile(file.read(), {program}, "exec"))
print("built")
"""


def numba(subject: ReproTarget) -> Script:
    """The program, run as Python runs it, then its kernels compiled for their signatures."""
    job, names = subject.job, []
    options = {name: value for name, value in job.options.items() if name in JIT_OPTIONS}
    given = {**job.definitions, "JIT_OPTIONS": options}
    lines = []
    for name, signature in job.entries.items():
        if not name.isidentifier():
            raise UsageError(f"{name!r} is not the name of a kernel")
        names.append(name)
        types = f"sigutils.normalize_signature({text_of(signature)})[0]"
        lines.append(_to_ptx(subject, name, types) if job.virtual else f"{name}.compile({types})\n")
    if not names:  # the program launches its kernels itself; those without arguments need no types
        lines.append(
            'for kernel in [value for value in list(globals().values()) if type(value).__name__ == "CUDADispatcher"]:\n'
            "    if not kernel.overloads and not kernel.py_func.__code__.co_argcount:\n        kernel.compile(())\n"
        )
    program = text_of(str(job.source))
    text = start(subject, "sys", "virtual_gpu") + f"""\
virtual_gpu.use("{subject.cell.target.capability}", cuda, "{subject.setup.release}")  # only where this machine has no such GPU

from numba import cuda  # noqa: E402
from numba.core import sigutils  # noqa: E402

sys.argv = [{program}]
sys.path.insert(0, os.path.dirname(os.path.abspath({program})))
globals().update({pprint.pformat(given, width=110)})  # what the program is given
with open({program}, encoding="utf-8") as file:
    exec(compile(file.read(), {program}, "exec"))
""" + "".join(lines) + 'print("built")\n'  # fmt: skip
    if not names:
        text = text.replace("from numba.core import sigutils  # noqa: E402\n", "")
    return Script(text, ("cuda_home.py", "gpu.py", "link.py", "virtual_driver.py", "virtual_gpu_numba.py"))


def _to_ptx(subject: ReproTarget, name: str, types: str) -> str:
    """A virtual architecture ends with PTX, by Numba's public function for that."""
    old = subject.backend == "numba" and subject.series < (0, 60)
    more = "" if old else ', device=False, abi="numba", output="ptx"'
    suffix = subject.job.arch.lstrip("0123456789")
    capability = (*subject.job.capability, suffix) if suffix else subject.job.capability
    return (
        f'options = {{key: {name}.targetoptions.get(key) for key in ("debug", "lineinfo", "fastmath", "opt")}}\n'
        f"options = {{key: value for key, value in options.items() if value is not None}}\n"
        f"cuda.{'compile_ptx' if old else 'compile'}({name}.py_func, {types}, cc={capability}{more}, **options)\n"
    )


def cuda_core(subject: ReproTarget) -> Script:
    """``cuda.core``'s Program and Linker."""
    setup, job = subject.setup, subject.job
    name = "name=os.path.basename(source), " if subject.series >= (0, 3) else ""
    module = "cuda.core" if subject.series >= (0, 5) else "cuda.core.experimental"
    kind, names = cuda_core_backend.kind_of(job), ["Program", "ProgramOptions"]
    finish = JOINED
    if "link" in subject.record["stages"]:
        alone = any(note.startswith("linked without libcudadevrt") for note in subject.record["notes"])
        names += ["Linker", "LinkerOptions", *([] if alone else ["ObjectCode"])]
        runtime = "" if alone else '*codes, ObjectCode.from_library(f"{cuda}/lib64/libcudadevrt.a")'
        options = ", ".join(f"{key}={value!r}" for key, value in cuda_core_backend.link_options_of(job).items())
        finish = f'linker = Linker({runtime or "*codes"}, options=LinkerOptions({options}))\nimage = bytes(linker.link("cubin").code)\n'
    text = start(subject, "hashlib", "sys", "virtual_gpu") + f"""\
virtual_gpu.use("{subject.cell.target.capability}", cuda, "{setup.release}")  # only where this machine has no such GPU

from {module} import {", ".join(sorted(names))}  # noqa: E402

options = {pprint.pformat(cuda_core_backend.options_of(setup, job), width=110)}
codes = []
""" + of_each(subject, f"""\
with open(source, encoding="utf-8") as file:
    program = Program(file.read(), "c++", ProgramOptions({name}**options))
codes.append(program.compile("{kind}", logs=sys.stdout))
image = codes[-1].code
images.append(image.encode() if isinstance(image, str) else bytes(image))
""") + finish + BUILT  # fmt: skip
    return Script(text, ("cuda_home.py", "gpu.py", "virtual_driver.py", "virtual_gpu_cuda_core.py"))
