"""The scripts: each backend's own way to compile, in a few lines that import nothing of cumatrix."""

from __future__ import annotations

import json
import pprint
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import native
from harness.backends import nvcc as nvcc_backend
from harness.backends import nvrtc as nvrtc_backend
from harness.backends.cupy import backend as cupy_backend
from harness.backends.numba.program import JIT_OPTIONS
from harness.nvidia.nvcc import device_only
from harness.repro.subject import CUDA, HEADERS, Subject

SCRIPT = "repro.py"
_FILES = Path(__file__).with_name("files")
_BUILT = 'print(f"built: {len(image)} bytes, sha256 {hashlib.sha256(image).hexdigest()}")\n'


@dataclass(frozen=True)
class Script:
    """A script, and what stands beside it.

    Parameters
    ----------
    text : str
        The script.
    files : tuple of str
        Names in `files/` that it needs.
    """

    text: str
    files: tuple[str, ...]

    def contents(self) -> dict[str, bytes]:
        """Every file by its name in the folder."""
        found = {SCRIPT: self.text.encode()}
        for name in self.files:
            # Each library has a stand-in for the GPU of its own, of one name.
            plain = "virtual_gpu.py" if name.startswith("virtual_gpu_") else name
            found[plain] = _FILES.joinpath(name).read_bytes()
        if "virtual_gpu_numba.py" in self.files:
            found["virtual_gpu.c"] = native.source("libcuda.c").encode()
        return found


def script_of(subject: Subject) -> Script:
    """The script of a cell."""
    return _SCRIPTS[subject.backend](subject)


def _cuda(subject: Subject) -> str:
    """Lines that lay out the toolkit, or take the one of this machine."""
    toolkit = subject.cell.toolchain.toolkit
    if toolkit.local:
        first = f'cuda = os.environ.get("CUDA_HOME", {_text(toolkit.home)})  # CUDA {toolkit.release} of the machine\'s own\n'
        first += f"os.path.lexists({_text(CUDA)}) or os.symlink(cuda, {_text(CUDA)})\n"
    else:
        wheels = f', "{CUDA}-wheels"' if subject.library else ""
        first = f"cuda = cuda_home.lay_out({_text(CUDA)}{wheels})  # NVIDIA's wheels as one CUDA_HOME\n"
    if toolkit.headers != toolkit.release:
        first += (
            f"headers = cuda_home.lay_out({_text(HEADERS)}, {_text(HEADERS + '-wheels')})  # CUDA {toolkit.headers}\n"
        )
    return first


def _start(subject: Subject, *imports: str) -> str:
    names = sorted({"os", *(name for name in imports if name not in ("cuda_home", "link", "virtual_gpu"))})
    own = sorted({"cuda_home", *imports} - set(names))
    head = f"# {subject.record['cell']}".encode("ascii", "replace").decode()
    lines = [" ".join(head.split()), *(f"import {name}" for name in names), "", *(f"import {name}" for name in own)]
    return "\n".join(lines) + "\n\nos.chdir(os.path.dirname(os.path.abspath(__file__)))\n" + _cuda(subject)


def _nvrtc(subject: Subject) -> Script:
    setup, job = subject.setup, subject.job
    options = [f"--gpu-architecture={job.target}", *nvrtc_backend.options_of(setup, job)]
    lto = ', "-lto"' if job.lto else ""
    link = (
        f'image = link.with_runtime(cuda, image, "sm_{job.arch}"{lto})\n'
        if subject.relocatable and not job.one_of_several
        else ""
    )
    kind = "PTX" if job.virtual else "LTOIR" if job.lto else "CUBIN"
    stripped = '.rstrip(b"\\0")' if job.virtual else ""
    text = _start(subject, "ctypes", "hashlib", "sys", *(["link"] if link else [])) + f"""\
options = {_list(options)}

nvrtc = cuda_home.load(cuda, "libnvrtc-builtins", "libnvrtc")
program, size = ctypes.c_void_p(), ctypes.c_size_t()
with open({_text(str(job.source))}, "rb") as file:
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), file.read(), {_text(str(job.source))}.encode(), 0, None, None)
argv = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
result = nvrtc.nvrtcCompileProgram(program, len(options), argv)

nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
log = ctypes.create_string_buffer(size.value)
nvrtc.nvrtcGetProgramLog(program, log)
print(log.value.decode(errors="replace"))
if result:
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    sys.exit(f"error: {{nvrtc.nvrtcGetErrorString(result).decode()}}")
nvrtc.nvrtcGet{kind}Size(program, ctypes.byref(size))
image = ctypes.create_string_buffer(size.value)
nvrtc.nvrtcGet{kind}(program, image)
image = image.raw{stripped}
""" + link + _BUILT  # fmt: skip
    return Script(text, ("cuda_home.py", *(["link.py"] if link else [])))


