"""Running a Python program as ``python FILE`` does, but for where it writes."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.backends.python.beside import WorkFolder
from harness.backends.python.fault import by_library, from_elsewhere
from harness.protocol.backend import Job


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
