"""The compatibility rules, compared with ptxas."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model import Target, TargetError
from harness.model.compatibility import (
    RELEASES,
    RULES,
    Way,
    answer,
    newer,
    newest_hosts,
    release_of_gpu,
    release_of_ptx,
)
from harness.model.gpus import Gpu, parse_gpus
from harness.model.target import NVIDIA
from harness.toolkits import Installed


@pytest.mark.parametrize(
    ("code", "cc", "way", "rule"),
    [
        ("sm_80", 86, Way.NATIVE, "binary"),
        ("sm_86", 80, Way.NONE, "binary"),
        ("sm_90", 100, Way.NONE, "binary"),
        ("sm_90a", 90, Way.NATIVE, "architecture"),
        ("sm_100a", 103, Way.NONE, "architecture"),
        ("sm_100f", 103, Way.NATIVE, "family"),
        ("sm_103f", 100, Way.NONE, "family"),
        ("sm_120f", 121, Way.NATIVE, "family"),
        ("compute_80", 121, Way.JIT, "ptx"),
        ("compute_120", 110, Way.NONE, "ptx"),
        ("compute_90a", 100, Way.NONE, "architecture"),
        ("compute_120f", 121, Way.JIT, "family"),
        ("sm_80", 87, Way.UNKNOWN, "tegra"),
        ("sm_87", 89, Way.UNKNOWN, "tegra"),
        ("sm_87", 87, Way.NATIVE, "binary"),
        ("compute_80", 87, Way.JIT, "ptx"),
        ("sm_101", 110, Way.UNKNOWN, "thor"),
    ],
)
def test_rules(code: str, cc: int, way: Way, rule: str) -> None:
    found = answer(Target.parse(code), cc)
    assert (found.way, found.rule) == (way, rule)
    assert RULES[rule].source.startswith("https://")


def test_drivers() -> None:
    ptx, gpu = release_of_ptx((7, 8)), release_of_gpu(120)
    assert ptx and gpu
    assert (ptx.cuda, ptx.driver) == ("11.8", "520.61.05")
    assert str(newer(ptx, gpu)) == "the driver of CUDA 12.8 (570.26)"
    assert release_of_ptx((99, 0)) is None
    drivers = [tuple(map(int, release.driver.split("."))) for release in RELEASES.values() if release.driver]
    assert drivers == sorted(drivers)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("RTX 5090,H100", [Gpu(90, "H100"), Gpu(120, "RTX 5090")]),
        ("NVIDIA GeForce RTX 4090", [Gpu(89, "NVIDIA GeForce RTX 4090")]),
        ("sm_86..sm_90", [Gpu(86), Gpu(87), Gpu(89), Gpu(90)]),
        ("sm_88,9.0,90a", [Gpu(88), Gpu(90)]),
    ],
)
def test_names_of_gpus(text: str, gpus: list[Gpu]) -> None:
    assert parse_gpus(text) == gpus


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RTX 9090", "did you mean"),
        ("sm_81", "nearest"),
        (",", "no GPU is named"),
        ("MI300X", "is no GPU of NVIDIA"),
        ("gfx942", "is no GPU of NVIDIA"),
        ("gfx943", "nearest"),
    ],
)
def test_names_of_none(text: str, words: str) -> None:
    with pytest.raises(TargetError, match=words):
        parse_gpus(text)


@pytest.mark.compilers
@pytest.mark.slow
@pytest.mark.parametrize("cuda", ["11.8", "12.4", "13.0"])
def test_newest_hosts_are_those_of_the_version_checks(cuda: str, toolkit: Callable[[str], Installed]) -> None:
    text = (toolkit(cuda).home / "include/crt/host_config.h").read_text("utf-8")
    gcc, clang = re.search(r"#if __GNUC__ > (\d+)", text), re.search(r"#if \(__clang_major__ >= (\d+)\)", text)
    assert gcc and clang
    assert newest_hosts(cuda) == {"gcc": int(gcc[1]), "clang": int(clang[1]) - 1}
    assert newest_hosts("12.7") == {}


@pytest.mark.compilers
@pytest.mark.slow
def test_ptxas_accepts_ptx_for_the_gpus_of_the_rules(toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    ptxas = toolkit("13.0").home / "bin" / "ptxas"
    targets = [
        target for target in NVIDIA.targets if not target.virtual and target.cc >= 75 and target.cc not in (101, 107)
    ]
    wrong = []
    for target in targets:
        path = tmp_path / "k.ptx"
        path.write_text(f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n")
        for gpu in [each for each in targets if not each.suffix]:
            # An "a" target of a GPU accepts everything that the GPU itself accepts.
            arch = f"sm_{gpu.cc}a" if gpu.cc >= 90 else str(gpu)
            done = subprocess.run([ptxas, f"-arch={arch}", path, "-o", tmp_path / "k.cubin"], capture_output=True)
            expected = answer(target.as_virtual, gpu.cc).way is Way.JIT
            if (done.returncode == 0) != expected:
                wrong.append((str(target), str(gpu), done.stderr))
    assert not wrong