def _nvcc(subject: Subject) -> Script:
    setup, job = subject.setup, subject.job
    arch = f"-arch={job.target}" if job.lto else f"-gencode=arch=compute_{job.arch},code={job.target}"
    depth, folders = job.options.get("depth", "unit"), nvcc_backend.include_of(setup, job)
    argv = [
        arch,
        *nvcc_backend.options_of(job),
        *(f"-I{folder}" for folder in folders),
        "-c",
        str(job.source),
        "-o",
        "kernel.o",
    ]
    if depth == "device":
        argv = device_only(argv, "ptx" if job.virtual else "ltoir" if job.lto else "cubin")
    link = ""
    if subject.relocatable and not job.virtual and not job.one_of_several:
        more = [arch, *(["-dlto"] if job.lto else []), argv[-1], "-o", "linked.o", "-lcudadevrt"]
        link = f'    subprocess.run([f"{{cuda}}/bin/nvcc", "-dlink", {_words(more)}], check=True)\n'
    text = (
        _start(subject, "subprocess", "sys")
        + f"""\
options = {_list(argv)}
try:
    subprocess.run([f"{{cuda}}/bin/nvcc", *options], check=True)
{link}except subprocess.CalledProcessError as error:
    sys.exit(f"nvcc ended with exit code {{error.returncode}}")
print("built:", os.path.getsize({argv[-1]!r}), "bytes")
"""
    )
    return Script(text, ("cuda_home.py",))


def _cupy(subject: Subject) -> Script:
    setup, job = subject.setup, subject.job
    jitify = subject.backend == "cupy-jitify"
    keywords = {"options": tuple(cupy_backend.options_of(setup, job, job.target)), "backend": "nvrtc"}
    more = ", jitify=True" if jitify else ""
    more += ", enable_cooperative_groups=True" if job.options.get("enable_cooperative_groups") else ""
    # CUDA_PATH is where CuPy takes CUDA's headers from; where they come in wheels it must know of no toolkit.
    if setup.wheels:
        path = (
            'for name in ("CUDA_PATH", "CUDA_HOME"):\n    os.environ.pop(name, None)  # the headers come in a wheel\n'
        )
    else:
        path = f'os.environ["CUDA_PATH"] = {"cuda" if setup.headers == setup.release else "headers"}\n'
    device = f'"{_capability(subject)}", cuda, "{setup.release}"{", ptx=True" if job.virtual else ""}'
    text = _start(subject, "hashlib", "virtual_gpu") + path + f"""\
virtual_gpu.use({device})  # only where this machine has no such GPU

import cupy  # noqa: E402

with open({_text(str(job.source))}, encoding="utf-8") as file:
    code = file.read()
options = {_list(list(keywords["options"]))}
module = cupy.RawModule(code=code, options=tuple(options), backend="nvrtc"{more})
module.compile()
image = virtual_gpu.images[-1] if virtual_gpu.images else b""
""" + _BUILT.replace("print(", 'print("built and loaded" if not image else ', 1)  # fmt: skip
    old = tuple(int(part) for part in subject.library.split(".")[:1]) < (13,)
    files = ["cuda_home.py", "gpu.py", "link.py", "virtual_gpu_cupy.py"]
    return Script(text, (*files, *(["nvrtc_log.c"] if jitify else []), *(["stand_ins.py"] if old else [])))


