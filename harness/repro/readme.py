"""The README of a folder, which can be pasted into a bug report as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from harness.backends import BACKENDS
from harness.diagnostics import clean, one_line
from harness.records import Record
from harness.repro.conditions import Findings, told
from harness.repro.script import SCRIPT, Script
from harness.repro.subject import ReproTarget
from harness.repro.wheels import Wheels, python_of

_LOG_LINES = 40
_LINK = re.compile(r"https?://[^\s<>]{1,400}")
_NEIGHBOURS = 12
_NAMES = {
    "nvrtc": "NVRTC", "nvcc": "nvcc", "ptxas": "ptxas", "nvvm": "NVVM", "ptx": "PTX ISA", "nvjitlink": "nvJitLink",
    "cupy": "CuPy", "numba": "Numba", "numba_cuda": "numba-cuda", "numpy": "NumPy", "llvmlite": "llvmlite",
    "cuda_bindings": "cuda-bindings", "cuda_core": "cuda-core", "torch": "PyTorch", "torch_cuda": "PyTorch's CUDA",
    "ninja": "ninja", "host_compiler": "host compiler", "cxx": "C++ compiler", "python": "Python",
}  # fmt: skip
_SHIM = {
    "cupy": "Where this machine has no GPU of compute capability {cc}, `virtual_gpu.py` stands in for one: it answers CuPy's question for the device's "
    "compute capability, keeps what CuPy would load, and has nvJitLink do what the driver's linker would "
    "(`LinkState`). CuPy's options, include directories and preprocessing, {jitify}NVRTC and its ptxas are the real ones.",
    "numba": "Where this machine has no GPU of compute capability {cc}, `virtual_gpu.py` stands in for one: `virtual_gpu.c`, built with this machine's C "
    "compiler, takes the place of libcuda, and ptxas and nvJitLink that of the driver's linker (`link.py`). A launch does nothing. Numba, NVVM, libdevice, "
    "ptxas and nvJitLink are the real ones.",
    "cuda-core": "Where this machine has no GPU of compute capability {cc}, `virtual_gpu.py` stands in for one: `virtual_gpu.c`, built with this machine's C "
    "compiler, takes the place of libcuda, which cuda.core asks for its version. cuda.core, NVIDIA's bindings, NVRTC and nvJitLink are the real ones.",
}
_PROGRAM = (
    " The program makes arrays and launches what CuPy compiles for it, so that `cupy_runtime.py` stands in for CUDA's runtime and driver, too, by way of `c_table.py`: memory is the host's, and a launch does nothing. "
    "`cupy_program.py` ends the program with the first kernel that CuPy does not compile."
)
_OLD = " CuPy {version} links CUDA's libraries, so that it cannot even be imported without them: `stand_ins.py` builds empty ones, of which only cudart's answers for the device matter."


def readme(subject: ReproTarget, script: Script, wheels: Sequence[Wheels], findings: Findings) -> str:
    """The text."""
    record = subject.record
    parts = [
        f"# {_inline(_title(subject))}",
        _plain(record["title"]),
        "## To reproduce",
        _block("\n".join([*commands(subject, wheels), f".venv/bin/python {SCRIPT}"]), "sh"),
        f"`{SCRIPT}` ends with 0 and `built` where it builds, and with another exit code where it does not. Linux on x86-64"
        + (" with a C++ compiler (`g++`)." if BACKENDS[subject.backend].nvcc else "."),
        _shim(subject, script),
        "## Expected",
        _expected(subject),
        "## Observed",
        _observed(subject),
        "## Versions",
        _versions(subject),
        "## When it happens",
        _conditions(findings, record["status"]),
        *_neighbours(findings),
        _links(subject),
        _made(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def commands(subject: ReproTarget, wheels: Sequence[Wheels]) -> list[str]:
    """The commands that install what the script needs, by uv; pip has the same options."""
    local = subject.cell.toolchain.toolkit.local
    lines = [f"export CUDA_HOME=…  # where CUDA {subject.setup.release} lies"] if local else []
    lines += [f"uv venv --python {python_of(subject)} .venv"]
    for each in wheels:
        target = f" --target {each.folder}" if each.folder else ""
        lines.append(f"uv pip install --python .venv --no-deps --require-hashes{target} -r {each.file}")
    return lines


def _title(subject: ReproTarget) -> str:
    record = subject.record
    who = f"{subject.backend} {subject.library}".strip()
    what = {
        "built": "builds",
        "rejected": "refuses",
        "crashed": "crashes on",
        "timed_out": "does not come to an end on",
    }
    first = record["diagnostics"][0]["message"] if record["status"] != "built" and record["diagnostics"] else ""
    where = f"CUDA {record['toolkit']}, {record['target']}"
    name, more = subject.job.source.name, len(subject.job.together)
    name += f" and {more} more file{'s' * (more > 1)}" if more else ""
    return one_line(f"{who} {what[record['status']]} {name} ({where}){': ' if first else ''}{first}", 200)


def _shim(subject: ReproTarget, script: Script) -> str:
    if "gpu.py" not in script.files:
        return "No GPU is needed."
    library = BACKENDS[subject.backend].library
    text = _SHIM["numba" if library == "numba-cuda" else library].format(
        cc=subject.cell.target.capability, jitify="Jitify, " if subject.backend == "cupy-jitify" else ""
    )
    text += _PROGRAM if "cupy_program.py" in script.files else ""
    text += _OLD.format(version=subject.library) if "stand_ins.py" in script.files else ""
    if "nvrtc_log.c" in script.files:
        text += " Jitify does not show what NVRTC says: `nvrtc_log.c` stands before NVRTC and keeps its log. Jitify may take minutes to find CUDA's headers."
    return text


def _expected(subject: ReproTarget) -> str:
    record = subject.record
    expected = record["expected"]
    why = _plain(expected["reason"]) + (f" (<{expected['link']}>)" if _LINK.fullmatch(expected["link"]) else "")
    # A known fault is expected to be there, and should not be.
    if expected["xfail"] or expected["status"] == "built":
        text = "It builds."
        return f"{text} That it does not is known: {why}" if expected["xfail"] and why else f"{text} {why}".strip()
    at = f" at {expected['stage']}" if expected["stage"] else ""
    words = f", with a message that matches `{_code(expected['diagnostic'])}`" if expected["diagnostic"] else ""
    return f"It is {expected['status']}{at}{words}{': ' if why else '.'}{why}"


def _observed(subject: ReproTarget) -> str:
    record = subject.record
    what, kernels = told(record), ""
    if record["artifact"]:
        artifact = record["artifact"]
        kernels = ", ".join(_code(kernel["name"]) for kernel in artifact["kernels"])
        what += f": {artifact['format']} for {artifact['target']}, {artifact['bytes']} bytes"
        kernels = f", with `{kernels}`" if kernels else ""
    parts = [_plain(what) + kernels]
    if record["reason"] and record["reason"] not in what:
        parts.append(_plain(record["reason"]))
    log = clean(record["log"]).strip("\n").splitlines()
    if log:
        left = len(log) - _LOG_LINES
        shown = log[:_LOG_LINES] + ([f"[... {left} more lines ...]"] if left > 0 else [])
        parts.append(_block("\n".join(line[:400] for line in shown)))
    if record["command"]:
        parts += ["What was called:", _block("\n".join(clean(line)[:2000] for line in record["command"]))]
    if notes := [note for note in record["notes"] if not note.startswith("remark: ")]:
        parts.append("\n".join(f"- {_plain(note)}" for note in notes))
    return "\n\n".join(parts)


def _versions(subject: ReproTarget) -> str:
    observed: dict[str, Any] = subject.observed
    rows = [("CUDA", subject.record["toolkit"])]
    rows += [(title, str(observed[key])) for key, title in _NAMES.items() if isinstance(observed.get(key), str)]
    rows += [(name, version) for name, version in subject.cell.variant.libraries.items()]
    headers = observed.get("headers")
    if isinstance(headers, dict):
        rows += [(f"headers: {name}", str(version)) for name, version in headers.items()]
    return "\n".join(["| part | version |", "| --- | --- |", *(f"| {_cell(a)} | {_cell(b)} |" for a, b in rows)])


def _conditions(findings: Findings, status: str) -> str:
    if not findings.conditions:
        return "No other cell of this program was tried, so nothing is known of when it happens."
    counting = [condition for condition in findings.conditions if condition.counts]
    lines = []
    if counting:
        lines.append(
            "Only with:\n\n" + "\n".join(f"- {_plain(c.text)} (tried: {_plain(_tried(c.tried))})" for c in counting)
        )
        share = "all" if findings.inside_same == findings.inside else f"{findings.inside_same}"
        same = "in this way" if status != "built" else "with a build"
        lines.append(
            f"Of {findings.inside} cells that were tried within these conditions, {share} ended {same}; {findings.elsewhere} did so outside of them."
        )
    rest = [condition for condition in findings.conditions if not condition.counts]
    if rest:
        texts = ", ".join(f"{c.axis} ({_tried(c.tried)})" for c in rest)
        lines.append(f"It makes no difference: {_plain(texts)}.")
    return "\n\n".join(lines)


def _tried(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= _NEIGHBOURS else f"{len(values)} values from {values[0]} to {values[-1]}"


def _neighbours(findings: Findings) -> list[str]:
    if not findings.neighbours:
        return []
    lines = [f"| {_cell(record['cell'])} | {_cell(told(record))} |" for record in findings.neighbours[:_NEIGHBOURS]]
    return ["## Neighbours that differ", "\n".join(["| cell | outcome |", "| --- | --- |", *lines])]


def _links(subject: ReproTarget) -> str:
    links = [link for link in subject.record["links"] if _LINK.fullmatch(link)]
    return "\n".join(["See also:", "", *(f"- <{link}>" for link in links)]) if links else ""


def _made(record: Record) -> str:
    by, cell = _plain(record["cumatrix"]), _code(record["cell"])
    return f"Made by `cumatrix repro` (cumatrix {by}) of the cell `{cell}`; nothing here needs cumatrix. `record.json` is what was recorded of it."


def _inline(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def _plain(text: str) -> str:
    return _inline(one_line(text, 600))


def _code(text: str) -> str:
    """Text that fits between backquotes."""
    return one_line(text, 300).replace("`", "'")


def _cell(text: str) -> str:
    return _inline(one_line(text, 200))


def _block(text: str, language: str = "") -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
