"""Import rules of packages that import-linter cannot check (pyproject.toml has its contracts)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness

PACKAGE = Path(harness.__file__).parent
WORKERS = ("protocol", "native", "nvidia", "backends", "worker", "libraries", "plugins")
"""Modules that are loaded in the environment under test, which has none of cumatrix's dependencies."""

UNDER_TEST = {"cuda", "cupy", "cupy_backends", "cutlass", "numba", "numpy", "torch", "triton", "warp"}
"""Libraries under test and their dependencies."""

MODULES = sorted(
    path
    for package in WORKERS
    for path in (
        [PACKAGE / f"{package}.py"] if (PACKAGE / f"{package}.py").is_file() else (PACKAGE / package).rglob("*.py")
    )
)
NAMES = ["harness." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in MODULES]

# A Python without site-packages that imports `harness` as a worker does (harness/worker/boot.py).
IMPORT_ALL = """
import importlib, importlib.util, json, sys
folder, *names = sys.argv[1:]
spec = importlib.util.spec_from_file_location("harness", folder + "/__init__.py", submodule_search_locations=[folder])
module = sys.modules["harness"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
for name in names:
    importlib.import_module(name)
print(*sorted(name for name in sys.modules if name.startswith("harness.")))
"""


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the names of imported modules below a node, inside functions too, but not those for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ("." * node.level + f"{node.module or ''}.{alias.name}" for alias in node.names)
        else:
            yield from _imported(node)


def test_workers_load_in_a_python_that_has_nothing_installed() -> None:
    argv = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(PACKAGE)]
    names = [name for name in NAMES if name != "harness.worker.boot"]  # a script
    done = subprocess.run([*argv, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = {name.split(".")[1] for name in done.stdout.split()}
    assert loaded <= set(WORKERS)


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_workers_import_the_standard_library_and_what_is_under_test(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, *UNDER_TEST, *(f"harness.{package}" for package in WORKERS)}
    imported = {
        ".".join(name.split(".")[: 2 if name.startswith("harness.") else 1])
        for name in _imported(ast.parse(path.read_bytes()))
    }
    assert imported <= allowed


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import os\ndef f():\n    if f:\n        from rich.text import Text\n", ["os", "rich.text.Text"]),
        ("import os\nif TYPE_CHECKING:\n    import rich\n", ["os"]),
        ("from . import here\nclass A:\n    import b.c\n", ["..here", "b.c"]),
    ],
)
def test_imports_are_found_wherever_they_stand(text: str, names: list[str]) -> None:
    assert list(_imported(ast.parse(text))) == names


def test_no_module_asks_its_own_package_for_a_name() -> None:
    """Such an import loads the module while its package is loading: a cycle that import-linter does not detect."""
    asked = []
    for path in PACKAGE.rglob("*.py"):
        folder = ".".join(("harness", *path.parent.relative_to(PACKAGE).parts))
        for node in ast.walk(ast.parse(path.read_bytes())):
            if folder == "harness" or not isinstance(node, ast.ImportFrom) or node.module != folder:
                continue
            modules = {entry.stem for entry in path.parent.iterdir()}
            asked += [f"{path.name}: {alias.name}" for alias in node.names if alias.name not in modules]
    assert asked == []
