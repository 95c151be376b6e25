"""CMakeLists.txt, read and never run."""

from __future__ import annotations

from pathlib import Path

from harness.project.cmake import built_by
from harness.project.detect import look
from harness.project.init import proposal

from .test_detect import _proposed

TOP = """
cmake_minimum_required(VERSION 3.24)  # "a comment
project(mine LANGUAGES CXX CUDA)
#[[ add_executable(never csrc/scale.cu) ]]
set(CMAKE_CUDA_ARCHITECTURES 80;90a 61-real native CACHE STRING "")
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -lineinfo")
include_directories(${CMAKE_CURRENT_SOURCE_DIR}/include)
if(MSVC)
  add_definitions(-DNEVER)
else()
  add_definitions(-DHERE)
endif()
if(NOT WIN32)
  add_compile_definitions(N=4)
endif()
function(helper)
  add_executable(never csrc/scale.cu)
endfunction()
file(GLOB MORE "csrc/deep/*.cu")
add_library(mine STATIC csrc/bind.cpp csrc/scale.cu)
target_compile_options(mine PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--use_fast_math> $<$<COMPILE_LANGUAGE:CXX>:-Wall>)
set_target_properties(mine PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
add_subdirectory(app)
"""
APP = """
add_executable(app)
target_sources(app PRIVATE main.cu ${MORE} ${CMAKE_CURRENT_BINARY_DIR}/made.cu)
target_compile_definitions(app PRIVATE APP=1)
"""


def _write(project: Path) -> None:
    (project / "CMakeLists.txt").write_text(TOP)
    (project / "app").mkdir()
    (project / "app" / "CMakeLists.txt").write_text(APP)
    (project / "app" / "main.cu").write_text("__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")


def test_targets_have_their_files_and_options(project: Path) -> None:
    _write(project)
    built = built_by(project)
    units = {unit.file.relative_to(project).as_posix(): unit for unit in built.units}
    assert sorted(units) == ["app/main.cu", "csrc/deep/shift.cu", "csrc/scale.cu"]
    scale, main = units["csrc/scale.cu"], units["app/main.cu"]
    assert (scale.include, scale.define, scale.std, scale.rdc) == (
        (str(project / "include"),),
        ("HERE", "N=4"),
        "c++17",
        True,
    )
    assert scale.flags == ("-lineinfo", "--use_fast_math")
    assert (main.define, main.rdc, main.flags) == (("HERE", "N=4", "APP=1"), False, ("-lineinfo",))
    assert built.architectures == ["80", "90a", "61"]
    assert built.unread == ["${CMAKE_CURRENT_BINARY_DIR}/made.cu of app: there is no such file without a build"]


def test_init_takes_them_and_says_what_it_cannot_know(project: Path) -> None:
    _write(project)
    seen = look(project)
    assert [table.get("backends") for table in seen.programs if table["sources"] == ["app/main.cu"]] == [["nvcc"]]
    assert any("cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON" in text for text in seen.left_out)
    assert 'target = "sm_61,sm_80,sm_90a"' in proposal(seen, ())
    assert _proposed(project) == {"cuda": {"csrc/scale.cu", "csrc/deep/shift.cu", "app/main.cu"}}


def test_what_is_no_cmake_is_no_error(project: Path) -> None:
    (project / "CMakeLists.txt").write_text(
        "add_executable(a csrc/scale.cu\nendif()\nset()\nlist(APPEND)\nadd_subdirectory(.)\n"
    )
    assert built_by(project).units == []


def test_branches_are_taken_as_cmake_takes_them(project: Path) -> None:
    (project / "cmake").mkdir()
    (project / "cmake" / "Options.cmake").write_text('option(FAST "" ON)\noption(MINE_CUDA "" OFF)\n')
    (project / "CMakeLists.txt").write_text("""
        list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_SOURCE_DIR}/cmake)
        include(Options)
        include(CheckCXXCompilerFlag)
        if(DEBUG_DEVICE AND (FAST OR (A AND B)))
          set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -G")
        elseif(FAST)
          set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -lineinfo")
        else()
          set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -w")
        endif()
        if(MINE_CUDA)
          if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT "${CMAKE_SYSTEM_PROCESSOR}" STREQUAL "sparc")
            add_library(mine csrc/scale.cu)
          endif()
          target_compile_definitions(mine PRIVATE N=4 ${FOUND_DEFINITIONS})
          target_include_directories(mine PRIVATE include ${CUDAToolkit_INCLUDE_DIRS})
        endif()
    """)
    built = built_by(project)
    (unit,) = built.units
    assert (unit.flags, unit.define, unit.include) == (("-lineinfo",), ("N=4",), (str(project / "include"),))
    # A configuration with names of CMake's in it could not be read.
    assert built.unread == ["${FOUND_DEFINITIONS}: known once the build is configured"]
