"""Scripts for compilers of HIP with this machine's ROCm."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from harness.backends import clang, hip
from harness.backends import hip_clang as hip_clang_backend
from harness.repro.script import JOINED, Script, lines_of, list_of, text_of, words_of
from harness.repro.subject import ReproTarget

_DEVICE = "No GPU is needed."


def _start(subject: ReproTarget, options: Sequence[str], *imports: str, before: str = "") -> str:
    head = " ".join(f"# {subject.record['cell']}".encode("ascii", "replace").decode().split())
    modules = "".join(f"import {name}\n" for name in sorted({"glob", "hashlib", "os", "sys", *imports}))
    return f"""{head}
{modules}
os.chdir(os.path.dirname(os.path.abspath(__file__)))
rocm = os.environ.get("ROCM_PATH", "/usr")  # the folder of ROCm {subject.setup.release}; /usr is Debian's
options = {lines_of(options)}{before}
images = []
for source in {list_of(list(map(str, subject.job.sources)))}:
"""


_END = JOINED + 'print(f"built: {len(image)} bytes, sha256 {hashlib.sha256(image).hexdigest()}")\n'


def hiprtc(subject: ReproTarget) -> Script:
    """Write a script that calls hipRTC's C interface."""
    text = _start(subject, [f"--offload-arch={subject.job.target}", *hip.options_of(subject.job)], "ctypes") + """\
    places = [f"{folder}/lib{name}.so*" for name in ("hiprtc", "amdhip64") for folder in ("lib", "lib/*")]
    found = [file for place in places for file in sorted(glob.glob(f"{rocm}/{place}"))]
    lib = ctypes.CDLL(found[0])
    with open(source, "rb") as file:
        code = file.read()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    lib.hiprtcCreateProgram(ctypes.byref(program), code, source.encode(), 0, None, None)
    words = [option.encode() for option in options]
    result = lib.hiprtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    lib.hiprtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    lib.hiprtcGetProgramLog(program, log)
    print(log.value.decode(errors="replace"), file=sys.stderr)
    if result:
        sys.exit(result)
    lib.hiprtcGetCodeSize(program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    lib.hiprtcGetCode(program, image)
    images.append(image.raw)
""" + _END  # fmt: skip
    return Script(text, (), _DEVICE)


# clang starts a program named lld, and ziglang provides it as a subcommand.
_LLD = """
with open("lld", "w") as file:
    file.write(f'#!/bin/sh\\nshift 2\\nexec {sys.executable} -m ziglang ld.lld "$@"\\n')
os.chmod("lld", 0o755)
os.environ["PATH"] = os.getcwd() + os.pathsep + os.environ["PATH"]
"""


def hip_clang(subject: ReproTarget) -> Script:
    """Write a script that runs clang's own driver."""
    version = str(subject.observed.get("clang", "")).split(".")[0]
    if subject.library:
        driver = ["-m", "ziglang", "clang", clang.target_of(platform.machine()), "-resource-dir"]
        place, before = clang.headers_place(subject.observed), _LLD
        chosen = f'[sys.executable, {words_of(driver)}, os.path.join(sysconfig.get_path("purelib"), {text_of(place)})]'
    else:
        places, before = ("llvm/bin/clang", "lib/llvm/bin/clang", f"bin/clang-{version}"), ""
        chosen = f'[next(path for place in {list_of(places)} for path in glob.glob(f"{{rocm}}/{{place}}"))]'
    modules = ["subprocess", *(["sysconfig"] if before else [])]
    text = _start(subject, hip_clang_backend.options_of(subject.job), *modules, before=before) + f"""\
    clang = {chosen}
    bitcode = next(path for place in {list_of(hip.BITCODE)} for path in sorted(glob.glob(f"{{rocm}}/{{place}}")))
    folders = [f"--rocm-path={{rocm}}", f"--rocm-device-lib-path={{bitcode}}"]
    done = subprocess.run([*clang, *folders, *options, source, "-o", "kernel.hsaco"])
    if done.returncode:
        sys.exit(done.returncode)
    with open("kernel.hsaco", "rb") as file:
        images.append(file.read())
""" + _END  # fmt: skip
    return Script(text, (), _DEVICE)
