"""The reproduction script of each backend (`BackendInfo.repro`), and the lines that scripts share."""

from __future__ import annotations

import importlib
import pprint
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from harness import native
from harness.backends import BACKENDS
from harness.backends import clang as clang_backend
from harness.backends import cuda_core as cuda_core_backend
from harness.backends import nvcc as nvcc_backend
from harness.backends import nvrtc as nvrtc_backend
from harness.backends import ptxas as ptxas_backend
from harness.backends.cupy import c_table
from harness.backends.cupy.backend import options_of as cupy_options_of
from harness.backends.cupy.program import is_program
from harness.backends.numba import renamed
from harness.backends.numba.program import JIT_OPTIONS
from harness.backends.torch import quoted
from harness.diagnostics import one_line
from harness.errors import UsageError
from harness.nvidia.nvcc import device_only
from harness.repro.subject import CUDA, HEADERS, ReproTarget

SCRIPT = "repro.py"
"""The script's file name."""

BUILT = 'print(f"built: {len(image)} bytes, sha256 {hashlib.sha256(image).hexdigest()}")\n'
"""The last line of a script with an image."""

JOINED = 'image = b"".join(images)\n'
"""The line before it, for the unlinked images of several files."""

_FILES = Path(__file__).with_name("files")
# Modules of cumatrix that import nothing else of cumatrix.
_SHARED = {"c_table.py": c_table.__file__, "renamed.py": renamed.__file__}


@dataclass(frozen=True)
class Script:
    """A script and the files that it needs.

    Parameters
    ----------
    text : str
        The script.
    files : tuple of str
        Names of the files in `files/`.
    device : str
        The README's sentences about the virtual GPU.
    """

    text: str
    files: tuple[str, ...] = ("cuda_home.py",)
    device: str = "No GPU is needed."

    def contents(self) -> dict[str, bytes]:
        """Return every file's content by its name in the folder."""
        found = {SCRIPT: self.text.encode()}
        for name in self.files:
            # Each library has its own stand-in for the GPU; all are copied under one name.
            plain = "virtual_gpu.py" if name.startswith("virtual_gpu_") else name
            found[plain] = Path(_SHARED.get(name) or _FILES.joinpath(name)).read_bytes()
        if "virtual_driver.py" in self.files:
            found["virtual_gpu.c"] = native.source("libcuda.c").encode()
        return found


def script_of(subject: ReproTarget) -> Script:
    """Write the script of a cell with the function that the cell's backend names.

    Raises
    ------
    UsageError
        If the function of another distribution cannot be loaded, or does not return a `Script`.
    """
    hook = BACKENDS[subject.backend].repro
    module, _, name = hook.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the script of {subject.backend} cannot be written: {hook}: {one_line(str(error))}") from None
    script = function(subject)
    if not isinstance(script, Script):
        raise UsageError(f"the script of {subject.backend} cannot be written: {hook} returned no Script")
    return script


def start(subject: ReproTarget, *imports: str) -> str:
    """Return the lines that import modules and lay out the toolkit."""
    modules = ("cuda_home", "cupy_program", "link", "virtual_gpu")
    names = sorted({"os", *(name for name in imports if name not in modules)})
    own = sorted({"cuda_home", *imports} - set(names))
    head = f"# {subject.record['cell']}".encode("ascii", "replace").decode()
    lines = [" ".join(head.split()), *(f"import {name}" for name in names), "", *(f"import {name}" for name in own)]
    return "\n".join(lines) + "\n\nos.chdir(os.path.dirname(os.path.abspath(__file__)))\n" + cuda_of(subject)


def of_each(subject: ReproTarget, lines: str) -> str:
    """Return lines that compile each file of the program as `source` and collect the results in `images`."""
    names = list_of(list(map(str, subject.job.sources)))
    return f"images = []\nfor source in {names}:\n{indent(lines, '    ')}"


