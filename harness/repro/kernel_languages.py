"""Scripts for kernel languages whose libraries include their own compilers."""

from __future__ import annotations

import pprint
import re

from harness.errors import UsageError
from harness.repro.script import Script, text_of
from harness.repro.subject import CUDA, ReproTarget

_TOOLKIT = f"""
import cuda_home

cuda = cuda_home.lay_out({text_of(CUDA)}, "{CUDA}-wheels")  # NVIDIA's wheels as one CUDA_HOME
for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
    os.environ[name] = f"{{cuda}}/bin/ptxas"
"""


def triton(subject: ReproTarget) -> Script:
    """Write a script that runs the program, then compiles its kernels with ``triton.compile``."""
    job, bundled = subject.job, subject.cell.toolchain.toolkit.bundled
    definitions = job.definitions
    lines = []
    for name, signature in job.entries.items():
        if not name.isidentifier():
            raise UsageError(f"{name!r} is not the name of a kernel")
        words = re.sub(r"[A-Za-z_]\w*", lambda found: str(definitions.get(found[0], found[0])), signature)
        options = {key: job.options[key] for key in ("num_warps", "num_stages") if key in job.options}
        more = "".join(f", {key}={value}" for key, value in options.items())
        lines.append(f"made += triton_by_hand.build({name}, {text_of(words)}, target{more})\n")
    amd = job.target.startswith("gfx")
    program, kind = text_of(str(job.source)), "hsaco" if amd else _kind(subject)
    cuda = "" if bundled else _TOOLKIT
    head = " ".join(f"# {subject.record['cell']}".encode("ascii", "replace").decode().split())
    text = f"""{head}
import hashlib
import os
import sys
import tempfile

os.chdir(os.path.dirname(os.path.abspath(__file__)))
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
{cuda}
import triton_by_hand  # noqa: E402

target = triton_by_hand.use({text_of(job.target) if amd else job.capability[0] * 10 + job.capability[1]})
sys.argv = [{program}]
sys.path.insert(0, os.path.dirname(os.path.abspath({program})))
globals().update({pprint.pformat(definitions, width=110)})  # what the program is given
with open({program}, encoding="utf-8") as file:
    exec(compile(file.read(), os.path.abspath({program}), "exec"))
made = []
{"".join(lines)}for kernel in made:
    image = kernel.asm[{text_of(kind)}]
    image = image if isinstance(image, bytes) else image.encode()
    print(f"built: {{len(image)}} bytes, sha256 {{hashlib.sha256(image).hexdigest()}}")
"""
    device = "No GPU is needed: Triton compiles for the target that the script names."
    return Script(text, ("triton_by_hand.py",) if bundled else ("cuda_home.py", "triton_by_hand.py"), device)


def _running(subject: ReproTarget, before: str, after: str) -> str:
    """Write a script that runs `before`, the program and `after`, which defines the list ``images``."""
    job = subject.job
    program = text_of(str(job.source))
    head = " ".join(f"# {subject.record['cell']}".encode("ascii", "replace").decode().split())
    return f"""{head}
import hashlib
import os
import sys
import tempfile

os.chdir(os.path.dirname(os.path.abspath(__file__)))
{before}
sys.argv = [{program}]
sys.path.insert(0, os.path.dirname(os.path.abspath({program})))
globals().update({pprint.pformat(dict(job.definitions), width=110)})  # what the program is given
with open({program}, encoding="utf-8") as file:
    exec(compile(file.read(), os.path.abspath({program}), "exec"))
{after}
for image in images:
    print(f"built: {{len(image)}} bytes, sha256 {{hashlib.sha256(image).hexdigest()}}")
"""


def cute_dsl(subject: ReproTarget) -> Script:
    """Write a script that runs the program with the target in CuTe DSL's settings."""
    before = f"""made = tempfile.mkdtemp()
os.environ.update(CUTE_DSL_ARCH="sm_{subject.job.arch}", CUTE_DSL_DUMP_DIR=made, CUTE_DSL_NO_CACHE="1")
os.environ.update(CUTE_DSL_KEEP="cubin,ptx", CUTE_DSL_KEEP_CUBIN="1", CUTE_DSL_KEEP_PTX="1")

import cutlass.base_dsl.compiler  # noqa: E402

# Up to 4.5, CuTe DSL looks for a driver when the code is there already.
cutlass.base_dsl.compiler.Compiler._check_cuda_dependencies_once = lambda *arguments: None"""
    after = f"""names = sorted(name for name in os.listdir(made) if name.endswith(".{_kind(subject)}"))
images = [open(os.path.join(made, name), "rb").read() for name in names]"""
    device = "No GPU is needed: CuTe DSL compiles for the target in `CUTE_DSL_ARCH`."
    return Script(_running(subject, before, after), (), device)


def warp(subject: ReproTarget) -> Script:
    """Write a script that runs the program, then compiles its modules with ``wp.compile_aot_module``."""
    number, suffix = re.fullmatch(r"(\d+)(\w*)", subject.job.arch).groups()  # type: ignore[union-attr]
    before = f"""
import warp_by_hand  # noqa: E402

warp_by_hand.use({text_of(suffix)})"""
    after = f"images = warp_by_hand.build(globals(), {number}, {text_of(_kind(subject))})"
    device = "No GPU is needed: the script names the target."
    return Script(_running(subject, before, after), ("warp_by_hand.py",), device)


def cutile(subject: ReproTarget) -> Script:
    """Write a script that runs the program with every export redirected to the target."""
    before = f"""
import cutile_by_hand  # noqa: E402

images = cutile_by_hand.use({text_of("sm_" + subject.job.arch.rstrip("af"))})"""
    device = "No GPU is needed: the script names the target."
    return Script(_running(subject, before, ""), ("cutile_by_hand.py",), device)


def _kind(subject: ReproTarget) -> str:
    """Return the extension of the artifact's files."""
    return "ptx" if subject.job.virtual else "cubin"
