"""Files that a program needs, and their places in another folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.repro.subject import gather


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_h", ".h").replace("_cu", ".cu").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_headers_in_quotes_lie_beside_and_others_in_include_directories(tmp_path: Path) -> None:
    write(
        tmp_path,
        src__kernel_cu='#include "det/a.h"\n # include <b.h>\n#include <cuda_fp16.h>\n',
        src__det__a_h='#include "c.h"\n',
        src__det__c_h="",
        src__unused_h="",
        other__b_h="",
        other__unused_h="",
    )
    found = gather([tmp_path / "src" / "kernel.cu"], [tmp_path / "other"])
    assert (found.sources, found.include) == (["kernel.cu"], ["include-1"])
    assert sorted(found.files) == ["det/a.h", "det/c.h", "include-1/b.h", "kernel.cu"]
    assert found.files["include-1/b.h"].read_text() == ""


def test_an_include_directory_of_the_programs_own_stays_where_it_is(tmp_path: Path) -> None:
    write(tmp_path, kernel_cu="#include <b.h>\n", include__b_h="")
    found = gather([tmp_path / "kernel.cu"], [tmp_path / "include"])
    assert (found.include, sorted(found.files)) == (["include"], ["include/b.h", "kernel.cu"])


def test_headers_above_the_program_keep_their_place_beside_it(tmp_path: Path) -> None:
    write(tmp_path, src__kernel_cu='#include "../common/x.h"\n', common__x_h='#include "y.h"\n', common__y_h="")
    found = gather([tmp_path / "src" / "kernel.cu"], [])
    assert (found.sources, sorted(found.files)) == (["src/kernel.cu"], ["common/x.h", "common/y.h", "src/kernel.cu"])


def test_several_files_lie_to_each_other_as_they_did(tmp_path: Path) -> None:
    write(
        tmp_path,
        src__x__a_cu='#include "../common.h"\n#include <b.h>\n',
        src__y__b_cu='#include "local.h"\n',
        src__y__local_h="",
        src__common_h="",
        other__b_h="",
    )
    found = gather([tmp_path / "src" / "x" / "a.cu", tmp_path / "src" / "y" / "b.cu"], [tmp_path / "other"])
    assert (found.sources, found.include) == (["x/a.cu", "y/b.cu"], ["include-1"])
    assert sorted(found.files) == ["common.h", "include-1/b.h", "x/a.cu", "y/b.cu", "y/local.h"]
    below = found.below("program")
    assert (below.sources, below.include) == (["program/x/a.cu", "program/y/b.cu"], ["program/include-1"])
    assert below.files["program/include-1/b.h"] == tmp_path / "other" / "b.h"


def test_an_include_directory_around_the_program_is_found_there(tmp_path: Path) -> None:
    write(tmp_path, src__x__a_cu='#include <x/h.h>\n#include "h.h"\n', src__x__h_h="")
    found = gather([tmp_path / "src" / "x" / "a.cu"], [tmp_path / "src"])
    assert (found.sources, found.include, sorted(found.files)) == (["x/a.cu"], ["."], ["x/a.cu", "x/h.h"])


def test_a_header_that_is_named_from_the_program_and_from_an_include_directory(tmp_path: Path) -> None:
    write(tmp_path, src__a_cu='#include <x.h>\n#include "../inc/x.h"\n', inc__x_h="")
    found = gather([tmp_path / "src" / "a.cu"], [tmp_path / "inc"])
    assert (found.sources, found.include, sorted(found.files)) == (["src/a.cu"], ["inc"], ["inc/x.h", "src/a.cu"])


def test_absolute_names_and_the_systems_headers_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, kernel_cu='#include "/etc/passwd"\n#include <stdio.h>\n#include MACRO\n')
    assert list(gather([tmp_path / "kernel.cu"], []).files) == ["kernel.cu"]


def test_modules_and_packages_beside_a_python_program(tmp_path: Path) -> None:
    write(
        tmp_path,
        kernel_py="import os\nfrom tool import x\nimport pack.part\n",
        tool_py="import further\n",
        further_py="",
        unused_py="",
    )
    (tmp_path / "pack").mkdir(exist_ok=True)
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "part.py").write_text("")
    found = gather([tmp_path / "kernel.py"], [])
    assert {"kernel.py", "tool.py", "further.py", "pack/__init__.py", "pack/part.py"} <= set(found.files)
    assert "unused.py" not in found.files


def test_a_program_that_python_cannot_read_is_there_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, kernel_py="def (:\n")
    assert list(gather([tmp_path / "kernel.py"], []).files) == ["kernel.py"]


def test_a_program_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"kernel\.cu cannot be read"):
        gather([tmp_path / "kernel.cu"], [])
