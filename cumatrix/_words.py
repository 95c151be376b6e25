"""Keywords of the functions as the words of the command, which has one way to read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from harness.errors import did_you_mean

Words = str | Iterable[str]
"""``"12.4,13.0"``, or ``["12.4", "13.0"]``."""

Versions = str | Iterable[str] | Mapping[str, Words]
"""``{"cupy": ["13.0", "14"]}``, or as the command takes them: ``["cupy=13.0,14", "-e ../numba-cuda"]``."""


class Options(TypedDict, total=False):
    """Keywords of `run`, `try_` and their like; each means what the command's option of that name means (``cumatrix run --help``).

    Attributes
    ----------
    backend, toolkit, target : str or iterable of str
        The axes: ``"nvrtc,nvcc"``, ``["12.4", "13.0"]``, ``"sm_80..sm_120"``. Defaults are those of the command.
    with_, library : mapping, str or iterable of str
        Releases of the libraries under test (``--with``), and of header libraries (``--library``).
    host_compiler : str or iterable of str
        What nvcc hands the host's half of a program to: ``"gcc-11,gcc-13"``, ``"all"``.
    where : str
        A condition that cells must hold.
    python, environment, device : str
        The environment under test, and the devices that cells may run on.
    require : str or iterable of str
        Requirements that the environment was made for.
    trust : bool
        Whether the project's configuration may name programs that are run (``--trust``).
    sanitize, offline : bool
        Whether compute-sanitizer goes over launches; whether nothing may be downloaded.
    from_ : str or iterable of str
        Results of others, whose outcomes are taken where nothing has changed (``--from``).
    cache : bool
        Whether outcomes of earlier runs may answer; true when left out.
    jobs : int
        Cells that compile at the same time; as many as there are cores when left out.
    timeout : float
        Seconds that a cell may take.
    memory, total_memory : int or str
        What each process of a cell, and all cells together, may need: bytes, or ``"8G"``.
    limit : mapping
        Further limits of each process, as ulimit has them: ``{"stack": "64M"}``.
    trace : str or Path
        File for a trace of the run.
    keep_artifacts : str or Path
        Folder that what was built is kept in, each file under its SHA-256 (``--keep-artifacts``).
    executor : str
        Where cells are compiled; ``threads`` when left out.
    out : str or Path
        File of records that the run adds to, as cells finish; none when left out.
    fresh : bool
        Whether what that file has of earlier runs is forgotten.
    """

    backend: Words
    toolkit: Words
    target: Words
    with_: Versions
    library: Versions
    host_compiler: Words
    where: str
    python: str | Path
    environment: str
    require: Words
    device: str
    trust: bool
    sanitize: bool
    offline: bool
    from_: Words
    cache: bool
    jobs: int
    timeout: float
    memory: int | str
    total_memory: int | str
    limit: Mapping[str, int | str]
    trace: str | Path
    keep_artifacts: str | Path
    executor: str
    out: str | Path
    fresh: bool


class TryOptions(Options, total=False):
    """Further keywords of `try_` and `iter_try`.

    Attributes
    ----------
    include : str, Path or iterable of them
        Further include directories.
    define : mapping
        Macros, or constants of a Python module: ``{"N": 4}``; None for a macro without a value.
    std : str
        C++ dialect: ``"c++17"``.
    option : str or iterable of str
        Words as ``cumatrix try`` takes them: nvcc's options (``["-lineinfo", "-rdc=true"]``), any other as ``"--option=-default-device"``,
        and ``"nvcc:-Werror=all-warnings"`` for one backend alone.
    signature : mapping
        Signatures of Numba's kernels by name: ``{"axpy": "void(float32[:], float32)"}``.
    device_only : bool
        Whether nvcc leaves the host pass out.
    toolkit_first : bool
        Whether the toolkit's include directories come before `include` and header libraries.
    """

    include: str | Path | Iterable[str | Path]
    define: Mapping[str, Any]
    std: str
    option: Words
    signature: Mapping[str, str]
    device_only: bool
    toolkit_first: bool


_FOR_ONE = re.compile(r"[A-Za-z][\w-]*:-")
_FLAGS = ("trust", "sanitize", "offline", "fresh", "device_only", "toolkit_first")
_LISTS = ("backend", "toolkit", "target", "host_compiler")
_SEVERAL = ("with_", "library", "require", "limit", "from_")


def words_of(function: str, options: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """The words of the command line that say the same.

    Parameters
    ----------
    function : str
        Whose keywords they are, for errors.
    options : Mapping
        Keywords with their values; None is the default.
    known : iterable of str
        Keywords that the function takes.

    Raises
    ------
    TypeError
        On a keyword that it does not take.
    """
    names = list(known)
    words: list[str] = []
    for name, value in options.items():
        if name not in names:
            raise TypeError(f"{function}() has no keyword {name!r}{did_you_mean(name, names)}")
        if value is not None:
            words += _spelled(name, value)
    return words


def _spelled(name: str, value: Any) -> Iterator[str]:
    option = f"--{name.strip('_').replace('_', '-')}"
    if name in _FLAGS:
        yield from [option] if value else []
    elif name == "cache":
        yield from [] if value else ["--no-cache"]
    elif name in _LISTS:
        yield f"{option}={','.join(_several(value))}"
    elif name in _SEVERAL:
        yield from (f"{option}={each}" for each in _named(value))
    elif name == "include":
        yield from (f"-I{each}" for each in _several(value))
    elif name == "define":
        yield from (f"-D{macro}" if given is None else f"-D{macro}={_number(given)}" for macro, given in value.items())
    elif name == "signature":
        yield from (f"{option}={kernel}={signature}" for kernel, signature in value.items())
    elif name == "option":
        yield from (f"--option={each}" if _FOR_ONE.match(each) else each for each in _several(value))
    else:
        yield f"{option}={value}"


def _several(value: Any) -> list[str]:
    return [str(value)] if isinstance(value, str | Path) else [str(each) for each in value]


def _named(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}={','.join(_several(given))}" if not isinstance(given, int) else f"{name}={given}"
                for name, given in value.items()]  # fmt: skip
    return _several(value)


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
