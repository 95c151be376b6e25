"""Run a Python program as ``python FILE`` does, in a working directory that keeps its writes."""

from __future__ import annotations

import builtins
import errno
import io
import os
import re
import shutil
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from harness.protocol.backend import Ended, Job, Rejected, Unavailable, Unsupported

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PLACES: dict[str, list[tuple[int, int | None]]] = {
    "os.mkdir": [(0, 2)],
    "os.remove": [(0, 1)],
    "os.rmdir": [(0, 1)],
    "os.rename": [(0, 2), (1, 3)],
    "os.link": [(1, 3)],
    "os.symlink": [(1, 2)],
    "os.truncate": [(0, None)],
    "os.chmod": [(0, 2)],
    "os.chown": [(0, 3)],
    "os.utime": [(0, 3)],
    "os.setxattr": [(0, None)],
    "os.removexattr": [(0, None)],
    "shutil.rmtree": [(0, 1)],
    "sqlite3.connect": [(0, None)],
}
"""Audit events that change files, by name: positions of a path and of its base folder
(https://docs.python.org/3/library/audit_events.html)."""
_OF_NAMES = frozenset({"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink"})


class WorkFolder:
    """The working directory of a program: links to everything next to it.

    Reads go to the user's files, through links. When the program writes to one of them, or below a
    folder of them, the link becomes a copy first. Writing by another way, such as the program's own ``__file__``, is
    a PermissionError. Compiled code that opens files by itself, and other processes, are not seen.

    Parameters
    ----------
    program : Path
        The folder of the program.
    scratch : Path
        The folder of the cell, where the working directory is made and everything may be written.
    """

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program = os.path.realpath(program)
        # A level deeper, so that what goes to ".." is out of the way too.
        self.path = os.path.join(os.path.realpath(scratch), "work", os.path.basename(self.program) or "program")
        os.makedirs(self.path)
        self._free = tuple(place + os.sep for place in (os.path.realpath(scratch), "/dev", "/proc"))
        self._busy = False
        self._guarding = False
        self._links: set[str] = set()
        self._link_all(self.program, self.path)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep the user's files as they are; for once, since what listens to a process cannot be taken off again."""
        self._guarding = True
        sys.addaudithook(self._listen)
        try:
            yield
        finally:
            self._guarding = False

    def _listen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._busy or not self._guarding:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING:
                self._let_go(path, None)
        elif event in _PLACES:
            for place, folder in _PLACES[event]:
                folder_argument = arguments[folder] if folder is not None and folder < len(arguments) else None
                self._let_go(arguments[place], folder_argument, name=event in _OF_NAMES)

    def _let_go(self, path: Any, folder: Any, *, name: bool = False) -> None:
        """See to it that changing `path` changes nothing of the user's, or raise.

        With `name` it is the directory's entry that changes, and what a link points to stays as it is.
        """
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        self._busy = True
        try:
            start = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) and folder >= 0 else os.getcwd()
            place = os.path.normpath(os.path.join(start, os.fsdecode(path)))
            if place.startswith(self.path + os.sep):
                self._own(os.path.dirname(place) if name else place)
            where = os.path.realpath(os.path.dirname(place)) if name else os.path.realpath(place)
            if self._is_users(where) or self._is_users(place):
                words = "cumatrix lets a program change nothing beside itself"
                raise PermissionError(errno.EACCES, words, os.path.relpath(place, self.program))
        finally:
            self._busy = False

    def _is_users(self, place: str) -> bool:
        inside = place == self.program or place.startswith(self.program.rstrip(os.sep) + os.sep)
        return inside and not (place + os.sep).startswith(self._free)

    def _own(self, place: str) -> None:
        """Replace links to the user's files on the way to `place` by folders and a copy."""
        here = self.path
        for part in Path(place).relative_to(self.path).parts:
            here = os.path.join(here, part)
            target = os.path.realpath(here)
            if not os.path.islink(here) or not (here in self._links or self._is_users(target)):
                continue
            os.unlink(here)
            if os.path.isdir(target):
                os.mkdir(here)
                self._link_all(target, here)
            elif os.path.isfile(target):
                shutil.copy(target, here)

    def _link_all(self, source: str, target: str) -> None:
        with suppress(PermissionError), os.scandir(source) as entries:  # a folder that cannot be listed
            for entry in entries:
                link = os.path.join(target, entry.name)
                os.symlink(entry.path, link)
                self._links.add(link)


