"""Run a Python program as ``python FILE`` does, in a working directory that contains its writes."""

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
"""Audit events that change files, by name: argument positions of a path and of its base folder
(https://docs.python.org/3/library/audit_events.html)."""
_OF_NAMES = frozenset({"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink"})


class WorkFolder:
    """The working directory of a program, with links to everything next to the program.

    Reads follow the links to the user's files. Before the program writes to a linked file, or below a linked folder, a
    copy replaces the link. Writing by another path, such as the program's own ``__file__``, raises PermissionError.
    Compiled code that opens files itself, and other processes, are not guarded.

    Parameters
    ----------
    program : Path
        The program's folder.
    scratch : Path
        The cell's folder, which contains the working directory, and in which everything is writable.
    """

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program = os.path.realpath(program)
        # One level deeper, so that writes to ".." stay in the cell's folder too.
        self.path = os.path.join(os.path.realpath(scratch), "work", os.path.basename(self.program) or "program")
        os.makedirs(self.path)
        self._free = tuple(place + os.sep for place in (os.path.realpath(scratch), "/dev", "/proc"))
        self._busy = False
        self._guarding = False
        self._links: set[str] = set()
        self._link_all(self.program, self.path)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Protect the user's files inside the context.

        Call this once per process, because an audit hook cannot be removed.
        """
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
        """Make sure that changing `path` changes none of the user's files, or raise.

        With `name`, the operation changes the directory's entry, and not the target of a link.
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
                words = "cumatrix keeps the files next to a program unchanged"
                raise PermissionError(errno.EACCES, words, os.path.relpath(place, self.program))
        finally:
            self._busy = False

    def _is_users(self, place: str) -> bool:
        inside = place == self.program or place.startswith(self.program.rstrip(os.sep) + os.sep)
        return inside and not (place + os.sep).startswith(self._free)

    def _own(self, place: str) -> None:
        """Replace links to the user's files on the way to `place` with folders and a copy."""
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


# Messages of Numba and NVIDIA's bindings about entry points of the driver that a stand-in lacks.
_LACKING = re.compile(r"Driver missing function: cu|[Ff]unction \"?cu[A-Z]\w*\"? (is )?not found")
_OURS = str(Path(__file__).resolve().parents[1]) + os.sep
_RENAMED = str(Path(__file__).with_name("numba") / "renamed.py")
_GUARDS = {(__file__, "_listen"), (__file__, "_let_go"), (_RENAMED, "import_"), (_RENAMED, "__getattr__")}
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_USUAL = re.compile(r"[A-Z]\w*(Error|Exception|Exit|Interrupt|Iteration)")
_MOST, _MOST_OF_LOG = 20_000, 1 << 20
# The driver's own linker does not name ptxas in ptxas's messages, nor does nvJitLink if it assembles relocatable code.
_PTXAS = re.compile(
    r"^((nvJitLink|Linker) error log: )?(ptxas\b.*\b(error|fatal)\b|error\s*: Entry function\b)", re.MULTILINE
)


def from_elsewhere(error: BaseException) -> bool:
    """Return whether a library or the program raised an exception, and not cumatrix.

    The innermost frame that is neither the standard library's nor synthetic decides: it may have passed a wrong
    argument.
    """
    if isinstance(error, SyntaxError):
        return not str(error.filename).startswith(_OURS)
    if _LACKING.search(_text(error)):
        return False
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if (frame.filename, frame.name) in _GUARDS:  # these functions refuse on the program's behalf
            continue
        if frame.filename.startswith(_OURS):
            return False
        standard = frame.filename.startswith(_STANDARD) and "-packages" + os.sep not in frame.filename
        if not standard and not frame.filename.startswith("<"):
            return True
    return False


def by_library(error: BaseException, job: Job) -> bool:
    """Return whether the library under test was involved in an exception.

    If so, the library refused something, whichever line raised the exception.
    """
    names = (frame.f_globals.get("__name__") for frame, _ in _frames(error))
    return any(isinstance(name, str) and f"{name}.".startswith(tuple(f"{n}." for n in job.modules)) for name in names)


def passed(error: BaseException, name: str) -> bool:
    """Return whether an exception passed through a function with a given name."""
    return any(frame.f_code.co_name == name for frame, _ in _frames(error))


def missing(error: ImportError, job: Job) -> str:
    """Describe a program's missing module, and how to install it; empty if the library under test lacks it."""
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
    """Return the exception's class and full text, and its location if the program raised it and not the library."""
    return tidy(_described(error, job), job)


def _described(error: BaseException, job: Job) -> str:
    name = " ".join(str(type(error).__name__).split())
    if not _USUAL.fullmatch(name):
        name = f"error: {name}"  # otherwise a log does not show that this is an error
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
    # Messages are indented if the program chose the words, because a compiler's messages start at the beginning of a
    # line.
    return "\n  ".join([*text.splitlines(), *place_of(error, job)])


def place_of(error: BaseException, job: Job) -> list[str]:
    """Return the program's last position: file, line and source text."""
    if isinstance(error, SyntaxError) and error.filename:
        return [f"{error.filename}:{error.lineno}"]
    folder = os.path.realpath(job.source.parent) + os.sep
    found = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(folder)]
    found = [frame for frame in found if "-packages" + os.sep not in frame.filename]
    return [f"{frame.filename}:{frame.lineno}: {frame.line}" for frame in found[-1:]]


