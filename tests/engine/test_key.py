"""Content keys: every input of an outcome changes the key."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cells import make_case, make_cell
from hypothesis import given
from hypothesis import strategies as st

from harness.engine import fingerprints as keys_module
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment
from harness.engine.fingerprints import Key
from harness.engine.prepared import PreparedCell
from harness.engine.resolve import Resolver
from harness.model import Case
from harness.protocol.messages import Distribution, Limits
from harness.toolkits import ToolkitStore


def test_fields_cannot_run_into_each_other() -> None:
    keys = [
        Key("cell").add("a", "b").add("c", "d"), Key("cell").add("a", "bc").add("", "d"), Key("cell").add("ab", "").add("c", "d"),
        Key("cell").add("c", "d").add("a", "b"), Key("toolchain").add("a", "b").add("c", "d"), Key("cell").add("a", ["b", "c", "d"]),
        Key("cell").add("a", "b"), Key("cell").add("a", 1), Key("cell").add("a", "1"), Key("cell").add("a", True), Key("cell").add("a", None),
    ]  # fmt: skip
    assert len({key.hex() for key in keys}) == len(keys)


def test_what_utf8_and_64_bits_cannot_hold_has_keys_of_its_own() -> None:
    odd = ["\udce9", "\udcea", "é", 1 << 70, 1 << 71]
    assert len({Key("cell").add("a", {"x": each}).hex() for each in odd}) == len(odd)


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=6))
def test_the_order_of_a_table_does_not_count(table: dict[str, int]) -> None:
    backwards = dict(reversed(table.items()))
    assert Key("x").add("t", table).hex() == Key("x").add("t", backwards).hex()


def test_the_engine_is_its_programs_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "harness", SimpleNamespace(__file__=str(tmp_path / "__init__.py")))
    first, *_ = keys_module._ENGINE_FOLDERS
    module, native = tmp_path / first / "a.py", tmp_path / first / "deep/b.c"
    native.parent.mkdir(parents=True)
    module.write_text("one")
    native.write_text("two")
    seen = [keys_module.engine_digest.__wrapped__()]
    (tmp_path / first / "notes.md").write_text("x")
    (tmp_path / "c.py").write_text("x")
    assert keys_module.engine_digest.__wrapped__() == seen[0]
    for change in (
        lambda: module.write_text("One"),
        lambda: native.write_text("Two"),
        lambda: module.rename(module.with_name("c.py")),
        lambda: native.rename(native.parent.parent / "b.c"),
    ):
        change()
        seen.append(keys_module.engine_digest.__wrapped__())
    assert len(set(seen)) == 5


@pytest.fixture
def store(tmp_path: Path) -> ToolkitStore:
    """Return two toolkits with one file each."""
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


ENVIRONMENT = Environment(
    name="e", python="/usr/bin/python3", version="3.11.7",
    distributions={"numba": Distribution("0.59.1", ["llvmlite"]), "llvmlite": Distribution("0.42.0"), "rich": Distribution("1")},
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
        context = RunContext(environment, store, None, RunRequest(limits=limits, include=include))
        cell = make_cell(made, backend, release, target, environment=environment, headers=headers)
        resolver = Resolver(context)
        prepared = resolver.resolve(cell)
        assert isinstance(prepared, PreparedCell)
        resolver.close()
        return prepared.first_key(replace(prepared.toolchain, tools=tmp_path, steps=None).key)

    return key


def with_version(name: str, version: str) -> Environment:
    distributions = dict(ENVIRONMENT.distributions)
    return replace(ENVIRONMENT, distributions={**distributions, name: replace(distributions[name], version=version)})


@pytest.mark.parametrize(
    "changes",
    [
        {"release": "13.0"}, {"headers": "13.0"}, {"target": "sm_90"}, {"target": "compute_80"},
        {"name": "renamed"}, {"options": {"std": "c++17"}}, {"options": {"flags": ["-G"]}}, {"options": {"flags": ["-a", "-b"]}},
        {"options": {"flags": ["-b", "-a"]}}, {"definitions": {"N": 1}}, {"definitions": {"N": 2}}, {"definitions": {"N": "1"}},
        {"entries": {"k": ""}}, {"limits": Limits(memory=1 << 30)}, {"include": (Path("/usr"),)},
        {"environment": replace(ENVIRONMENT, version="3.12.0")}, {"environment": replace(ENVIRONMENT, python="/usr/bin/python")},
        {"limits": Limits(rlimits={"stack": 1 << 20})},
    ],
    ids=str,
)  # fmt: skip
def test_every_field_changes_the_key(key: Callable[..., str], changes: dict[str, Any]) -> None:
    assert key(**changes) != key()


def test_what_cannot_change_the_outcome_does_not_change_the_key(key: Callable[..., str]) -> None:
    assert key(case="c/d") == key()
    assert key(limits=Limits(seconds=7)) == key()  # a timeout is never stored
    assert key(environment=replace(ENVIRONMENT, name="renamed")) == key()
    assert key(environment=with_version("numba", "0.60.0")) == key()  # independent of NVRTC
    assert key(text="// another") == key()  # the second key covers the files that are read


def test_a_librarys_version_counts(key: Callable[..., str]) -> None:
    assert key("numba", environment=with_version("numba", "0.60.0")) != key("numba")


def test_without_knowing_what_the_worker_read_there_is_no_key(store: ToolkitStore, tmp_path: Path) -> None:
    context = RunContext(ENVIRONMENT, store, None, RunRequest(limits=LIMITS))
    source = tmp_path / "kernel.cu"
    source.touch()
    cell = make_cell(make_case(source, "a/b"), "nvrtc", "12.4", "sm_80", environment=ENVIRONMENT)
    resolver = Resolver(context)
    prepared = resolver.resolve(cell)
    resolver.close()
    assert isinstance(prepared, PreparedCell)
    assert prepared.first_key("") == ""


def test_a_soft_limit_of_the_shell_does_not_count_and_a_hard_one_does(key: Callable[..., str], tmp_path: Path) -> None:
    script = tmp_path / "limits.py"
    script.write_text("from harness.protocol.messages import limits_of_cell; print(limits_of_cell(1 << 30, {}))")
    plain, soft, hard = (
        subprocess.run(["bash", "-c", f"{prefix} {sys.executable} {script}"], capture_output=True, text=True).stdout
        for prefix in ("", "ulimit -Ss 512;", "ulimit -s 512;")
    )
    assert plain == soft != hard
    assert "'stack': (8388608," in plain
    assert "'stack': (524288, 524288)" in hard


def test_a_changed_file_of_the_toolkit_counts(key: Callable[..., str], store: ToolkitStore) -> None:
    before, other = key(), key(release="13.0")
    (store.root / "12.4" / "include" / "cuda.h").write_text("12.5")
    assert key() != before
    assert key(release="13.0") == other