# Entry points of the driver that a stand-in lacks, as Numba and NVIDIA's bindings report them.
_LACKING = re.compile(r"Driver missing function: cu|[Ff]unction \"?cu[A-Z]\w*\"? (is )?not found")
_OURS = str(Path(__file__).resolve().parents[1]) + os.sep
_RENAMED = str(Path(__file__).with_name("numba") / "renamed.py")
_GUARDS = {(__file__, "_listen"), (__file__, "_let_go"), (_RENAMED, "import_"), (_RENAMED, "__getattr__")}
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_USUAL = re.compile(r"[A-Z]\w*(Error|Exception|Exit|Interrupt|Iteration)")
_MOST, _MOST_OF_LOG = 20_000, 1 << 20
# The driver's own linker does not say that its words are ptxas's, nor does nvJitLink where it assembles what may be linked later.
_PTXAS = re.compile(
    r"^((nvJitLink|Linker) error log: )?(ptxas\b.*\b(error|fatal)\b|error\s*: Entry function\b)", re.MULTILINE
)


def from_elsewhere(error: BaseException) -> bool:
    """Return whether an exception came out of a library or the program, and not out of cumatrix.

    The innermost frame decides that is neither the standard library's nor made up: it may have passed something wrong.
    """
    if isinstance(error, SyntaxError):
        return not str(error.filename).startswith(_OURS)
    if _LACKING.search(_text(error)):
        return False
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if (frame.filename, frame.name) in _GUARDS:  # they refuse in the program's own line
            continue
        if frame.filename.startswith(_OURS):
            return False
        standard = frame.filename.startswith(_STANDARD) and "-packages" + os.sep not in frame.filename
        if not standard and not frame.filename.startswith("<"):
            return True
    return False


def by_library(error: BaseException, job: Job) -> bool:
    """Return whether the library under test took part: then it refused something, whichever line raised in the end."""
    names = (frame.f_globals.get("__name__") for frame, _ in _frames(error))
    return any(isinstance(name, str) and f"{name}.".startswith(tuple(f"{n}." for n in job.modules)) for name in names)


def passed(error: BaseException, name: str) -> bool:
    """Return whether an exception passed through a function of a name."""
    return any(frame.f_code.co_name == name for frame, _ in _frames(error))


def missing(error: ImportError, job: Job) -> str:
    """A missing module of a program, and how to install it; empty if the library under test lacks it."""
    name = error.name if isinstance(error.name, str) else ""
    top = name.partition(".")[0]
    if top in job.modules and top in sys.modules:
        return ""
    if isinstance(error, ModuleNotFoundError) and top:
        package = top.replace("_", "-")
        return f"no module {name} is there: install what has it, as in `{sys.executable} -m pip install {package}`"
    words = re.sub(r" \(/[^()]*\)$", "", first_line(error))
    return f"{words}: install a version that has it, with `{sys.executable} -m pip install`"


def described(error: BaseException, job: Job) -> str:
    """The exception's class and full text, and its place where the program and not the library raised it."""
    return tidy(_described(error, job), job)


def _described(error: BaseException, job: Job) -> str:
    name = " ".join(str(type(error).__name__).split())
    if not _USUAL.fullmatch(name):
        name = f"error: {name}"  # or a log would not show that it is one
    if isinstance(error, SyntaxError) and error.filename:
        return f"{name}: {error.msg}\n  {error.filename}:{error.lineno}: {(error.text or '').strip()}"
    if isinstance(error, SystemExit):
        text = f"{name}: {job.source.name} ended itself with {_code(error)}"
    elif isinstance(error, EOFError) and _innermost(error, "input"):
        text = f"{name}: {_text(error)} (it asks for input, and there is none here)"
    else:
        text = f"{name}: {_text(error)}"
    if by_library(error, job) and not isinstance(error, ImportError):
        return text
    # Words of the program's own choice must not look like a compiler's: those begin at the start of a line.
    return "\n  ".join([*text.splitlines(), *place_of(error, job)])


def place_of(error: BaseException, job: Job) -> list[str]:
    """The program's last position: file, line and its text."""
    if isinstance(error, SyntaxError) and error.filename:
        return [f"{error.filename}:{error.lineno}"]
    folder = os.path.realpath(job.source.parent) + os.sep
    found = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(folder)]
    found = [frame for frame in found if "-packages" + os.sep not in frame.filename]
    return [f"{frame.filename}:{frame.lineno}: {frame.line}" for frame in found[-1:]]


