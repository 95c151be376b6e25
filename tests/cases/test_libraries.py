"""``[libraries]`` of case files."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cases.load import load_case
from harness.cases.toml import CaseError
from harness.model import Case

HEAD = 'title = "x"\n\n[source]\ncuda = "kernel.cu"\n\n'


def load(root: Path, table: str) -> Case:
    folder = root / "topic" / "name"
    folder.mkdir(parents=True)
    (folder / "kernel.cu").write_text("__global__ void k() {}")
    (folder / "case.toml").write_text(HEAD + table)
    return load_case(folder / "case.toml", root)


def test_versions_are_an_axis(tmp_path: Path) -> None:
    case = load(tmp_path, '[libraries]\ncutlass = ["3.5.1", "4.2.0"]\n\n[parameters]\nN = [1, 2]\n')
    assert [variant.name for variant in case.variants] == [
        "cutlass=3.5.1,N=1", "cutlass=3.5.1,N=2", "cutlass=4.2.0,N=1", "cutlass=4.2.0,N=2",
    ]  # fmt: skip
    assert case.variants[0].libraries == {"cutlass": "3.5.1"}
    assert case.variants[0].definitions == {"N": 1}
    assert case.libraries["cutlass"].wheel("3.5.1") == ("nvidia-cutlass", "3.5.1")


def test_conditions_compare_them_as_versions(tmp_path: Path) -> None:
    rule = '[[expect]]\nwhen = \'cutlass < "3.10"\'\nstatus = "rejected"\nreason = "old"\n'
    case = load(tmp_path, '[libraries]\ncutlass = ["3.9.2", "3.10.0"]\n\n' + rule)
    from packaging.version import Version

    when = case.expectations[0].when
    assert [when({"cutlass": Version(variant.libraries["cutlass"])}) for variant in case.variants] == [True, False]


def test_the_wheel_may_depend_on_the_version(tmp_path: Path) -> None:
    case = load(tmp_path, '[libraries]\ncccl = ["2.8.2", "3.1.4"]\n')
    assert [case.libraries["cccl"].wheel(v.libraries["cccl"]) for v in case.variants] == [
        ("nvidia-cuda-cccl-cu12", "12.9.27"), ("nvidia-cuda-cccl", "13.1.115"),
    ]  # fmt: skip


def test_a_library_that_the_case_describes(tmp_path: Path) -> None:
    table = '[libraries.mine]\nversions = ["1.0"]\npackage = "mine-headers"\ninclude = "mine/include"\n'
    library = load(tmp_path, table).libraries["mine"]
    assert (library.wheel("1.0"), library.include) == (("mine-headers", "1.0"), ("mine/include",))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("libraries = 3", "libraries: must be a table such as"),
        ('[libraries]\ncutlas = ["3.5.1"]', 'libraries.cutlas: unknown library .did you mean "?cutlass'),
        ("[libraries]\ncutlass = []", "libraries.cutlass: has no versions"),
        ('[libraries]\ncutlass = ["new"]', "libraries.cutlass: .new. is not a version such as"),
        ("[libraries]\ncutlass = [3.5]", "libraries.cutlass: 3.5 is not a version such as"),
        ('[libraries]\ncutlass = ["3.5.1", "3.5.1"]', "libraries.cutlass: has .3.5.1. twice"),
        ('[libraries]\ncutlass = "3.5.1"', "libraries.cutlass: must be a list of versions"),
        (
            '[libraries]\ncccl = ["2.8.2", "3.1.0"]',
            "libraries.cccl: cccl has no version 3.1.0 that is in a wheel; it has ",
        ),
        (
            '[libraries]\ncccl = ["12.9.27"]',
            "libraries.cccl: 12.9.27 is the number of a wheel: the cccl in it is 2.8.2",
        ),
        ('[libraries]\ntoolkit = ["1"]', "libraries.toolkit: cannot be the name of a library"),
        ('[libraries.mine]\nversions = ["1"]', "libraries.mine.package: is missing"),
        ('[libraries]\ncutlass = ["3.5.1\\n"]', "libraries.cutlass: .* is not a version such as"),
        ('[libraries]\ncutlass = ["3.5.1 --index-url https://x.example"]', "libraries.cutlass: .* is not a version"),
        (
            '[libraries]\ncutlass = ["@ https://x.example/cutlass-3.5.1-py3-none-any.whl"]',
            "libraries.cutlass: .* is not a",
        ),
        ('[libraries.mine]\nversion = ["1"]', "libraries.mine.version: unknown key .did you mean"),
        (
            '[libraries]\ncutlass = ["3.5.1"]\n[parameters]\ncutlass = [1]',
            "parameters.cutlass: is the name of a library",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, table: str, words: str) -> None:
    if table.startswith("libraries = "):
        table, head = "", table + "\n"
        (tmp_path / "topic" / "name").mkdir(parents=True)
        (tmp_path / "topic" / "name" / "kernel.cu").write_text("")
        (tmp_path / "topic" / "name" / "case.toml").write_text(head + HEAD)
        with pytest.raises(CaseError, match=words):
            load_case(tmp_path / "topic" / "name" / "case.toml", tmp_path)
        return
    with pytest.raises(CaseError, match=words) as caught:
        load(tmp_path, table)
    assert "case.toml:" in str(caught.value)


@pytest.mark.parametrize(
    "package",
    [
        "mine @ https://x.example/mine-1.0-py3-none-any.whl",
        "mine --index-url https://x.example",
        "-r requirements.txt",
        "--index-url=https://x.example",
        "https://x.example/mine-1.0-py3-none-any.whl",
        "./mine-1.0-py3-none-any.whl",
        "../mine",
        "mine[more]",
        "mine==1.0",
        "mine; python_version > '3'",
    ],
)
def test_a_package_is_a_name_and_no_address(tmp_path: Path, package: str) -> None:
    table = f'[libraries.mine]\nversions = ["1.0"]\npackage = "{package}"\ninclude = "mine"\n'
    with pytest.raises(CaseError, match=r"libraries\.mine\.package: must be the name of a wheel on PyPI") as caught:
        load(tmp_path, table)
    assert "case.toml:8:" in str(caught.value)


def test_backends_of_a_case(tmp_path: Path) -> None:
    folder = tmp_path / "topic" / "name"
    folder.mkdir(parents=True)
    (folder / "kernel.cu").write_text("__global__ void k() {}")
    (folder / "case.toml").write_text('backends = ["nvrct"]\n' + HEAD)
    with pytest.raises(CaseError, match=r"backends: entry 1: unknown backend .*did you mean .*nvrtc"):
        load_case(folder / "case.toml", tmp_path)