def cuda_of(subject: ReproTarget) -> str:
    """Return lines that lay out the toolkit, or use this machine's toolkit."""
    toolkit = subject.cell.toolchain.toolkit
    if toolkit.local:
        first = f'cuda = os.environ["CUDA_HOME"]  # the folder of CUDA {toolkit.release} on this machine\n'
        first += f"os.path.lexists({text_of(CUDA)}) or os.symlink(cuda, {text_of(CUDA)})\n"
    else:
        wheels = f', "{CUDA}-wheels"' if subject.library else ""
        first = f"cuda = cuda_home.lay_out({text_of(CUDA)}{wheels})  # NVIDIA's wheels as one CUDA_HOME\n"
    if toolkit.headers != toolkit.release:
        first += f"headers = cuda_home.lay_out({text_of(HEADERS)}, {text_of(HEADERS + '-wheels')})  # CUDA {toolkit.headers}\n"
    return first


def host_of(subject: ReproTarget, *variables: str) -> str:
    """Return lines that set the requested host compiler; the user's first variable overrides its location."""
    host = subject.cell.toolchain.host
    if not host.name:
        return ""
    first = text_of(variables[0])
    version = " ".join(host.version.encode("ascii", "replace").decode().split())
    lines = f"# The host compiler: {version}\n"
    lines += f"os.environ.setdefault({first}, {text_of(host.program or host.name)})\n"
    return lines + "".join(f"os.environ[{text_of(name)}] = os.environ[{first}]\n" for name in variables[1:])


def text_of(value: str) -> str:
    """Return a Python literal of a text, with double quotes if possible."""
    return f'"{value}"' if value.isprintable() and value.isascii() and not set(value) & set('"\\') else repr(value)


def words_of(words: Sequence[str]) -> str:
    """Return the literals of words, separated by commas."""
    return ", ".join(map(text_of, words))


def list_of(words: Sequence[str]) -> str:
    """Return the literal of a list of words on one line."""
    return f"[{words_of(words)}]"


def lines_of(words: Sequence[str]) -> str:
    """Return the literal of a list of words, with one word per line if the list is long."""
    line = list_of(words)
    return line if len(line) < 100 else "[\n" + "".join(f"    {text_of(word)},\n" for word in words) + "]"


def jitify(subject: ReproTarget) -> Script:
    """Write the script of `cupy` with ``jitify=True``."""
    return cupy(subject, jitify=True)


def cupy(subject: ReproTarget, *, jitify: bool = False) -> Script:
    """Write a script that compiles a ``RawModule``, or runs a program that uses CuPy's API."""
    setup, job = subject.setup, subject.job
    options = cupy_options_of(setup, job, job.target, macros_too=not is_program(job))
    more = ", jitify=True" if jitify else ""
    more += ", enable_cooperative_groups=True" if job.options.get("enable_cooperative_groups") else ""
    # CuPy finds CUDA's headers by CUDA_PATH. If the headers are in wheels, CuPy must find no toolkit.
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
    device = _stands_in(
        subject,
        "it answers CuPy's question for the device's compute capability, keeps what CuPy would load, and has nvJitLink do what the driver's linker would "
        f"(`LinkState`). CuPy's options, include directories and preprocessing, {'Jitify, ' if jitify else ''}NVRTC and its ptxas are the real ones.",
    )
    device += _PROGRAM if is_program(job) else ""
    device += _OLD.format(version=subject.library) if old else ""
    device += _JITIFY if jitify else ""
    if is_program(job):
        text = start(subject, "sys", "cupy_program", "virtual_gpu") + path + used + _run(subject, options, jitify)
        return Script(text, (*files, "c_table.py", "cupy_program.py", "cupy_runtime.py"), device)
    text = start(subject, "hashlib", "virtual_gpu") + path + used + f"""\

import cupy  # noqa: E402

with open({text_of(str(job.source))}, encoding="{subject.program.encoding}") as file:
    code = file.read()
options = {lines_of(options)}
module = cupy.RawModule(code=code, options=tuple(options), backend="nvrtc"{more})
module.compile()
image = virtual_gpu.images[-1] if virtual_gpu.images else b""
""" + BUILT.replace("print(", 'print("built and loaded" if not image else ', 1)  # fmt: skip
    return Script(text, tuple(files), device)


def _stands_in(subject: ReproTarget, how: str) -> str:
    """Describe ``virtual_gpu.py`` for the README."""
    return f"Where this machine has no GPU of compute capability {subject.cell.target.capability}, `virtual_gpu.py` stands in for one: {how}"


