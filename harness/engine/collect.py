"""From how a child ended to an outcome: what it claims is held against what it left."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.artifacts import is_relocatable, only_traps, only_traps_in_ptx, read_cubin, read_ptx
from harness.backends import BACKENDS
from harness.diagnostics import clean, one_line, parse_log, read_line
from harness.model import Artifact, Cell, Diagnostic, KernelResources, Outcome, Stage, Status

LOG_LIMIT = 64 << 10
"""How much of a log a record keeps, in characters."""

_FIRST = 3
"""So many lines of a log in no known form stand for it."""

_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded")
_ROOM = 64 << 10  # bytes
_HASHED = re.compile(r"\b[0-9a-f]{32,64}\.cubin\.cu\b")
# Where Python's packages lie; what stands before it is one machine's.
_SITE = re.compile(r"/(?:[^\s/'\":,;=]+/)*((?:site|dist)-packages/)")
_FIELDS = {"status", "reason"}
_TIMES = re.compile(r"^.*\bCompile time = [\d.]+ ms\n?", re.MULTILINE)


def collect_outcome(
    cell: Cell,
    ended: Mapping[str, Any],
    scratch: Path,
    home: Path,
    tools: Path,
    entries: Iterable[str],
    device: Mapping[str, Any] | None = None,
) -> Outcome:
    """The outcome of a cell whose child has ended.

    Parameters
    ----------
    cell : Cell
        The cell.
    ended : Mapping
        What the fork server says of the child: exit, signal, timed_out, wall, output, leftovers.
    scratch : Path
        The cell's folder, with ``reply.json``, ``stages``, ``log`` and the artifact.
    home, tools : Path
        The toolkit, and cumatrix's own stand-ins: the only places that CUDA libraries may have been loaded from.
    entries : iterable of str
        Kernels that must have come out.
    device : Mapping, optional
        The real device that the cell was given, for a child that did not live to tell.
    """
    reply = _reply(scratch)
    stages = tuple(Stage(name) for name in dict.fromkeys(_read(scratch / "stages").split()) if name in list(Stage))
    info = BACKENDS[cell.toolchain.backend]
    language = info.language(cell.case)
    source = cell.case.sources[language] if language else Path("kernel.cu")
    name = source.name
    log = _log(scratch, ended, source, home)
    # A Python program prints what it likes: only what the library said is read for diagnostics, while it lives to tell.
    said = _said(scratch, source, home) if language == "python" and reply else log
    diagnostics = parse_log(said, name)
    notes = [one_line(note) for note in reply.get("notes", ())]
    if ended["leftovers"]:
        notes.append(f"ended {ended['leftovers']} process(es) that it left behind")
    if ended["output_total"] > len(ended["output"]) + 100:
        notes.append(f"printed {ended['output_total']} bytes, of which the first and the last part are kept")
    common: dict[str, Any] = {
        "stages": stages,
        "log": log,
        "seconds": round(reply.get("seconds", ended["wall"]), 4),
        "command": tuple(
            _near(_placed(_plain(line, scratch), home, tools), source) for line in reply.get("command", ())
        ),
        "observed": reply.get("observed", {}),
        "device": reply.get("device", dict(device or {})),
        "peak_bytes": reply.get("peak_bytes"),
    }
    stage = stages[-1] if stages else Stage.COMPILE
    if (not reply or reply["status"] != "built") and _full(scratch, log):
        reason = (
            f"the temporary folder {tempfile.gettempdir()} is full: make room there, or set TMPDIR to another folder"
        )
        return Outcome(
            status=Status.HARNESS_ERROR, reason=reason, diagnostics=diagnostics, notes=tuple(notes), **common
        )
    if ended["timed_out"]:
        notes.append(f"ended at the deadline, after {ended['wall']:.0f} s")
        return Outcome(status=Status.TIMED_OUT, stage=stage, diagnostics=diagnostics, notes=tuple(notes), **common)
    if not reply:
        how = _death(ended)
        who = "compiler" if stage.rank < Stage.LOAD.rank else "program"
        crash = Diagnostic(severity="fatal", message=f"the {who}'s process {how}", fingerprint="crash")
        return Outcome(
            status=Status.CRASHED, stage=stage, signal=ended["signal"], reason=how,
            diagnostics=(crash, *diagnostics), notes=tuple(notes), **common,
        )  # fmt: skip
    status = Status(reply["status"])
    stage = Stage(reply["stage"]) if reply.get("stage") else stage
    reason = one_line(reply["reason"])
    # Where the compiler runs as a process of its own, what the library has loaded in this one takes no part.
    leaks = [] if info.nvcc else leaked(reply.get("libraries", ()), home, tools)
    if leaks and status not in (Status.HARNESS_ERROR, Status.UNAVAILABLE):
        status, reason = Status.UNAVAILABLE, f"a CUDA outside of toolkit {home.name} was loaded: {', '.join(leaks)}"
    artifact = None
    if status is Status.BUILT:
        try:
            artifact, wanted = _artifact(cell, reply["artifact"] or {}, log), str(cell.target)
            if artifact.format == "object" and not any(note.startswith("not linked") for note in notes):
                notes.append("not linked: what came out is relocatable device code")
            notes += _traps(reply["artifact"])
            if reply["artifact"].get("by_driver") and artifact.target == f"{cell.target}a":
                notes.append(f"the driver's own linker made {artifact.target} of it")
                wanted = artifact.target
            names = reply["artifact"].get("names", {})  # a function's, where it was asked for by another
            wanting = [(name, names.get(name, name)) for name in entries]
            missing = [name for name, own in wanting if not any(own in kernel.name for kernel in artifact.kernels)]
            status, reason = _check(wanted, artifact, missing)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            status, reason = Status.HARNESS_ERROR, f"what was built cannot be read: {error}"
    if status is Status.CRASHED:
        name = one_line(reason) or "the compiler crashed"
        diagnostics = (Diagnostic(severity="fatal", message=name, fingerprint="crash"), *diagnostics)
    if status is Status.REJECTED and not any(d.severity in ("error", "fatal") for d in diagnostics):
        # A tool that says no without a message in a known form: its first words tell more than its last.
        words = [line.strip() for line in said.splitlines() if line.strip() and not read_line(line)]
        first = " | ".join(words[:_FIRST]) or reason
        diagnostics = (Diagnostic(severity="error", message=one_line(first), fingerprint="plain"), *diagnostics)
    return Outcome(
        status=status,
        stage=None if status in (Status.UNSUPPORTED, Status.UNAVAILABLE, Status.HARNESS_ERROR) else stage,
        reason="" if status in (Status.BUILT, Status.REJECTED) else reason,
        diagnostics=diagnostics,
        artifact=artifact,
        signal=reply.get("signal"),
        notes=tuple(notes),
        **common,
    )


def _full(scratch: Path, log: str) -> bool:
    """Whether there was no room for what a cell writes: its end says nothing of the program then."""
    if _NO_ROOM.search(log):
        return True
    try:
        room = os.statvfs(scratch)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _ROOM or (room.f_files > 0 and room.f_favail == 0)


def leaked(libraries: Sequence[str], home: Path, tools: Path) -> list[str]:
    """CUDA libraries that come from neither the toolkit nor cumatrix's stand-ins; the driver's own is no toolkit's."""
    allowed = tuple(f"{folder.resolve()}/" for folder in (home, tools))
    return [path for path in libraries if not path.startswith(allowed) and "/libcuda.so" not in path]


