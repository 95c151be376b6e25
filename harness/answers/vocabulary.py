"""The names that questions may use for tools and features.

Those of backends and libraries come from their entries, those of architectures from `harness.model.target`. The page's script gets the same table as data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod

from harness.backends import BACKENDS
from harness.libraries import LIBRARIES
from harness.tables import read_table
from harness.toolkits.header_libraries import LIBRARIES as HEADERS

_OTHERS: Mapping[str, str] = {
    "cuda toolkit": "cuda",
    "toolkit": "cuda",
    "ctk": "cuda",
    "cuda": "cuda",
    "gcc": "gcc",
    "g++": "gcc",
    "clang": "clang",
    "clang++": "clang",
    "glibc": "glibc",
    "compute capability": "cc",
    "cc": "cc",
}


@cache
def aliases() -> Mapping[str, str]:
    """Names that a version can follow: of CUDA, host compilers, header libraries, libraries under test and backends.

    A label or an alias of one entry never replaces the name of another.
    """
    libraries = {info.library: LIBRARIES[info.library] for info in BACKENDS.values() if info.library}
    backends = {name: info for name, info in BACKENDS.items() if info.asked}
    found = {_asked(name): name for table in (HEADERS, backends, libraries) for name in table}
    found.update(_OTHERS)
    for table in (HEADERS, libraries, backends):
        for name, entry in table.items():
            for other in filter(None, (getattr(entry, "label", ""), *entry.aliases)):
                found.setdefault(_asked(other), name)
    return found


def _asked(name: str) -> str:
    """A name as a question has it: ``cupy jitify``."""
    return name.lower().replace("-", " ").replace(",", "")


@cache
def tools() -> Mapping[str, tuple[str, ...]]:
    """Backends by the name of a tool: a backend, or the library of several."""
    found: dict[str, tuple[str, ...]] = {name: (name,) for name, info in BACKENDS.items() if info.asked}
    for library in {info.library: None for info in BACKENDS.values() if info.library}:
        found[library] = tuple(info.name for info in BACKENDS.values() if info.library == library)
    return found


SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("bf16", "bfloat16"),
    ("fp16", "half", "float16", "f16"),
    ("fp8", "float8", "e4m3", "e5m2"),
    ("fp4", "e2m1", "nvfp4", "mxfp4"),
    ("fp64", "double", "float64"),
    ("kb", "kib"),
    ("sync", "synchronize", "synchronise", "synchronisation", "synchronization"),
    ("exception", "exceptions", "throw", "raise"),
    ("smem", "shared"),
    ("tensorcore", "tensor"),
    ("cg", "cooperative"),
    ("int8", "char", "signed"),
    ("rdc", "relocatable"),
    ("fragment", "fragments"),
    ("large", "larger", "bigger"),
    ("parameter", "parameters", "argument", "arguments"),
    ("store", "stmatrix"),
    ("dependent", "programmatic", "pdl"),
    ("namedtuple", "named"),
    ("numpy", "np"),
)
"""Words that mean the same in titles, features and parameters."""

PARTS = (
    "async",
    "bytes",
    "cuda",
    "std",
    "header",
    "headers",
    "jit",
    "library",
    "math",
    "memory",
    "np",
    "object",
    "objects",
    "size",
    "sync",
    "type",
    "types",
)
"""Parts of the names of functions and instructions, and nouns that say little: a case that has the other words may lack them."""

IGNORED = frozenset(
    "nv a about actual actually after again against all allow almost along already also although always am among an and any anybody anyone "
    "anything anyway anywhere api apis architecture architectures are aren ask asked asks at attempting attributeerror available basic be "
    "because become been before being best better between board boards both break breaking breaks bring brings broke broken bug build building "
    "builds built bunch but by call called calling came can cannot cant card cards case causing center centre cheap choose code come comes "
    "compatibility compatible compilation compile compiled compiler compiles compiling consumer correct correctly could couldn currently d data "
    "datacenter day days declared defined deprecated desktop device did didn different directly do does doesn doesnt don done dont down dropping "
    "due each easily either else enough error errors even every everything exactly exist exists explain fail failed fails fatal few file files "
    "finally find fine fix fixed following for found from full fully function functions geforce get gets getting give given gives gnu going good "
    "gpu gpu-architecture gpu-name gpus graphics great guys had hand happen happened happens hard hardware has have he hello help her here hi "
    "his hour hours how however i idea identifier if im implement implementation implemented importerror in include incompatible information "
    "inside install installed installing instead instruction instructions interesting into intrinsic intrinsics involving is isn it its ive just "
    "keep kernel kernels know laptop last least less let lets like little ll longer look looking lot m made make makes making many may maybe me "
    "mean means might mobile more most much must my namely near necessary need needs never new nice no nor normal not nothing now nvidia nvl of "
    "often ok okay old on one ones only open operation operations option options or other others our out over oversized particular pcie people "
    "per perhaps plain please possible possibly probably problem program programs project properly ptxas purely quadro question raises rather "
    "rawkernel re really reason recent recently regression release releases reported require required requires right run running runs "
    "runtimeerror s said same say says see seem seems send server she should shouldn show shows similar simple simply since so some somebody "
    "someone something sometimes soon sort source start started still stuff such super support supported supporting supports sure sxm t take "
    "takes talk tell tesla than thank thanks that the their them themselves then there these they thing things think this those though through "
    "to today together too tool toolchain toolchains tools tried tries trouble true trying turn typeerror undeclared under understand unknown "
    "unsupported until unusable up upon us usable use used user users uses using usually value valueerror values variable variables various ve "
    "version versions very via vs want wanted wants was wasn way ways we well were what whatever when where whether which while who whose why "
    "will with without won wonder word words work workaround workarounds working works would wouldn wrong yes yet you your yours".split()
)
"""Words of a question that say nothing of what it is about."""


@cache
def parameter_labels() -> Mapping[tuple[str, str, str], str]:
    """Plain names by case, parameter and value."""
    return {
        (case, table["name"], value): label
        for table in read_table("answers/labels.toml")["parameter"]
        for case in table["cases"]
        for value, label in table["labels"].items()
    }


def variant_label(case: str, variant: str) -> str:
    """The name of a variant, with a plain name for each value that has one: ``architecture named, fragment=tf32``."""
    parts = (part.partition("=") for part in variant.split(",") if part)
    return ", ".join(parameter_labels().get((case, key, value), f"{key}={value}") for key, _, value in parts)


def group_label(case: str, variants: Sequence[str], every: Sequence[str]) -> str:
    """The name of some variants: values without those that all variants of the case share, and without a parameter's name where the values say enough."""
    split = {item: dict(part.partition("=")[::2] for part in item.split(",") if part) for item in every}
    names = dict.fromkeys(key for item in split.values() for key in item)
    keys = [key for key in names if len({item.get(key, "") for item in split.values()}) > 1]
    plain = len(keys) == 1 and all(re.match(r"(?!true|false)[a-z]", item.get(keys[0], "")) for item in split.values())
    values = {key: list(dict.fromkeys(split[item].get(key, "") for item in variants)) for key in keys}
    if prod(map(len, values.values())) == len(variants):
        return ", ".join(_values(case, key, each, plain=plain) for key, each in values.items()) or "(none)"
    return "; ".join(
        ", ".join(_values(case, key, [split[item].get(key, "")], plain=False) for key in keys) for item in variants
    )


def _values(case: str, key: str, values: Sequence[str], *, plain: bool) -> str:
    known = parameter_labels()
    labels = [known.get((case, key, value), "") for value in values]
    prefix = "" if plain or any(labels) else f"{key}="
    return prefix + " or ".join(label or value for label, value in zip(labels, values, strict=True))
