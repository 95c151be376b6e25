"""Scripts for compilers of HIP, which come with a ROCm of the machine."""

from __future__ import annotations

from harness.backends import hip
from harness.repro.script import JOINED, Script, lines_of, list_of, text_of
from harness.repro.subject import ReproTarget

_DEVICE = "No GPU is needed."


def _start(subject: ReproTarget, *imports: str) -> str:
    head = " ".join(f"# {subject.record['cell']}".encode("ascii", "replace").decode().split())
    modules = "".join(f"import {name}\n" for name in sorted({"glob", "hashlib", "os", "sys", *imports}))
    return f"""{head}
{modules}
os.chdir(os.path.dirname(os.path.abspath(__file__)))
rocm = os.environ.get("ROCM_PATH", "/usr")  # where ROCm {subject.setup.release} lies; /usr is Debian's
options = {lines_of(hip.options_of(subject.job))}
images = []
for source in {list_of(list(map(str, subject.job.sources)))}:
"""


_END = JOINED + 'print(f"built: {len(image)} bytes, sha256 {hashlib.sha256(image).hexdigest()}")\n'


def hiprtc(subject: ReproTarget) -> Script:
    """hipRTC's C interface."""
    text = _start(subject, "ctypes") + f"""\
    places = [f"{{folder}}/lib{{name}}.so*" for name in ("hiprtc", "amdhip64") for folder in ("lib", "lib/*")]
    found = [file for place in places for file in sorted(glob.glob(f"{{rocm}}/{{place}}"))]
    lib = ctypes.CDLL(found[0])
    with open(source, "rb") as file:
        code = file.read()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    lib.hiprtcCreateProgram(ctypes.byref(program), code, source.encode(), 0, None, None)
    words = [option.encode() for option in [{text_of(f"--offload-arch={subject.job.target}")}, *options]]
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


def hip_clang(subject: ReproTarget) -> Script:
    """clang's own driver."""
    version = str(subject.observed.get("clang", "")).split(".")[0]
    debug = subject.job.options.get("debug") or any(
        flag.startswith("-O") for flag in subject.job.options.get("flags", [])
    )
    words = ["-x", "hip", f"--offload-arch={subject.job.target}", "--cuda-device-only", "--no-gpu-bundle-output"]
    words += [] if debug else ["-O3"]
    text = _start(subject, "subprocess") + f"""\
    places = ("llvm/bin/clang", "lib/llvm/bin/clang", {text_of(f"bin/clang-{version}")})
    clang = next(path for path in (f"{{rocm}}/{{place}}" for place in places) if os.path.exists(path))
    bitcode = next(path for place in {list_of(hip.BITCODE)} for path in sorted(glob.glob(f"{{rocm}}/{{place}}")))
    words = {lines_of(words).replace(chr(10), chr(10) + "    ")}
    words += [f"--rocm-path={{rocm}}", f"--rocm-device-lib-path={{bitcode}}", *options]
    done = subprocess.run([clang, *words, source, "-o", "kernel.hsaco"])
    if done.returncode:
        sys.exit(done.returncode)
    with open("kernel.hsaco", "rb") as file:
        images.append(file.read())
""" + _END  # fmt: skip
    return Script(text, (), _DEVICE)