_DRIVER = "`virtual_gpu.c`, built with this machine's C compiler, takes the place of libcuda"
_PROGRAM = (
    " The program makes arrays and launches what CuPy compiles for it, so that `cupy_runtime.py` stands in for CUDA's runtime and driver, too, by way of `c_table.py`: memory is the host's, and a launch does nothing. "
    "`cupy_program.py` ends the program with the first kernel that CuPy does not compile."
)
_OLD = " CuPy {version} links CUDA's libraries, so that it cannot even be imported without them: `stand_ins.py` builds empty ones; only cudart's answers for the device matter."
_JITIFY = " Jitify does not print NVRTC's log: `nvrtc_log.c` wraps NVRTC and records the log. Jitify may take minutes to find CUDA's headers."


def _without_toolkit(subject: ReproTarget) -> str:
    """Return lines that hide every toolkit from CuPy, as on a machine that has only the driver."""
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
    """Return lines that run a program as cumatrix runs it."""
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
    """Write a script that runs the program, then compiles its kernels for their signatures."""
    device = (
        f"{_DRIVER}, and ptxas and nvJitLink that of the driver's linker (`link.py`). A launch does nothing. Numba, NVVM, libdevice, "
        "ptxas and nvJitLink are the real ones."
    )
    files = ("link.py", "virtual_driver.py", "virtual_gpu_numba.py")
    return _numba(subject, "", "numba", "numba.core", "CUDADispatcher", device, files)


def numba_cuda_mlir(subject: ReproTarget) -> Script:
    """Write the script for numba-cuda-mlir; the program may import ``numba``."""
    device = f"{_DRIVER}. A launch does nothing. numba-cuda-mlir, NVVM, libdevice and nvJitLink are the real ones."
    files = ("renamed.py", "virtual_driver.py", "virtual_gpu_mlir.py")
    target, package = f', "{subject.job.target}"', "numba_cuda_mlir"
    return _numba(subject, target, package, f"{package}.numba_cuda.core", "MLIRDispatcher", device, files)


def _numba(
    subject: ReproTarget, more: str, package: str, core: str, dispatcher: str, device: str, files: Sequence[str]
) -> Script:
    """Write a script for the kernels of `package`, instances of `dispatcher`.

    The arguments of the virtual GPU end with `more`.
    """
    job, names = subject.job, []
    options = {name: value for name, value in job.options.items() if name in JIT_OPTIONS}
    given = {**job.definitions, "JIT_OPTIONS": options}
    lines = []
    for name, signature in job.entries.items():
        if not name.isidentifier():
            raise UsageError(f"{name!r} is not the name of a kernel")
        names.append(name)
        types = f"sigutils.normalize_signature({text_of(signature)})[0]"
        apart = job.virtual and package == "numba"
        lines.append(_to_ptx(subject, name, types) if apart else f"{name}.compile({types})\n")
    if not names:  # the program launches its kernels itself; kernels without parameters need no signature
        lines.append(
            f'for kernel in [value for value in list(globals().values()) if type(value).__name__ == "{dispatcher}"]:\n'
            "    if not kernel.overloads and not kernel.py_func.__code__.co_argcount:\n        kernel.compile(())\n"
        )
    program = text_of(str(job.source))
    text = start(subject, "sys", "virtual_gpu") + f"""\
virtual_gpu.use("{subject.cell.target.capability}", cuda, "{subject.setup.release}"{more})  # only where this machine has no such GPU

from {package} import cuda  # noqa: E402
from {core} import sigutils  # noqa: E402

sys.argv = [{program}]
sys.path.insert(0, os.path.dirname(os.path.abspath({program})))
globals().update({pprint.pformat(given, width=110)})  # what the program is given
with open({program}, encoding="utf-8") as file:
    exec(compile(file.read(), {program}, "exec"))
""" + "".join(lines) + 'print("built")\n'  # fmt: skip
    if not names:
        text = text.replace(f"from {core} import sigutils  # noqa: E402\n", "")
    return Script(text, ("cuda_home.py", "gpu.py", *files), _stands_in(subject, device))


