"""Fuzzed projects, and commands that read results and a project: configurations, builds, ``setup.py``, results of others."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import mutations
from fuzzing_inputs import toml
from in_process import Called, call

from harness.records.plan import Inputs

PROJECTS = ("configuration", "build", "setup", "others")
"""Names of the fuzzed kinds."""

_CONFIGURATION: dict[str, Any] = {
    "sources": ["csrc/scale.cu"], "exclude": "csrc/old*.cu", "include": ["include"], "define": {"N": 4, "NAME": "x"}, "std": "c++17", "flags": ["-lineinfo", "nvcc:-O3"],
    "backend": "nvrtc,nvcc", "toolkit": "12.4..13.0", "target": "sm_75..sm_120", "where": 'cc >= "8.0"', "timeout": 60, "memory": "8G", "jobs": 2, "offline": True,
    "results": "reports", "page": "reports/html", "cases": ["cases"], "device-only": False, "toolkit-first": True, "backends": ["nvcc"], "features": ["wmma"], "links": ["https://example.org/"],
    "parameters": {"bits": [16, 32]}, "options": [{"when": "bits == 16", "std": "c++14"}], "expect": [{"when": 'cc < "8.0"', "status": "rejected", "reason": "so"}],
    "programs": [{"sources": ["csrc/sh*.cu"], "flags": ["-G"]}, {"sources": "python/axpy.py", "signatures": {"axpy": "void(float32[:])"}}],
}  # fmt: skip
_UNITS: list[Any] = [
    {"directory": ".", "file": "csrc/scale.cu", "command": "nvcc -Iinclude -DN=4 -std=c++17 -gencode=arch=compute_80,code=sm_80 -O3 -c csrc/scale.cu -o scale.o"},
    {"directory": "csrc", "file": "shift.cu", "arguments": ["clang++", "-x", "cuda", "-isystem", "../include", "-D", "X=$(id)", "-c", "shift.cu"], "output": "shift.o"},
    {"directory": ".", "file": "csrc/bind.cpp", "command": "c++ @options.rsp -c csrc/bind.cpp"},
]  # fmt: skip
_SETUP = """import os
from glob import glob
from pathlib import Path
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
HERE = Path(__file__).resolve().parent
nvcc = ["-O3", f"-DBITS={32}"] + ["-DX"] * 2
setup(ext_modules=[CUDAExtension(name="mine._C", sources=["csrc/bind.cpp"] + sorted(glob("csrc/*.cu")) + [os.path.join("csrc", d, "shift.cu") for d in ["deep"]],
    include_dirs=[os.path.join(os.path.dirname(os.path.abspath(__file__)), "include"), str(HERE / "missing")], define_macros=[("N", "4"), ("FAST", None)],
    extra_compile_args={"cxx": ["-O2"], "nvcc": nvcc})], cmdclass={"build_ext": BuildExtension})
