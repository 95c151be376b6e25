"""Replies to questions about GPUs that packages run on, from the device code of published wheels (`harness.wheels.published`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from harness.answers.query import Reply, ReplyRow
from harness.answers.question import in_series
from harness.diagnostics import one_line
from harness.libraries import label_of as library_label
from harness.model.compatibility import Way
from harness.model.gpus import Gpu
from harness.model.target import NVIDIA, Target
from harness.protocol.text import counted
from harness.wheels.published import WHEELS, Package, Support, WheelRelease, read_wheels, since, support

CAPABILITIES = tuple(sorted({target.cc for target in NVIDIA.targets}))
"""Compute capabilities that questions may name."""

_LIBRARIES = 3
_NOT_THERE = "What a package compiles or downloads on your machine is not in its wheel."


@cache
def wheels_in(folder: Path | None) -> tuple[Package, ...]:
    """Return the packages of a published matrix, or an empty tuple if it has no wheels.

    Raises
    ------
    UsageError
        If the file is damaged.
    """
    path = folder / WHEELS if folder else None
    return tuple(read_wheels(path)) if path and path.is_file() else ()


def names_of(packages: Sequence[Package]) -> dict[str, str]:
    """Return the labels of packages, by each name that a question may use."""
    found = {
        name.lower(): each.label for each in packages for name in (each.name, each.label, library_label(each.name))
    }
    return dict(sorted(found.items()))


class WheelReplies:
    """Replies about packages.

    Parameters
    ----------
    packages : sequence of Package
        The packages with known wheels.
    """

    def __init__(self, packages: Sequence[Package]) -> None:
        self.packages: dict[str, list[Package]] = {}
        for each in packages:
            self.packages.setdefault(each.label, []).append(each)

    def of(self, key: str) -> Reply | None:
        """Return the reply of a key: ``runs vllm 120``, ``runs vllm@0.33.0 120``, ``runs vllm``.

        Return None for an unknown package or compute capability.
        """
        _, named, *cc = key.split(" ")
        name, _, version = named.partition("@")
        if name not in self.packages:
            return None
        if cc and not cc[0].isdigit():
            of = Target.parse(cc[0]).vendor.label
            return Reply(
                sentence=f"Not known: the wheels were read for NVIDIA's GPUs, and {cc[0]} is a target of {of}.",
                known=False,
            )
        if cc and int(cc[0]) not in CAPABILITIES:
            return None
        replies = [_reply(each, version, Gpu(int(cc[0])) if cc else None) for each in self.packages[name]]
        known = [reply for reply in replies if reply.known] or replies
        return Reply(
            sentence=" ".join(dict.fromkeys(reply.sentence for reply in known)),
            rows=tuple(dict.fromkeys(row for reply in known for row in reply.rows)),
            known=known[0].known,
        )

    def known_keys(self) -> Iterator[str]:
        """Yield every key with a reply about the newest releases."""
        for name in self.packages:
            yield f"runs {name}"
            yield from (f"runs {name} {cc}" for cc in CAPABILITIES)


def _reply(package: Package, version: str, gpu: Gpu | None) -> Reply:
    if not package.newest:
        why = f"the index has {package.name} {package.source} as source alone. The build decides."
        return Reply(
            sentence=f"Not known: {why if package.source else f'no wheel of {package.name} was read.'}", known=False
        )
    # The releases are ordered, and 2.14 means the last one of its series.
    release = (
        next((each for each in reversed(package.releases) if in_series(each.version, version)), None)
        if version
        else package.newest
    )
    if release is None:
        return Reply(
            sentence=f"Not known: {package.name} {version} is not among the releases that were read: {', '.join(each.version for each in package.releases)}.",
            rows=(ReplyRow(text=f"cumatrix wheel {package.name}=={one_line(version, 40)}"),),
            known=False,
        )
    label = f"{package.name} {release.version}"
    if not release.libraries:
        return Reply(sentence=f"The wheel of {label} has no device code. {_NOT_THERE}")
    if gpu is None:
        return _of_all(package, release)
    (found,) = support(release, [gpu])
    sentence = f"{_sentence(found, label)}{'' if version else _since(package, found)}"
    return Reply(sentence=sentence, rows=tuple(_rows(package, release, found)))


def _sentence(found: Support, label: str) -> str:
    gpu = found.gpu
    runs, of = found.running, len(found.relations)
    every = f"each of its {of} libraries" if runs == of else f"{runs} of its {of} libraries"
    some = every if of > 1 else "its library"
    if not found.runs:
        lead = "Not known" if found.way is Way.UNKNOWN else "No"
        return f"{lead}: {label} has no code for {gpu}." if lead == "No" else f"{lead}: {label} on {gpu}."
    native = [each for _, each in found.relations if each.way is Way.NATIVE]
    if not native:
        code = f"PTX alone for {gpu}"
    elif found.way is Way.JIT:
        code = f"native code and PTX for {gpu}"
    else:
        code = f"native code for {gpu}"
    lead = "Yes" if found.complete else "In part"
    more = "" if found.complete or runs < of else ", and not in all fatbins"
    driver = f" PTX is compiled from {found.release} on." if found.release else ""
    return f"{lead}: {label} has {code} in {some}{more}.{driver}"


def _since(package: Package, found: Support) -> str:
    releases = package.releases
    if found.runs:
        first = since(package, found.gpu)
        assert first
        if first is releases[0]:
            return f" So has each release that was read, from {first.version} on." if len(releases) > 1 else ""
        before = releases[releases.index(first) - 1]
        return f" Since {first.version}: {before.version} has none."
    earlier = [each.version for each in releases if support(each, [found.gpu])[0].runs]
    if earlier:
        return f" {earlier[-1]} is the last with code for it."
    return f" Nor has any release that was read, from {releases[0].version} on." if len(releases) > 1 else ""


def _rows(package: Package, release: WheelRelease, found: Support) -> Iterator[ReplyRow]:
    for why, libraries in found.lacking.items():
        more = f" and {len(libraries) - _LIBRARIES} more" if len(libraries) > _LIBRARIES else ""
        yield ReplyRow(text=one_line(f"{', '.join(libraries[:_LIBRARIES])}{more}: {why}", 400))
    yield ReplyRow(text=f"cumatrix wheel {package.name}=={release.version}")


def _of_all(package: Package, release: WheelRelease) -> Reply:
    """Return the reply for a question without a GPU: the GPUs of each state."""
    groups = by_state(support(release, SHOWN))
    words = {
        "native": "native code for",
        "jit": "PTX for",
        "part": "code in part for",
        "unknown": "not known for",
        "none": "none for",
    }
    parts = [f"{words[state]} {', '.join(gpus)}" for state, gpus in groups.items()]
    row = ReplyRow(text=f"cumatrix wheel {package.name}=={release.version}")
    many = counted(len(release.libraries), "library", "libraries")
    return Reply(sentence=f"{package.name} {release.version} has {'; '.join(parts)} ({many}).", rows=(row,))


STATES: Mapping[str, str] = {
    "native": "native",
    "jit": "JIT",
    "part": "in part",
    "unknown": "not known",
    "none": "no",
}
"""States of a release on a GPU, with their labels."""


def state_of(found: Support) -> str:
    """Return the state of a release on a GPU: `native` and `jit` only if all of its code runs there."""
    if found.runs and not found.complete:
        return "part"
    return found.way.value


def by_state(found: Iterable[Support]) -> dict[str, list[str]]:
    """Return GPUs by state, in the order of `STATES`."""
    gpus: dict[str, list[str]] = {state: [] for state in STATES}
    for each in found:
        gpus[state_of(each)].append(str(each.gpu))
    return {state: of for state, of in gpus.items() if of}


SHOWN = tuple(Gpu(cc) for cc in (61, 70, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121))
"""GPUs in tables."""