def _check(wanted: str, artifact: Artifact, missing: list[str]) -> tuple[Status, str]:
    if artifact.target != wanted:
        return Status.UNAVAILABLE, f"asked for {wanted}, what came out is for {artifact.target}"
    if missing:
        there = ", ".join(kernel.name for kernel in artifact.kernels) or "none"
        return Status.HARNESS_ERROR, f"kernel {', '.join(missing)} is not in what was built (kernels there: {there})"
    return Status.BUILT, ""


def _artifact(cell: Cell, told: Mapping[str, Any], log: str) -> Artifact:
    """What came out; where that is one program a kernel, all of them, one after another."""
    parts = [_part(cell, part, log) for part in told.get("parts") or [told]]
    targets = dict.fromkeys(target for _, target, _, _ in parts)
    data = b"".join(data for data, _, _, _ in parts)
    formats = {kind for _, _, _, kind in parts}
    return Artifact(
        format=next(kind for kind in ("ptx", "object", "cubin") if kind in formats),  # as far as all of them got
        target=", ".join(targets),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        kernels=tuple(kernel for _, _, kernels, _ in parts for kernel in kernels),
    )


def _part(cell: Cell, told: Mapping[str, str], log: str) -> tuple[bytes, str, tuple[KernelResources, ...], str]:
    data = Path(told["path"]).read_bytes()
    kind = told["format"]
    if kind == "ptx":
        target, kernels = read_ptx(data.decode(errors="replace"))
    elif kind in ("cubin", "object"):
        target, kernels = read_cubin(data, log)
        kind = "object" if is_relocatable(data) else "cubin"
        if not target.suffix and target.cc == cell.target.cc and not _has_suffix_note(data):
            target = cell.target.real  # this format does not say, and the number is right
    else:
        raise ValueError(f"unknown format {kind!r}")
    return data, str(target), kernels, kind


