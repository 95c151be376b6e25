"""Fuzzed input other than results: case files, conditions, logs, and the output of a cell's process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import mutations
from cells import make_case, make_cell, make_exit, make_order
from in_process import Called, call, limited
from record_builders import cell, record, rejected

from harness.backends import BACKENDS
from harness.cases.discovery import load_cases
from harness.cases.launch import launches_for, references_of
from harness.cases.rules import options_for
from harness.diagnostics import parse_log
from harness.engine.collect import Remains, collect_outcome
from harness.engine.plan import choose
from harness.errors import CumatrixError
from harness.model import Case, Cell, Outcome, Status, Target, Toolchain, ToolkitRef
from harness.model.condition import Condition, ConditionError
from harness.model.judge import expectation_of, judge
from harness.protocol.messages import REPLY
from harness.records.schema import check_record

INPUTS = ("cases", "conditions", "logs", "replies")
"""Names of the fuzzed kinds."""

_CASE: dict[str, Any] = {
    "title": "A title", "description": "Some\nlines.", "features": ["wmma"], "links": ["https://example.org/a"],
    "include": ["."], "source": {"cuda": "kernel.cu", "python": "kernel.py"},
    "entry": {"cuda": ["scale"], "python": {"scale": "void(float32[:])"}},
    "parameters": {"bytes": [1, 2], "word": ["one", "two"], "fragment": {"half": {"ELEMENT": "half", "M": 16, "ON": True}, "tf32": {"M": 8}}},
    "options": [{"when": 'backend == "nvrtc" and bytes == 1', "std": "c++17", "flags": ["-lineinfo"]}],
    "unsupported": [{"when": 'fragment == "tf32" and cc < "8.0"', "reason": "no such thing", "link": "https://example.org/b"}],
    "launch": [{"grid": [1, 2], "block": 32, "shared": 64, "arguments": [
        {"name": "a", "type": "float[]", "size": ["M", 16], "fill": "random", "seed": 1}, {"name": "n", "type": "int", "value": 7}]}],
    "verify": [{"when": "bytes == 2", "reference": "reference.py", "rtol": 1e-3}, {"expressions": {"a": "a * 2"}}],
    "expect": [{"when": 'bytes == 2 and cc >= "9.0"', "status": "rejected", "stage": "compile", "diagnostic": "too (large|small)", "xfail": True, "reason": "because"}],
}  # fmt: skip
_TARGETS = ("sm_75", "sm_90a", "compute_120f")
_MOST_CELLS = 60
# Parts of valid and invalid conditions.
_WORDS = (
    *("backend", "target", "suffix", "virtual", "device", "wheels", "cc", "toolkit", "headers", "library", "python", "cupy", "numba", "bytes", "fragment", "word", "x", "cell"),
    *('"nvrtc"', '"8.0"', '"13.x"', '">=12,<13"', '"sm_80"', '"half"', "''", '"\\ud800"', "1", "2.5", "1e999", "-1", "True", "None", "0x10", "9" * 5000, '"' + "9." * 300 + '"', '"1!2.0+a.b"'),
    *("and", "or", "not", "in", "not in", "==", "!=", "<", "<=", ">", ">=", "is", "(", ")", "[", "]", "(1, 2)", '("nvrtc", "nvcc")', ",", "lambda: 1", "x.y", "f(x)", "+", "**", "if", "else", ":=", "#", "\n", "\\", "\0"),
)  # fmt: skip


class InputFuzzer:
    """Fuzzer that mutates other input than results, with the interface of `fuzzing.Fuzzer`.

    Parameters
    ----------
    folder : Path
        Folder for the files; the next mutation removes the files of the last.
    seed : str
        Seed of the mutations; equal seeds give equal files.
    """

    def __init__(self, folder: Path, seed: str) -> None:
        self.folder = folder
        self.random = Random(seed)
        corpus = Path(__file__).with_name("causes") / "corpus"
        self.lines = [line for path in sorted(corpus.glob("*.log")) for line in path.read_text("utf-8").splitlines()]
        self.case = make_case(Path("kernel.cu"))
        self.outcomes = (Outcome(status=Status.BUILT), rejected("too small"), Outcome(status=Status.CRASHED, signal=11))

    def round(self, kind: str, bad: Path) -> Iterator[Called]:
        """Mutate an input of a kind, and read it in every way."""
        yield from getattr(self, f"_{kind}")(bad)

    def _cases(self, bad: Path) -> Iterator[Called]:
        folder = bad / "cases" / "topic" / "some"
        folder.mkdir(parents=True)
        for name in ("kernel.cu", "kernel.py", "reference.py"):
            (folder / name).write_text("\n")
        text = toml(mutations.mutated(_CASE, self.random) if self.random.random() < 0.85 else _CASE)
        data = text.encode("utf-8", "surrogatepass")
        (folder / "case.toml").write_bytes(mutations.damaged(data, self.random) if self.random.random() < 0.3 else data)
        checked = call("cases", "check", "--cases", bad / "cases")
        yield checked
        yield call("cases", "list", "--cases", bad / "cases")
        yield call("cases", "list", "topic/some", "--cases", bad / "cases", "--json")
        if checked.code == 0:
            yield _done("what a run makes of the case", partial(self._plan, bad / "cases"))

    def _plan(self, root: Path) -> None:
        """Do everything that a run does with a case before and after compiling. A case that passed the checks never ends a run."""
        cells = list(islice((each for case in load_cases(root) for each in _cells(case)), _MOST_CELLS))
        for each in cells:
            options_for(each)
            launches_for(each)
            references_of(each.case)
            expected = expectation_of(each)
            for outcome in self.outcomes:
                judge(expected, outcome)
                check_record(record(each, outcome))
        for where in ('bytes == 1 and toolkit >= "12.0"', 'fragment != "x" or word == "one"'):
            with contextlib.suppress(CumatrixError):  # the mutation removed the parameter
                choose(cells, where)

    def _conditions(self, bad: Path) -> Iterator[Called]:
        words = self.random.choices(_WORDS, k=self.random.choice((1, 3, 3, 5, 7, 9, 15, 40)))
        if self.random.random() < 0.7:
            words = [
                self.random.choice(_WORDS[:35] if place % 2 == 0 else _WORDS[36:47]) for place in range(len(words))
            ]
        text = " ".join(words)
        if self.random.random() < 0.1:
            text = self.random.choice(("not ", "(", "-", "[")) * self.random.choice((50, 1990)) + text
        (bad / "condition").write_text(text, "utf-8", "surrogateescape")
        yield _done(text, partial(self._hold, text))
        if self.random.random() < 0.05:
            yield call("cases", "list", "--cases", bad, text)
            yield call("merge", bad, "--out", bad / "merged.jsonl", "--where", text.replace("\0", ""))

    def _hold(self, text: str) -> None:
        """Check a condition: it is a `ConditionError`, or it holds or fails for every cell."""
        try:
            condition = Condition.parse(text, {"bytes": [1, 2], "fragment": ["half", "tf32"], "word": ["one", 2, True]})
        except ConditionError:
            return
        for labels in (
            {},
            {"bytes": 1, "fragment": "half", "word": True},
            {"bytes": 2, "fragment": "tf32", "word": "one"},
        ):
            for target in _TARGETS:
                assert condition(cell(variant=labels, target=target).facts()) in (True, False)

    def _logs(self, bad: Path) -> Iterator[Called]:
        lines = self.random.choices(self.lines, k=self.random.choice((1, 5, 30, 300)))
        for place in range(len(lines)):
            if self.random.random() < 0.3:
                line = mutations.damaged(lines[place].encode(), self.random).decode("utf-8", "replace")
                part = self.random.choice(re.findall(r"\s+|\w+|\W", line) or [""])
                lines[place] = self.random.choice(
                    (line, line.replace(part, part * self.random.choice((2, 40_000)), 1), part * 40_000)
                )
        text = self.random.choice(("\n", "\n", "\r\n", "\r", "", "\u2028")).join(lines)[: 1 << 18]
        (bad / "log").write_text(text, "utf-8", "surrogateescape")
        yield _done("parse_log", partial(_parse, text))
        yield call("explain", bad / "log", seconds=60)
        yield call("explain", bad / "log", "--json", seconds=60)

    def _replies(self, bad: Path) -> Iterator[Called]:
        home, tools, scratch = bad / "home", bad / "tools", bad / "cell"
        for folder in (home, tools, scratch):
            folder.mkdir()
        artifact = scratch / "artifact.ptx"
        artifact.write_text(".version 8.4\n.target sm_80\n.visible .entry scale()\n{ ret; }\n")
        good = {
            "status": self.random.choice(list(Status)), "reason": "so", "signal": None, "stage": "compile", "seconds": 1.5, "stages": ["compile"],
            "command": ["nvrtc", "-arch"], "notes": ["one"], "shared_steps": ["cicc"], "observed": {"nvrtc": "12.4"}, "device": {},
            "artifact": {"path": str(artifact), "format": "ptx"}, "libraries": [str(home / "libnvrtc.so")],
        }  # fmt: skip
        places: Sequence[Path] = (scratch / REPLY, scratch / "stages", scratch / "log", artifact)
        (scratch / REPLY).write_bytes(mutations.json_file(good, self.random))
        (scratch / "stages").write_text("preprocess\ncompile\n")
        (scratch / "log").write_text("\n".join(self.random.choices(self.lines, k=9)), "utf-8")
        if self.random.random() < 0.5:
            self._spoil(self.random.choice(places))
        settle = partial(self._settle, scratch, home, tools)
        yield _done("collect_outcome", settle)

    def _spoil(self, path: Path) -> None:
        data = path.read_bytes()
        path.unlink()
        match self.random.randrange(7):
            case 0:
                os.mkfifo(path)
            case 1:
                path.mkdir()
            case 2:
                path.symlink_to(
                    self.random.choice(("/proc/kmsg", "/dev/zero", "/etc/passwd", path.name, "/proc/self/mem", ".."))
                )
            case 3:
                path.touch()
                os.truncate(path, self.random.choice((1 << 20, 600 << 20, 1 << 40)))
            case _:
                path.write_bytes(mutations.damaged(data, self.random))

    def _settle(self, scratch: Path, home: Path, tools: Path) -> None:
        one = make_cell(self.case, "nvrtc", "12.4", "compute_80")
        signal = self.random.choice((None, None, 9, 64))
        ended = make_exit(
            signal=signal,
            exit=None if signal else 0,
            output="\x1b[31m" * 99,
            output_total=self.random.choice((0, 1 << 62)),
        )
        outcome = collect_outcome(
            Remains.of(one, make_order(Path("kernel.cu"), "compute_80", scratch, ["scale"]), ended, home, tools)
        )
        check_record(json.loads(json.dumps(record(one, outcome))))


def _cells(case: Case) -> Iterator[Cell]:
    for info in BACKENDS.values():
        if info.language(case):
            for variant in case.variants:
                for target in _TARGETS:
                    packages = {"cupy": "13.6.0", "numba": "0.59.1"}
                    toolkit = ToolkitRef(release="12.4", headers="12.4")
                    toolchain = Toolchain(backend=info.name, library="13.6.0", toolkit=toolkit, packages=packages)
                    yield Cell(case=case, variant=variant, toolchain=toolchain, target=Target.parse(target))


def _parse(text: str) -> None:
    for diagnostic in parse_log(text, "kernel.cu"):
        assert diagnostic.severity
        assert len(diagnostic.message) <= 500


def _done(what: str, action: Callable[[], object]) -> Called:
    """Return a text as a command line, even if it is none."""
    try:
        with limited():
            action()
    except Exception:  # noqa: BLE001 - that is what is looked for
        return Called((what[:200],), -1, "", traceback.format_exc())
    return Called((what[:200],), 0, "", "")


def toml(tables: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(key)} = {_line(value)}\n" for key, value in tables.items())


def _line(value: Any) -> str:
    try:
        return _value(value)
    except RecursionError:
        return "[" * 999 + "]" * 999


def _value(value: Any) -> str:
    """Return a value as a line of TOML, whose strings are nearly JSON's."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else json.dumps(value)