def in_short(error: BaseException, job: Job) -> str:
    """The exception on one line, with its place."""
    whole = _described(error, job).removeprefix("error: ")
    name, _, words = whole.partition(":")
    first_line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    place = place_of(error, job)
    text = f"{name}: {first_line[:300]}" + (f" at {place[0]}" if place and place[0] != first_line else "")
    return tidy(text, job)


def tidy(text: str, job: Job) -> str:
    """Without colours and without the names of the folders, so that the same refusal reads the same everywhere."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    folder = os.path.realpath(job.source.parent)
    work = os.path.join(os.path.realpath(job.scratch), "work", os.path.basename(folder))
    for place in (work, folder):
        # Numba writes names as seen from the current folder.
        for name in (place, os.path.relpath(place)):
            if name not in (".", os.sep):
                text = re.sub(rf"(?<![\w./-]){re.escape(name)}/", "", text)
    return re.sub(r"[^\s\"'(]*" + re.escape(job.scratch.name) + "/", "", text)


@contextmanager
def outcome_of(job: Job, library: str) -> Iterator[None]:
    """Tell refusals of a library that brings its own compilers from the program's and our own mistakes.

    Parameters
    ----------
    job : Job
        The cell.
    library : str
        The library and its release, as messages name them.
    """
    try:
        yield
    except (Ended, MemoryError):
        raise
    except BaseException as error:
        if not from_elsewhere(error):
            raise
        if isinstance(error, ImportError) and (what := missing(error, job)):
            raise Unavailable(f"{job.source.name} needs more than is installed: {what}") from None
        text = described(error, job)
        job.say(text)
        with open(job.scratch / "log", "rb") as log:
            log_text = log.read(_MOST_OF_LOG).decode(errors="replace")
        stage = "assemble" if is_ptxas_error(log_text) else "compile"
        raise Rejected(f"{library} refused the program", stage=stage) from None


def signal_of(code: int) -> int:
    """The signal behind an exit code, of a shell's too; 0 for none."""
    return -code if code < 0 else code - 128 if 128 < code < 160 else 0


