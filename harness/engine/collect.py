"""Collect a child's files into an outcome, and check the child's claims against them.

The files are untrusted. `harness.engine.reader` reads them in a separate process with limits on time and memory.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from harness.artifacts import Contents, is_relocatable, read_cubin, read_ptx
from harness.artifacts.amdgpu import read_code_object
from harness.backends import BACKENDS
from harness.cases.kernel_texts import note_of
from harness.diagnostics import clean, one_line, parse_log, read_line
from harness.model import Artifact, Cell, Diagnostic, Outcome, Stage, Status, Target
from harness.protocol.codec import Message, WireError
from harness.protocol.messages import REPLY, Exit, Order, Product, Reply
from harness.protocol.process_output import KEPT, Unreadable, cut, read_plain
from harness.records.files import ArtifactFolder
from harness.records.record import LONGEST
from harness.toolkits.rocm import HIP_VERSION

LOG_LIMIT = 64 << 10
"""Length of a record's log in characters, including the mark for omitted text."""

_MADE = "made-by-cupy.cu"
_HASHED = re.compile(r"\b[0-9a-f]{32,64}\.cubin\.cu\b")
# A potential path with its prefix; before a folder of Python's packages, the path is specific to one machine.
_WORD = re.compile(r"[^\s'\":,;=]+")
_DEBIAN = Path("/usr")  # Debian's prefix for ROCm
_SITES = ("/site-packages/", "/dist-packages/")
_TIMES = re.compile(r"^.*\bCompile time = [\d.]+ ms\n?", re.MULTILINE)


@dataclass(frozen=True)
class Places:
    """Folders whose names differ between machines and between runs.

    Parameters
    ----------
    scratch : Path
        The cell's own folder.
    source : Path
        The program; its folder is the base of names.
    home : Path
        The toolkit: ``$CUDA_HOME`` in logs and commands, ``$ROCM_PATH`` for a ROCm. Debian's ROCm keeps its name.
    root : Path or None
        The project's folder, the base of names instead of the program's folder.
    kept : Path
        cumatrix's data folder, ``$CUMATRIX_HOME`` in commands.
    """

    scratch: Path
    source: Path
    home: Path
    kept: Path
    root: Path | None = None

    @cached_property
    def _toolkit(self) -> str:
        return (
            str(self.home)
            if self.home == _DEBIAN
            else "$ROCM_PATH"
            if (self.home / HIP_VERSION).is_file()
            else "$CUDA_HOME"
        )

    # Cached: each is used several times, and its links do not change.
    @cached_property
    def _home(self) -> Path:
        return self.home.resolve()

    @cached_property
    def _scratch(self) -> str:
        return str(self.scratch.resolve())

    @cached_property
    def _folders(self) -> list[str]:
        """The base folder of names, as written and with links resolved. A path that starts with the other path comes first."""
        near = self.root or self.source.absolute().parent
        return sorted({str(near), str(near.resolve())} - {"/"}, reverse=True)

    @cached_property
    def name(self) -> str:
        """The program's name."""
        place = self.source.absolute()
        return place.relative_to(self.root).as_posix() if self.root and place.is_relative_to(self.root) else place.name

    def in_log(self, text: str) -> str:
        """Return a log without machine-specific folders."""
        text = clean(text).replace(f"{self.home}/", f"{self._toolkit}/")
        # CuPy passes the program to NVRTC under a hash; the program's name is more useful. For a Python program, CuPy
        # generates the source, and its lines are not the program's.
        name = _MADE if self.source.suffix == ".py" else self.name
        return _TIMES.sub("", _HASHED.sub(lambda _found: name, self._near(text)))

    def in_command(self, text: str) -> str:
        """Return a command without machine-specific folders."""
        text = _WORD.sub(lambda found: _from_packages(found[0]), self._without_temporary_folders(text))
        for folder, name in (
            (self.home, self._toolkit), (self._home, self._toolkit), (self.kept, "$CUMATRIX_HOME"),
        ):  # fmt: skip
            text = re.sub(rf"{re.escape(str(folder))}(?![\w.-])", name, text)
        return self._relative(text)

    def _near(self, text: str) -> str:
        return self._relative(self._without_temporary_folders(text))

    def _without_temporary_folders(self, text: str) -> str:
        """Remove temporary folders."""
        text = text.replace(self._scratch, ".").replace(str(self.scratch), ".")
        return re.sub(r"(?:\./|/tmp/)tmp[a-z0-9_]{8}/", "", text)

    def _relative(self, text: str) -> str:
        """Make the names of the program, and of files in its folder, relative to that folder."""
        for folder in self._folders:
            text = re.sub(rf"(?<![\w./-]){re.escape(folder)}/", "", text)
            if self.root:
                text = re.sub(rf"(?<![\w./-])-I{re.escape(folder)}(?:/|(?![\w.-]))", "-I", text)
                text = re.sub(r"-I(?=[\s'\"]|$)", "-I.", text)
        return text