def _numba(subject: Subject) -> Script:
    job, names = subject.job, []
    options = {name: value for name, value in job.options.items() if name in JIT_OPTIONS}
    given = {**job.definitions, "JIT_OPTIONS": options}
    lines = []
    for name, signature in job.entries.items():
        names.append(name)
        types = f"sigutils.normalize_signature({_text(signature)})[0]"
        lines.append(_to_ptx(subject, name, types) if job.virtual else f"{name}.compile({types})\n")
    if not names:  # the program launches its kernels itself; those without arguments need no types
        lines.append(
            'for kernel in [value for value in list(globals().values()) if type(value).__name__ == "CUDADispatcher"]:\n'
            "    if not kernel.overloads and not kernel.py_func.__code__.co_argcount:\n        kernel.compile(())\n"
        )
    program = _text(str(job.source))
    text = _start(subject, "sys", "virtual_gpu") + f"""\
virtual_gpu.use("{_capability(subject)}", cuda, "{subject.setup.release}")  # only where this machine has no such GPU

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
    return Script(text, ("cuda_home.py", "gpu.py", "link.py", "virtual_gpu_numba.py"))


def _to_ptx(subject: Subject, name: str, types: str) -> str:
    """A virtual architecture ends with PTX, by Numba's public function for that."""
    old = subject.backend == "numba" and tuple(map(int, subject.library.split(".")[:2])) < (0, 60)
    more = "" if old else ', device=False, abi="numba", output="ptx"'
    suffix = subject.job.arch.lstrip("0123456789")
    capability = (*subject.job.capability, suffix) if suffix else subject.job.capability
    return (
        f'options = {{key: {name}.targetoptions.get(key) for key in ("debug", "lineinfo", "fastmath", "opt")}}\n'
        f"options = {{key: value for key, value in options.items() if value is not None}}\n"
        f"cuda.{'compile_ptx' if old else 'compile'}({name}.py_func, {types}, cc={capability}{more}, **options)\n"
    )


def _torch(subject: Subject) -> Script:
    setup, job = subject.setup, subject.job
    capability = _capability(subject) + job.arch.lstrip("0123456789")
    options = nvcc_backend.options_of(job)
    folders = nvcc_backend.include_of(setup, job)
    include = f"    extra_include_paths={_words_list(folders)},\n" if folders else ""
    source = str(job.source)
    if job.options.get("depth", "device") == "extension":
        functions = list(job.options.get("functions", []))
        call = f"""\
with open({_text(source)}, encoding="utf-8") as file:
    code = f'#line 1 {json.dumps(source)}\\n{{file.read()}}'
extension = cpp_extension.load_inline(
    "kernel",
    cpp_sources=[{_text(job.options.get("declarations", ""))}],
    cuda_sources=[code],
    functions={functions!r},
"""
    else:
        call = f'cpp_extension.load(\n    "kernel",\n    [{_text(source)}],\n    is_python_module=False,  # it is built, and loaded as a library\n'
    text = (
        _start(subject, "tempfile")
        + f"""\
os.environ["CUDA_HOME"] = cuda
os.environ["TORCH_CUDA_ARCH_LIST"] = "{capability}"
os.environ["PATH"] = os.pathsep.join([os.path.abspath(".venv/bin"), os.environ["PATH"]])  # ninja

import torch  # noqa: E402, F401
from torch.utils import cpp_extension  # noqa: E402

options = {_list([_for_shell(option) for option in options])}
{call}    extra_cuda_cflags=options,
{include}    build_directory=tempfile.mkdtemp(),
    with_cuda=True,
    verbose=True,
)
print("built")
"""
    )
    return Script(text, ("cuda_home.py",))


def _for_shell(option: str) -> str:
    """A word in a line of a build file, which ninja hands to a shell."""
    from harness.backends.torch.backend import quoted

    return quoted(option)


def _capability(subject: Subject) -> str:
    return subject.cell.target.capability


def _text(value: str) -> str:
    """A text as Python writes it, with double quotes where that can be."""
    return f'"{value}"' if value.isprintable() and value.isascii() and not set(value) & set('"\\') else repr(value)


def _words(words: list[str]) -> str:
    return ", ".join(map(_text, words))


def _words_list(words: list[str]) -> str:
    return f"[{_words(words)}]"


def _list(words: list[str]) -> str:
    line = _words_list(words)
    return line if len(line) < 100 else "[\n" + "".join(f"    {_text(word)},\n" for word in words) + "]"


_SCRIPTS: dict[str, Callable[[Subject], Script]] = {
    "nvrtc": _nvrtc,
    "cupy-nvrtc": _cupy,
    "cupy-jitify": _cupy,
    "numba": _numba,
    "numba-cuda": _numba,
    "nvcc": _nvcc,
    "torch-nvcc": _torch,
}
