"""``tox.ini`` as tox itself resolves it."""

from __future__ import annotations

import configparser
import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from harness.libraries import LIBRARIES, Release

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "tox_environments.py"


def settings(
    tmp_path: Path, names: str, keys: str, *words: str, ini: Path = ROOT / "tox.ini"
) -> dict[str, dict[str, list[str]]]:
    """Return the lines of settings of each environment, with the text after ``--``."""
    argv = [
        sys.executable,
        "-m",
        "tox",
        "config",
        "-c",
        str(ini),
        "-e",
        names,
        "-k",
        *keys.split(),
        "--workdir",
        str(tmp_path),
    ]
    done = subprocess.run([*argv, "--", *words], cwd=ROOT, capture_output=True, text=True, timeout=800, check=True)
    found = configparser.ConfigParser(interpolation=None, delimiters=["="])
    found.read_string(done.stdout)
    return {
        name.removeprefix("testenv:"): {key: found[name][key].strip().splitlines() for key in keys.split()}
        for name in found.sections()
        if keys.split()[0] in found[name]
    }


def commands(tmp_path: Path, names: str, *words: str) -> dict[str, list[str]]:
    """Return the commands of each environment, with the text after ``--``."""
    return {name: found["commands"] for name, found in settings(tmp_path, names, "commands", *words).items()}


def environments() -> ModuleType:
    """The script that writes the environments of libraries into ``tox.ini``."""
    spec = importlib.util.spec_from_file_location("tox_environments", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_follows_the_dashes_is_for_the_cases_and_not_for_the_page(tmp_path: Path) -> None:
    pytest.importorskip("tox")
    words = ("wmma/fragments", "-a", "sm_80")
    found = commands(tmp_path, "page,cupy12,cupy13,report,lint", *words)
    for name in ("cupy12", "cupy13"):
        assert found[name] == [f"cumatrix run --out reports/{name}.jsonl {' '.join(words)}"]
    assert found["page"] == ["cumatrix report --coming --out reports/html"]
    assert found["report"] == ["cumatrix report --out reports/html"]
    for name in ("page", "report", "lint"):
        assert not any("wmma" in line or "sm_80" in line for line in found[name])


def test_the_tests_take_words_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("tox")
    assert commands(tmp_path, "tests", "-k", "wmma")["tests"] == ["pytest --durations=25 -m 'not slow' -k wmma"]


def test_the_environments_are_those_of_the_tables() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, f"run .ci/tox_environments.py, or write by hand:\n{done.stdout}{done.stderr}"


def test_a_release_of_a_library_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("tox")
    numba, cupy = LIBRARIES["numba"], LIBRARIES["cupy"]
    new = Release(tox="numba099", version="0.99.*", numpy="<9", companions=("llvmlite==9.*",))
    newer = Release(tox="cupy99", version="99.*", cuda=(13, 12))
    libraries = {
        **LIBRARIES,
        "numba": replace(numba, releases=(*numba.releases, new)),
        "cupy": replace(cupy, releases=(*cupy.releases, newer)),
    }
    ini = tmp_path / "tox.ini"
    ini.write_text(environments().written((ROOT / "tox.ini").read_text(), libraries))
    names = "numba099-cuda124,cupy99,cupy99-cuda128,cupy99-wheels,cupy99-wheels-cuda130"
    found = settings(tmp_path, names, "deps set_env", ini=ini)
    assert {"CUMATRIX_WITH=numba=0.99", "CUMATRIX_TOOLKIT=12.4", "CUMATRIX_BACKEND=numba"} <= set(
        found["numba099-cuda124"]["set_env"]
    )
    # --with chooses the companions of a release and CuPy's wheel.
    assert not any("".join(found[name]["deps"]) for name in ("numba099-cuda124", "cupy99", "cupy99-cuda128"))
    assert {"CUMATRIX_WITH=cupy=99", "CUMATRIX_TOOLKIT=13.0"} <= set(found["cupy99"]["set_env"])
    assert {"CUMATRIX_WITH=cupy=99", "CUMATRIX_TOOLKIT=12.8"} <= set(found["cupy99-cuda128"]["set_env"])
    # Except in environments with CUDA's headers from a wheel.
    wheels = found["cupy99-wheels-cuda130"]
    assert wheels["deps"] == ["cupy-cuda13x==99.*", "nvidia-cuda-runtime==13.0.*"]
    assert "CUMATRIX_REQUIRE=cupy-cuda13x==99.*" in wheels["set_env"]
    assert not any(line.startswith("CUMATRIX_WITH") for line in wheels["set_env"])


def test_a_release_of_cuda_needs_nothing_but_its_wheels(tmp_path: Path) -> None:
    pytest.importorskip("tox")
    steps, ini = environments(), tmp_path / "tox.ini"
    ini.write_text(steps.written((ROOT / "tox.ini").read_text(), cuda=[*steps.cuda_releases(), "13.99"]))
    found = settings(tmp_path, "cupy14-cuda1399,cupy12,nvcc,nvcc-cuda130", "set_env", ini=ini)
    toolkits = {name: [x for x in each["set_env"] if x.startswith("CUMATRIX_TOOLKIT=")] for name, each in found.items()}
    assert toolkits == {
        "cupy14-cuda1399": ["CUMATRIX_TOOLKIT=13.99"],
        "cupy12": ["CUMATRIX_TOOLKIT=12.9"],
        "nvcc": ["CUMATRIX_TOOLKIT=13.99"],
        "nvcc-cuda130": ["CUMATRIX_TOOLKIT=13.0"],
    }