def _from_packages(word: str) -> str:
    """Shorten the prefix of a package folder: ``-I…/site-packages/nvidia/include``."""
    place = max(map(word.rfind, _SITES))
    return word if place < 0 else f"{word[: word.find('/')]}…{word[place:]}"


def whole_log(log: str, printed: str, places: Places) -> str:
    """Join the tools' messages and the output, without the middle if the text is longer than `LOG_LIMIT`."""
    if places.source.suffix == ".py" and printed.strip():
        printed = f"--- printed while {places.name} ran, by the program or by what it called ---\n{printed}"
    return cut(places.in_log("\n".join(part.rstrip("\n") for part in (log, printed) if part.strip())), LOG_LIMIT)


def read_file(path: Path, folder: Path, most: int, *, ends: bool = False) -> bytes:
    """Return the content of a file in a cell's folder.

    Parameters
    ----------
    path, folder : Path
        The file, and the folder that must contain it after links are resolved.
    most : int
        Size limit in bytes.
    ends : bool
        Whether to read a larger file without its middle.

    Raises
    ------
    Unreadable
        If the file is outside of the folder, is not a regular file, or is too large to be read as a whole.
    OSError
        If the file cannot be opened.
    """
    place = os.path.realpath(path)
    if not Path(place).is_relative_to(os.path.realpath(folder)):
        raise Unreadable(f"{path.name} lies outside of the cell's folder")
    return read_plain(Path(place), most, os.O_NOFOLLOW, ends=ends)


def remove(folder: Path) -> None:
    """Remove a cell's folder, even with unreadable folders or with nesting too deep for Python."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        for argv in (["chmod", "-R", "u+rwx", str(folder)], ["rm", "-rf", str(folder)]):
            subprocess.run(argv, capture_output=True)


def read_text(path: Path, folder: Path) -> str:
    """Return the text of a file, without the middle if it is long; empty if it cannot be read."""
    try:
        return read_file(path, folder, KEPT, ends=True).decode("utf-8", "replace")
    except (OSError, Unreadable):
        return ""


_MOST = 256 << 20
"""Size limit of a cell's products together, in bytes."""


def read_product(target: Target, product: Product, folder: Path, log: str) -> tuple[Artifact, bytes, list[str]]:
    """Read the product of a cell; several programs, one per kernel, are concatenated.

    Returns
    -------
    tuple
        The artifact, its content, and remarks on kernels that only trap, as code for other architectures often does.

    Raises
    ------
    OSError, Unreadable, ValueError
        If a file is missing or has another format.
    """
    parts: list[tuple[bytes, Contents, str]] = []
    left = _MOST
    for part in product.parts or [product]:
        data = read_file(Path(part.path), folder, left)
        left -= len(data)
        parts.append((data, *_contents(target, part.format, data, log)))
    data = b"".join(data for data, _, _ in parts)
    formats = {kind for _, _, kind in parts}
    artifact = Artifact(
        format=next(
            kind for kind in ("ptx", "object", "cubin", "hsaco") if kind in formats
        ),  # the lowest stage among the parts
        target=", ".join(dict.fromkeys(str(contents.target) for _, contents, _ in parts)),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        kernels=tuple(kernel for _, contents, _ in parts for kernel in contents.kernels),
    )
    trapping = [name for _, contents, _ in parts for name in contents.only_trap]
    return artifact, data, [f"remark: {name} does nothing but trap: it may be compiled out here" for name in trapping]