@contextmanager
def errors_in_log(job: Job) -> Iterator[None]:
    """Have what compiled code prints to the standard error in the log of the cell, even when it aborts."""
    sys.stderr.flush()
    before, log = os.dup(2), os.open(job.scratch / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    os.close(log)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


@contextmanager
def left_out(job: Job, library: ModuleType, *names: str) -> Iterator[None]:
    """Have functions of a library that launch do nothing, since there is no device; a note counts the calls."""
    skipped = list[str]()
    before = {name: getattr(library, name) for name in names}
    for name in names:
        setattr(library, name, lambda *_arguments, name=name, **_options: skipped.append(name))
    try:
        yield
    finally:
        if skipped:
            job.notes.append(f"left out, since there is no device: {len(skipped)} of its launches")
        for name, function in before.items():
            setattr(library, name, function)


def check_plain(job: Job, library: str, instead: str) -> None:
    """Raise for options of a case that a library with its own compilers takes from the program alone.

    Parameters
    ----------
    job : Job
        The cell.
    library : str
        The library, as messages name it.
    instead : str
        What a program calls for them.
    """
    for name in ("debug", "fastmath", "flags", "lineinfo", "ptxas"):
        if job.options.get(name):
            raise Unsupported(f"{library} takes no options for compilers ({name}) but from the program: {instead}")


def is_ptxas_error(text: str) -> bool:
    """Return whether a linker's refusal is that of the assembler inside it."""
    return bool(_PTXAS.search(text))


def first_line(error: BaseException) -> str:
    """The first line of an exception's text that says something."""
    return next((line.strip() for line in _text(error).splitlines() if line.strip()), type(error).__name__)


def _text(error: BaseException) -> str:
    """An exception's text; a class of the program's own may fail to tell it."""
    try:
        text = str(error)
    except Exception as other:  # noqa: BLE001 (code of the program under test)
        return f"(its text cannot be told: {type(other).__name__})"
    return text if len(text) <= _MOST else f"{text[:_MOST]} [... {len(text) - _MOST} characters left out ...]"


def _code(end: SystemExit) -> str:
    code = end.code if isinstance(end.code, int) else 1
    detail = "" if isinstance(end.code, int) else f": {_text(end)}"
    refused = next(
        (f.f_locals.get("message") for f in _innermost(end, "error") if "argparse" in f.f_code.co_filename), ""
    )
    return f"exit code {code}{detail}" + (f": {refused}" if refused else "")


def _innermost(error: BaseException, name: str) -> list[FrameType]:
    """Frames of functions of a name; of the last one's callee where that is compiled code."""
    frames = list(_frames(error))
    if name == "input":  # it is compiled code and has no frame
        return [frame for frame, line in frames[-1:] if "input" in frame.f_code.co_names]
    return [frame for frame, _ in frames if frame.f_code.co_name == name]


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


@dataclass
class Program:
    """A program of one cell.

    Parameters
    ----------
    job : Job
        The cell; its definitions are there before the program's first line.
    given : Mapping
        What is there as well, by name: ``JIT_OPTIONS`` and its like.

    Attributes
    ----------
    module : ModuleType
        What it defined so far, as ``__main__``.
    failure : BaseException or None
        What ended it early, where that was neither the library's refusal nor a mistake of ours.
    """

    job: Job
    given: Mapping[str, Any] = field(default_factory=dict)
    module: ModuleType = field(default_factory=lambda: ModuleType("__main__"))
    failure: BaseException | None = None

    @cached_property
    def folder(self) -> str:
        """The folder of the program, which its own modules are below."""
        return os.path.realpath(self.job.source.parent)

    def run(self) -> None:
        """Run it to its end.

        Raises
        ------
        ImportError
            When it needs what is not there.
        Exception
            When the library refused something, or by a mistake of ours.
        """
        job, names = self.job, vars(self.module)
        path = str(Path(self.folder) / job.source.name)
        work = WorkFolder(job.source.parent, job.scratch)
        os.chdir(work.path)
        names.update(__file__=path, __builtins__=builtins, __cached__=None, **job.definitions, **self.given)
        sys.argv = [path]
        sys.path.insert(0, self.folder)
        sys.modules["__main__"] = self.module
        streams = sys.stdout, sys.stderr
        try:
            with io.open_code(path) as file:
                text = file.read()
            with work.guarded():
                exec(compile(text, path, "exec", dont_inherit=True), names)  # noqa: S102 (the program under test)
        except SystemExit as end:
            self.failure = end if end.code not in (None, 0) else None
        except (MemoryError, ImportError):
            raise
        except BaseException as error:
            if by_library(error, job) or not (from_elsewhere(error) or _at_its_start(error)):
                raise
            self.failure = error
        finally:
            sys.stdout, sys.stderr = streams

    def raise_failure(self, library: str) -> None:
        """Raise what ended it early, as the outcome of a cell that made nothing; see `outcome_of`."""
        if self.failure:
            with outcome_of(self.job, library):
                raise self.failure

    def note_failure(self) -> None:
        """Note what ended it early, in a cell whose kernels count all the same."""
        if self.failure:
            self.job.notes.append(f"{self.job.source.name} ended early: {in_short(self.failure, self.job)}")

    def raise_on_device(self) -> None:
        """Raise what ended it early on a real device, after its kernels were compiled: a launch that failed, or a wrong result.

        Raises
        ------
        Rejected
            At the stage ``launch``.
        """
        if self.failure:
            self.job.enter("launch")
            self.job.say(described(self.failure, self.job))
            raise Rejected(f"{self.job.source.name} ended early on the device", stage="launch")

    def owns(self, function: Any) -> bool:
        """Return whether a function belongs to the program or to a module next to it, and not to an installed package."""
        file = getattr(getattr(function, "__code__", None), "co_filename", "")
        return is_own(file, self.folder)

    def modules(self) -> list[ModuleType]:
        """The program's module, then those that it imported from its own folder."""
        others = [module for module in list(sys.modules.values()) if module is not self.module]
        return [self.module, *(m for m in others if is_own(getattr(m, "__file__", None) or "", self.folder))]


def is_own(file: str, folder: str) -> bool:
    """Return whether a file is below a program's folder, and not in an environment there."""
    below = file.startswith(folder.rstrip(os.sep) + os.sep)
    return below and "-packages" + os.sep not in file[len(folder) :]


def _at_its_start(error: BaseException) -> bool:
    """Return whether no line of the program has run: Python refused its text."""
    trace = error.__traceback__
    return trace is not None and trace.tb_next is None
