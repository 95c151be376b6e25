"""The virtual device and its two faces, without Numba and without a toolkit."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from harness.backends.numba import numba_cuda
from harness.nvidia import virtual_driver
from harness.nvidia.virtual_driver import (
    ERROR_LOG,
    ERROR_SIZE,
    INVALID_PTX,
    LIBRARY,
    PTX,
    VirtualDevice,
    VirtualDriver,
    VirtualRuntime,
    directives,
    foreign,
    isa_of,
    release_of,
)
from harness.protocol.backend import Job, Rejected, Setup, Unavailable, Unsupported

PROGRAM = b"// a kernel\n.version 8.4\n.target sm_80\n.address_size 64\n"


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """A CUDA 12.4 whose only tool is a ptxas that copies its input, or rejects input that contains `bad`."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "lib64").mkdir()
    (home / "nvvm" / "lib64").mkdir(parents=True)
    ptxas = home / "bin" / "ptxas"
    ptxas.write_text(
        "#!/bin/sh\n"
        'for word; do case "$word" in *.ptx) in=$word;; -o) ;; *) out=$word;; esac; done\n'
        'if grep -q bad "$in"; then echo "ptxas fatal : bad"; exit 255; fi\n'
        'echo "ptxas info : fine"; cp "$in" "$out"\n'
    )
    ptxas.chmod(0o755)
    return Setup(home=home, release="12.4", headers="12.4", include=[], tools=tmp_path / "tools")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    scratch = tmp_path / "cell"
    scratch.mkdir()
    return Job("cell", tmp_path / "kernel.py", {}, {}, "sm_80", {}, [], scratch=scratch)


@pytest.fixture
def device(setup: Setup, job: Job) -> VirtualDevice:
    return VirtualDevice(setup, job, "numba 0.59.1")


@pytest.mark.parametrize(
    ("release", "isa"),
    [("11.8", "7.8"), ("12.0", "8.0"), ("12.4", "8.4"), ("12.5", "8.5"), ("12.6", "8.5"), ("12.8", "8.7"),
     ("12.9", "8.8"), ("13.0", "9.0"), ("13.5", "9.5")],
)  # fmt: skip
def test_the_ptx_isa_of_a_release(release: str, isa: str) -> None:
    assert isa_of(release) == isa
    assert release_of(isa, release) == release


def test_a_foreign_isa_is_named_by_its_release() -> None:
    assert release_of("9.0", "12.4") == "13.0"
    assert release_of("8.8", "12.4") == "12.9"
    assert release_of("8.3", "12.4") == "12.3"


def test_directives_are_read_from_lines_of_their_own() -> None:
    assert directives("// .version 1.0\n.version 8.8\n.target sm_90a, debug\n") == ("8.8", "sm_90a")
    assert directives("nothing") == ("", "")


def test_what_was_built_is_observed(device: VirtualDevice) -> None:
    device.check(PROGRAM.decode())
    assert device.job.observed == {"ptx": "8.4", "nvvm": "12.4"}


def test_another_nvvm_makes_the_cell_unavailable(device: VirtualDevice) -> None:
    with pytest.raises(Unavailable, match=r"NVVM of CUDA 12\.4.*got PTX 9\.0"):
        device.check(".version 9.0\n.target sm_80\n")
    assert device.job.observed["nvvm"] == "13.0"


def test_another_target_makes_the_cell_unavailable(device: VirtualDevice) -> None:
    with pytest.raises(Unavailable, match=r"asked for sm_80, numba 0\.59\.1 built sm_90"):
        device.check(".version 8.4\n.target sm_90\n")


def test_a_device_that_gets_specific_code_only_is_unsupported(device: VirtualDevice) -> None:
    device.job.target = "sm_90"
    with pytest.raises(Unsupported, match="builds sm_90a for this device"):
        device.check(".version 8.4\n.target sm_90a\n")


def test_one_ptx_is_assembled(device: VirtualDevice) -> None:
    assert device.link([(PTX, PROGRAM + b"\0")], {}) == PROGRAM
    assert device.job.stages == ["assemble"]
    (part,) = device.job.parts
    assert (part.format, Path(part.path).read_bytes()) == ("cubin", PROGRAM)


def test_options_of_the_driver_become_those_of_ptxas(device: VirtualDevice) -> None:
    device.link([(PTX, PROGRAM)], {0: 32, 13: 1})
    assert "-maxrregcount=32 -lineinfo" in device.job.command[0]


def test_a_refusal_is_kept(device: VirtualDevice) -> None:
    assert device.link([(PTX, PROGRAM + b"bad")], {}) is None
    assert isinstance(device.ended, Rejected)
    assert device.ended.stage == "assemble"
    assert device.job.logs == ["ptxas fatal : bad"]


def test_a_virtual_target_is_not_assembled(device: VirtualDevice) -> None:
    device.job.target = "compute_80"
    assert device.link([(PTX, PROGRAM)], {}) == PROGRAM
    assert device.job.stages == []


def test_without_nvjitlink_relocatable_code_is_assembled_and_that_is_noted(device: VirtualDevice) -> None:
    assert device.link([(PTX, PROGRAM), (LIBRARY, Path("/anywhere/libcudadevrt.a"))], {}) == PROGRAM
    assert device.job.artifact is not None
    assert device.job.artifact.format == "object"
    assert device.job.notes == ["not linked: CUDA 12.4 has no nvJitLink (it came with 12.0)"]


