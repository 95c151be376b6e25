"""Code of one release or architecture, assembled and linked by the tools of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cells import make_case, make_cell

from harness.backends import BACKENDS
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import look
from harness.engine.executor import Run
from harness.model import Outcome
from harness.protocol.messages import Limits, made_for
from harness.toolkits import Installed, ToolkitStore

TEXT = 'extern "C" __global__ void k(float *x) { *x = 1; }\n'
Compile = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("options", "target", "made"),
    [
        ({}, "sm_90a", "sm_90a"),
        ({"assembler": "12.4"}, "sm_90a", "compute_90a"),
        ({"linker": "12.4"}, "compute_90", "compute_90"),
        ({"compile_for": "compute_80"}, "sm_90", "compute_80"),
        ({"compile_for": "compute_80", "linker": "12.4"}, "sm_90", "compute_80"),
    ],
)
def test_what_code_is_made_for(options: dict[str, str], target: str, made: str) -> None:
    assert made_for(options, target) == made


@pytest.mark.parametrize(
    ("backend", "options", "says"),
    [
        ("nvrtc", {"assembler": "12.4", "compile_for": "compute_80", "linker": "12.4"}, ""),
        ("nvcc", {"compile_for": "compute_80"}, ""),
        ("nvcc", {"assembler": "12.4"}, "nvcc has no word for assembler"),
        ("cupy-nvrtc", {"toolkit_headers": False}, ""),
        ("cupy-jitify", {"toolkit_headers": False}, "cupy-jitify has no word for toolkit_headers"),
        ("nvcc", {"toolkit_headers": True, "toolkit_first": True}, ""),
        ("numba", {"toolkit_headers": True, "toolkit_first": False}, ""),
        ("cupy-jitify", {"toolkit_first": True}, "cupy-jitify has no word for toolkit_first"),
        ("cupy-nvrtc", {"linker": "12.4"}, "cupy-nvrtc has no word for linker"),
        ("numba", {"std": "c++17"}, ""),
    ],
)
def test_who_has_a_word_for_it(backend: str, options: dict[str, str], says: str) -> None:
    assert BACKENDS[backend].without_word(options) == says


@pytest.fixture(scope="module")
def compile_(store: ToolkitStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compile]:
    environment = look(None)
    source = tmp_path_factory.mktemp("finished") / "kernel.cu"
    source.write_text(TEXT)
    with Run(RunContext(environment, store, None, RunRequest(limits=Limits(seconds=300))), keep=2) as run:

        def compiled(release: str, target: str, backend: str = "nvrtc", **options: object) -> Outcome:
            case = make_case(source, entries={"k": ""}, options=options)
            return run.result(make_cell(case, backend, release, target, environment=environment)).outcome

        yield compiled


@pytest.mark.compilers
class TestFinished:
    @pytest.fixture(autouse=True)
    def _toolkits(self, toolkit: Callable[[str], Installed]) -> None:
        for release in ("12.4", "12.9"):
            toolkit(release)

    def test_older_ptx_is_assembled_and_newer_is_not(self, compile_: Compile) -> None:
        older = compile_("12.4", "sm_90", assembler="12.9")
        assert (older.status, older.stages, older.artifact and older.artifact.target) == (
            "built",
            ("compile", "assemble"),
            "sm_90",
        )
        assert older.observed["ptxas"].startswith("12.9.")
        newer = compile_("12.9", "sm_90", assembler="12.4")
        assert (newer.status, newer.stage) == ("rejected", "assemble")
        assert newer.diagnostics[0].message == "Unsupported .version 8.8; current version is '8.4'"
        assert newer.observed["ptxas"].startswith("12.4.")

    @pytest.mark.parametrize("flags", [[], ["-dlto"]])
    def test_nvjitlink_reads_what_is_older(self, compile_: Compile, flags: list[str]) -> None:
        older = compile_("12.4", "sm_90", linker="12.9", flags=flags)
        assert (older.status, older.stages) == ("built", ("compile", "link")), older
        assert older.observed["nvjitlink"] == "12.9"
        newer = compile_("12.9", "sm_90", linker="12.4", flags=flags)
        assert (newer.status, newer.stage) == ("rejected", "link"), newer

    def test_ptx_of_one_architecture_for_another(self, compile_: Compile) -> None:
        later = compile_("12.4", "sm_90", compile_for="compute_80")
        assert (later.status, later.artifact and later.artifact.target) == ("built", "sm_90")
        earlier = compile_("12.4", "sm_75", compile_for="compute_80")
        assert (earlier.status, earlier.stage) == ("rejected", "assemble")
        assert compile_("12.4", "compute_90", compile_for="compute_80").status == "unsupported"
        assert compile_("12.4", "sm_121", compile_for="compute_80").status == "unsupported"

    def test_an_older_assembler_is_asked_for_a_target_that_it_does_not_know(self, compile_: Compile) -> None:
        outcome = compile_("12.9", "sm_121", compile_for="compute_90", assembler="12.4")
        assert (outcome.status, outcome.stage) == ("rejected", "assemble")
        assert "'sm_121' is not defined for option 'gpu-name'" in outcome.diagnostics[0].message

    def test_what_is_not_installed_is_unavailable(self, tmp_path: Path, store: ToolkitStore) -> None:
        (tmp_path / "toolkits").mkdir()
        found = store.find("12.4")
        assert found is not None
        (tmp_path / "toolkits" / "12.4").symlink_to(found.home)
        source = tmp_path / "kernel.cu"
        source.write_text(TEXT)
        environment = look(None)
        case = make_case(source, entries={"k": ""}, options={"linker": "12.9"})
        with Run(
            RunContext(environment, ToolkitStore(tmp_path / "toolkits"), None, RunRequest(limits=Limits(seconds=300)))
        ) as run:
            outcome = run.result(make_cell(case, "nvrtc", "12.4", "sm_90", environment=environment)).outcome
        assert outcome.status == "unavailable"
        assert "cumatrix toolkits install 12.9" in outcome.reason

    def test_a_target_that_is_not_listed_is_refused_by_the_compiler_where_the_case_says_so(
        self, compile_: Compile
    ) -> None:
        assert compile_("12.4", "sm_100").status == "unsupported"
        asked = compile_("12.4", "sm_100", every_target=True)
        assert (asked.status, asked.stage) == ("rejected", "compile")
        assert "invalid value for --gpu-architecture" in asked.diagnostics[0].message

    def test_without_the_toolkits_headers_there_are_none(self, compile_: Compile) -> None:
        assert compile_("12.4", "sm_80", flags=["--pre-include=cuda_fp16.h"]).status == "built"
        without = compile_("12.4", "sm_80", flags=["--pre-include=cuda_fp16.h"], toolkit_headers=False)
        assert (without.status, without.stage) == ("rejected", "compile")
        assert "cuda_fp16.h" in without.diagnostics[0].message
        assert "-I" not in " ".join(without.command)
