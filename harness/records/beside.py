"""The sidecar files of a ``.jsonl``: its plans and its input manifest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from harness.records.atomic import replace_files
from harness.records.errors import RecordError
from harness.records.inputs import Inputs, inputs_path, read_inputs
from harness.records.plan import Plan, plan_path, plans_json, read_plans


class Beside:
    """The sidecar files of one ``.jsonl``.

    Parameters
    ----------
    path : Path
        The ``.jsonl``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[tuple[int, ...], list[Plan]] | None = None

    def plans(self) -> list[Plan]:
        """The plans; read again only where that is another file by now: it is never written to, but replaced.

        Raises
        ------
        RecordError
            When they cannot be read.
        """
        state = self._state()
        if self._known is None or self._known[0] != state:
            self._known = (state, read_plans(plan_path(self.path)))
        return self._known[1]

    def is_of(self, run: str) -> bool:
        """Return whether the last plan belongs to this run; a plan without the run's name need not be read.

        Raises
        ------
        OSError, RecordError
            When they cannot be read.
        """
        if self._known is None and json.dumps(run).encode() not in plan_path(self.path).read_bytes():
            return False
        return bool(self.plans()[-1]["run"] == run)

    def keep_plans(self, plans: Sequence[Plan], records: bytes | None = None) -> None:
        """Write the plans, and with them the file of records where that is given."""
        replace_files(
            {**({self.path: records} if records is not None else {}), plan_path(self.path): plans_json(plans)}
        )
        self._known = (self._state(), list(plans))

    def inputs(self) -> Inputs:
        """The input manifest of the records; a damaged one counts as missing and is written again."""
        try:
            return read_inputs([self.path])
        except RecordError:
            return Inputs()

    def keep_inputs(self, inputs: Inputs) -> None:
        """Write what records follow from, or remove it where that is nothing."""
        beside = inputs_path(self.path)
        if inputs:
            replace_files({beside: inputs.to_json()})
        else:
            beside.unlink(missing_ok=True)

    def _state(self) -> tuple[int, ...]:
        """The state that identifies a version of a plan file; empty if there is none."""
        try:
            found = plan_path(self.path).stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
