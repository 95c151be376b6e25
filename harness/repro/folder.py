"""Writes the folder, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UsageError
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.records import Record
from harness.repro.readme import find, readme
from harness.repro.requirements import wheels_of
from harness.repro.script import SCRIPT, script_of
from harness.repro.subject import ReproTarget

RECORD = "record.json"
"""The record of the cell."""


def make_folder(subject: ReproTarget, records: Iterable[Record], out: Path) -> None:
    """Write everything that shows a cell's outcome without cumatrix.

    Parameters
    ----------
    subject : ReproTarget
        The cell.
    records : iterable of Record
        Other records, for the conditions of the outcome.
    out : Path
        The folder, which is made; it may be there and empty.

    Raises
    ------
    UsageError
        When something is in `out`, or nothing can be written there.
    PartUnavailable
        When versions have to be looked up, and there is no index.
    """
    check_free(out)
    wheels, script = wheels_of(subject), script_of(subject)
    contents = {
        **script.contents(),
        **{each.file: each.text.encode() for each in wheels},
        "README.md": readme(subject, script, wheels, find(subject.record, records)).encode(),
        RECORD: (json.dumps(subject.record, indent=1) + "\n").encode(),
    }
    taken = {place.split("/")[0] for place in subject.program.files} & {*contents, "cuda", "cuda-wheels", ".venv"}
    taken |= {SCRIPT[:-3]} & {place.split("/")[0] for place in subject.program.files}
    if taken:
        raise UsageError(
            f"the program has a file {min(taken)}, and so has the folder that shows it: rename the program's"
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with HeldFolder(out.parent, ".cumatrix-") as scratch:
            whole = Path(scratch, "repro")
            whole.mkdir()
            for place, path in subject.program.files.items():
                (whole / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, whole / place)
            for name, data in contents.items():
                (whole / name).write_bytes(data)
            os.replace(whole, out)  # an empty folder gives way
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror or error}") from None


def check_free(out: Path) -> None:
    """Raise `UsageError` where something lies already."""
    if os.path.lexists(out) and (out.is_symlink() or not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already: name another folder with --out")


@contextmanager
def copied(folder: Path) -> Iterator[tuple[Path, Path]]:
    """A copy of a folder, without installed packages, and an empty home; both are removed with the context."""
    with HeldFolder(temporary_folder(), TEMPORARY) as scratch:
        copy, home = Path(scratch, "repro"), Path(scratch, "home")
        made = shutil.ignore_patterns(".venv", "cuda", "cuda-headers", "*-wheels")
        shutil.copytree(
            folder, copy, symlinks=True,
            ignore=lambda place, names: made(place, names) if Path(place) == folder else (),  # a program may have a folder cuda
        )  # fmt: skip
        home.mkdir()
        yield copy, home