def check_product(
    target: Target, product: Product, artifact: Artifact, entries: Iterable[str]
) -> tuple[Status, str, str]:
    """Check the artifact against the request.

    Returns
    -------
    tuple
        The status, the reason if the status is not ``built``, and a note or an empty string.
    """
    wanted, note = str(target), ""
    if product.by_driver and artifact.target == f"{target}a":
        note, wanted = f"the driver's own linker made {artifact.target} of it", artifact.target
    if artifact.target != wanted:
        return Status.UNAVAILABLE, f"asked for {wanted}, what came out is for {artifact.target}", note
    missing = [
        name for name in entries if not any(product.names.get(name, name) in kernel.name for kernel in artifact.kernels)
    ]
    if missing:
        there = ", ".join(kernel.name for kernel in artifact.kernels) or "none"
        reason = one_line(f"kernel {', '.join(missing)} is not in what was built (kernels there: {there})")
        return Status.HARNESS_ERROR, reason, note
    return Status.BUILT, "", note


def _contents(wanted: Target, kind: str, data: bytes, log: str) -> tuple[Contents, str]:
    if kind == "ptx":
        contents = read_ptx(data.decode(errors="replace"))
    elif kind in ("cubin", "object"):
        contents = read_cubin(data, log)
        kind = "object" if is_relocatable(data) else "cubin"
        target = contents.target
        if target.cc == wanted.cc and not _has_suffix_note(data):
            contents = replace(contents, target=wanted.real)  # this format lacks the suffix, and the number matches
    elif kind == "hsaco":
        contents = Contents(*read_code_object(data))
    else:
        raise ValueError(f"unknown format {kind!r}")
    return contents, kind


def _has_suffix_note(data: bytes) -> bool:
    """Return whether the cubin records its assembler's command line; the earlier ABI 7 has a suffix flag instead."""
    return b".note.nv.tkinfo" in data or data[8] < 8


_FIRST = 3
"""Number of lines that a diagnostic quotes from a log in an unknown format."""

_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded")
_ROOM = 64 << 10  # bytes
_LARGEST_REPLY = 16 << 20  # bytes


@dataclass(frozen=True, kw_only=True)
class Remains(Message):
    """The remains of a cell after its child has ended, and where to read them.

    Parameters
    ----------
    order : Order
        The order of the child. Its folder contains the reply, ``stages``, ``log`` and the products.
    ended : Exit
        How the child ended.
    home, tools : Path
        The toolkit, and cumatrix's own stand-ins: CUDA libraries may be loaded from these folders only.
    source : Path
        The program.
    root : Path or None
        The project's folder.
    target : str
        The cell's target.
    nvcc : bool
        Whether the backend's compiler is a separate process.
    keep : str
        Folder for kept artifacts; empty for none.
    lost : str
        How the fork server ended, if it was lost with the cell; the child's reply is then ignored.
    """

    order: Order
    ended: Exit
    home: Path
    tools: Path
    source: Path
    target: str
    root: Path | None = None
    nvcc: bool = False
    keep: str = ""
    lost: str = ""

    @classmethod
    def of(cls, cell: Cell, order: Order, ended: Exit, home: Path, tools: Path, *, lost: str = "") -> Remains:
        """Return the remains of a cell, without its reads, which the scheduler processes."""
        return cls(
            order=order, ended=replace(ended, reads=None), home=home, tools=tools,
            source=_source_of(cell).absolute(), root=cell.case.root and cell.case.root.absolute(),
            target=str(cell.target), nvcc=BACKENDS[cell.toolchain.backend].nvcc, lost=lost,
        )  # fmt: skip


def lost_exit(seconds: float) -> Exit:
    """Return the exit of a child whose fork server was lost after `seconds`."""
    return Exit(
        exit=None, signal=None, timed_out=False, wall=seconds, leftovers=0, output="", output_total=0, peak_bytes=0, reads=None
    )  # fmt: skip


def collect_outcome(remains: Remains, keep: ArtifactFolder | None = None) -> Outcome:
    """Return the outcome of a cell whose child has ended.

    The child's claims are verified. A child without a reply has crashed. A child that claims ``built`` must have left a
    readable artifact for the right target, with the kernels that the case names.
    """
    left, ended = _Left.of(remains), remains.ended
    if remains.lost:
        left = replace(left, reply=None)
        reason = f"the worker process was lost while this cell ran: {remains.lost}"
        return _crashed(left.outcome(), left, reason, reason)
    base = left.outcome()
    if left.no_room:
        where = tempfile.gettempdir()
        reason = f"the temporary folder {where} is full: make room there, or set TMPDIR to another folder"
        return replace(base, status=Status.HARNESS_ERROR, reason=reason)
    if ended.machine_full:
        reason = "the machine ran out of memory, and the kernel ended a process of this cell: run fewer at a time (-j), or free memory, and run it again"
        return replace(base, status=Status.HARNESS_ERROR, reason=reason)
    if ended.no_memory:
        reason = "its processes together took more memory than they may (see --memory)"
        return _crashed(base, left, reason, f"out of memory: {reason}")
    if ended.timed_out:
        notes = (*base.notes, f"ended at the deadline, after {ended.wall:.0f} s")
        return replace(base, status=Status.TIMED_OUT, stage=left.stage, notes=notes)
    if left.reply is None:
        how = _death(ended) + left.unreadable
        who = "compiler" if left.stage.rank < Stage.LOAD.rank else "program"
        return _crashed(base, left, how, f"the {who}'s process {how}")
    return _judged(base, left, left.reply, keep)


