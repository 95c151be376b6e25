#!/usr/bin/env python3
"""Break the code in one place at a time, in a copy of the tree, and run the tests of that area.

A mutant survives if no test fails. The script prints each survivor with its place and its change. It exits with 1 if fewer than
``--least`` per cent are killed, or if a mutant of an area marked `every` survives.

    .ci/mutate.py --sample 100 --seed 7
    .ci/mutate.py --area "exit codes" --every
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Area:
    """Source files, and the tests that must fail if a mutant breaks them.

    Parameters
    ----------
    sources : str
        Files, separated by spaces; ``file.py::name`` is one function or class of a file.
    tests : str
        Arguments of pytest, separated by spaces, the fastest first.
    every : bool
        Run every mutant instead of a sample; none of them may survive.
    """

    sources: str
    tests: str
    every: bool = False


# Imported once in the parent. Modules of cumatrix must not be in the list: each mutant imports them again.
LIBRARIES = ("hypothesis", "pandas", "pyarrow.parquet", "numpy", "rich.console", "click", "orjson", "xdist.plugin",
             "yaml", "uv", "packaging.specifiers")  # fmt: skip

# Update this table where a module is renamed or merged: a file that is missing ends the script.
AREAS = {
    "exit codes": Area(
        "harness/cli/execute.py::exit_code harness/engine/proof.py::without_answer",
        "tests/cli/test_exit_codes.py",
        every=True,
    ),
    "judging": Area(
        "harness/model/judge.py harness/matrix/marks.py::kind_of",
        "tests/model/test_judge.py tests/matrix/test_marks.py tests/model/test_kernels.py",
        every=True,
    ),
    "model": Area(
        "harness/model/condition.py harness/model/cell.py harness/model/target.py harness/model/expression.py",
        "tests/model",
    ),
    "resolver": Area(
        "harness/engine/resolve.py",
        "tests/engine/test_look_up.py tests/engine/test_while_loading.py tests/engine/test_runner.py"
        " tests/engine/test_resolve.py tests/engine/test_missing.py",
    ),
    "cache keys": Area(
        "harness/engine/fingerprints.py harness/engine/fingerprints.py harness/engine/prepared.py::first_key",
        "tests/engine/test_fingerprints.py tests/engine/test_key.py",
    ),
    "collecting": Area("harness/engine/collect.py", "tests/engine/test_collect.py tests/engine/test_left.py"),
    "merging": Area(
        "harness/records/merge.py",
        "tests/records/test_merge.py tests/records/test_spell.py tests/records/test_virtual_vs_real.py",
    ),
    "statements": Area(
        "harness/analysis/support.py",
        "tests/analysis/test_fold.py tests/analysis/test_support.py",
    ),
    "answers": Area("harness/answers/verdict.py", "tests/answers/test_verdict.py tests/answers/test_questions.py"),
    "stores": Area(
        "harness/toolkits/store.py::WheelStore",
        "tests/toolkits/test_wheel_store.py tests/toolkits/test_killed.py::test_waiting_has_a_limit",
    ),
}

# Mutants without a visible effect: function, old and new text, and the reason.
EQUIVALENT = {
    (
        "Answers._remember",
        "self.files.fresh.difference_update((path for path, _ in paths))",
        "pass",
    ): "a set is kept twice",
    ("Answers.close", "self.cache and self.files.fresh", "(self.cache)"): "sets are looked through for nothing",
    (
        "Answers.close",
        "paths and any((path in self.files.fresh for path, _ in paths))",
        "(paths)",
    ): "sets are kept twice",
    (
        "Answers.inputs_of",
        "self._set(name) or ()",
        "(self._set(name))",
    ): "a key is only made of a set that is known",
    (
        "InVersions.holds",
        "found is not None and _fits(self.specifier, found)",
        "(_fits(self.specifier, found))",
    ): "packaging takes None for no version",
    ("check_known", "known.cc > target.cc", "(known.cc >= target.cc)"): "none has the number of the target here",
    ("check_known", "known.cc < target.cc", "(known.cc <= target.cc)"): "none has the number of the target here",
    ("", "64", "65"): "fewer sets are sorted again",
    (
        "Answers._set_of",
        "len(self._lately) >= _LATELY",
        "(len(self._lately) > _LATELY)",
    ): "one more set is not sorted again",
    ("_add", "8", "9"): "a length of another size",
    (
        "LookUp.all",
        "self.cache.read_ahead(self.answers.unread(chain.from_iterable((firsts for _, firsts in asked))))",
        "pass",
    ): "each is read by itself later",
    ("LookUp.all", "self.cache.read_ahead(chain.from_iterable(keys))", "pass"): "each is read by itself later",
    (
        "expectation_of",
        "cell.case.kernels and found.status is Status.BUILT and (found.kernels is None)",
        "(found.status is Status.BUILT and found.kernels is None)",
    ): "an equal copy",
    (
        "collect_outcome",
        "replace(base, status=Status.HARNESS_ERROR, reason=reason)",
        "replace(base, reason=reason)",
    ): "base has it",
    (
        "_comparable",
        "statuses <= {*_ANSWERS, Status.UNSUPPORTED.value}",
        "(statuses < {*_ANSWERS, Status.UNSUPPORTED.value})",
    ): "two statuses are never all five",
    ("_launch_notes", "kernel.shared_bytes or 0", "(kernel.shared_bytes)"): "of a cubin they are known",
    (
        "Resolver.worker",
        "toolchain.key not in self._workers and self.context.cache",
        "(toolchain.key not in self._workers)",
    ): "without a cache there are no keys",
    (
        "Resolver._loaded",
        "not toolchain.toolchain.device and (not toolchain.unfollowed)",
        "(not toolchain.toolchain.device)",
    ): "files are hashed for nothing",
    (
        "Resolver._loaded",
        "not toolchain.toolchain.device and (not toolchain.unfollowed)",
        "(not toolchain.unfollowed)",
    ): "files are hashed for nothing",
    ("Resolver._loaded", "hash_meanwhile(fork_server, self.answers.files)", "pass"): "files are hashed later",
    (
        "Resolver._loaded",
        "not toolchain.toolchain.device",
        "(toolchain.toolchain.device)",
    ): "files are hashed later",
}

_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change of a file: `new` replaces the bytes from `start` to `end`."""

    area: str
    path: str
    line: int
    function: str
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}\n    - {self.old}\n    + {self.new}"


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the mutations of a node: the node to replace, and its new text."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _FLIPPED:
            flipped = ast.Compare(node.left, [_FLIPPED[type(operator)]()], node.comparators)
            yield node, f"({ast.unparse(flipped)})"
        case ast.BoolOp(op=operator, values=values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(other, values))})"
            for left_out in range(len(values)):
                rest = [value for place, value in enumerate(values) if place != left_out]
                yield node, f"({ast.unparse(ast.BoolOp(operator, rest) if rest[1:] else rest[0])})"
        case ast.UnaryOp(op=ast.Not()):
            yield node, f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool()):
            yield node, str(not node.value)
        case ast.Constant(value=int(number)):
            yield node, str(number + 1)
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                if keyword.arg and keyword.arg != "strict":
                    rest_of = [each for each in keywords if each is not keyword]
                    yield node, ast.unparse(ast.Call(node.func, node.args, rest_of))
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() | ast.NamedExpr() as test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and not value.value):
            yield node, "return None"
        case ast.Raise() | ast.Continue() | ast.Break() | ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield node, "pass"