def _to_ptx(subject: ReproTarget, name: str, types: str) -> str:
    """Return lines that compile a kernel to PTX for a virtual architecture with Numba's public function."""
    old = subject.backend == "numba" and subject.series < (0, 60)
    more = "" if old else ', device=False, abi="numba", output="ptx"'
    suffix = subject.cell.target.suffix
    capability = (*subject.job.capability, suffix) if suffix else subject.job.capability
    return (
        f'options = {{key: {name}.targetoptions.get(key) for key in ("debug", "lineinfo", "fastmath", "opt")}}\n'
        f"options = {{key: value for key, value in options.items() if value is not None}}\n"
        f"cuda.{'compile_ptx' if old else 'compile'}({name}.py_func, {types}, cc={capability}{more}, **options)\n"
    )


def cuda_core(subject: ReproTarget) -> Script:
    """Write a script that uses ``cuda.core``'s Program and Linker."""
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
with open(source, encoding="{subject.program.encoding}") as file:
    program = Program(file.read(), "c++", ProgramOptions({name}**options))
codes.append(program.compile("{kind}", logs=sys.stdout))
image = codes[-1].code
images.append(image.encode() if isinstance(image, str) else bytes(image))
""") + finish + BUILT  # fmt: skip
    device = _stands_in(
        subject,
        f"{_DRIVER}, which cuda.core asks for its version. cuda.core, NVIDIA's bindings, NVRTC and nvJitLink are the real ones.",
    )
    return Script(text, ("cuda_home.py", "gpu.py", "virtual_driver.py", "virtual_gpu_cuda_core.py"), device)


def nvrtc(subject: ReproTarget) -> Script:
    """Write a script that calls NVRTC through ctypes."""
    setup, job = subject.setup, subject.job
    options = [f"--gpu-architecture={job.target}", *nvrtc_backend.options_of(setup, job)]
    lto = ', "-lto"' if job.lto else ""
    linked = subject.relocatable and not job.one_of_several
    kind = "PTX" if job.virtual else "LTOIR" if job.lto else "CUBIN"
    stripped = '.rstrip(b"\\0")' if job.virtual else ""
    text = start(subject, "ctypes", "hashlib", "sys", *(["link"] if linked else [])) + f"""\
options = {lines_of(options)}
nvrtc = cuda_home.load(cuda, "libnvrtc-builtins", "libnvrtc")
""" + of_each(subject, f"""\
program, size = ctypes.c_void_p(), ctypes.c_size_t()
with open(source, "rb") as file:
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), file.read(), source.encode(), 0, None, None)
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
images.append(image.raw{stripped})
""") + (f'image = link.with_runtime(cuda, images, "{subject.cell.target.real}"{lto})\n' if linked else JOINED) + BUILT  # fmt: skip
    return Script(text, ("cuda_home.py", *(["link.py"] if linked else [])))


def ptxas(subject: ReproTarget) -> Script:
    """Write a script that runs ptxas as a process."""
    job = subject.job
    rdc = ["-c"] if job.options.get("rdc") else []
    options = [f"-arch=sm_{job.arch}", "-v", *ptxas_backend.options_of(job), *rdc]
    text = start(subject, "hashlib", "os", "subprocess") + f"""\
options = {lines_of(options)}
""" + of_each(subject, """\
subprocess.run([os.path.join(cuda, "bin", "ptxas"), *options, source, "-o", "kernel.cubin"], check=True)
with open("kernel.cubin", "rb") as file:
    images.append(file.read())
""") + JOINED + BUILT  # fmt: skip
    return Script(text, ("cuda_home.py",))


def nvcc(subject: ReproTarget) -> Script:
    """Write a script that runs nvcc as a process."""
    setup, job = subject.setup, subject.job
    arch = f"-arch={job.target}" if job.lto else f"-gencode=arch={subject.cell.target.as_virtual},code={job.target}"
    folders = nvcc_backend.include_of(setup, job)
    options = [arch, *nvcc_backend.options_of(job), *(f"-I{folder}" for folder in folders)]
    options, mode, suffix = [*options, *nvcc_backend.behind_toolkit(setup, job)], "-c", "o"
    if job.options.get("depth", "unit") == "device":
        suffix = "ptx" if job.virtual else "ltoir" if job.lto else "cubin"
        *options, mode, _, _ = device_only(options, suffix)
    made = [
        f"kernel-{number}.{suffix}" if job.together else f"kernel.{suffix}" for number in range(1, len(job.sources) + 1)
    ]
    commands = [
        f"[*options, {words_of([mode, str(source), '-o', name])}]"
        for source, name in zip(job.sources, made, strict=True)
    ]
    if subject.relocatable and not job.virtual and not job.one_of_several:
        more = ["-dlink", arch, *(["-dlto"] if job.lto else []), *made, "-o", "linked.o", "-lcudadevrt"]
        commands.append(list_of(more))
    text = (
        start(subject, "subprocess", "sys")
        + host_of(subject, "NVCC_CCBIN")
        + f"""\