def _crashed(base: Outcome, left: _Left, reason: str, message: str) -> Outcome:
    crash = Diagnostic(severity="fatal", message=message, fingerprint="crash")
    return replace(
        base, status=Status.CRASHED, stage=left.stage, signal=left.remains.ended.signal, reason=reason,
        diagnostics=(crash, *base.diagnostics),
    )  # fmt: skip


@dataclass(frozen=True)
class _Left:
    """The files of a child."""

    remains: Remains
    places: Places
    reply: Reply | None
    unreadable: str
    stages: tuple[Stage, ...]
    messages: str
    log: str

    @classmethod
    def of(cls, remains: Remains) -> _Left:
        scratch = remains.order.scratch
        places = Places(scratch, remains.source, remains.home, remains.tools.parent, remains.root)
        reply, unreadable = _reply(scratch)
        names = dict.fromkeys(read_text(scratch / "stages", scratch).split())
        log = read_text(scratch / "log", scratch)
        return cls(
            remains, places, reply, unreadable,
            stages=tuple(Stage(name) for name in names if name in list(Stage)),
            messages=cut(places.in_log(log.rstrip("\n")), LOG_LIMIT), log=whole_log(log, remains.ended.output, places),
        )  # fmt: skip

    @property
    def stage(self) -> Stage:
        """The last stage that began."""
        return self.stages[-1] if self.stages else Stage.COMPILE

    @property
    def no_room(self) -> bool:
        """Return whether the disk was full for the cell; its result then does not depend on the program."""
        if self.reply and self.reply.status == Status.BUILT:
            return False
        if _NO_ROOM.search(self.log):
            return True
        try:
            room = os.statvfs(self.remains.order.scratch)
        except OSError:
            return False
        return room.f_bavail * room.f_frsize < _ROOM or (room.f_files > 0 and room.f_favail == 0)

    @property
    def relevant(self) -> str:
        """The part of the log that is searched for diagnostics.

        The output of a Python program is arbitrary, so only the library's messages count if the program has replied.
        """
        return self.messages if self.places.source.suffix == ".py" and self.reply else self.log

    def outcome(self) -> Outcome:
        """Return the fields of the outcome that do not depend on how the child ended; the status is a placeholder."""
        ended = self.remains.ended
        reply = self.reply or Reply(status="crashed", seconds=ended.wall, device=self.remains.order.device)
        notes = [one_line(note) for note in reply.notes]
        if ended.leftovers:
            notes.append(f"ended {ended.leftovers} process(es) that it left behind")
        if ended.output_total > len(ended.output) + 100:
            total = ended.output_total
            notes.append(f"printed {total} bytes, of which the first and the last part are kept")
        return Outcome(
            status=Status.HARNESS_ERROR,
            stages=self.stages,
            diagnostics=parse_log(self.relevant, self.places.name),
            log=self.log,
            seconds=round(reply.seconds, 4),
            command=tuple(map(self.places.in_command, reply.command)),
            observed=reply.observed,
            device=reply.device,
            peak_bytes=ended.peak_bytes,
            notes=tuple(notes),
            shared_steps=tuple(map(one_line, reply.shared_steps)),
        )


