"""``cumatrix wheel``: the table, the gate, comparisons, requirements and configurations."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from .conftest import Tools

pytestmark = [pytest.mark.compilers, pytest.mark.called]

Wheel = Callable[..., Path]


@pytest.fixture
def wheel(tools: Tools, cumatrix: Command) -> Wheel:
    """Write a wheel with libraries: fatbins by library name."""

    def make(
        version: str, tag: str = "py3-none-manylinux_2_28_x86_64", **libraries: tuple[tuple[str, str], ...]
    ) -> Path:
        path = cumatrix.folder / f"mine-{version}-{tag}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("mine/__init__.py", "raise SystemExit('executed')")
            for name, images in libraries.items():
                archive.write(tools.fatbin(f"{name}.fatbin", *images, mode="size"), f"mine/{name}.so")
        return path

    return make


AMPERE = (("elf", "sm_80"), ("ptx", "sm_80"))
HOPPER = (("elf", "sm_90a"),)


def test_the_table_and_its_reasons(wheel: Wheel, cumatrix: Command) -> None:
    done = cumatrix("wheel", wheel("1.0", one=AMPERE, two=HOPPER), "--gpu", "sm_75..sm_90,RTX 5090")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].startswith("sha256 ")
    assert [line.split() for line in lines[2:5]] == [
        ["library", "75", "80", "86", "87", "89", "90", "120"],
        ["one.so", *"–✓✓J✓JJ"],
        ["two.so", *"–––––✓–"],
    ]
    assert (
        "J sm_87, sm_90, RTX 5090 (sm_120): PTX is compiled from the driver of CUDA 13.0 (580.65.06) on: one.so"
        in lines
    )
    assert "– sm_75: no SASS for 7.x, PTX of compute_80 (for 8.0 and newer): one.so" in lines
    assert "– RTX 5090 (sm_120): no SASS for 12.x, no PTX: two.so" in lines


def test_the_gate(wheel: Wheel, cumatrix: Command) -> None:
    path = wheel("1.0", one=AMPERE, two=HOPPER)
    assert cumatrix("wheel", path, "--require", "H100").returncode == 0
    assert cumatrix("wheel", path, "--require", "H100", "--native").returncode == 1
    done = cumatrix("wheel", path, "--require", "RTX 5090,H100", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [(each["library"], each["gpu"]["target"]) for each in found["missing"]] == [("mine/two.so", "sm_120")]
    (one, two) = found["sources"][0]["libraries"]
    assert one["ptx_versions"] == {"compute_80": "9.0"} and two["sass"] == {"sm_90a": 1}
    github = cumatrix("wheel", path, "--require", "RTX 5090", "--format", "github")
    assert github.stdout.startswith(
        "::error title=mine/two.so%3A not as required on RTX 5090 (sm_120)::no SASS for 12.x, no PTX"
    )
    sarif = json.loads(cumatrix("wheel", path, "--require", "RTX 5090", "--format", "sarif").stdout)
    assert len(sarif["runs"][0]["results"]) == 1


def test_fatbins_that_lack_code_are_named_by_their_kernels(tools: Tools, cumatrix: Command) -> None:
    parts = [tools.fatbin(f"{number}.fatbin", *images) for number, images in enumerate((AMPERE, AMPERE, HOPPER))]
    whole = cumatrix.folder / "several.fatbin"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    done = cumatrix("wheel", whole, "--gpu", "sm_80,sm_90,sm_120", "--require", "sm_80")
    assert done.returncode == 0
    assert "◐ sm_120: 1 of 3 fatbins lack code: no SASS for 12.x, no PTX: several.fatbin" in done.stdout
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("several.fatbin  ")] == [
        ["several.fatbin", "◐", "J", "◐"]
    ]
    assert "  sm_90a, not 80 120\n    flash::flash_fwd_kernel\n" in done.stdout
    assert cumatrix("wheel", whole, "--require", "sm_80", "--complete").returncode == 1


def test_two_releases_are_compared(wheel: Wheel, cumatrix: Command) -> None:
    old, new = wheel("1.0", one=AMPERE, gone=HOPPER), wheel("2.0", one=HOPPER, come=HOPPER)
    done = cumatrix("wheel", old, new, "--gpu", "sm_80,sm_90")
    assert done.returncode == 1
    assert done.stdout.splitlines()[2:] == [
        "+ mine/come.so", "- mine/gone.so", "~ mine/one.so", "    + SASS 90a", "    - SASS 80, PTX 80",
        "    ✓ -> – on sm_80: no SASS for 8.x, no PTX", "    J -> ✓ on sm_90", "3 of 3 libraries differ",
    ]  # fmt: skip
    assert cumatrix("wheel", new, old, "--gpu", "sm_80").returncode == 0


def test_a_requirement_is_downloaded_and_its_hash_held_against_the_index(
    wheel: Wheel, cumatrix: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    index = tmp_path_factory.mktemp("index")
    for version, tag in (
        ("1.0", "py3-none-manylinux_2_28_x86_64"),
        ("2.0", "py3-none-manylinux_2_28_aarch64"),
        ("3.0rc1", "py3-none-any"),
        ("4.0", "py3-none-win_amd64"),
    ):
        path = wheel(version, tag, one=AMPERE)
        shutil.move(path, index / path.name)
    environ = {"UV_FIND_LINKS": str(index), "UV_DEFAULT_INDEX": (tmp_path_factory.mktemp("none")).as_uri()}
    done = cumatrix("wheel", "mine==1.0", "--gpu", "sm_80", env=environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mine-1.0-py3-none-manylinux_2_28_x86_64.whl\nsha256 ")
    assert cumatrix("wheel", "mine<3", "--gpu", "sm_80", env=environ).stdout.startswith(
        "mine-2.0-py3-none-manylinux_2_28_aarch64.whl"
    )
    none = cumatrix("wheel", "mine", env=environ)
    assert (none.returncode, none.stderr) == (
        4,
        "cumatrix: mine 4.0 has no wheel for Linux: mine-4.0-py3-none-win_amd64.whl is not read\n",
    )
    other = cumatrix("wheel", "mine==9", env=environ)
    assert (other.returncode, other.stderr.partition(": the")[2]) == (4, " newest is 4.0\n")
    page = index / "simple" / "mine"
    page.mkdir(parents=True)
    (page / "index.html").write_text(
        f'<a href="../../mine-1.0-py3-none-manylinux_2_28_x86_64.whl#sha256={"0" * 64}">x</a>'
    )
    wrong = cumatrix("wheel", "mine", env={"UV_DEFAULT_INDEX": (index / "simple").as_uri(), "UV_FIND_LINKS": ""})
    assert wrong.returncode == 4 and f"and the index says {'0' * 64}" in wrong.stderr


def test_the_configuration_gives_defaults(wheel: Wheel, cumatrix: Command) -> None:
    wheel("1.0", one=AMPERE)
    file = cumatrix.folder / "cumatrix.toml"
    file.write_text('[wheel]\nfiles = "*.whl"\nrequire = ["H100", "sm_80"]\nnative = true\n')
    done = cumatrix("wheel")
    assert done.returncode == 1
    assert "one.so: H100 (sm_90): PTX alone, which the driver has to compile" in done.stderr
    assert cumatrix("wheel", "--require", "sm_80").returncode == 0
    file.write_text('[wheel]\nrequire = "RTX 9090"\n')
    wrong = cumatrix("wheel")
    assert wrong.returncode == 2 and wrong.stderr.startswith(
        "cumatrix: cumatrix.toml:2: wheel.require: no GPU is called 'RTX 9090'"
    )
    file.write_text("[wheel]\nneeds = 1\n")
    assert "wheel.needs: unknown key" in cumatrix("wheel").stderr


@pytest.mark.parametrize(
    ("name", "data", "code", "words"),
    [
        ("a.whl", b"PK", 2, "is no wheel that can be read"),
        ("a.so", b"\x7fELF", 2, "a.so: not read"),
        ("a.txt", b"text", 2, "a.txt: it is no ELF file"),
        ("a.fatbin", b"\x50\xed\x55\xba", 2, "cut off"),
        ("nothing", None, 2, "no file and no folder"),
        ("folder/", None, 3, "has no device code"),
        ("/dev/zero", None, 2, "is neither a file nor a folder"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    cumatrix: Command, name: str, data: bytes | None, code: int, words: str
) -> None:
    path = cumatrix.folder / name
    if name.endswith("/"):
        path.mkdir()
    elif data is not None:
        path.write_bytes(data)
    elif not name.startswith("/"):
        name = "no/such.so"
    done = cumatrix("wheel", name)
    assert done.returncode == code and words in done.stderr and done.stderr.count("\n") == 1


def test_the_first_release_that_lacks_nothing(
    wheel: Wheel, cumatrix: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    index = tmp_path_factory.mktemp("index")
    for number in range(1, 9):
        path = wheel(f"{number}.0", one=AMPERE if number < 3 else (*AMPERE, *HOPPER))
        shutil.move(path, index / path.name)
    environ = {"UV_FIND_LINKS": str(index), "UV_DEFAULT_INDEX": tmp_path_factory.mktemp("none").as_uri()}
    done = cumatrix("wheel", "mine", "--require", "H100", "--native", "--since", env=environ)
    assert (done.returncode, done.stdout) == (
        0,
        "mine runs on H100 (sm_90) since 3.0 (2.0 lacks something; 4 of 8 releases read)\n",
    )
    found = json.loads(cumatrix("wheel", "mine", "--require", "H100", "--since", "--json", env=environ).stdout)
    assert (found["first"], found["before"], found["releases"]) == ("1.0", "", 8)
    never = cumatrix("wheel", "mine", "--require", "sm_75", "--since", env=environ)
    assert (never.returncode, never.stdout) == (1, "mine 8.0, the newest, lacks something for sm_75\n")
    assert cumatrix("wheel", "mine", "--since", env=environ).returncode == 2