options = {lines_of(options)}
try:
    for command in [
{"".join(f"        {command},{chr(10)}" for command in commands)}\
    ]:
        subprocess.run([f"{{cuda}}/bin/nvcc", *command], check=True)
except subprocess.CalledProcessError as error:
    print(f"nvcc ended with exit code {{error.returncode}}")
    sys.exit(error.returncode)
print("built:", os.path.getsize({made[0]!r}), "bytes")
"""
    )
    return Script(text)


def clang(subject: ReproTarget) -> Script:
    """Write a script that runs clang's own driver, which calls the toolkit's ptxas."""
    setup, job = subject.setup, subject.job
    place = clang_backend.headers_place(subject.observed)
    if not place:
        raise UsageError(f"the record of {subject.record['cell']} does not name the headers of its clang")
    folders = [f"-I{folder}" for folder in nvcc_backend.include_of(setup, job)]
    options = [*clang_backend.options_of(job), *folders]
    linked = subject.relocatable and not job.virtual and not job.one_of_several
    text = start(subject, "hashlib", "subprocess", "sys", "sysconfig", *(["link"] if linked else [])) + f"""\
headers = os.path.join(sysconfig.get_path("purelib"), {text_of(place)})
options = {lines_of(options)}
clang = [sys.executable, "-m", "ziglang", "clang", "-resource-dir", headers, f"--cuda-path={{cuda}}", *options]
""" + of_each(subject, """\
done = subprocess.run([*clang, source, "-o", "kernel.out"])
if done.returncode:
    sys.exit(done.returncode)
with open("kernel.out", "rb") as file:
    images.append(file.read())
""") + (f'image = link.with_runtime(cuda, images, "{subject.cell.target.real}")\n' if linked else JOINED) + BUILT  # fmt: skip
    return Script(text, ("cuda_home.py", *(["link.py"] if linked else [])))


def torch(subject: ReproTarget) -> Script:
    """Write a script that calls ``torch.utils.cpp_extension``.

    The script compiles the whole unit even if the cell compiled the device pass only.
    """
    setup, job = subject.setup, subject.job
    capability = subject.cell.target.capability + subject.cell.target.suffix
    options = [*nvcc_backend.options_of(job), *nvcc_backend.behind_toolkit(setup, job)]
    folders = nvcc_backend.include_of(setup, job)
    include = f"    extra_include_paths={list_of(folders)},\n" if folders else ""
    source = str(job.source)
    if job.options.get("depth", "device") == "extension":
        functions = list(job.options.get("functions", []))
        call = f"""\
with open({text_of(source)}, encoding="{subject.program.encoding}") as file:
    code = {('#line 1 "' + source + '"')!r} + "\\n" + file.read()
extension = cpp_extension.load_inline(
    "kernel",
    cpp_sources=[{text_of(job.options.get("declarations", ""))}],
    cuda_sources=[code],
    functions={functions!r},
"""
    else:
        sources = list_of(list(map(str, job.sources)))
        call = f'cpp_extension.load(\n    "kernel",\n    {sources},\n    is_python_module=False,  # it is built, and loaded as a library\n'
    text = (
        start(subject, "tempfile")
        + host_of(subject, "NVCC_CCBIN", "CC", "CXX")
        + f"""\
os.environ["CUDA_HOME"] = cuda
os.environ["TORCH_CUDA_ARCH_LIST"] = "{capability}"
os.environ["PATH"] = os.pathsep.join([os.path.abspath(".venv/bin"), os.environ["PATH"]])  # ninja

import torch  # noqa: E402, F401
from torch.utils import cpp_extension  # noqa: E402

options = {lines_of([quoted(option) for option in options])}
{call}    extra_cuda_cflags=options,
{include}    build_directory=tempfile.mkdtemp(),
    with_cuda=True,
    verbose=True,
)
print("built")
"""
    )
    return Script(text)