def in_short(error: BaseException, job: Job) -> str:
    """Return the exception on one line, with its position."""
    whole = _described(error, job).removeprefix("error: ")
    name, _, words = whole.partition(":")
    first_line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    place = place_of(error, job)
    text = f"{name}: {first_line[:300]}" + (f" at {place[0]}" if place and place[0] != first_line else "")
    return tidy(text, job)


def tidy(text: str, job: Job) -> str:
    """Remove colours and folder names from a text, so that equal refusals read the same everywhere."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    folder = os.path.realpath(job.source.parent)
    work = os.path.join(os.path.realpath(job.scratch), "work", os.path.basename(folder))
    for place in (work, folder):
        # Numba writes names relative to the current folder.
        for name in (place, os.path.relpath(place)):
            if name not in (".", os.sep):
                text = re.sub(rf"(?<![\w./-]){re.escape(name)}/", "", text)
    return re.sub(r"[^\s\"'(]*" + re.escape(job.scratch.name) + "/", "", text)


@contextmanager
def outcome_of(job: Job, library: str) -> Iterator[None]:
    """Distinguish refusals by a library with its own compilers from errors of the program and of cumatrix.

    Parameters
    ----------
    job : Job
        The cell.
    library : str
        The library and its release for messages.
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
    """Return the signal behind an exit code, also a shell's; 0 if there is none."""
    return -code if code < 0 else code - 128 if 128 < code < 160 else 0


@contextmanager
def errors_in_log(job: Job) -> Iterator[None]:
    """Redirect standard error of compiled code into the cell's log, even if the code aborts."""
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
    """Disable functions of a library that launch, because there is no device; note the number of calls."""
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
    """Raise for case options that a library with its own compilers accepts only from the program.

    Parameters
    ----------
    job : Job
        The cell.
    library : str
        The library's name for messages.
    instead : str
        What a program uses instead of the options.
    """
    for name in ("debug", "fastmath", "flags", "lineinfo", "ptxas"):
        if job.options.get(name):
            raise Unsupported(f"{library} takes no options for compilers ({name}) but from the program: {instead}")


def is_ptxas_error(text: str) -> bool:
    """Return whether a linker's refusal comes from its built-in assembler."""
    return bool(_PTXAS.search(text))


def first_line(error: BaseException) -> str:
    """Return the first nonblank line of an exception's text."""
    return next((line.strip() for line in _text(error).splitlines() if line.strip()), type(error).__name__)


def _text(error: BaseException) -> str:
    """Return an exception's text; a class in the program may fail to produce it."""
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
    """Return the frames of functions with a given name; for compiled code, the frame of its caller."""
    frames = list(_frames(error))
    if name == "input":  # compiled code has no frame
        return [frame for frame, line in frames[-1:] if "input" in frame.f_code.co_names]
    return [frame for frame, _ in frames if frame.f_code.co_name == name]


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


@dataclass
class Program:
    """The program of one cell.

    Parameters
    ----------
    job : Job
        The cell; its definitions exist before the program's first line.
    given : Mapping
        Additional names, such as ``JIT_OPTIONS``.

    Attributes
    ----------
    module : ModuleType
        The module with the program's definitions so far, as ``__main__``.
    failure : BaseException or None
        The exception that ended the program early, unless it was the library's refusal or an error of cumatrix.
    """

    job: Job
    given: Mapping[str, Any] = field(default_factory=dict)
    module: ModuleType = field(default_factory=lambda: ModuleType("__main__"))
    failure: BaseException | None = None

    @cached_property
    def folder(self) -> str:
        """The program's folder, which contains its own modules."""
        return os.path.realpath(self.job.source.parent)

    def run(self) -> None:
        """Run the program to its end.

        Raises
        ------
        ImportError
            If a required module or name is missing.
        Exception
            If the library refused something, or cumatrix has an error.
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
        """Raise the failure as the outcome of a cell without an artifact; see `outcome_of`."""
        if self.failure:
            with outcome_of(self.job, library):
                raise self.failure

    def note_failure(self) -> None:
        """Note the failure in a cell whose kernels count anyway."""
        if self.failure:
            self.job.notes.append(f"{self.job.source.name} ended early: {in_short(self.failure, self.job)}")

    def raise_on_device(self) -> None:
        """Raise the failure on a real device after the kernels were compiled: a failed launch or a wrong result.

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
        """Return whether a function belongs to the program or to a module next to it, and not to a package."""
        file = getattr(getattr(function, "__code__", None), "co_filename", "")
        return is_own(file, self.folder)

    def modules(self) -> list[ModuleType]:
        """Return the program's module, then the modules that it imported from its own folder."""
        others = [module for module in list(sys.modules.values()) if module is not self.module]
        return [self.module, *(m for m in others if is_own(getattr(m, "__file__", None) or "", self.folder))]


def is_own(file: str, folder: str) -> bool:
    """Return whether a file is below a program's folder, but not in an environment there."""
    below = file.startswith(folder.rstrip(os.sep) + os.sep)
    return below and "-packages" + os.sep not in file[len(folder) :]


def _at_its_start(error: BaseException) -> bool:
    """Return whether Python refused the program's text before any line ran."""
    trace = error.__traceback__
    return trace is not None and trace.tb_next is None
