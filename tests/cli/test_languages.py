"""Detection of the language of a file without a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.files import languages_of
from harness.errors import UsageError


@pytest.mark.parametrize(
    ("name", "text", "languages"),
    [
        ("k.cu", "", ("cuda",)),
        ("k.cuh", "import cupy", ("cuda",)),
        ("k.py", "from numba import cuda\n", ("python",)),
        ("k.py", "from numba_cuda_mlir import cuda\n", ("python",)),
        ("k.py", "import cupy as cp\n", ("cupy",)),
        ("k.py", "def f():\n    from cupyx import jit\n", ("cupy",)),
        ("k.py", "import cuda.tile as ct\n", ("cutile",)),
        ("k.py", "from cuda import tile\n", ("cutile",)),
        ("k.py", "import warp as wp\n", ("warp",)),
        ("k.py", "import numba.cuda, cupy\n", ("cupy", "python")),
        ("k.py", "from .cupy import x\nimport helper\n", ("cupy", "python")),
        ("k.py", "def f(:\n", ("cupy", "python")),
    ],
)
def test_python_is_whose_it_imports(tmp_path: Path, name: str, text: str, languages: tuple[str, ...]) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert languages_of(file) == languages


@pytest.mark.parametrize("name", ["k.txt", "there-is-none.py"])
def test_what_cannot_be_compiled_is_bad_usage(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name.endswith(".txt"):
        file.write_text("")
    with pytest.raises(UsageError):
        languages_of(file)
