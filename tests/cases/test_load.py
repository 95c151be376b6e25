"""Content of case files, and errors of invalid ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.cases.load import load_case
from harness.cases.toml import CaseError
from harness.model import Stage, Status

from .conftest import GOOD, Load, Write, Wrong

FULL = """\
title = "Everything"
description = '''
Two lines
of text.
'''
features = ["wmma", "grid-sync"]
links = ["https://example.org/a"]

[source]
cuda = "kernel.cu"
python = "kernel.py"

[entry]
cuda = ["scale"]
python = { scale = "void(float32[:])" }

[parameters]
bytes = [1, 2]

[parameters.fragment]
half = { ELEMENT = "half", M = 16 }
tf32 = { ELEMENT = "float", M = 8, ROUND = true }

[[options]]
when = 'backend == "nvrtc"'
std = "c++17"
flags = ["-lineinfo"]

[[unsupported]]
when = 'fragment == "tf32" and cc < "8.0"'
reason = "no such thing"

[[expect]]
when = '''
bytes == 2
and cc >= "9.0"
'''
status = "rejected"
stage = "compile"
diagnostic = 'too (large|small)'
xfail = true
reason = "because"
link = "https://example.org/b"
"""


def test_a_full_case(load: Load) -> None:
    case = load(FULL)
    assert (case.name, case.topic, case.title) == ("topic/some", "topic", "Everything")
    assert case.description == "Two lines\nof text."
    assert set(case.sources) == {"cuda", "python"}
    assert case.entries == {"cuda": {"scale": ""}, "python": {"scale": "void(float32[:])"}}
    assert [variant.name for variant in case.variants] == [
        "bytes=1,fragment=half",
        "bytes=1,fragment=tf32",
        "bytes=2,fragment=half",
        "bytes=2,fragment=tf32",
    ]
    assert case.variants[1].definitions == {"BYTES": 1, "ELEMENT": "float", "M": 8, "ROUND": True}
    (expected,) = case.expectations
    assert (expected.status, expected.stage, expected.xfail, expected.line) == (
        Status.REJECTED,
        Stage.COMPILE,
        True,
        33,
    )


def test_a_case_without_parameters_has_one_nameless_variant(load: Load) -> None:
    (variant,) = load(GOOD).variants
    assert variant.name == ""


def test_the_sentence_names_file_line_and_key(wrong: Wrong) -> None:
    text = GOOD + '\n[[expect]]\nstatus = "rejected"\n\n[[expect]]\nstatuz = "rejected"\nstatus = "built"\n'
    assert wrong(text) == ['cases/topic/some/case.toml:13: expect.statuz: unknown key (did you mean "status"?)']


def test_all_problems_are_told_at_once_in_the_order_of_the_file(wrong: Wrong) -> None:
    text = 'tittle = "x"\nfeatures = "wmma"\n[source]\ncuda = "kernel.cc"\n'
    assert [line.split(": ", 2)[:2] for line in wrong(text)] == [
        ["cases/topic/some/case.toml:1", "tittle"],
        ["cases/topic/some/case.toml:1", "title"],
        ["cases/topic/some/case.toml:2", "features"],
        ["cases/topic/some/case.toml:4", "source.cuda"],
    ]


@pytest.mark.parametrize(
    ("extra", "key", "words"),
    [
        # wrong types
        ("features = 3", "features", "must be a list of names"),
        ('features = ["Wmma Rules"]', "features", "lower-case name"),
        ("description = 1979-05-27", "description", "must be a text"),
        (f"description = 0x{'f' * 3900}", "description", "does not fit into 64 bits"),
        ("[parameters]\na = [1, -9223372036854775809]", "parameters.a", "does not fit into 64 bits"),
        ('links = ["ftp://example.org"]', "links", "must be an address"),
        ('links = ["javascript:alert(1)"]', "links", "must be an address"),
        ('links = ["https://"]', "links", "must be an address"),
        ("expect = 1", "expect", "two brackets"),
        ('[expect]\nstatus = "built"', "expect", "two brackets"),
        ("expect = [1]", "expect", "must be a table"),
        ("parameters = []", "parameters", "must be a table"),
        # expectations
        ("[[expect]]\nstage = 'compile'", "expect.status", "is missing"),
        ("[[expect]]\nstatus = 'rejectd'", "expect.status", 'did you mean "rejected"'),
        ("[[expect]]\nstatus = 'unavailable'", "expect.status", "is not one of"),
        ("[[expect]]\nstatus = 1", "expect.status", "must be one of"),
        (
            "[[expect]]\nstatus = 'rejected'\nstage = 'assembly'",
            "expect.stage",
            'did you mean "assemble"',
        ),
        (
            "[[expect]]\nstatus = 'rejected'\ndiagnostic = '(unclosed'",
            "expect.diagnostic",
            "not a regular expression",
        ),
        (
            "[[expect]]\nstatus = 'rejected'\ndiagnostic = 'a{99999999999}'",
            "expect.diagnostic",
            "not a regular",
        ),
        (
            "[[expect]]\nstatus = 'rejected'\ndiagnostic = 'identifier (?!x)'",
            "expect.diagnostic",
            "it has no lookahead",
        ),
        ("[[expect]]\nstatus = 'rejected'\nxfail = 'yes'", "expect.xfail", "must be true or false"),
        ("[[expect]]\nstatus = 'built'\nxfail = true", "expect.xfail", "cannot be expected to fail"),
        ("[[expect]]\nstatus = 'rejected'\nkernels = 0", "expect.kernels", "only a build has kernels"),
        ("[[expect]]\nstatus = 'rejected'\ntensor_cores = true", "expect.tensor_cores", "only a build has code"),
        ("kernels = []", "kernels", "must be names of kernels such as"),
        ("kernels = true", "kernels", "must be names of kernels such as"),
        ("kernels = ['a b']", "kernels", "entry 1 must be the name of a kernel"),
        ("[[expect]]\nstatus = 'rejected'\nlink = 'cupy#8155'", "expect.link", "must be an address"),
        # conditions
        (
            "[[expect]]\nstatus = 'built'\nwhen = 'backnd == \"nvrtc\"'",
            "expect.when",
            'did you mean "backend"',
        ),
        (
            "[[expect]]\nstatus = 'built'\nwhen = 'backend == \"nvrct\"'",
            "expect.when",
            "backend is never 'nvrct' (did you mean \"nvrtc\"?)",
        ),
        (
            "[[options]]\nstd = 'c++17'\nwhen = 'backend in (\"nvrtc\", \"cupy-jitfy\")'",
            "options.when",
            "backend is never 'cupy-jitfy' (did you mean \"cupy-jitify\"?)",
        ),
        (
            "[[unsupported]]\nwhen = 'target != \"sm90\"'\nreason = 'x'",
            "unsupported.when",
            "target is never 'sm90' (did you mean \"sm_90\"?)",
        ),
        ("[[expect]]\nstatus = 'built'\nwhen = 'cutlas < \"3\"'", "expect.when", "unknown name 'cutlas'"),
        ("[[expect]]\nstatus = 'built'\nwhen = 'cc >= 8.0'", "expect.when", "compare it with a text"),
        ("[[expect]]\nstatus = 'built'\nwhen = 'cc >='", "expect.when", "cannot read the condition"),
        ("[[expect]]\nstatus = 'built'\nwhen = '__import__(\"os\")'", "expect.when", "is not allowed here"),
        ("[[expect]]\nstatus = 'built'\nwhen = 1", "expect.when", "must be a condition"),
        ("[[unsupported]]\nwhen = 'toolkit < \"new\"'\nreason = 'x'", "unsupported.when", "PEP 440"),
        ("[[unsupported]]\nwhen = 'virtual'", "unsupported.reason", "is missing"),
        ("[parameters]\nn = [1]\n[[expect]]\nstatus = 'built'\nwhen = 'n == 2'", "expect.when", "never 2"),
        # options
        ("[[options]]\nfast_math = true", "options.fast_math", 'did you mean "fastmath"'),
        ("[[options]]\narch = 'sm_80'", "options.arch", "is not one of given, implicit"),
        ("[[options]]\nstd = '17'", "options.std", "must be a C++ standard"),
        ("[[options]]\nrdc = 1", "options.rdc", "must be true or false"),
        ('[[options]]\ninclude = ["none"]', "options.include", "there is no folder 'none'"),
        ('[[options]]\ninclude = ["../../../.."]', "options.include", "must be in the project"),
        ("[[options]]\nflags = '-G'", "options.flags", "must be a list of options"),
        ('[[options]]\nflags = ["a\\u0000b"]', "options.flags", "on one line"),
        # parameters
        ("[parameters]\nn = []", "parameters.n", "has no values"),
        ("[parameters]\nn = {}", "parameters.n", "has no values"),
        ("[parameters]\nn = 1", "parameters.n", "must be a list"),
        ("[parameters]\nn = [1, 1]", "parameters.n", "twice"),
        ("[parameters]\nn = [1, true]", "parameters.n", "mixes kinds"),
        ("[parameters]\nn = [1, 1.5]", "parameters.n", "mixes kinds"),
        ("[parameters]\nn = [nan]", "parameters.n", "is not a number"),
        ("[parameters]\nn = [99999999999999999999]", "parameters.n", "64 bits"),
        ("[parameters]\nn = [[1]]", "parameters.n", "must be a text, a number"),
        pytest.param(
            f"[parameters]\n{'.'.join(['n'] * 1900)} = 1",
            "parameters.n.n.n",
            "tables within tables",
            marks=pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 reads no file of so many"),
        ),
        ("[parameters]\nn = ['a b']", "parameters.n", "cannot be a variant's name"),
        ("[parameters]\nn = ['a,b=c']", "parameters.n", "cannot be a variant's name"),
        ('[parameters]\n"n-x" = [1]', "parameters.n-x", "is not an identifier"),
        ("[parameters]\ncc = ['8.0']", "parameters.cc", "choose another name"),
        ("[parameters]\nlambda = [1]", "parameters.lambda", "choose another name"),
        ("[parameters.n]\na = 1", "parameters.n.a", "must be a table of definitions"),
        ("[parameters.n]\na = { 'M N' = 1 }", "parameters.n.a.M N", "is not an identifier"),
        ("[parameters.n]\na = { M = [1] }", "parameters.n.a.M", "must be a text, a number"),
        ('[parameters.n]\na = { M = "x\\ny" }', "parameters.n.a.M", "control characters"),
        ("[parameters.n]\n'a b' = { M = 1 }", "parameters.n.a b", "cannot be a variant's name"),
        ("[parameters]\nm = [1]\nk = { a = { M = 2 } }", "parameters.k", 'which parameter "m" defines too'),
        (
            "[parameters]\na=[1,2,3,4,5,6,7,8,9,10]\n" + "".join(f"a{i}=[1,2,3,4,5,6,7,8,9,10]\n" for i in range(40)),
            "parameters",
            "a case may have 10000",
        ),
    ],
)
def test_bad_values(wrong: Wrong, extra: str, key: str, words: str) -> None:
    # Top-level keys must come before the tables of GOOD.
    text = GOOD + "\n" + extra + "\n" if extra.startswith("[") else extra + "\n" + GOOD
    lines = wrong(text)
    found = [line for line in lines if f": {key}: " in line]
    assert found, lines
    assert words in found[0], lines
    assert found[0].startswith("cases/topic/some/case.toml:")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('cuda = "missing.cu"', "there is no file"),
        ('cuda = "kernal.cu"', 'did you mean "kernel.cu"'),
        ('cuda = "../other/kernel.cu"', "there is no file"),
        ('cuda = "../other/*.cu"', "no file matches"),
        ("cuda = []", "names no file"),
        ('cuda = ["kernel.cu", "../../../../kernel.cu"]', "must be in the project"),
        ('cuda = "/etc/hostname"', "must be in the project"),
        ("cuda = 'C:\\kernel.cu'", "write folders with /"),
        ('cuda = "a\\u0000b"', "on one line"),
        ('cuda = ""', "not empty"),
        ('cuda = "."', "there is no file"),
        ('cuda = "kernel.cu"\nfortran = "kernel.f"', "unknown key"),
        ("", "names no program"),
    ],
)
def test_bad_sources(wrong: Wrong, source: str, words: str) -> None:
    assert words in "\n".join(wrong(f'title = "x"\n[source]\n{source}\n'))


def test_a_link_out_of_the_project_is_refused(
    root: Path, write: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write()
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.cu"
    secret.write_text("")
    (path.parent / "kernel.cu").unlink()
    (path.parent / "kernel.cu").symlink_to(secret)
    with pytest.raises(CaseError, match="a link that leads out"):
        load_case(path, root)


def test_a_pipe_is_no_source_and_no_case(root: Path, write: Write) -> None:
    path = write()
    (path.parent / "kernel.cu").unlink()
    os.mkfifo(path.parent / "kernel.cu")
    with pytest.raises(CaseError, match="there is no file"):
        load_case(path, root)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CaseError, match="there is no such file"):
        load_case(path, root)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('cuda = "scale"', "must be a list of kernels"),
        ("cuda = []", "must be a list of kernels"),
        ('cuda = ["scale", "scale"]', "twice"),
        ('cuda = ["ns::scale"]', "not the name"),
        ('python = { scale = "void(float32[:])" }', "the case has no source.python"),
        ('cudda = ["scale"]', 'did you mean "cuda"'),
    ],
)
def test_bad_entries(wrong: Wrong, entry: str, words: str) -> None:
    assert words in "\n".join(wrong(f'title = "x"\n[source]\ncuda = "kernel.cu"\n[entry]\n{entry}\n'))


@pytest.mark.parametrize("entry", ["", "[entry]\npython = {}", "[entry]\npython = { scale = 'float32' }"])
def test_python_needs_signatures(wrong: Wrong, entry: str) -> None:
    assert any(": entry.python" in line for line in wrong(f'title="x"\n[source]\npython = "kernel.py"\n{entry}\n'))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"title = \n", "case.toml:1: not valid TOML: "),
        (b'title = "a"\ntitle = "b"\n', "case.toml:2: not valid TOML: Cannot overwrite"),
        (b'title = "a', "case.toml:1: not valid TOML"),
        (b'title = "\xff"\n', "case.toml:1: is not UTF-8"),
        (b'title = "x"\n\n# \x00\n', "case.toml:3: has a NUL byte"),
        (b"#" * 1_000_001, "larger than 1 MB"),
        (b"a = " + b"[\n" * 100_000, "nested too deeply"),
        (b"a = 2024-13-01", "case.toml:1: not valid TOML"),
        (b"", "title: is missing"),
        (b"a" + b".a" * 100_000 + b" = 1", "case.toml:1: a line may have 4000 characters"),
        (b"".join(b"k%d = 1\n" % i for i in range(1000)), "case.toml: and 982 more"),
    ],
)
def test_bad_files(wrong: Wrong, data: bytes, words: str) -> None:
    assert words in "\n".join(wrong(data))


def test_a_byte_order_mark_and_windows_line_ends_are_fine(load: Load) -> None:
    assert load(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()).title == "A case"


def test_a_case_that_is_not_there(root: Path) -> None:
    with pytest.raises(CaseError, match=r"cases/a/b/case\.toml: there is no such file"):
        load_case(root / "a" / "b" / "case.toml", root)


@pytest.mark.parametrize("name", ["some", "a/b/c", "Topic/some", "topic/so me", "topic/so[me]"])
def test_a_case_lies_two_folders_deep_and_has_a_plain_name(load: Load, name: str) -> None:
    with pytest.raises(CaseError, match=r"a case is at <topic>/<name>/case\.toml"):
        load(GOOD, name)


def test_a_case_outside_the_folder_of_cases(root: Path, write: Write, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    with pytest.raises(CaseError, match="is outside the folder of cases"):
        load_case(write(), other)
    link = root / "topic" / "link"
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "case.toml").write_text(GOOD)
    link.symlink_to(tmp_path / "far")
    with pytest.raises(CaseError, match="is outside the folder of cases"):
        load_case(link / "case.toml", root)


def test_relative_paths(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write()
    monkeypatch.chdir(root.parent)
    case = load_case(path.relative_to(root.parent), Path("cases"))
    assert case.sources["cuda"].is_file()