def test_what_is_loaded_of_another_cuda_is_told(setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths are invented: the loaded libraries of this process depend on earlier tests."""
    own, other = (folder / "libnvJitLink.so.12" for folder in (setup.home / "lib64", tmp_path / "other"))
    for path in (own, other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(virtual_driver, "loaded", lambda *_: [own.resolve()])
    assert foreign(setup) == []
    monkeypatch.setattr(virtual_driver, "loaded", lambda *_: [own.resolve(), other])
    assert foreign(setup) == [other]


def test_the_python_driver_tells_the_capability(device: VirtualDevice) -> None:
    driver, value = VirtualDriver(device), ctypes.c_int()
    for attribute, expected in ((75, 8), (76, 0), (10, 32)):
        assert driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0
        assert value.value == expected


def test_the_runtime_is_of_the_toolkit(setup: Setup) -> None:
    value = ctypes.c_int()
    assert VirtualRuntime(setup).cudaRuntimeGetVersion(ctypes.byref(value)) == 0
    assert value.value == 12040


def test_handles_of_the_python_driver_differ(device: VirtualDevice) -> None:
    driver, handles = VirtualDriver(device), [ctypes.c_void_p(), ctypes.c_void_p()]
    for handle in handles:
        driver.cuModuleLoadDataEx(ctypes.byref(handle), b"", 0, None, None)
    assert handles[0].value != handles[1].value


def test_the_python_driver_lacks_what_it_lacks(device: VirtualDevice) -> None:
    assert not hasattr(VirtualDriver(device), "cuTexRefCreate")


def test_a_mistake_in_the_python_driver_is_remembered(device: VirtualDevice) -> None:
    with pytest.raises(TypeError):
        VirtualDriver(device).cuDeviceGetCount()
    assert isinstance(device.fault, TypeError)


def test_the_python_driver_writes_the_linkers_words(device: VirtualDevice) -> None:
    driver, log = VirtualDriver(device), ctypes.create_string_buffer(64)
    names = (ctypes.c_int * 2)(ERROR_LOG, ERROR_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 64)
    state, cubin, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    driver.cuLinkCreate(2, names, values, ctypes.byref(state))
    text = PROGRAM + b"bad"
    driver.cuLinkAddData(state, PTX, ctypes.c_char_p(text), len(text), b"x", 0, None, None)
    assert driver.cuLinkComplete(state, ctypes.byref(cubin), ctypes.byref(size)) == INVALID_PTX
    assert log.value == b"ptxas fatal : bad"


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture
def library(setup: Setup) -> ctypes.CDLL:
    return ctypes.CDLL(str(virtual_driver.stand_in_library(setup.tools)))


def entry(library: ctypes.CDLL, name: str) -> ctypes._CFuncPtr | None:  # type: ignore[name-defined]
    address = ctypes.c_void_p()
    code = library.cuGetProcAddress_v2(name.encode(), ctypes.byref(address), 12000, ctypes.c_uint64(0), None)
    assert (code == 0) == bool(address)
    return ctypes.CFUNCTYPE(ctypes.c_int)(address.value) if address.value else None


@needs_compiler
def test_the_c_driver_is_built_once(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    first = virtual_driver.stand_in_library(setup.tools)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert virtual_driver.stand_in_library(setup.tools) == first
    assert [path.name for path in setup.tools.iterdir()] == [first.parent.name]


def test_without_a_compiler_the_c_driver_is_unavailable(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Unavailable, match="install gcc"):
        virtual_driver.stand_in_library(setup.tools)


@needs_compiler
def test_the_c_driver_tells_what_it_was_configured_with(library: ctypes.CDLL) -> None:
    library.virtual_configure(13000, 9, 0, None)
    value, version = ctypes.c_int(), ctypes.c_int()
    attribute, driver_version = entry(library, "cuDeviceGetAttribute"), entry(library, "cuDriverGetVersion")
    assert attribute is not None
    assert driver_version is not None
    assert attribute(ctypes.byref(value), 75, 0) == 0
    assert driver_version(ctypes.byref(version)) == 0
    assert (value.value, version.value) == (9, 13000)


@needs_compiler
def test_the_c_driver_lacks_what_it_lacks(library: ctypes.CDLL) -> None:
    assert entry(library, "cuTexRefCreate") is None


@needs_compiler
def test_the_c_driver_links_through_the_device(library: ctypes.CDLL, device: VirtualDevice) -> None:
    callback = virtual_driver.LINKER(lambda *arguments: numba_cuda._link(device, *arguments))
    library.virtual_configure(13000, 8, 0, callback)
    create, add, complete = (entry(library, f"cuLink{name}") for name in ("Create", "AddData", "Complete"))
    assert create is not None
    assert add is not None
    assert complete is not None
    state, cubin, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    create(0, None, None, ctypes.byref(state))
    add(state, PTX, ctypes.c_char_p(PROGRAM), ctypes.c_size_t(len(PROGRAM)), b"x", 0, None, None)
    assert complete(state, ctypes.byref(cubin), ctypes.byref(size)) == 0
    assert cubin.value is not None
    assert ctypes.string_at(cubin.value, size.value) == PROGRAM
    assert device.images == 1


def test_no_real_driver_is_found_by_its_other_name() -> None:
    with numba_cuda.hide_real_driver():
        with pytest.raises(OSError, match="not looked for"):
            ctypes.CDLL("libcuda.so")
        assert ctypes.CDLL(None) is not None
    assert ctypes.CDLL.__name__ == "CDLL"
