"""Answers of earlier runs: the states of the files under which they hold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.engine import file_states
from harness.engine.cache import ResultCache
from harness.engine.file_states import Files, Roots
from harness.engine.fingerprints import Answers
from harness.engine.reads import Reads
from harness.records.plan import state_name

FIRST = "the first key"


def read(present: Iterable[Path], missing: Iterable[Path] = (), listed: Iterable[Path] = ()) -> Reads:
    """Return reads of files in their present state."""
    files = Files()
    seen = {str(path): files.current_state(str(path), path in listed)[1] for path in (*present, *listed)}
    return Reads({**seen, **{str(path): None for path in missing}}, frozenset(map(str, listed)))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    folder.mkdir()
    path = folder / "kernel.cu"
    path.write_text("one")
    return path


@pytest.fixture
def cache(tmp_path: Path) -> ResultCache:
    return ResultCache(tmp_path / "cache")


def found(cache: ResultCache) -> list[str]:
    """Return the keys that another run would look up in the cache."""
    return list(Answers(cache).keys(FIRST))


def test_the_same_files_come_to_the_same_key_in_another_run(cache: ResultCache, source: Path) -> None:
    key = Answers(cache).key_of(FIRST, read([source])).key
    assert key
    assert found(cache) == [key]
    assert list(Answers(cache).keys("another")) == []
    answers = Answers(cache)
    list(answers.keys(FIRST))
    assert list(answers.unread([FIRST, "another"])) == ["another"]
    source.write_text("two")
    assert found(cache) != [key]
    source.write_text("one")
    assert found(cache) == [key]


def test_workers_that_have_read_the_same_are_looked_at_once(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = source.with_name("kernel.h")
    header.write_text("header")
    answers, looked = Answers(None), list[str]()
    look = Files.state_of_read

    def counted(self: Files, path: str, *others: Any) -> str | None:
        looked.append(path)
        return look(self, path, *others)

    monkeypatch.setattr(Files, "state_of_read", counted)
    keys = {answers.key_of_worker(FIRST, read([source])).key for _ in range(3)}
    assert keys == {Answers(None).key_of(FIRST, read([source])).key}
    assert looked == [str(source)] * 2
    # Other files, another question, and a file that has changed since it was read.
    assert answers.key_of_worker(FIRST, read([source, header])).key not in keys
    assert answers.key_of_worker("another", read([source])).key not in keys
    before = read([header])
    header.write_text("another header")
    assert answers.key_of_worker(FIRST, before).problem == f"{header} changed while it was read"


def test_an_edit_that_keeps_size_and_time_counts(cache: ResultCache, source: Path) -> None:
    before = source.stat()
    key = Answers(cache).key_of(FIRST, read([source])).key
    source.write_text("two")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found(cache) != [key]


def test_a_file_that_appears_counts(cache: ResultCache, source: Path) -> None:
    late = source.with_name("late.h")
    key = Answers(cache).key_of(FIRST, read([source], missing=[late])).key
    assert found(cache) == [key]
    late.touch()
    assert found(cache) != [key]


def test_a_file_that_goes_counts(cache: ResultCache, source: Path) -> None:
    key = Answers(cache).key_of(FIRST, read([source])).key
    source.unlink()
    assert found(cache) != [key]


def test_names_count_where_they_were_listed(cache: ResultCache, source: Path) -> None:
    here = source.parent
    listed = Answers(cache).key_of(FIRST, read([source], listed=[here])).key
    unlisted = Answers(cache).key_of("another", read([source, here])).key
    (here / "__pycache__").mkdir()
    assert found(cache) == [listed]
    (here / "more.py").touch()
    assert found(cache) != [listed]
    assert list(Answers(cache).keys("another")) == [unlisted]


def test_a_link_counts_as_what_it_leads_to(cache: ResultCache, source: Path) -> None:
    link, other = source.with_name("link"), source.with_name("other")
    link.symlink_to(source)
    other.write_text("two")
    key = Answers(cache).key_of(FIRST, read([link])).key
    link.unlink()
    link.symlink_to(other)
    assert found(cache) != [key]


def test_several_sets_of_files_may_belong_to_one_question(cache: ResultCache, source: Path) -> None:
    header = source.with_name("a.h")
    header.write_text("a")
    keys = {Answers(cache).key_of(FIRST, reads).key for reads in (read([source]), read([source, header]))}
    assert len(keys) == 2
    assert set(found(cache)) == keys


def test_what_changed_since_it_was_read_is_not_kept(cache: ResultCache, source: Path) -> None:
    reads = read([source])
    source.write_text("two")
    second = Answers(cache).key_of(FIRST, reads)
    assert second.key == ""
    assert second.problem == f"{source} changed while it was read"
    assert found(cache) == []


def test_cells_that_read_the_same_have_one_key_until_a_file_changes(cache: ResultCache, source: Path) -> None:
    header = source.with_name("header.h")
    header.write_text("first")
    answers = Answers(cache)
    one, other = read([source, header]), read([header, source])
    key = answers.key_of(FIRST, one).key
    assert answers.key_of(FIRST, other).key == key == answers.key_of(FIRST, read([source, header])).key
    header.write_text("other")
    for before in (one, other):
        assert answers.key_of(FIRST, before).problem == f"{header} changed while it was read"
    header.unlink()
    assert answers.key_of(FIRST, one).problem
    header.mkdir()
    assert answers.key_of(FIRST, one).problem
    header.rmdir()
    header.write_text("other")
    again = answers.key_of(FIRST, read([source, header])).key
    assert again and again != key
    header.write_text("first")
    assert answers.key_of(FIRST, read([source, header])).key == key


def test_what_appeared_since_it_was_looked_for_is_not_kept(cache: ResultCache, source: Path) -> None:
    for make in (Path.touch, Path.mkdir):
        late = source.with_name(f"late-{make.__name__}")
        reads = read([source], missing=[late])
        make(late)
        assert Answers(cache).key_of(FIRST, reads).key == ""


def test_what_is_not_known_is_not_kept(cache: ResultCache, source: Path) -> None:
    second = Answers(cache).key_of(FIRST, Reads(unknown="why"))
    assert (second.key, second.problem) == ("", "why")


def test_without_a_cache_there_are_keys_all_the_same(cache: ResultCache, source: Path) -> None:
    reads = read([source])
    assert Answers(None).key_of(FIRST, reads).key == Answers(cache).key_of(FIRST, reads).key != ""
    assert list(Answers(None).keys(FIRST)) == []
    answers = Answers(None)
    answers.key_of(FIRST, reads)
    answers.files.fresh.add(str(source))
    answers.close()


def test_hashes_are_kept_so_that_files_are_not_read_again(
    cache: ResultCache, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_states, "_MAPPED", file_states._FRESH)
    before = source.stat().st_ctime_ns
    while os.stat(source).st_ctime_ns + 30_000_000 > _now(source):
        pass  # until a later change shows in the change time
    assert source.stat().st_ctime_ns == before
    Answers(cache).key_of(FIRST, read([source]))
    again = Answers(cache)
    list(again.keys(FIRST))
    assert not again.files.fresh
    source.write_text("two")
    list(again.keys(FIRST))


def _now(near: Path) -> int:
    """The clock of the file system."""
    probe = near.with_name("probe")
    probe.touch()
    return probe.stat().st_ctime_ns


@pytest.mark.parametrize(
    "entry", [{}, {"paths": 3}, {"paths": [["a"]], "hashes": []}, {"paths": [], "hashes": [["x", "y"]]}]
)
def test_an_entry_that_cannot_be_read_counts_as_missing(cache: ResultCache, entry: dict[str, Any]) -> None:
    cache.keep_fact(FIRST, {"sets": ["s"]})
    cache.keep_fact("set:s", entry)
    assert found(cache) == []


def test_a_hard_link_made_meanwhile_changes_nothing(cache: ResultCache, source: Path) -> None:
    os.utime(source)
    while _now(source) - source.stat().st_ctime_ns < 30_000_000:
        pass  # until the hash can be stored
    answers = Answers(cache)
    key = answers.key_of(FIRST, read([source])).key
    reads = read([source])
    os.link(source, source.with_name("another"))
    assert answers.key_of(FIRST, reads).key == key
    reads = read([source])
    source.write_text("two")
    assert answers.key_of(FIRST, reads).key == ""


@pytest.mark.parametrize("unnamed", ["$NOWHERE/header.h", "$NOWHERE"])
def test_files_in_a_folder_that_has_no_name_here_prove_nothing(cache: ResultCache, source: Path, unnamed: str) -> None:
    """Results of another machine: a file that exists only here makes them unusable, even if all others match."""
    cache.keep_fact(FIRST, {"sets": ["s"]})
    cache.keep_fact("set:s", {"paths": [[str(source), False], [unnamed, False]], "hashes": []})
    assert found(cache) == []
    roots = Roots({"$NOWHERE": str(source.parent)})
    assert len(list(Answers(cache, roots).keys(FIRST))) == 1


def test_what_answers_follow_from(cache: ResultCache, source: Path) -> None:
    library, missing = source.with_name("library.so"), source.with_name("missing.h")
    library.write_text("code")
    answers = Answers(cache, Roots({"$HERE": str(source.parent)}))
    worker = answers.key_of_worker("worker", read([library])).key
    own = answers.key_of(FIRST, read([source], missing=[missing], listed=[source.parent])).key
    answers.workers[FIRST] = worker
    lone = answers.key_of("of no worker", read([source])).key
    answers.workers["of no worker"] = "another"
    found = answers.inputs_of([own, lone, "never heard of"], {worker: {"said": 1}, "another": {}})
    assert dict(answers.inputs_of([own], {}).answers) == {}, "what its worker said is not known"
    _, name, _ = found.answers[own]
    first, of_worker, said = found.workers[worker]
    assert dict(found.answers) == {own: (FIRST, name, worker)}
    assert (list(found.workers), first, said) == ([worker], "worker", {"said": 1})
    assert dict(found.sets) == {
        name: (("$HERE", True), ("$HERE/kernel.cu", False), ("$HERE/missing.h", False)),
        of_worker: (("$HERE/library.so", False),),
    }
    files = Files()
    assert dict(found.states) == {
        state_name("$HERE", True): files.state(str(source.parent), True),
        state_name("$HERE/kernel.cu", False): files.state(str(source), False),
        state_name("$HERE/missing.h", False): files.state(str(missing), False),
        state_name("$HERE/library.so", False): files.state(str(library), False),
    }


def test_hashes_of_files_that_changed_are_kept_as_a_run_ends(cache: ResultCache, source: Path) -> None:
    Answers(cache).key_of(FIRST, read([source]))
    source.write_text("another text" + " " * (5 << 20))  # timestamps of large files count at once
    while _now(source) - source.stat().st_ctime_ns < 30_000_000:
        pass  # until the hash can be stored
    cache.keep_fact("another", {"sets": ["damaged"]})
    again = Answers(cache)
    assert list(again.keys("another")) == []
    list(again.keys(FIRST))
    assert again.files.fresh
    again.close()
    third = Answers(cache)
    list(third.keys(FIRST))
    assert not third.files.fresh, "it was not read again"


def test_what_was_read_last_is_tried_first(cache: ResultCache, source: Path) -> None:
    other = source.with_name("other.h")
    other.touch()
    keys = [Answers(cache).key_of(FIRST, read(files)).key for files in ([source], [source, other], [other])]
    assert found(cache) == keys[::-1]


def test_a_set_has_one_name_wherever_its_folders_lie(tmp_path: Path) -> None:
    keys = set()
    for machine, places in (("one", ("y", "z")), ("two", ("z", "y"))):
        folders = {name: tmp_path / machine / place for name, place in zip(("$A", "$B"), places, strict=True)}
        for name, folder in folders.items():
            folder.mkdir(parents=True)
            (folder / "file").write_text(name)
        roots = Roots({name: str(folder) for name, folder in folders.items()})
        keys.add(Answers(None, roots).key_of(FIRST, read([folder / "file" for folder in folders.values()])).key)
    assert len(keys) == 1


@pytest.mark.parametrize("path", ["/proc/kmsg", "/dev/../proc/kmsg", "link:/proc/self/exe", "/sys/kernel"])
def test_a_set_with_a_file_of_the_kernel_counts_as_missing(cache: ResultCache, path: str) -> None:
    """Reading some of these files never ends, and none gives a result."""
    cache.keep_fact(FIRST, {"sets": ["name"]})
    cache.keep_fact("set:name", {"paths": [[path, False]], "hashes": []})
    assert found(cache) == []


@pytest.mark.parametrize("sets", [7, None, "name", {"a": 1}, [7, None, "\ud800"]])
def test_names_of_sets_of_another_type_count_as_missing(cache: ResultCache, sets: object) -> None:
    cache.keep_fact(FIRST, {"sets": sets})
    assert found(cache) == []


@pytest.mark.parametrize(
    ("name", "text", "own", "problem"),
    [
        ("program.py", "import os; os.getcwd()", True, "may ask for what is not followed"),
        ("library.py", "import os; os.getcwd()", False, ""),
        ("program.py", "print(__file__)", True, ""),
        ("kernel.cu", "__TIME__", True, "uses __TIME__, __DATE__ or __TIMESTAMP__"),
        ("header.h", "__TIME__", False, "uses __TIME__, __DATE__ or __TIMESTAMP__"),
        ("kernel.cu", "__FILE__", True, ""),
    ],
)
def test_what_a_program_may_ask_for(tmp_path: Path, name: str, text: str, own: bool, problem: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    program = (f"{tmp_path if own else tmp_path / 'program'}/",)
    found = Answers(None).key_of(FIRST, read([path]), program)
    assert bool(found.key) == (not problem)
    assert problem in found.problem
    assert Answers(None).key_of(FIRST, read([path])).key, "of a worker"


def test_an_environment_in_the_folder_of_a_program_is_none_of_its_files(tmp_path: Path) -> None:
    library = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "library.py"
    library.parent.mkdir(parents=True)
    library.write_text("import os; os.getcwd()")
    roots = Roots({"$PYTHON": str(tmp_path / ".venv")})
    assert Answers(None, roots).key_of(FIRST, read([library]), (f"{tmp_path}/",)).key
    assert not Answers(None, roots).key_of(FIRST, read([library]), (f"{library.parent}/",)).key, "the program itself"


@pytest.mark.parametrize("place", [".venv/lib/python3.11/site-packages", "build"])
def test_a_program_behind_a_link_into_an_environment_or_a_build_is_itself(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place / "mine"
    folder.mkdir(parents=True)
    (folder / "program.py").write_text("import os; os.getcwd()")
    (tmp_path / "link").symlink_to(folder)
    answers = Answers(None, Roots({"$PYTHON": str(tmp_path / ".venv")}))
    reads, build = read([folder / "program.py"]), (f"{tmp_path}/build/",)
    assert not answers.key_of(FIRST, reads, (f"{tmp_path}/link/", f"{folder}/"), build).key
    assert answers.key_of(FIRST, reads, (f"{tmp_path}/", f"{tmp_path}/"), build).key, "another program's"


def test_sets_that_were_read_long_ago_are_forgotten(cache: ResultCache, source: Path) -> None:
    keys = []
    for number in range(14):
        header = source.with_name(f"{number}.h")
        header.touch()
        keys.append(Answers(cache).key_of(FIRST, read([source, header])).key)
    assert found(cache) == keys[:1:-1]