def _traps(told: Mapping[str, Any]) -> list[str]:
    """Remarks on kernels that only trap, as what is not meant for an architecture is often written."""
    names = []
    for part in told.get("parts") or [told]:
        data = Path(part["path"]).read_bytes()
        names += only_traps_in_ptx(data.decode(errors="replace")) if part["format"] == "ptx" else only_traps(data)
    return [f"remark: {name} does nothing but trap: it may be compiled out here" for name in names]


def _has_suffix_note(data: bytes) -> bool:
    """Whether the cubin quotes its assembler's command line; ABI 7 of before has a flag for the suffix instead."""
    return b".note.nv.tkinfo" in data or data[8] < 8


def _reply(scratch: Path) -> dict[str, Any]:
    """What the child wrote, where it is whole: a program could have written something else."""
    try:
        reply = json.loads((scratch / "reply.json").read_text("utf-8"))
        return reply if reply.keys() >= _FIELDS and reply["status"] in list(Status) else {}
    except (OSError, ValueError, AttributeError):
        return {}


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _log(scratch: Path, ended: Mapping[str, Any], source: Path, home: Path) -> str:
    printed = ended["output"]
    if source.suffix == ".py" and printed.strip():
        printed = f"--- printed while {source.name} ran, by the program or by what it called ---\n{printed}"
    parts = [_read(scratch / "log"), printed]
    text = _tidy("\n".join(part.rstrip("\n") for part in parts if part.strip()), scratch, source, home)
    if len(text) <= LOG_LIMIT:
        return text
    half = LOG_LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - LOG_LIMIT} characters left out ...]\n{text[-half:]}"


def _near(text: str, source: Path) -> str:
    """With the names of the program, and of what lies below its folder, as seen from there."""
    folders = {str(source.absolute().parent), str(source.resolve().parent)} - {"/"}
    for folder in sorted(folders, key=len, reverse=True):
        text = re.sub(rf"(?<![\w./-]){re.escape(folder)}/", "", text)
    return text


def _said(scratch: Path, source: Path, home: Path) -> str:
    """The part of the log that was not printed."""
    return _tidy(_read(scratch / "log").rstrip("\n"), scratch, source, home)


def _tidy(text: str, scratch: Path, source: Path, home: Path) -> str:
    text = clean(text).replace(f"{home}/", "$CUDA_HOME/")  # the same words on every machine
    # CuPy hands the program to NVRTC under the hash of everything: the name that people know says more.
    return _TIMES.sub("", _HASHED.sub(source.name, _near(_plain(text, scratch), source)))


def _placed(text: str, home: Path, tools: Path) -> str:
    """A command with the names that places have on every machine: ``$CUDA_HOME`` and, for what else is kept there, ``$CUMATRIX_HOME``."""
    text = _SITE.sub(r"…/\1", text)
    for folder, name in ((home, "$CUDA_HOME"), (home.resolve(), "$CUDA_HOME"), (tools.parent, "$CUMATRIX_HOME")):
        text = re.sub(rf"{re.escape(str(folder))}(?![\w.-])", name, text)
    return text


def _plain(text: str, scratch: Path) -> str:
    """Without the names of temporary folders, which differ from run to run."""
    text = text.replace(str(scratch.resolve()), ".").replace(str(scratch), ".")
    return re.sub(r"(?:\./|/tmp/)tmp[a-z0-9_]{8}/", "", text)


def _death(ended: Mapping[str, Any]) -> str:
    if ended["signal"]:
        return f"was ended by signal {ended['signal']} ({signal.strsignal(ended['signal'])})"
    return f"ended with exit code {ended['exit']} and without an answer"
