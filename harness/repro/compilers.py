"""Scripts for bare compilers, and for nvcc as PyTorch's extensions call it."""

from __future__ import annotations

from harness.backends import nvcc as nvcc_backend
from harness.backends import nvrtc as nvrtc_backend
from harness.backends.torch.backend import quoted
from harness.nvidia.nvcc import device_only
from harness.repro.script import BUILT, JOINED, Script, host_of, lines_of, list_of, of_each, start, text_of, words_of
from harness.repro.subject import ReproTarget


def nvrtc(subject: ReproTarget) -> Script:
    """NVRTC through ctypes."""
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
""") + (f'image = link.with_runtime(cuda, images, "sm_{job.arch}"{lto})\n' if linked else JOINED) + BUILT  # fmt: skip
    return Script(text, ("cuda_home.py", *(["link.py"] if linked else [])))


def nvcc(subject: ReproTarget) -> Script:
    """nvcc as a process."""
    setup, job = subject.setup, subject.job
    arch = f"-arch={job.target}" if job.lto else f"-gencode=arch=compute_{job.arch},code={job.target}"
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
    return Script(text, ("cuda_home.py",))


def torch(subject: ReproTarget) -> Script:
    """``torch.utils.cpp_extension``, the whole unit where the cell has the device pass alone."""
    setup, job = subject.setup, subject.job
    capability = subject.cell.target.capability + job.arch.lstrip("0123456789")
    options = [*nvcc_backend.options_of(job), *nvcc_backend.behind_toolkit(setup, job)]
    folders = nvcc_backend.include_of(setup, job)
    include = f"    extra_include_paths={list_of(folders)},\n" if folders else ""
    source = str(job.source)
    if job.options.get("depth", "device") == "extension":
        functions = list(job.options.get("functions", []))
        call = f"""\
with open({text_of(source)}, encoding="utf-8") as file:
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
    return Script(text, ("cuda_home.py",))
