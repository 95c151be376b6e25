"""Checks of replies about products, tensor cores and limits against `hardware.toml`, which is written from NVIDIA's and AMD's documents."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_TARGET = re.compile(r"(?:sm|compute)_(\d+)(\d)[af]?")
_LIMITS = re.compile(
    r"([\d,]+) bytes of static shared memory, ([\d,]+) threads a block, ([\d,]+) a warp, ([\d,]+) registers a thread, ([\d,]+) bytes of constant memory and "
    r"([\d,]+) bytes of kernel parameters \(([\d,]+) with CUDA ([\d.]+) or later from compute capability ([\d.]+)\)"
)


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("hardware.toml").read_text("utf-8"))


@cache
def _products() -> dict[str, str]:
    found = {name: capability for capability, names in _table()["products"].items() for name in names}
    # The number alone also names a GeForce card.
    return found | {
        name.partition(" ")[2]: of for name, of in found.items() if re.fullmatch(r"[gr]tx \d{4}( ti)?", name)
    }


def capabilities(name: str) -> list[str] | None:
    """Return the documented compute capabilities of an architecture, a product or a generation; None if it is unknown."""
    if found := _TARGET.fullmatch(name):
        return [f"{found[1]}.{found[2]}"]
    table = _table()
    of = _products().get(name)
    return [of] if of else table["generations"].get(name) or table["families"].get(name)


def _generation(capability: str) -> str:
    return next((name for name, of in _table()["generations"].items() if capability in of), "")


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def capability(name: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about a compute capability or the targets of AMD's products."""
    if of_amd := {target for target, names in _table()["amd"].items() if name in names}:
        words = re.fullmatch(r"(.+) is (gfx\w+(?:, gfx\w+)*)\.", sentence)
        if words is None or words[1].lower() != name or not of_amd.issuperset(words[2].split(", ")):
            yield f"{name} is {', '.join(sorted(of_amd))}"
        return
    known = capabilities(name)
    found = re.match(r"(.+?) is (?:the \S+-specific target of )?compute capability ([\d., or]+?)(?: \(([^)]*)\))?(?:, (\w+))?(?:: ([^.]*))?\.(?: |$)", sentence)  # fmt: skip
    if known is None or found is None:
        yield "no such product" if known is None else "unreadable"
        return
    said = re.split(r", | or ", found[2])
    targets = [item for item in (found[3] or "").split(", ") if item]
    named = {of for target in targets for of in capabilities(target) or ["?"]}
    # Thor has two names: sm_110, and sm_101 before CUDA 13.0.
    if wrong := {*said, *named} - {*known, *(("10.1",) if "11.0" in known else ())}:
        yield f"{name} is {', '.join(known)}, not {', '.join(sorted(wrong))}"
    if found[4] and found[4].lower() != _generation(said[0]):
        yield f"{said[0]} is {_generation(said[0])}"
    for product in (found[5] or "").split(", ") if found[5] else ():
        if capabilities(product.lower()) != [said[0]]:
            yield f"{product} is {capabilities(product.lower())}"


