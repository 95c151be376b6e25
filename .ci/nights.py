"""Comparison of a night with the last night of each environment. Imports the standard library only.

``night/TIER/ENVIRONMENT.jsonl`` has the records of this night. ``before`` has the state of earlier nights, and ``after`` the new state:
``history``, and in ``last`` the records of each environment's last night. An environment that sends nothing for a night keeps its
records in ``last``, and is compared with them when it sends records again.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NIGHT, BEFORE, AFTER = Path("night"), Path("before"), Path("after")
LISTED = 20  # maximum number of cells in a list
ENDINGS = (".jsonl", ".plan.json", ".inputs.json")
SHOWN_BY_OTHERS = ("regression", "fix", "lost")  # kinds of changes that are listed by cell, not counted


@dataclass
class Environment:
    """An environment of a tier: its results of this night, compared with its last night."""

    name: str
    tier: str
    shards: tuple[int, ...] = ()  # shards of its jobs; none if it was not scheduled
    lost: tuple[int, ...] = ()  # shards that sent nothing while others did
    came: bool = False
    date: str = ""  # day of its last night
    last: int | None = (
        None  # if nothing came: number of cells not as expected in its last night; None without such a night
    )
    unexpected: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name} ({self.tier})"

    @property
    def new(self) -> list[dict[str, Any]]:
        """Cells that are not as expected, and were as expected before or are new."""
        return [item for item in self.unexpected if item["new"]]


def sent(source: Path, name: str) -> bool:
    """Return whether a folder has records of an environment, at least one complete line."""
    records = source / f"{name}.jsonl"
    return records.is_file() and b"\n" in records.read_bytes()


def last_run(folder: Path, name: str) -> dict[str, Any]:
    """Return the plan of the last run in an environment's records; empty if no plan is readable."""
    try:
        found = json.loads((folder / f"{name}.plan.json").read_bytes())
        plan: dict[str, Any] = found["plans"][-1] if "plans" in found else found
        return plan if plan["run"] and isinstance(plan["cells"], list) else {}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def unfinished(folder: Path, name: str, before: Mapping[str, Any]) -> str:
    """Compare the plan and the records of an environment's run; return a sentence if planned cells are missing, else an empty text.

    Parameters
    ----------
    folder : Path
        Folder of the records, which may contain earlier runs.
    name : str
        The environment.
    before : Mapping
        The result of `last_run` before the run.
    """
    plan = last_run(folder, name)
    if not plan or plan["run"] == before.get("run"):
        return f"no records from {name}"
    came = set()
    try:
        lines = (folder / f"{name}.jsonl").read_bytes().splitlines()
    except OSError:
        lines = []
    for line in lines:
        try:
            record = json.loads(line)
            came |= {(record["cell"], record.get("program", ""))} if record["run"] == plan["run"] else set()
        except (ValueError, LookupError, TypeError):
            continue  # the incomplete last line of a killed run
    wanted = {(cell["cell"], cell.get("program", "")): cell["cell"] for cell in plan["cells"]}
    lost = [cell for key, cell in wanted.items() if key not in came]
    if not came:
        return f"no records from {name}"
    if not lost:
        return ""
    more = f" and {len(lost) - LISTED} more" if len(lost) > LISTED else ""
    return f"{name} ended early: {_count(len(lost))} of {len(wanted)} never arrived: {', '.join(lost[:LISTED])}{more}"


def planned(jobs: str) -> list[Environment]:
    """Return the environments in the plan of the night (``nightly.py matrix``)."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for job in json.loads(jobs)["include"]:
        for name in job["environments"].split(","):
            place = (job["tier"], name)
            found[place] = (*found.get(place, ()), job["shard"])
    return [Environment(name=name, tier=tier, shards=shards) for (tier, name), shards in found.items()]


def look(environments: Iterable[Environment]) -> None:
    """Compare each environment with its last night, and keep the newer records for the next night."""
    for each in environments:
        tonight, before, after = (folder / each.tier for folder in (NIGHT, BEFORE / "last", AFTER / "last"))
        known = sent(before, each.name)
        if known:
            each.date = _date(before / f"{each.name}.plan.json")
        each.came = sent(tonight, each.name)
        each.lost = tuple(set(each.shards) - _parts(tonight / f"{each.name}.plan.json")) if len(each.shards) > 1 else ()
        if each.came and each.lost and known:
            # Cells of a missing part keep their last records.
            put_together([before, tonight], after, each.name)
            tonight = after
        if each.came:
            now = tonight / f"{each.name}.jsonl"
            found = _diff(before / now.name if known else now, now)
            each.unexpected, each.changes = found["unexpected"], found["changes"]
            if not known:
                each.unexpected = [{**item, "before": None, "new": True} for item in each.unexpected]
        elif known:
            there = before / f"{each.name}.jsonl"
            each.last = len(_diff(there, there)["unexpected"])
        if (each.came or known) and tonight != after:
            copy(tonight if each.came else before, after, each.name)


def left(environments: Iterable[Environment]) -> list[Environment]:
    """Return the environments of earlier nights that are not in the plan of this night."""
    asked = {(each.tier, each.name) for each in environments}
    files = sorted((BEFORE / "last").glob("*/*.jsonl"))
    found = [Environment(name=path.stem, tier=path.parent.name) for path in files]
    return [each for each in found if (each.tier, each.name) not in asked]


def put_together(sources: list[Path], target: Path, name: str) -> None:
    """Merge an environment's records of several parts or nights; `cumatrix merge` names missing parts."""
    target.mkdir(parents=True, exist_ok=True)
    files = [str(folder / f"{name}.jsonl") for folder in sources]
    done = subprocess.run(["cumatrix", "merge", *files, "--out", str(target / f"{name}.jsonl")])
    if done.returncode not in (0, 1):
        done.check_returncode()


