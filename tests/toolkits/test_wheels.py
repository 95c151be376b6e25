"""Every wheel that the tables name is pinned."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from harness.cases.discovery import load_cases
from harness.cli import toolkits
from harness.errors import UsageError
from harness.toolkits import LIBRARIES, RELEASES, Installed, Release, ToolkitStore
from harness.toolkits.download import pinned
from harness.toolkits.releases import PARTS

ROOT = Path(__file__).parents[2]


def test_every_wheel_of_every_release_is_pinned() -> None:
    wheels = {wheel for release in RELEASES.values() for wheel in release.packages.items()}
    wheels |= {wheel for part in PARTS.values() for wheel in part.wheels.values()}
    assert [f"{name} {version}" for name, version in sorted(wheels) if pinned(name, version) is None] == []


def test_every_library_of_the_cases_is_pinned() -> None:
    wanted = {
        case.libraries[name].wheel(version)
        for case in load_cases(ROOT / "cases")
        for variant in case.variants
        for name, version in variant.libraries.items()
    }
    assert wanted
    assert [f"{name} {version}" for name, version in sorted(wanted) if pinned(name, version) is None] == []


def test_every_release_of_cccl_is_pinned() -> None:
    wanted = {tuple(wheel.split("==")) for wheel in LIBRARIES["cccl"].releases.values()}
    assert [wheel for wheel in wanted if pinned(*wheel) is None] == []


@pytest.mark.parametrize("name", ["nvidia-cutlass", "nvidia_cutlass", "NVIDIA.Cutlass"])
def test_names_and_versions_as_pypi_compares_them(name: str) -> None:
    assert LIBRARIES["cutlass"].wheel("3.5.1") == ("nvidia-cutlass", "3.5.1")
    found = pinned(name, "3.5.1")
    assert found and len(found) == 1
    assert found == pinned(name, "3.5.1.0")
    assert pinned(name, "3.5.1.1") is None
    assert pinned("another", "3.5.1") is None


def test_another_machine_has_wheels_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for machine in ("x86_64", "aarch64", "riscv64"):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        wheels = pinned("nvidia-cuda-nvrtc", "13.0.88")
        assert wheels is not None
        found[machine] = wheels
    assert len(found["x86_64"]) == len(found["aarch64"]) == 1
    assert found["x86_64"] != found["aarch64"]
    assert found["riscv64"] == frozenset()  # not None: any wheel for it is rejected


def test_the_file_has_hashes_and_nothing_else() -> None:
    table = tomllib.loads(files("harness.toolkits").joinpath("wheels.toml").read_text("utf-8"))
    hashes = [
        sha256 for versions in table.values() for wheels in versions.values() for of in wheels.values() for sha256 in of
    ]
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in hashes)
    assert len(hashes) == len(set(hashes))
    machines = {machine for versions in table.values() for wheels in versions.values() for machine in wheels}
    assert machines == {"any", "aarch64", "x86_64"}


def test_a_release_that_is_not_pinned_is_no_part_of_a_range(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unknown = Release(name="13.5", packages={"nvidia-new": "13.5.1"})
    monkeypatch.setattr(toolkits, "RELEASES", {**RELEASES, "13.5": unknown})
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "home"))
    asked: list[str] = []

    def install(self: ToolkitStore, release: Release, *arguments: object, **keywords: object) -> Installed:
        asked.append(release.name)
        return Installed(release=release.name, home=tmp_path, packages={})

    monkeypatch.setattr(ToolkitStore, "install", install)
    for text in ("all", "13.4..13.5", "13"):
        with pytest.raises(UsageError, match=r"CUDA 13\.5 \(nvidia-new 13\.5\.1\): name that release exactly"):
            toolkits.toolkits.main(["install", text], standalone_mode=False)
    assert asked == []
    toolkits.toolkits.main(["install", "13.4,13.5"], standalone_mode=False)
    assert asked == ["13.4", "13.5"]