def _judged(base: Outcome, left: _Left, reply: Reply, keep: ArtifactFolder | None) -> Outcome:
    """Return the outcome of a child that sent a reply."""
    remains, job = left.remains, left.remains.order.job
    target = Target.parse(remains.target)
    status, reason = Status(reply.status), one_line(reply.reason)
    diagnostics, notes, artifact = base.diagnostics, list(base.notes), None
    # If the compiler is a separate process, the libraries loaded in this process do not matter.
    others = [each.home for each in (job.assembler, job.linker) if each]
    leaks = [] if remains.nvcc else leaked(reply.libraries, remains.home, remains.tools, *others)
    if leaks and status not in (Status.HARNESS_ERROR, Status.UNAVAILABLE):
        status, reason = (
            Status.UNAVAILABLE,
            f"a CUDA outside of toolkit {remains.home.name} was loaded: {', '.join(leaks)}",
        )
    if status is Status.BUILT:
        try:
            if reply.artifact is None:
                raise ValueError("nothing came out")
            artifact, data, remarks = read_product(target, reply.artifact, remains.order.scratch, base.log)
            if artifact.format == "object" and not any(note.startswith("not linked") for note in notes):
                notes.append("not linked: what came out is relocatable device code")
            notes += remarks
            status, reason, note = check_product(target, reply.artifact, artifact, job.entries)
            notes += [note] if note else []
            if artifact.format == "cubin":
                notes += _launch_notes(artifact, target)
            if not artifact.kernels and (why := note_of(job, left.places.name, nvcc=remains.nvcc)):
                notes.append(one_line(why))
            if keep and status is Status.BUILT:
                keep.keep(artifact.format, artifact.sha256, data)
        except (OSError, Unreadable, ValueError, TypeError, LookupError, AttributeError) as error:
            status, reason = Status.HARNESS_ERROR, f"what was built cannot be read: {one_line(str(error))}"
    if status is Status.CRASHED:
        name = one_line(reason) or "the compiler crashed"
        diagnostics = (Diagnostic(severity="fatal", message=name, fingerprint="crash"), *diagnostics)
    if status is Status.REJECTED and not any(item.severity in ("error", "fatal") for item in diagnostics):
        # For a refusal in an unknown format, the first lines are more informative than the last.
        words = (line.strip() for line in left.relevant.splitlines() if line.strip() and not read_line(line))
        first = " | ".join(islice(words, _FIRST)) or reason
        diagnostics = (Diagnostic(severity="error", message=one_line(first), fingerprint="plain"), *diagnostics)
    stage = Stage(reply.stage) if reply.stage else left.stage
    return replace(
        base,
        status=status,
        stage=None if status in (Status.UNSUPPORTED, Status.UNAVAILABLE, Status.HARNESS_ERROR) else stage,
        reason="" if status in (Status.BUILT, Status.REJECTED) else reason,
        diagnostics=diagnostics,
        artifact=artifact,
        signal=reply.signal,
        notes=tuple(notes),
    )


def _launch_notes(artifact: Artifact, target: Target) -> list[str]:
    large = [(kernel.name, kernel.shared_bytes) for kernel in artifact.kernels if (kernel.shared_bytes or 0) > 48 << 10]
    if not large:
        return []
    from harness.causes.occupancy import (
        launch_note,
    )  # with a catalogue, which takes as long to load as many cells to read

    note = launch_note(large, str(target))
    return [one_line(note)] if note else []


def leaked(libraries: Sequence[str], *homes: Path) -> list[str]:
    """Return CUDA libraries from outside of the toolkit and cumatrix's stand-ins, except the driver's own library."""
    allowed = tuple(f"{folder.resolve()}/" for folder in homes)
    return [path for path in libraries if not path.startswith(allowed) and "/libcuda.so" not in path]


def _source_of(cell: Cell) -> Path:
    language = BACKENDS[cell.toolchain.backend].language(cell.case)
    return cell.case.sources[language] if language else Path("kernel.cu")


def _reply(scratch: Path) -> tuple[Reply | None, str]:
    """Parse the child's reply; None with a reason if it is invalid, because a program may have written it."""
    try:
        reply = Reply.from_line(read_file(scratch / REPLY, scratch, _LARGEST_REPLY))
    except OSError:
        return None, ""
    except (Unreadable, WireError) as error:
        return None, f": {one_line(str(error))}"
    if reply.status not in list(Status) or (reply.stage and reply.stage not in list(Stage)):
        return None, f": no status {one_line(reply.status)}"
    if not (reply.signal is None or 0 < reply.signal < signal.NSIG) or not 0 <= reply.seconds <= LONGEST:
        return None, f": no such signal ({reply.signal}) or time ({reply.seconds} s)"
    return reply, ""


def _death(ended: Exit) -> str:
    if ended.signal:
        return f"was ended by signal {ended.signal} ({signal.strsignal(ended.signal)})"
    return f"ended with exit code {ended.exit} and without an answer"