def skipped(node: ast.AST, child: ast.AST) -> bool:
    """Return whether a child node has no behaviour to test, such as an annotation, a decorator or a size."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and child in node.decorator_list:
        return True
    if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
        return True
    if isinstance(child, ast.Call) and ast.unparse(child.func) == "TypeVar":
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift):  # a size: no test needs 257 MiB instead of 256
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":  # zip's assertion, which no input breaks
        return True
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_SCHEMA":  # a number that only has to differ
        return True
    return child in (getattr(node, "annotation", None), getattr(node, "returns", None))


def mutants_of(name: str, area: Area) -> Iterator[Mutant]:
    """Yield every mutant of an area, in the order of its sources."""
    for source in area.sources.split():
        file, _, wanted = source.partition("::")
        text = (ROOT / file).read_bytes()
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        found = 0
        stack: list[tuple[ast.AST, str]] = [(ast.parse(text), "")]
        while stack:
            node, function = stack.pop()
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                function = f"{function}.{node.name}".removeprefix(".")
            if f"{function}.".startswith(f"{wanted}." if wanted else ""):
                for target, new in changes(node):
                    assert isinstance(target, ast.expr | ast.stmt)
                    assert target.end_lineno and target.end_col_offset is not None
                    start = starts[target.lineno - 1] + target.col_offset
                    end = starts[target.end_lineno - 1] + target.end_col_offset
                    found += 1
                    yield Mutant(name, file, target.lineno, function, start, end, ast.unparse(target), new)
            stack += [(child, function) for child in ast.iter_child_nodes(node) if not skipped(node, child)]
        if not found:
            sys.exit(f"{source} has nothing to mutate: update AREAS in {Path(__file__).name}")


def copy_to(folder: Path) -> None:
    """Copy the tracked files, and the untracked files that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def run_tests(tests: str, folder: Path, limit: float) -> tuple[str, str]:
    """Run tests until one fails; return ``passed``, ``failed`` or ``timeout``, and the end of pytest's output.

    The tests run in a forked child, which inherits the imported `LIBRARIES`.
    """
    child = os.fork()
    if not child:
        code = 70
        try:
            os.setsid()
            os.chdir(folder)
            output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for descriptor, place in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
                os.dup2(descriptor, place)
            os.environ["PYTHONPATH"] = str(folder)
            sys.path.insert(0, str(folder))
            arguments = [
                "-x",
                "-q",
                "-W",
                "ignore::pytest.PytestAssertRewriteWarning",
                "-p",
                "no:cacheprovider",
                "--hypothesis-seed=0",
                *tests.split(),
            ]
            code = pytest.main(arguments)
        except BaseException:  # noqa: BLE001 - this process must not go on as its parent does
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    until = time.monotonic() + limit
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "timeout", ""
        time.sleep(0.05)
    return "failed" if ended[1] else "passed", (folder / "output").read_text("utf-8", "replace")[-3000:]


