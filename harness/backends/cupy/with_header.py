"""CuPy's NVRTC module with precompiled headers for what programs begin with (`harness.nvidia.precompiled`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.backends.nvrtc import macros
from harness.nvidia.pch_store import behind
from harness.nvidia.precompiled import Compile, Precompiled
from harness.protocol.backend import Job, Setup


class WithHeader:
    """Wraps CuPy's NVRTC module: a program with a precompiled header is compiled with it."""

    def __init__(self, nvrtc: Any, setup: Setup, job: Job, precompiled: Precompiled) -> None:
        self._nvrtc, self._setup, self._job, self._precompiled = nvrtc, setup, job, precompiled
        self._texts: dict[int, tuple[str, str]] = {}
        self._instead: dict[int, int] = {}
        self._logs: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._nvrtc, name)
        if not name.startswith("get"):
            return found
        return lambda *given: found(*(self._instead.get(each, each) for each in given[:1]), *given[1:])

    def createProgram(self, source: str, name: str, texts: Sequence[str], names: Sequence[str]) -> int:
        program: int = self._nvrtc.createProgram(source, name, texts, names)
        if not names:
            self._texts[program] = source, name
        return program

    def addNameExpression(self, program: int, name: str) -> None:
        self._texts.pop(program, None)  # name expressions need the program's own compilation
        self._nvrtc.addNameExpression(program, name)

    def getProgramLog(self, program: int) -> str:
        log: str = self._nvrtc.getProgramLog(self._instead.get(program, program))
        return behind(self._logs[program], log) if program in self._logs else log

    def destroyProgram(self, program: int) -> None:
        other = self._instead.pop(program, None)
        if other is not None:
            self._nvrtc.destroyProgram(other)
        self._nvrtc.destroyProgram(program)

    def compileProgram(self, program: int, options: Sequence[str]) -> None:
        refused = self._compiled_early(program, options)
        if refused is not None:
            raise refused
        if program not in self._instead:
            self._nvrtc.compileProgram(program, options)

    def _compiled_early(self, program: int, options: Sequence[str]) -> Exception | None:
        """Compile a program with its header, where there is one; what NVRTC raises where it refuses it so."""
        if program not in self._texts:
            return None
        (source, name), given = self._texts[program], macros(self._job.definitions)
        early = self._precompiled.early(self._setup, self._job, source.encode("utf-8"), options, given)
        if early is None:
            return None
        other = self._nvrtc.createProgram(early.text.decode("utf-8"), name, (), ())
        refused, made = None, b""
        try:
            self._nvrtc.compileProgram(other, early.options)
            made = bytes(self._nvrtc.getPTX(other))
        except self._nvrtc.NVRTCError as error:
            refused = error
        compiled = refused is None or "COMPILATION" in str(refused)
        if not compiled or not early.usable(str(self._nvrtc.getProgramLog(other)), made):
            self._nvrtc.destroyProgram(other)
            return None
        self._instead[program], self._logs[program] = other, early.log
        return refused


def built_by(nvrtc: Any) -> Compile:
    """CuPy's NVRTC module as `Precompiled` asks for it."""

    def built(text: bytes, name: str, options: Sequence[str]) -> tuple[bool, str]:
        program = nvrtc.createProgram(text.decode("utf-8"), name, (), ())
        try:
            try:
                nvrtc.compileProgram(program, tuple(options))
            except nvrtc.NVRTCError:
                return False, ""
            return True, str(nvrtc.getProgramLog(program))
        finally:
            nvrtc.destroyProgram(program)

    return built
