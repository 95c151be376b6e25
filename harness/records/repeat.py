"""Outcomes that can be reproduced without cumatrix, and the command for it: for terminal, page and ``cumatrix repro`` itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from harness.backends import BACKENDS
from harness.model.host import NAME as HOST_COMPILER
from harness.records.programs import case_of
from harness.records.record import Record

_SHOWN = ("built", "rejected", "crashed", "timed_out")
_ON_DEVICE = ("load", "launch", "verify")
_HEADERS = re.compile(r"\w+=[\w.]+\+(?:git|local)\.[0-9a-f]+")
_BUILD = re.compile(r"\+(?:git|build|local)\.")


def not_repeatable(record: Record) -> str:
    """The reason why a record cannot be reproduced, as the rest of a sentence about its cell; empty if it can."""
    status = record["status"]
    if status not in _SHOWN:
        told = "no compiler was asked" if status == "unsupported" else "no compiler answered"
        return f"is {status.replace('_', ' ')}: {told}, so there is nothing to show ({record['reason']})"
    # A stand-in for a device looks for a kernel in what was compiled, as the driver does; more it does not do.
    virtual = record["device"].get("virtual") and record["backend"] in ("cupy-nvrtc", "cupy-jitify")
    if status != "built" and record["stage"] in _ON_DEVICE and not virtual:
        return f"failed at {record['stage']}, on a real device: repro shows what compilers say, up to link"
    info = BACKENDS.get(record["backend"])
    if info is None or not info.script:
        return f"is of the backend {record['backend']}, for which repro has no script"
    if found := _HEADERS.search(record["variant"]):
        return f"is of headers of no release ({found[0]}), and repro pins wheels by their hashes"
    if _BUILD.search(record.get("library") or ""):
        again = again_command(record)
        return f"is of a development build, and repro pins releases by their hashes{': `' if again else ''}{again}{'` compiles it again' if again else ''}"
    return ""


def repro_command(record: Record, results: Iterable[str] = ()) -> str:
    """``cumatrix repro 'CELL' --out DIR``, with files of records where they are named; empty where there is nothing to show."""
    if not_repeatable(record):
        return ""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", record["case"].rpartition("/")[2]).strip("-.") or "cell"
    files = [word for file in results for word in ("--results", file)]
    return shlex.join(["cumatrix", "repro", record["cell"], *files, "--out", f"repro-{name}"])


def again_command(record: Mapping[str, Any]) -> str:
    """``cumatrix run CASE -b nvrtc -t 12.9 -a sm_75``: what compiles this cell once more.

    Empty where a program, or an include directory, lies outside of the folder that it was tried from, and where the record does not tell how a library was named.
    """
    axes = ["-b", record["backend"], "-t", record["toolkit"], "-a", record["target"]]
    named = _library_of(record)
    if named is None:
        return ""
    axes += named
    if host := record.get("host_compiler"):
        # Of one that was named by its path, the record does not tell where it lies.
        if not re.fullmatch(HOST_COMPILER, host):
            return ""
        axes += ["--host-compiler", host]
    if not record.get("program"):
        variant = ["--where", f'variant == "{record["variant"]}"'] if record["variant"] else []
        return shlex.join(["cumatrix", "run", case_of(record), *axes, *variant])
    try:
        words = shlex.split(record["variant"])
    except ValueError:
        return ""
    # A program or an include directory outside of the folder has a digest in the place of its own; so has a line that was too long. Of
    # For headers without a release, the number is printed instead of their location.
    away = any(re.match(r"-I.*@[0-9a-f]+$|--library=.*\+(?:git|local)\.", word) for word in words)
    if "@" in record["case"] or "#" in record["variant"] or away:
        return ""
    return shlex.join(["cumatrix", "try", record["case"], *words, *axes])


def _library_of(record: Mapping[str, Any]) -> list[str] | None:
    """Options that name a cell's library: a release or a build; empty for installed libraries, None if unknown."""
    info, (version, _, local) = BACKENDS.get(record["backend"]), (record.get("library") or "").partition("+")
    if not info or not version or not str(record["environment"]).startswith(f"{info.library}-{version}"):
        return []
    python = re.search(r"(?:^|\.)python(3\.\d+)", local)
    more = ["--python", python[1]] if python else []
    if not _BUILD.match(f"+{local}"):
        return ["--with", f"{info.library}={version}", *more]
    builds = record["toolchain"]["observed"].get("builds")
    found = next((each for each in builds.values() if isinstance(each, dict)), {}) if isinstance(builds, dict) else {}
    url, commit = str(found.get("url") or ""), str(found.get("commit") or "")
    if not url:
        return None  # it lay on a path of an environment that was there
    if found.get("editable"):
        return ["--with", f"-e {unquote(url.removeprefix('file://'))}", *more]
    return ["--with", f"{info.library} @ {f'git+{url}@{commit}' if commit else url}", *more]