class Copy:
    """A copy of the tree with at most one mutant at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._limits: dict[str, float] = {}
        self._written = int(time.time()) + 1000

    def limit(self, name: str) -> float:
        """Return the time limit for the tests of an area in seconds, measured without a mutant. The tests must pass."""
        if name not in self._limits:
            begun = time.monotonic()
            state, said = run_tests(AREAS[name].tests, self.folder, 1200)
            if state != "passed":
                sys.exit(f"the tests of {name!r} do not pass as the code is ({state}):\n{said}")
            self._limits[name] = 4 * (time.monotonic() - begun) + 20
        return self._limits[name]

    def state_of(self, mutant: Mutant) -> str:
        """Apply a mutant and run the tests of its area."""
        limit = self.limit(mutant.area)
        text = (ROOT / mutant.path).read_bytes()
        try:
            self._write(mutant.path, text[: mutant.start] + mutant.new.encode() + text[mutant.end :])
            state, _ = run_tests(AREAS[mutant.area].tests, self.folder, limit)
        finally:
            self._write(mutant.path, text)
        return {"passed": "survived", "failed": "killed"}.get(state, state)

    def _write(self, path: str, text: bytes) -> None:
        """Write a file with a unique modification time. Python's bytecode cache compares time in seconds and size, and a mutant can change neither."""
        (self.folder / path).write_bytes(text)
        self._written += 1
        os.utime(self.folder / path, (self._written, self._written))


def chosen(names: Sequence[str], sample: int, seed: int, *, every: bool) -> list[Mutant]:
    """Return every mutant of areas marked `every`, and an equal sample of each other area."""
    random_ = random.Random(seed)
    found: list[Mutant] = []
    sampled = [name for name in names if not (every or AREAS[name].every)]
    for name in names:
        mutants = [
            each for each in mutants_of(name, AREAS[name]) if (each.function, each.old, each.new) not in EQUIVALENT
        ]
        if name in sampled:
            number = sample // len(sampled) + (sampled.index(name) < sample % len(sampled))
            mutants = random_.sample(mutants, min(number, len(mutants)))
        found += mutants
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--area", action="append", choices=AREAS, help="only this area; may be repeated")
    parser.add_argument("--sample", type=int, default=100, help="mutants of the areas that are sampled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", action="store_true", help="run every mutant of every area")
    parser.add_argument("--least", type=float, default=90, help="per cent of the sample that has to be killed")
    options = parser.parse_args()
    mutants = chosen(options.area or list(AREAS), options.sample, options.seed, every=options.every)
    states: dict[Mutant, str] = {}
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="cumatrix-mutants-") as folder:
        copy_to(Path(folder))
        copy = Copy(Path(folder))
        for number, mutant in enumerate(mutants, 1):
            states[mutant] = copy.state_of(mutant)
            print(f"{number}/{len(mutants)} {states[mutant]}", file=sys.stderr, flush=True)
            if states[mutant] != "killed":
                print(f"{states[mutant]}: {mutant}", flush=True)
    print("\n| area | mutants | killed | timeouts | survived |\n| --- | --- | --- | --- | --- |")
    for name in dict.fromkeys(mutant.area for mutant in mutants):
        own = [state for mutant, state in states.items() if mutant.area == name]
        print(f"| {name} | {len(own)} | {own.count('killed')} | {own.count('timeout')} | {own.count('survived')} |")
    every = [state for mutant, state in states.items() if AREAS[mutant.area].every]
    sample = [state for mutant, state in states.items() if not AREAS[mutant.area].every]
    share = 100 * (1 - sample.count("survived") / len(sample)) if sample else 100.0
    print(
        f"\n{share:.1f} % of {len(sample)} sampled mutants killed; {every.count('survived')} of {len(every)} others survived"
    )
    return 1 if share < options.least or "survived" in every else 0


if __name__ == "__main__":
    sys.exit(main())
