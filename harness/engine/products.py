"""What came out of a cell, read back: targets, kernels and resources of cubins and PTX."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from harness.artifacts import Contents, is_relocatable, read_cubin, read_ptx
from harness.diagnostics import one_line
from harness.engine.left import read_file
from harness.model import Artifact, Status, Target
from harness.protocol.wire import Product

_MOST = 256 << 20
"""Size of everything that came out of a cell, in bytes, above which it is not read."""


def read_product(target: Target, product: Product, folder: Path, log: str) -> tuple[Artifact, bytes, list[str]]:
    """What came out; where that is one program a kernel, all of them, one after another.

    Returns
    -------
    tuple
        The artifact; its content; and remarks on kernels that only trap, as what is not meant for an architecture is often written.

    Raises
    ------
    OSError, Unreadable, ValueError
        When a file is not there, or not what it is called.
    """
    parts: list[tuple[bytes, Contents, str]] = []
    left = _MOST
    for part in product.parts or [product]:
        data = read_file(Path(part.path), folder, left)
        left -= len(data)
        parts.append((data, *_contents(target, part.format, data, log)))
    data = b"".join(data for data, _, _ in parts)
    formats = {kind for _, _, kind in parts}
    artifact = Artifact(
        format=next(kind for kind in ("ptx", "object", "cubin") if kind in formats),  # as far as all of them got
        target=", ".join(dict.fromkeys(str(contents.target) for _, contents, _ in parts)),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        kernels=tuple(kernel for _, contents, _ in parts for kernel in contents.kernels),
    )
    trapping = [name for _, contents, _ in parts for name in contents.only_trap]
    return artifact, data, [f"remark: {name} does nothing but trap: it may be compiled out here" for name in trapping]


def check_product(
    target: Target, product: Product, artifact: Artifact, entries: Iterable[str]
) -> tuple[Status, str, str]:
    """Hold what came out against what was asked for.

    Returns
    -------
    tuple
        Status; the reason where that is not ``built``; a note where there is one to make.
    """
    wanted, note = str(target), ""
    if product.by_driver and artifact.target == f"{target}a":
        note, wanted = f"the driver's own linker made {artifact.target} of it", artifact.target
    if artifact.target != wanted:
        return Status.UNAVAILABLE, f"asked for {wanted}, what came out is for {artifact.target}", note
    missing = [
        name for name in entries if not any(product.names.get(name, name) in kernel.name for kernel in artifact.kernels)
    ]
    if missing:
        there = ", ".join(kernel.name for kernel in artifact.kernels) or "none"
        reason = one_line(f"kernel {', '.join(missing)} is not in what was built (kernels there: {there})")
        return Status.HARNESS_ERROR, reason, note
    return Status.BUILT, "", note


def _contents(wanted: Target, kind: str, data: bytes, log: str) -> tuple[Contents, str]:
    if kind == "ptx":
        contents = read_ptx(data.decode(errors="replace"))
    elif kind in ("cubin", "object"):
        contents = read_cubin(data, log)
        kind = "object" if is_relocatable(data) else "cubin"
        target = contents.target
        if not target.suffix and target.cc == wanted.cc and not _has_suffix_note(data):
            contents = replace(contents, target=wanted.real)  # this format does not say, and the number is right
    else:
        raise ValueError(f"unknown format {kind!r}")
    return contents, kind


def _has_suffix_note(data: bytes) -> bool:
    """Whether the cubin quotes its assembler's command line; ABI 7 of before has a flag for the suffix instead."""
    return b".note.nv.tkinfo" in data or data[8] < 8
