"""Content keys: whatever can change an outcome changes the key."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cells import make_case, make_cell
from hypothesis import given
from hypothesis import strategies as st

from harness.engine.bench import Bench
from harness.engine.environment import Environment
from harness.engine.key import Key, source_digest
from harness.engine.lane import Workshop
from harness.engine.zygote import Limits
from harness.model import Case
from harness.toolkits import ToolkitStore


def test_fields_cannot_run_into_each_other() -> None:
    keys = [
        Key("cell").add("a", "b").add("c", "d"), Key("cell").add("a", "bc").add("", "d"), Key("cell").add("ab", "").add("c", "d"),
        Key("cell").add("c", "d").add("a", "b"), Key("bench").add("a", "b").add("c", "d"), Key("cell").add("a", ["b", "c", "d"]),
        Key("cell").add("a", "b"), Key("cell").add("a", 1), Key("cell").add("a", "1"), Key("cell").add("a", True), Key("cell").add("a", None),
    ]  # fmt: skip
    assert len({key.hex() for key in keys}) == len(keys)


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=6))
def test_the_order_of_a_table_does_not_count(table: dict[str, int]) -> None:
    backwards = dict(reversed(table.items()))
    assert Key("x").add("t", table).hex() == Key("x").add("t", backwards).hex()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "kernel.cu").write_text('#include "one.h"\n#include <cstdint>\n__global__ void k() {}')
    (folder / "one.h").write_text('#include "deep/two.h"\n')
    (folder / "deep").mkdir()
    (folder / "deep" / "two.h").write_text('#include "../one.h"\n#  include "deep/three.h"\n')  # in a circle
    (folder / "deep" / "three.h").write_text("int three;")
    (folder / "other.h").write_text("int other;")
    return folder / "kernel.cu"


@pytest.mark.parametrize("name", ["kernel.cu", "one.h", "deep/two.h", "deep/three.h"])
def test_what_is_included_counts_at_any_depth(source: Path, name: str) -> None:
    before = source_digest(source, ())
    with open(source.parent / name, "a") as file:
        file.write("// changed")
    assert source_digest(source, ()) != before


def test_what_is_not_included_does_not_count(source: Path) -> None:
    before = source_digest(source, ())
    (source.parent / "other.h").write_text("changed")
    os.utime(source)
    assert source_digest(source, ()) == before


@pytest.mark.parametrize(
    "line",
    [
        "#include HEADER",
        "# include_next <other.h>",
        '#if __has_include("other.h")',
        '#embed "other.h"',
        "#  include\t<other.h>",
    ],
)
def test_other_ways_to_include(source: Path, line: str) -> None:
    source.write_text(f"#define HEADER <other.h>\n{line}\n")
    before = source_digest(source, (source.parent,))
    (source.parent / "other.h").write_text("changed")
    assert source_digest(source, (source.parent,)) != before


def test_a_missing_header_that_appears_counts(source: Path, tmp_path: Path) -> None:
    source.write_text("#if __has_include(<late.h>)\n#include <late.h>\n#endif\n")
    before = source_digest(source, (tmp_path,))
    (tmp_path / "late.h").touch()
    assert source_digest(source, (tmp_path,)) != before


def test_a_header_that_shadows_another_counts(source: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (second / "which.h").write_text("int second;")
    source.write_text("#include <which.h>")
    before = source_digest(source, (first, second))
    (first / "which.h").write_text("int first;")
    assert source_digest(source, (first, second)) != before


@pytest.fixture
def store(tmp_path: Path) -> ToolkitStore:
    """Two toolkits with one file each."""
    root = tmp_path / "toolkits"
    for release in ("12.4", "13.0"):
        home = root / release
        (home / "include").mkdir(parents=True)
        file = home / "include" / "cuda.h"
        file.write_text(release)
        stat = file.stat()
        manifest = {
            "release": release,
            "packages": {},
            "files": {"include/cuda.h": [release, stat.st_size, stat.st_mtime_ns]},
        }
        (home / "cumatrix-toolkit.json").write_text(json.dumps(manifest))
    return ToolkitStore(root)


def distribution(version: str, content: str, *requires: str) -> dict[str, Any]:
    return {"version": version, "content": content, "requires": list(requires), "root": True}


ENVIRONMENT = Environment(
    name="e", python="/usr/bin/python3", version="3.11.7",
    distributions={"numba": distribution("0.59.1", "n1", "llvmlite"), "llvmlite": distribution("0.42.0", "l1"), "rich": distribution("1", "r1")},
)  # fmt: skip
LIMITS = Limits()
SOURCES = {"cu": "__global__ void k() {}", "py": "from numba import cuda"}


@pytest.fixture
def key(store: ToolkitStore, tmp_path: Path) -> Callable[..., str]:
    def key(
        backend: str = "nvrtc", release: str = "12.4", target: str = "sm_80", headers: str = "", text: str = "", name: str = "kernel",
        environment: Environment = ENVIRONMENT, limits: Limits = LIMITS, include: tuple[Path, ...] = (), case: str = "a/b", **fields: Any,
    ) -> str:  # fmt: skip
        suffix = "py" if backend.startswith("numba") else "cu"
        source = tmp_path / "source" / f"{name}.{suffix}"
        source.parent.mkdir(exist_ok=True)
        source.write_text(text or SOURCES[suffix])
        made: Case = make_case(source, case, **fields)
        workshop = Workshop(environment, store, None, limits, include)
        cell = make_cell(made, backend, release, target, environment=environment, headers=headers)
        return workshop.key(cell, Bench.of(cell.toolchain, environment, store, tmp_path))

    return key


def with_changed(name: str, version: str, content: str) -> Environment:
    distributions = dict(ENVIRONMENT.distributions)
    return replace(
        ENVIRONMENT,
        distributions={**distributions, name: {**distributions[name], "version": version, "content": content}},
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"release": "13.0"}, {"headers": "13.0"}, {"target": "sm_90"}, {"target": "compute_80"}, {"target": "sm_80", "text": "// another"},
        {"name": "renamed"}, {"options": {"std": "c++17"}}, {"options": {"flags": ["-G"]}}, {"options": {"flags": ["-a", "-b"]}},
        {"options": {"flags": ["-b", "-a"]}}, {"definitions": {"N": 1}}, {"definitions": {"N": 2}}, {"definitions": {"N": "1"}},
        {"entries": {"k": ""}}, {"limits": Limits(memory=1 << 30)}, {"include": (Path("/usr"),)},
        {"environment": replace(ENVIRONMENT, version="3.12.0")},
    ],
    ids=str,
)  # fmt: skip
def test_every_field_changes_the_key(key: Callable[..., str], changes: dict[str, Any]) -> None:
    assert key(**changes) != key()


def test_what_cannot_change_the_outcome_does_not_change_the_key(key: Callable[..., str]) -> None:
    assert key(case="c/d") == key()
    assert key(limits=Limits(seconds=7)) == key()  # a time-out is never kept
    assert key(environment=replace(ENVIRONMENT, name="renamed")) == key()
    assert key(environment=with_changed("numba", "0.60.0", "n2")) == key()  # NVRTC has nothing to do with it


@pytest.mark.parametrize(("name", "counts"), [("numba", True), ("llvmlite", True), ("rich", False)])
def test_a_library_counts_with_all_that_it_requires(key: Callable[..., str], name: str, counts: bool) -> None:
    version = ENVIRONMENT.distributions[name]["version"]
    assert (key("numba", environment=with_changed(name, version, "changed")) != key("numba")) is counts


def test_a_changed_file_of_the_toolkit_counts(key: Callable[..., str], store: ToolkitStore) -> None:
    before, other = key(), key(release="13.0")
    (store.root / "12.4" / "include" / "cuda.h").write_text("12.5")
    assert key() != before
    assert key(release="13.0") == other