"""
# Replacements for a part of the file.
_WORDS = (
    *('"/**/*"', "9 ** 9 ** 9", '"x" * 9 ** 9', "[0] * 10 ** 12", 'f"{1:>999999999}"', "None", "-1", "1e999", '"\\ud800"', "b'x'", "{}", "[]", "()", "lambda: 1", "(yield)", "*[1]"),
    *('"../../../../etc/passwd"', '"$(id)`id`"', "__file__ * 3", "HERE / HERE", "nvcc", "nvcc + nvcc", "[x for x in nvcc for y in nvcc]", "glob", "open('/dev/zero')", "(" * 300 + ")" * 300, "1 if 1 else 2"),
)  # fmt: skip
_KERNEL = 'extern "C" __global__ void scale(float *x) { *x += 1; }\n'
_CASE = (
    'title = "A title"\nfeatures = ["wmma"]\n[source]\ncuda = "kernel.cu"\n[parameters]\narch = ["given"]\nN = [4]\n'
)


class ProjectFuzzer:
    """Fuzzer that mutates files of a project, with the interface of `fuzzing.Fuzzer`.

    Parameters
    ----------
    good : Path
        Results that are as they should be.
    seed : str
        Of the mutations: the same one gives the same files.
    """

    def __init__(self, good: Path, seed: str) -> None:
        self.good = good
        self.random = Random(seed)

    def round(self, kind: str, bad: Path) -> Iterator[Called]:
        """Mutate a file of a project, and run every command that reads it."""
        for name in (
            "csrc/scale.cu",
            "csrc/shift.cu",
            "csrc/bind.cpp",
            "include/three.h",
            "python/axpy.py",
            "cases/wmma/fragments/kernel.cu",
        ):
            (bad / name).parent.mkdir(parents=True, exist_ok=True)
            (bad / name).write_text(_KERNEL)
        (bad / "cases" / "wmma" / "fragments" / "case.toml").write_text(_CASE)
        # Nothing is installed there, which prevents compilations.
        variables = {"CUMATRIX_HOME": str(bad / "home"), "CUMATRIX_CACHE": str(bad / "cache")}
        with contextlib.chdir(bad), patch.dict(os.environ, variables):
            yield from getattr(self, f"_{kind}")(bad)

    def _configuration(self, bad: Path) -> Iterator[Called]:
        own = self.random.random() < 0.5
        text = toml(mutations.mutated(_CONFIGURATION, self.random) if self.random.random() < 0.9 else _CONFIGURATION)
        if not own:
            text = "[tool]\n" + "".join(f"cumatrix.{line}\n" for line in text.splitlines())
        data = text.encode("utf-8", "surrogatepass")
        file = bad / ("cumatrix.toml" if own else "pyproject.toml")
        file.write_bytes(mutations.damaged(data, self.random) if self.random.random() < 0.3 else data)
        for argv in (["config"], ["config", "--json"], ["cases", "list"], ["run", "--dry-run"], ["init"]):
            yield call(*argv)
        yield call("try", "csrc/scale.cu", "--offline")

    def _build(self, bad: Path) -> Iterator[Called]:
        (bad / "options.rsp").write_text("@options.rsp -DX\n")
        (bad / "build").mkdir()
        (bad / "build" / "compile_commands.json").write_bytes(mutations.json_file(_UNITS, self.random))
        yield call("init", "--dry-run")
        yield call(
            "try", "csrc/scale.cu", "csrc/shift.cu", "--compile-commands", "build/compile_commands.json", "--offline"
        )

    def _setup(self, bad: Path) -> Iterator[Called]:
        parts = _SETUP.split('"')
        place = self.random.randrange(len(parts))
        words = _SETUP.split(" ")
        if self.random.random() < 0.5:
            words[self.random.randrange(len(words))] = self.random.choice(_WORDS)
            text = " ".join(words)
        else:
            parts[place] = self.random.choice(mutations.TEXTS)
            text = '"'.join(parts)
        data = text.encode("utf-8", "surrogatepass")
        (bad / "setup.py").write_bytes(mutations.damaged(data, self.random) if self.random.random() < 0.2 else data)
        yield call("init", "--dry-run")
        (bad / "cumatrix.toml").write_text('extension = "setup.py"\n')
        yield call("config")

    def _others(self, bad: Path) -> Iterator[Called]:
        """Results of others and their inputs, for commands that read results and a project."""
        source = bad / "in"
        source.mkdir()
        lines = [json.loads(line) for line in (self.good / "r.jsonl").read_bytes().splitlines()]
        plan = json.loads((self.good / "r.plan.json").read_bytes())
        hashes = [f"{number:064x}" for number in range(3)]
        lines[0]["fingerprint"] = hashes[0]
        inputs = Inputs(
            sets={hashes[1]: (("/etc/passwd", False), ("$HOME", True))}, states={"/etc/passwd": "x"},
            workers={hashes[2]: (hashes[0], hashes[1], {"observed": {"nvrtc": "12.4"}})}, answers={hashes[0]: (hashes[0], hashes[1], hashes[2])},
        )  # fmt: skip
        which = self.random.randrange(3)
        good = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        (source / "r.jsonl").write_bytes(mutations.json_lines(lines, self.random) if which == 0 else good)
        (source / "r.plan.json").write_bytes(
            mutations.json_file(plan, self.random) if which == 1 else json.dumps(plan).encode()
        )
        value = json.loads(replace(inputs).to_json())
        (source / "r.inputs.json").write_bytes(
            mutations.json_file(value, self.random) if which == 2 else inputs.to_json()
        )
        axes = ("-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "--offline")
        yield call("run", *axes, "--dry-run", "--from", source)
        yield call("run", *axes, "--dry-run", "--shard", "1/2", "--costs", source)
        yield call("run", *axes, "--from", source, "--out", bad / "out.jsonl")
        yield call("ask", "wmma sm_80 cuda 12.4", "--results", source)
        yield call("ask", "anything 13.0 and x", "--results", source, "--json")
        yield call("bless", source, "--diff")
        yield call("bless", source, "--anew", "--yes")
        yield call("repro", "wmma/fragments*sm_80", "--results", source, "--out", bad / "repro")
        for kind in ("sarif", "gitlab"):
            yield call("annotate", source, "--format", kind)
        # The output is for a CI: each line is a command.
        told = call("annotate", source)
        yield replace(told, out="")
