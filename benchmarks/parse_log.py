"""Measure how the time to parse adversarial logs grows with their size: ``python benchmarks/parse_log.py [--size 65536]``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from harness.artifacts import kernels_of_log
from harness.diagnostics import parse_log


def repeated(line: str) -> Callable[[int], str]:
    """Return a log that repeats a line."""
    return lambda size: f"{line}\n" * (size // (len(line) + 1))


def wide(start: str, middle: str, end: str = "", width: int = 3900) -> Callable[[int], str]:
    """Return a log of lines with `width` characters."""
    return repeated(start + middle * ((width - len(start) - len(end)) // len(middle)) + end)


def long(start: str, middle: str, end: str = "") -> Callable[[int], str]:
    """Return a log with a single long line."""
    return lambda size: start + middle * ((size - len(start) - len(end)) // len(middle)) + end + "\n"


LOGS: dict[str, Callable[[int], str]] = {
    "an ordinary error": repeated('kernel.cu(12): error: identifier "x" is undefined'),
    "errors, each another": lambda size: "".join(f"k.cu({n}): error: no x{n}\n" for n in range(size // 24)),
    "warnings with long codes": wide("error ", "1"),
    "a placed error with a long code": wide("k.cu(1): error ", "1", "!"),
    "a code of dashes": wide("k.cu(1): error #", "-1"),
    "blanks after the severity": wide("k.cu(1): error", " ", "x"),
    "blanks before a colon": wide("k.cu(1)", " ", "x"),
    "blanks at the start": wide("", " ", "x"),
    "digits after a colon": wide("k.cu:", "1", "x"),
    "many places": wide("k", ":1:1", " x"),
    "many severities": wide("k:1: ", "error 1 ", "x"),
    "errors that count": wide("error: ", "1", width=390),
    "CMake's errors that count": lambda size: "CMake Error at a:1 (b):\n  " + "1" * size + "\n",
    "CMake's errors, each with many lines": repeated("CMake Error at a:1 (b):\n  x" + "\n  y" * 8),
    "CMake's errors and long lines": lambda size: ("CMake Error at a:1 (b):\n" * 10 + f"  {'x ' * 4000}\n") * (size // 8300),
    "exceptions": repeated("TypeError: Failed in x"),
    "exceptions with long lines": lambda size: ("AError: \n" + "b" * 20_000 + "\n") * (size // 20_009),
    "dotted names": wide("", "a.", "x"),
    "names that nearly are exceptions": wide("", "Error", "x: "),
    "tools of a host": wide("", "ld", "x: error: y"),
    "the linker's": wide("", "a: ", "undefined reference to"),
    "a shell's": wide("", "sh: 1: ", "x: not found?"),
    "types beneath a message": lambda size: ("k.cu(1): error: x\n" + "     y\n" * 38) * (size // 285),
    "types in long lines": lambda size: ("k.cu(1): error: x\n" * 38 + " " * 3900 + "y\n") * (size // 4600),
    "hashes for names": wide("a" * 20 + ".", "a", "!(1): error: x", width=420),
    "paths": wide("k.cu(1): error: ", "/a", width=490),
    "quotes": wide("k.cu(1): error: ", "'\"`", width=490),
    "escape sequences without an end": long("", "\x1b["),
    "escape sequences that nearly end": wide("\x1b[", "1", " \x1b"),
    "titles without an end": long("", "\x1b]0;"),
    "controls": long("", "\x00\u202e"),
    "carriage returns": long("", "\r"),
    "one long line": long("error: ", "x "),
    "empty lines": repeated(""),
    "what ptxas counts": lambda size: "Compiling entry function 'k' for 'sm_80'\n" + "1" * size + "\n",
    "what ptxas uses": lambda size: "Compiling entry function 'k' for 'sm_80'\nUsed 1 registers, " + "1+" * (size // 2) + "\n",
}  # fmt: skip
"""Builders of adversarial logs, by name. Each accepts the approximate size in characters."""


def read(log: str) -> None:
    """Parse a log with everything that reads a cell's log."""
    parse_log(log, "kernel.cu")
    kernels_of_log(log)


def seconds(log: str, rounds: int) -> float:
    """Return the least processor time of several rounds in seconds."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        read(log)
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Print, for each log, the time at a size and at twice the size, and the ratio. A ratio of about 2 means linear time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64 << 10, help="characters of the smaller log")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name, make in LOGS.items():
        once, twice = (seconds(make(size), options.rounds) for size in (options.size, 2 * options.size))
        print(f"{name:40} {1000 * once:9.1f} ms {1000 * twice:9.1f} ms  {twice / max(once, 1e-6):5.1f}", flush=True)


if __name__ == "__main__":
    main()
