"""The command that tries an untried combination."""

from __future__ import annotations

import re

from harness.answers.asked import Query
from harness.answers.question import Vocabulary
from harness.backends import library_of
from harness.model.host import NAME


def command_for(asked: Query, vocabulary: Vocabulary, case: str = "", backend: str = "") -> str:
    """The command that tries an untried combination: ``cumatrix run`` if there is a case for it, else ``cumatrix try``."""
    parts = [f"cumatrix run {case.rpartition('@')[0] or case}" if case else "cumatrix try kernel.cu"]
    hosts = asked.hosts()
    # Of several that a host compiler has a part in, nvcc itself.
    tools = (
        (asked.tools(vocabulary) or {})
        if any(chip.kind == "tool" for chip in asked.chips) or not hosts
        else {"nvcc": None}
    )
    for name in dict.fromkeys(filter(None, (backend, *tools))):
        library = library_of(name)
        versions = tools.get(name)
        text = f"--with {library}={versions[-1] if versions else 'all'}" if library else f"-b {name}"
        if text not in parts:
            parts.append(text)
    parts += [f"--library {name}={','.join(versions) or 'all'}" for name, versions in asked.headers().items()]
    names = [f"{name}-{version}" for name, versions in hosts.items() for version in versions]
    if names:
        parts.append(f"--host-compiler {','.join(name if re.fullmatch(NAME, name) else f'{name}=/path/to/g++' for name in names)}")  # fmt: skip
    if asked.toolkits:
        parts.append(f"-t {','.join(asked.toolkits)}")
    if asked.targets:
        parts.append(f"-a {asked.targets[0]}")
    return " ".join(parts)