def tensor(name: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply to the question whether a GPU has tensor cores."""
    known, table = capabilities(name), _table()
    if known is None:
        yield "no such product"
        return
    first = float(table["first_with_tensor_cores"])
    bare = re.sub(r"^(?=\d{4})", "gtx ", name)
    have = [float(of) >= first and bare not in table["without_tensor_cores"] for of in known]
    expected = "Yes. " if all(have) else "No. " if not any(have) else "In part. "
    if not sentence.startswith(expected):
        yield f"{expected}{name}: {', '.join(known)}"
    said = re.search(r"\(compute capability ([\d., ]+?)[,)](?: |$|\w)", sentence)
    for of in re.findall(r"\d+\.\d", said[1]) if said else ():
        if of not in known:
            yield f"{name} is {', '.join(known)}"


def limits(name: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about limits."""
    if of_amd := {target for target, names in _table()["amd"].items() if name in (target, *names)}:
        wide = all(target.startswith("gfx9") for target in of_amd)
        if f"wavefronts of {64 if wide else 32} work-items" not in sentence:
            yield f"wavefronts of {64 if wide else 32}"
        return
    table, found = _table(), _LIMITS.search(sentence)
    block = table["block"]
    expected = [
        block[key]
        for key in ("static_shared", "threads", "warp", "registers", "constant", "parameters", "large_parameters")
    ]
    if found is None or [*map(_number, found.groups()[:7]), [found[8], found[9]]] != [*expected, block["large_parameters_from"]]:  # fmt: skip
        yield f"limits of every block: {expected}"
    if f", {block['grid']} blocks a grid" not in sentence:
        yield f"a grid has {block['grid']} blocks"
    clusters = re.findall(r"(\d+) blocks a portable cluster", sentence)
    if any(int(size) != block["cluster"] for size in clusters):
        yield f"a portable cluster has {block['cluster']} blocks"
    if name == "every":
        return
    known = capabilities(name)
    if known is None:
        yield "no such product"
        return
    said = re.findall(
        r"([\d,]+) bytes of dynamic shared memory a block, (?:\d+ (blocks) a portable cluster, )?([\d,]+) threads, (\d+) blocks and "
        r"([\d,]+) bytes of shared memory a multiprocessor(?: \(([^)]*)\))?",
        sentence,
    )
    if not said:
        yield "no dynamic shared memory"
    for size, cluster, threads, blocks, whole, targets in said:
        of = [each for target in re.findall(r"sm_\w+", targets) for each in capabilities(target) or ()] or known
        wrong = [each for each in of if 1024 * table["shared"].get(each, 0) != _number(size)]
        if wrong:
            yield f"{', '.join(wrong)}: {table['shared'].get(wrong[0])} KiB, not {size} bytes"
        for each in of:
            if [_number(threads), int(blocks), _number(whole) // 1024] != (true := table["multiprocessor"].get(each)):
                yield f"a multiprocessor of {each}: {true}"
            if bool(cluster) is not (float(each) >= 9.0):
                yield f"clusters on {each}"
        if any(each not in known and not (each == "10.1" and "11.0" in known) for each in of):
            yield f"{name} is {', '.join(known)}"


def first(sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about the first CUDA release of architectures by NVIDIA's documents."""
    table = _table()
    for named, release in re.findall(
        r"already builds for ([^.]+)\. By NVIDIA's documents, CUDA (\S+) is the first for", sentence
    ):
        targets = re.findall(r"sm_\w+", named)
        known = {table["families_from"] if each.endswith("f") else table["first"].get(of) for each in targets for of in capabilities(each) or ()}  # fmt: skip
        if known != {release}:
            yield f"CUDA {', '.join(map(str, known))} is the first"


def code(key: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about a cubin, or PTX, and a GPU, by NVIDIA's rules of compatibility.

    A cubin runs on GPUs of the same major compute capability and the same or a higher minor one, PTX on GPUs of the same
    or a higher one. Code with the suffix ``a`` runs on its own compute capability alone, that with ``f`` on its family.
    """
    name, number = key.split(" ")
    of = _TARGET.fullmatch(name)
    if of is None:
        yield "no such target"
        return
    cc, gpu, suffix = int(of[1] + of[2]), int(number), name[-1]
    same = cc == gpu if suffix == "a" else cc // 10 == gpu // 10 and cc <= gpu
    later = same if suffix in "af" else cc <= gpu
    apart = {int(float(each) * 10 + 0.5) for each in (*_table()["families"]["tegra"], "10.1", "8.8")}
    unknown = suffix != "a" and (
        (same and cc != gpu and {cc, gpu} & apart) or ({cc, gpu} == {101, 110} and suffix not in "af")
    )
    lead = "Not known" if unknown else "Yes" if same else "In part" if later else "No"
    if not sentence.startswith((f"{lead}.", f"{lead}:")):
        yield f"{lead}: {name} on {number}"
    if f"compute capability {number[:-1]}.{number[-1]}" not in sentence or name not in sentence:
        yield "another target"


def hosts(key: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about the host compilers that a CUDA release accepts."""
    table = _table()["hosts"]
    for cuda, gcc, clang in re.findall(r"CUDA (\S+) accepts gcc up to (\d+) and clang up to (\d+)", sentence):
        if [int(gcc), int(clang)] != table.get(cuda):
            yield f"CUDA {cuda} accepts {table.get(cuda)}"
    name, version, *toolkits = key.split(" ")
    if name == "cuda":
        return
    accepting = [cuda for cuda, newest in table.items() if int(version) <= newest[name == "clang"]]
    if toolkits:
        lead = "Yes" if toolkits[0] in accepting else "No"
        if not sentence.startswith(f"{lead}. "):
            yield lead
    elif not sentence.startswith(f"CUDA {accepting[0]} " if accepting else "No CUDA release "):
        yield f"{accepting[:1]} is the first that accepts it"


def driver(toolkit: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about the driver of a CUDA release."""
    table = _table()
    named = dict(re.findall(r"CUDA (\S+) needs driver ([\d.]+) or later", sentence))
    if wrong := {name: of for name, of in named.items() if table["drivers"].get(name) != of}:
        yield f"CUDA {', '.join(wrong)}: another driver"
    if toolkit not in named and (toolkit in table["drivers"] or not sentence.startswith("Not known: ")):
        yield f"CUDA {toolkit} needs {table['drivers'].get(toolkit, 'an unknown driver')}"
    found = re.search(r"built with CUDA (\S+) starts with driver ([\d.]+) or later", sentence)
    if found and (found[1] != toolkit or found[2] != table["minor_drivers"][toolkit.partition(".")[0]]):
        yield "another driver of minor version compatibility"


def minimum(toolkit: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about the lowest compute capability of a CUDA release."""
    found = re.search(r"minimum compute capability of CUDA \S+ is ([\d.]+)", sentence)
    documented = _table()["minimum"][toolkit.partition(".")[0]]
    if found and found[1] != documented:
        yield f"CUDA {toolkit} compiles for {documented}"


def ptx(toolkit: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about the PTX ISA of a CUDA release."""
    known = _table()["ptx"].get(toolkit)
    if sentence != f"CUDA {toolkit} has PTX ISA {known}.":
        yield f"PTX ISA {known}"


def dropped(name: str, sentence: str) -> Iterator[str]:
    """Yield the errors of a reply about the last CUDA release of architectures without cells."""
    found: dict[str, str] = {}
    for part in re.finditer(r"CUDA ([\d.]+) is the last release for ([^:]+):", sentence):
        found |= {f"{target[3:-1]}.{target[-1]}": part[1] for target in part[2].split(", ")}
    true = {of: _table()["last"].get(of) for of in capabilities(name) or ()}
    if found != true:
        yield f"says {found}, NVIDIA {true}"