def copy(source: Path, target: Path, name: str) -> None:
    """Copy an environment's records and its plan."""
    target.mkdir(parents=True, exist_ok=True)
    for ending in ENDINGS:
        if (source / f"{name}{ending}").is_file():
            shutil.copyfile(source / f"{name}{ending}", target / f"{name}{ending}")


def state_of(environments: Iterable[Environment]) -> str:
    """Return the state of the night: ``fine``, or a combination of ``incomplete``, ``regression`` and ``failing``."""
    words = []
    environments = list(environments)
    asked = [each for each in environments if each.shards]
    if any(not each.came or each.lost or any(item["mark"] == "missing" for item in each.unexpected) for each in asked):
        words.append("incomplete")
    if any(each.new for each in asked):
        words.append("regression")
    elif any(each.unexpected or (not each.came and each.last) for each in environments):
        words.append("failing")
    return ", ".join(words) or "fine"


def told(environments: Iterable[Environment], address: str) -> Iterator[str]:
    """Yield the report of the night in Markdown, new failures first. Texts of compilers are escaped as code spans."""
    environments = list(environments)
    for each in environments:
        if not each.came:
            yield f"- **{each}**: {_absent(each)}"
        elif each.lost:
            kept = f"; its cells are as in the last night, {each.date}" if each.date else ""
            yield f"- **{each}**: nothing came from {_shards(each.lost)} of {len(each.shards)}{kept}"
    for title, new in (("New", True), ("As before", False)):
        for each in environments:
            items = [item for item in each.unexpected if item["new"] is new]
            if items:
                against = f", against its last night {each.date}" if each.date else ", its first night"
                yield f"\n### {title}: {_count(len(items))} not as expected in {each}{against if new else ''}\n"
                yield from _listed(items, address)
    yield ""
    for each in environments:
        kinds = Counter(item["kind"] for item in each.changes)
        fixed = [item["cell"] for item in each.changes if item["kind"] == "fix"]
        if fixed:
            more = f" and {len(fixed) - LISTED} more" if len(fixed) > LISTED else ""
            yield f"- {each}: fixed {', '.join(map(code, fixed[:LISTED]))}{more}"
        others = [f"{count} {kind}" for kind, count in kinds.items() if kind not in SHOWN_BY_OTHERS]
        if others:
            yield f"- {each}: {', '.join(others)}"


def code(text: str) -> str:
    """Return a code span that the text cannot close: the text can come from compilers."""
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    text = text if len(text) <= 300 else f"{text[:299]}…"
    fence = "`" * (1 + max((len(ticks) for ticks in re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}" if text else ""


def _absent(each: Environment) -> str:
    where = f"nothing came from {_shards(each.shards)}" if each.shards else "was not asked for"
    if each.last is None:
        return f"{where}; there is no earlier night of it"
    return f"{where}; not as expected in its last night, {each.date}: {_count(each.last)}"


def _shards(numbers: Iterable[int]) -> str:
    names = [str(number) for number in sorted(numbers)]
    return f"shard {names[0]}" if len(names) == 1 else f"shards {', '.join(names[:-1])} and {names[-1]}"


def _parts(plan: Path) -> set[int]:
    """Return the numbers of the shards (``--shard``) in a plan."""
    try:
        value: Mapping[str, Any] = json.loads(plan.read_bytes())
        return {each["shard"]["number"] for each in value.get("plans", [value])}
    except (OSError, ValueError, LookupError, TypeError):
        return set()


def _listed(items: list[dict[str, Any]], address: str) -> Iterator[str]:
    # An interrupted job can lack hundreds of planned cells: report their number.
    lost = [item for item in items if item["mark"] == "missing"]
    items = [item for item in items if item["mark"] != "missing"]
    if lost:
        yield f"- {_count(len(lost))} never arrived, {code(lost[0]['cell'])} among them"
    for item in items[:LISTED]:
        name = code(item["cell"])
        link = f"[{name}]({address.rstrip('/')}/{item['page']})" if address else name
        change = f"{item['before']} → {item['outcome']}" if item["before"] is not None else item["outcome"]
        said = f": {code(item['message'])}" if item["message"] else ""
        yield f"- {link} {change.replace('_', ' ')} ({item['verdict'] or 'no verdict'}){said}"
    if len(items) > LISTED:
        yield f"- … and {len(items) - LISTED} more"


def _count(number: int) -> str:
    return "1 cell" if number == 1 else f"{number or 'no'} cells"


def _date(plan: Path) -> str:
    """Return the day of the first run in a plan, or ``of an unknown day``."""
    try:
        value: Mapping[str, Any] = json.loads(plan.read_bytes())
        return str(min(each["started"] for each in value.get("plans", [value])))[:10]
    except (OSError, ValueError, KeyError):
        return "of an unknown day"


def _diff(old: Path, new: Path) -> dict[str, Any]:
    done = subprocess.run(["cumatrix", "diff", "--json", str(old), str(new)], stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        done.check_returncode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found
