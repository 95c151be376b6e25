"""The test that C-Vise and C-Reduce call, in a folder of its own that holds a smaller program: ``python -m harness.repro.interesting FOLDER``.

Ends with 0 where the program still shows the same first message, and no other errors than the whole one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.records import Record
from harness.repro.check import difference, errors_of, run
from harness.repro.folder import RECORD


def main() -> int:
    """Run the script of a folder on the program in the current one."""
    folder, here = Path(sys.argv[1]), Path.cwd()
    goal = json.loads(folder.parent.joinpath("goal.json").read_text("utf-8"))
    record: Record = json.loads(folder.joinpath(RECORD).read_text("utf-8"))
    beside(folder, here, list(map(Path, goal["programs"])))
    shown = run(here, Path(goal["home"]), goal["seconds"])
    errors, wanted = errors_of(shown.printed, record), goal["errors"]
    same = not difference(record, shown) and errors[:1] == wanted[:1] and set(errors) <= set(wanted)
    return 0 if same else 1


def beside(folder: Path, here: Path, programs: Sequence[Path]) -> None:
    """Link everything of a folder except the program's files into the present one."""
    own = {place for program in programs for place in (program, *program.parents)}
    for below in own - set(programs):
        for path in (folder / below).iterdir():
            place = here / below / path.name
            if below / path.name not in own and not place.is_symlink() and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(path)


if __name__ == "__main__":
    sys.exit(main())
