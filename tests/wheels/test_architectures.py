"""``cumatrix arch``: the smallest list, the CUDA release that it requires, and the additions from records."""

from __future__ import annotations

import json

import pytest
from command import Command
from record_builders import cell, record, rejected

from harness.cli.arch import measured_of
from harness.errors import UsageError
from harness.model.compatibility import Way, answer
from harness.model.gpus import parse_gpus
from harness.wheels.architectures import architectures


@pytest.mark.parametrize(
    ("gpus", "cuda", "suffixes", "torch", "cmake"),
    [
        ("RTX 3090,H100,B200,RTX 5090", "", {}, "8.6;9.0;10.0;12.0", "86-real;90-real;100-real;120-real"),
        ("A100,RTX 4090,sm_120,sm_121", "", {}, "8.0;12.0", "80-real;120-real"),
        ("A100,Jetson Orin", "", {}, "8.0;8.7", "80-real;87-real"),
        ("H100,RTX 5090", "12.4", {}, "9.0+PTX", "90-real;90-virtual"),
        ("H100", "", {90: "a"}, "9.0a", "90a-real"),
        ("B200,B300", "", {100: "f"}, "10.0f", "100f-real"),
        ("B200,B300", "", {100: "a"}, "10.0a;10.3", "100a-real;103-real"),
    ],
)
def test_lists(gpus: str, cuda: str, suffixes: dict[int, str], torch: str, cmake: str) -> None:
    found = architectures(parse_gpus(gpus), cuda, suffixes)
    assert (found.torch, found.cmake) == (torch, cmake)
    for each in found.served:
        assert answer(each.code, each.gpu.cc).way is (Way.JIT if each.code.virtual else Way.NATIVE)
        assert each.code in (*found.real, *found.virtual)


def test_releases_of_cuda() -> None:
    found = architectures(parse_gpus("V100,RTX 5090"))
    assert (found.least.cuda, found.last and found.last.cuda) == ("12.8", "12.9")
    assert architectures(parse_gpus("sm_121,sm_75")).last is None
    with pytest.raises(UsageError, match="no CUDA release makes code for all"):
        architectures(parse_gpus("V100,Jetson Thor"))
    with pytest.raises(UsageError, match=r"the last release that does is 12\.9"):
        architectures(parse_gpus("V100"), "13.0")


def test_traps_are_named() -> None:
    warnings = architectures(parse_gpus("B200,B300"), "", {100: "a"}).warnings
    assert any("sm_100a runs on 10.0 alone" in each for each in warnings)
    assert any("vllm/issues/56548" in each for each in warnings)


def test_suffixes_and_costs_of_records() -> None:
    outcomes = {
        "sm_90": rejected(), "sm_90a": None, "sm_100": rejected(), "sm_100a": None, "sm_100f": None, "sm_120": None, "sm_120a": None,
    }  # fmt: skip
    records = [record(cell(target=target), outcome) for target, outcome in outcomes.items()]
    # From two toolkits: not a pair.
    records += [
        record(cell(target="sm_103", toolkit="12.4"), rejected()),
        record(cell(target="sm_103a", toolkit="13.0")),
    ]
    found = measured_of(records)
    assert found.suffixes == {90: "a", 100: "f"}
    assert (found.costs["sm_90a"].cells, found.costs["sm_90a"].size) == (1, 4312)
    assert architectures(parse_gpus("H100,B300"), "", found.suffixes).torch == "9.0a;10.3"


@pytest.mark.called
def test_the_command(cumatrix: Command) -> None:
    done = cumatrix("arch", "RTX 4090,RTX 5090", "-t", "12.4")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:4] == [
        'TORCH_CUDA_ARCH_LIST="8.9;9.0+PTX"', 'CMAKE_CUDA_ARCHITECTURES="89-real;90-virtual"', 'CUDAARCHS="89-real;90-virtual"',
        "-gencode arch=compute_89,code=sm_89 -gencode arch=compute_90,code=compute_90",
    ]  # fmt: skip
    assert "the driver compiles compute_90 at the first start" in done.stderr
    found = json.loads(cumatrix("arch", "H100,sm_75", "--ptx", "--json").stdout)
    assert found["torch"] == "7.5;9.0+PTX" and found["cuda"] == {"least": "11.8", "last": ""}
    wrong = cumatrix("arch", "RTX 9090")
    assert wrong.returncode == 2 and "did you mean" in wrong.stderr
    assert cumatrix("arch", "H100", "--project").returncode == 3
