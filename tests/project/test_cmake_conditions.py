"""Conditions in CMakeLists.txt: what is known of them before anything is configured."""

from __future__ import annotations

import pytest

from harness.project.cmake import holds

NAMES = {"ON_BY_NAME": ["ON"], "OFF_BY_NAME": ["OFF"], "LIST": ["a.cu", "b.cu"], "EMPTY": [], "OTHER": ["${UNSET}"]}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("ON_BY_NAME", True), ("OFF_BY_NAME", False), ("LIST", True), ("EMPTY", False), ("${ON_BY_NAME}", True),
        ("OTHER", None), ("NEVER_SET", False), ("NOT NEVER_SET", True), ("TRUE", True), ("0", False), ('"off"', False),
        # What a build for CUDA on Linux has, whatever the options are by default.
        ("USE_CUDA", True), ("NOT CUDA_FOUND", False), ("ENABLE_CUDA_DEBUG", False), ("UNIX AND NOT APPLE", True),
        ("WIN32 OR MSVC", False), ('CMAKE_SYSTEM_NAME STREQUAL "Windows"', False), ('CMAKE_SYSTEM_NAME MATCHES "Darwin"', False),
        # What only CMake knows.
        ("CMAKE_BUILD_TYPE", None), ("NOT CMAKE_BUILD_TYPE STREQUAL Debug", None), ("MPI_FOUND", None), ("TARGET mine", None),
        ("CMAKE_VERSION VERSION_LESS 3.18", None), ("EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/csrc", None),
        ("DEFINED ON_BY_NAME", True), ("DEFINED NEVER_SET", False), ("NOT DEFINED CMAKE_CUDA_ARCHITECTURES", None),
        ("LIST STREQUAL LIST", False), ('ON_BY_NAME STREQUAL "ON"', True), ('"${ON_BY_NAME}" STREQUAL OFF', False),
        # From left to right, and parentheses.
        ("NEVER_SET AND (MPI_FOUND OR (ON_BY_NAME AND CMAKE_X))", False), ("ON_BY_NAME OR MPI_FOUND", True),
        ("NOT (ON_BY_NAME AND NOT NEVER_SET)", False), ("ON_BY_NAME AND MPI_FOUND", None),
        ("", None), ("(((", None), ("NOT", None), ("(" * 200, None),
    ],
)  # fmt: skip
def test_a_condition(condition: str, expected: bool | None) -> None:
    assert holds(condition, NAMES) is expected
