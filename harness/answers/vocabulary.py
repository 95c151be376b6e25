"""The words of questions: names of tools and features, and intents (`since when`, `what breaks`, `may I drop`).

The entries of backends and libraries define their names. `harness.model.target` defines the names of architectures. One
table serves the terminal and the page. The page's script gets the table as data (`harness/report/assets/intents.js`
interprets it), with the replies to every question whose intent has a key (`harness.answers.replies`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import prod
from typing import Any

from harness.answers.question import Chip, Vocabulary, narrowest, parse, with_packages
from harness.backends import BACKENDS
from harness.libraries import LIBRARIES
from harness.model.target import NVIDIA, Target
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
    """Return the names that a version can follow: of CUDA, host compilers, header libraries, libraries under test and backends.

    A label or alias of an entry never replaces the name of another entry.
    """
    libraries = {info.library: LIBRARIES[info.library] for info in BACKENDS.values() if info.library}
    backends = {name: info for name, info in BACKENDS.items() if info.in_questions}
    found = {_question_form(name): name for table in (HEADERS, backends, libraries) for name in table}
    found.update(_OTHERS)
    for table in (HEADERS, libraries, backends):
        for name, entry in table.items():
            for other in filter(None, (getattr(entry, "label", ""), *entry.aliases)):
                found.setdefault(_question_form(other), name)
    return found


def _question_form(name: str) -> str:
    """Return a name in the form that questions use: ``cupy jitify``."""
    return name.lower().replace("-", " ").replace(",", "")


@cache
def tools() -> Mapping[str, tuple[str, ...]]:
    """Return backends by the name of a tool, without backends for AMD GPUs alone.

    A tool is a backend, or the library behind several backends.
    """
    found: dict[str, tuple[str, ...]] = {name: (name,) for name, info in BACKENDS.items() if info.in_questions}
    for library in {info.library: None for info in BACKENDS.values() if info.library}:
        found[library] = tuple(info.name for info in BACKENDS.values() if info.library == library and not info.rocm)
    return found


SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("bf16", "bfloat16"),
    ("fp16", "half", "halves", "float16", "f16"),
    ("fp8", "float8", "e4m3", "e5m2"),
    ("fp4", "e2m1", "nvfp4", "mxfp4"),
    ("fp64", "double", "float64"),
    ("fp32", "float", "float32", "f32"),
    ("cp", "copy"),
    ("kb", "kib"),
    ("sync", "synchronize", "synchronise", "synchronisation", "synchronization"),
    ("exception", "exceptions", "throw", "raise"),
    ("smem", "shared"),
    ("tensorcore", "tensor"),
    ("cg", "cooperative"),
    ("int8", "char", "signed"),
    ("rdc", "relocatable"),
    ("redux", "reduce"),
    ("shfl", "shuffle"),
    ("fragment", "fragments"),
    ("large", "larger", "bigger"),
    ("parameter", "parameters", "argument", "arguments"),
    ("store", "stmatrix"),
    ("dependent", "programmatic", "pdl", "griddepcontrol"),
    ("namedtuple", "named"),
    ("numpy", "np"),
    ("matmul", "dot"),
    ("operator", "operators", "arithmetic", "addition", "multiplication"),
)
"""Synonyms in titles, features and parameters."""

RIVALS: tuple[tuple[str, ...], ...] = (("e4m3", "e5m2"),)
"""Words with a common synonym that name different things: a case about one of them does not answer a question about another."""

TERMS = ("warp",)
"""Names of tools that are also terms of CUDA.

They mean the tool only with a version or by a longer alias (``warp 1.14``, ``nvidia warp``).
"""

_STANDARD = (
    "algorithm|any|array|atomic|bitset|cassert|cfloat|chrono|climits|cmath|cstddef|cstdint|cstdio|cstdlib|cstring|deque|functional|function|iostream"
    "|iterator|limits|list|map|memory|mutex|numeric|optional|ostream|pair|queue|random|set|shared_ptr|sort|sstream|stdexcept|string|string_view|thread"
    "|tuple|type_traits|unique_ptr|unordered_map|utility|variant|vector"
)
PHRASES: Mapping[str, str] = {
    r"\bkernels? (?:with)?(?:from|in|inside)(?: (?:a|an|another|other|the))? kernels?\b": "dynamic parallelism",
    r"\b(?:nested|child) kernels?\b": "dynamic parallelism",
    r"\bsync\w* (?:across|between|of) (?:all )?(?:the )?(?:thread ?)?blocks\b": "grid sync",
    r"\b(?:global|grid[- ]wide|grid) barriers?\b": "grid sync",
    r"\b(?:__)?half2\b": "half pair",
    r"\b(?:__)?(?:nv_)?(?:bfloat16|bf16)2\b": "bfloat16 pair",
    r"\bpython (?=\d)": "python",
    r"\btl\.(?=\w)": "triton ",
    r"(?:\bfp8e4\w*|(?:float8_|\b)e4m3\w+)": "fp8 e4m3",
    r"(?:\bfp8e5\w*|(?:float8_|\b)e5m2\w+)": "fp8 e5m2",
    r"\btexture ?<[^>]*>": "texture references",
    r"\btensor[- ]?cores? (?:mma|matmul|matrix multipl\w+)\b": "wmma",
    r"\b__(?:any|all|ballot)\b": "maskless vote",
    r"\bundefined reference\b": "linking",
    r"\b__(?:global|device|host)__\b": "kernel",
    r"(?<!cuda::)\bstd::\w*(?:error|exception)\b": "exception",
    rf"(?<!cuda::)\bstd::(?:{_STANDARD})\b": "standard library headers",
    rf"(?:# ?include ?|(?<!\w))<(?:{_STANDARD})>": "standard library headers",
    r"(?<=[a-z0-9])\.h(?:pp)?\b": " headers ",
    r"\b__nv_(?=fp8)": "headers ",
}
"""Words of a feature by patterns of longer descriptions, in a syntax that JavaScript has, too."""

PARTS = (
    "add",
    "global",
    "launch",
    "missing",
    "undefined",
    "variable",
    "variables",
    "async",
    "bytes",
    "cuda",
    "device",
    "extension",
    "extensions",
    "std",
    "header",
    "headers",
    "jit",
    "precision",
    "library",
    "math",
    "memory",
    "np",
    "object",
    "objects",
    "size",
    "sync",
    "wait",
    "type",
    "types",
)
"""Parts of names of functions and instructions, and nouns with little meaning.

A case that has the other words may lack them.
"""

IGNORED = frozenset(
    "nv a able about accept accepted accepts actual actually after again against all allow almost along already also although always am among an and any anybody anymore anyone "
    "anything anyway anywhere api apis architecture architectures are aren ask asked asks at as attempting attributeerror available basic be "
    "because become been before being below best better between board boards both break breaking breaks bring brings broke broken bug build building "
    "builds built bunch but by call called calling came can cannot cant card cards case causing center centre cheap choose code come comes "
    "compatibility compatible compilation compile compiled compiler compiles compiling consumer correct correctly could couldn cpp cu cuh crash crashed crashes crashing currently d data "
    "datacenter day days declared defined deprecated desktop did didn different directly do does doesn doesnt don done dont down dropping "
    "due each earlier easily either else enough error errors even every everything exactly exist exists explain expose exposed exposes fail failed failure failures fails fatal few file files "
    "finally find fine fix fixed following for found from full fully function functions geforce get gets getting give given gives gnu going good "
    "gpu gpu-architecture gpu-name gpus graphics great guys h had hand handle handled handles happen happened happens hard hardware has have he hello help her here hi "
    "hang hangs his hour hours how however hpp i idea identifier if im implement implementation implemented importerror in include incompatible information "
    "inside issue issues install installed installing instead instruction instructions interesting into intrinsic intrinsics involving is isn it its ive just "
    "keep kernel kernels kind kinds know lack laptop last least less let lets like little ll longer look looking lot lower m made make makes making many may maybe me "
    "mean means might mobile more most much must my namely near necessary need needs never new nice no nor normal not nothing now nvidia nvl of "
    "officially often ok okay old older on one ones only open operation operations option options or other others our out over oversized particular pcie people "
    "per perhaps permit permits permitted plain please possible pre possibly probably problem program programs project properly ptxas purely quadro question raises rather "
    "rawkernel re really reason recent recently recognised recognize recognized regression release releases reported request requests require required requires right run running runs "
    "runtimeerror s said same say says see seem seems send server she should shouldn show shows similar simple simply since situation so solve solved some somebody "
    "someone something sometimes soon sort source start started still stuff such super support supported supporting supports sure sxm t take "
    "takes talk tell tesla than thank thanks that the their them themselves then there these they thing things think this those though through "
    "to today together too tool toolchain toolchains tools tried tries trouble true trying turn typeerror undeclared under understand unknown "
    "unsupported until unusable up upon us usable use used user users uses using usually utils value valueerror values various ve "
    "version versions very via vs want wanted wants was wasn way ways we well were what whatever when where whether which while who whose why "
    "will with without won wonder word words work workaround workarounds working works would wouldn wrong yes yet you your yours".split()
)
"""Words of a question that do not describe its subject."""


@cache
def parameter_labels() -> Mapping[tuple[str, str, str], str]:
    """Return plain names by case, parameter and value."""
    return {
        (case, table["name"], value): label
        for table in read_table("answers/labels.toml")["parameter"]
        for case in table["cases"]
        for value, label in table["labels"].items()
    }


def variant_label(case: str, variant: str) -> str:
    """Return the name of a variant, with a plain name for each value that has one: ``architecture named, fragment=tf32``."""
    parts = (part.partition("=") for part in variant.split(",") if part)
    return ", ".join(parameter_labels().get((case, key, value), f"{key}={value}") for key, _, value in parts)


def group_label(case: str, variants: Sequence[str], every: Sequence[str]) -> str:
    """Return the name of some variants.

    The name omits values that all variants of the case share. It also omits a parameter's name if the values are clear
    without it.
    """
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


RELEASE_KINDS = ("toolkit", "tool", "header", "host")
"""Kinds of chips that may name releases."""


@dataclass(frozen=True, kw_only=True)
class Intent:
    """The intent of a question.

    Parameters
    ----------
    name : str
        The key of the intent.
    pattern : str
        Regular expression for the question in lower case, with single spaces. Its syntax is common to Python and
        JavaScript.
    needs : tuple of str
        Kinds of names that the question requires: ``target``, ``toolkit`` (a CUDA release), ``release`` (of anything),
        ``library`` (a tool with releases of its own), ``package``, ``own`` (packages that are not tools), ``host`` (a
        host compiler), ``two`` (two architectures), ``bare`` (no feature).
    lacks : tuple of str
        Kinds of names that the question must not contain.
    words : tuple of str
        Words that express the intent and do not describe a feature.
    key : str
        The parameters of the reply: ``target``, ``target or none``, ``release``, ``change`` (two releases, or one and
        the previous release), ``vendor`` (a tool, and the prefix of targets that it does not build for), ``pair`` (an
        architecture and releases), ``code`` (the target of code, and a GPU), ``host`` (a release of a host compiler, and
        perhaps of CUDA), ``combination`` (a library, perhaps with a release, and CUDA releases), ``each``
        (each architecture, or else each release), ``package`` (a package, and a compute capability), or empty for an
        answer from the features.
    decides : bool
        Whether the answer starts with a yes or no. It does not if a form that builds may be unnecessary, or if a yes
        would mean the opposite, as for "is it broken".
    """

    name: str
    pattern: str
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    key: str = ""
    decides: bool = True


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_LIMIT_WORDS = _words(
    "max maximum min minimum limit limits most largest biggest large big much many shared memory smem static dynamic per block thread threads "
    "register registers constant parameter parameters argument arguments warp warps size bytes kb kib grid multiprocessor launch optin resident "
    "pass passed "
    "number blocks multiprocessors cluster clusters grid griddim griddim.x griddim.y griddim.z x y z sm resident wavefront wavefronts wave nonportable non-portable dimension dimensions "
    "total available amount allowed opt opt-in cudafuncsetattribute in"
)
_VERSION_WORDS = _words(
    "first last latest newest oldest earliest final minimum min lowest smallest most recent release releases toolkit knows know know "
    "still target targets arch archs introduced added list all compute capability capabilities sm known valid official ever"
)

_WHEEL_WORDS = _words(
    "first last latest newest oldest earliest wheel wheels package binary binaries pip native natively jit code image ptx sass driver"
)
_CHANGES = (
    r"^should (i|we)\b|\b(break|breaks|breaking|broke|broken|regress\w*|upgrad\w*|migrat\w*|updat\w*|moving)\b|\bchange[ds]?\b|->|\u2192|what('s| is| was| were)? (new|added|introduced)\b|\bwhat (does|did)\b.*\b(add|introduce)\b"
    r"|\bdifferen(ce|ces|t)\b|\bcompared?\b|\bvs\b|\bversus\b|\b(stops|stopped) (working|building|compiling)\b"
)
"""Patterns for questions about two releases."""

_CHANGE_WORDS = _words(
    "breaks regression regressions regressed regress upgrade upgrading upgraded migrate migrating migration update updating moving move "
    "lose loses lost losing compare versus changed changes change between new safely safe code release compared difference different "
    "differences introduced introduce added add impact downgrade downgrading downgraded roll rolling rolled back go going against relative stop stops stopped"
)
_ARCHITECTURES = r"\b(which|what) (arch\w*|gpus?|cards?|targets?|compute capabilit\w+|sms?)\b"
_BROKEN = r"\b(is|was|are)\b.*\b(broken|bad|buggy|faulty)\b|\bbroken$|\bavoid\b"
_SOUND = r"\b(is|was|are|can)\b.*\b(usable|ok|okay|safe|good|stable|reliable)\b"
_NEED_WORDS = _words("need needs needed require requires required necessary")
_OF_TOOLS = ("tool", "toolkit", "header", "host")

INTENTS: tuple[Intent, ...] = (
    Intent(
        name="why",
        pattern=r"\berror ?:|\berror [a-z#]{0,9}\d+|\bfatal\b|^why\b|undefined (reference|symbol)|traceback \(|[a-z]error: |cuda_error_|cudaerror"
        r"|nvrtc_error|\bis undefined\b|has no (member|attribute)|uses too much|no instance of|is not allowed|incomplete type"
        r"|cannot open source|no such file|no kernel image|unresolved extern|no definition for|requires \.target|unsupported (\.version|gnu|clang)"
        r"|versions later than|not supported (for|on) \.?target|requires \.?target|no operator|match(es)? these operands|too (few|many) arguments"
        r"|is ambiguous|no suitable|not a template|could not be resolved|no binary for|static assertion|resources requested|illegal memory access"
        r"|not compatible with the current|kernel image is invalid|unspecified launch failure",
        decides=False,
    ),
    Intent(name="vendor", pattern="", needs=("target",), key="vendor"),
    # A name that is also a tool's requires an explicit word. A package's own name requires none.
    Intent(
        name="runs",
        pattern=r"\bruns?\b|\brunning\b|\bwheels?\b|\b(which|what) gpus?\b",
        needs=("package", "bare"),
        lacks=_OF_TOOLS,
        words=_WHEEL_WORDS,
        key="package",
    ),
    Intent(
        name="runs",
        pattern=r"^(?!.*\b(br[eo]a?k|fail|error|buil[dt]|compil))",
        needs=("own", "bare"),
        lacks=_OF_TOOLS,
        words=_WHEEL_WORDS,
        key="package",
    ),
    Intent(
        name="with",
        pattern=_BROKEN,
        needs=("library", "toolkit", "bare"),
        lacks=("target",),
        words=_words("faulty buggy bad avoid"),
        key="combination",
        decides=False,
    ),
    Intent(
        name="with",
        pattern=_SOUND,
        needs=("library", "toolkit", "bare"),
        lacks=("target",),
        words=_words("usable ok okay safe good stable reliable together combination"),
        key="combination",
    ),
    Intent(
        name="host",
        pattern=rf"{_BROKEN}|{_SOUND}",
        needs=("toolkit", "host", "bare"),
        lacks=("target", "header"),
        words=_words("usable ok okay safe good stable reliable host as"),
        key="host",
    ),
    Intent(
        name="release",
        pattern=_BROKEN,
        needs=("release", "bare"),
        lacks=("target",),
        words=_words("faulty buggy bad avoid"),
        key="release",
    ),
    Intent(
        name="release",
        pattern=_SOUND,
        needs=("release", "bare"),
        lacks=("target",),
        words=_words("usable ok okay safe good stable reliable"),
        key="release",
        decides=False,
    ),
    *(
        Intent(name="breaks", pattern=pattern, needs=("release", "bare"), lacks=("target",), words=_CHANGE_WORDS, key=key)
        for pattern, key in (
            (rf"(?=.*({_CHANGES})).*(->|\u2192|\bfrom .*\d.* to .*\d)", "change"),
            (r"\bdowngrad|\b(roll(ing|ed)?|go(ing)?|mov(e|ing)) back\b", "change down"),
            (_CHANGES, "change up"),
        )
    ),
    Intent(
        name="breaks",
        pattern=rf"{_ARCHITECTURES}.*\b(needs?|requires?|drop\w*|remov\w*|add\w*|introduc\w*|new|los[et]s?|gain\w*)\b"
        rf"|\b(drop\w*|remov\w*|add\w*|introduc\w*)\b.*{_ARCHITECTURES}",
        needs=("toolkit", "bare"),
        lacks=("target", "library"),
        words=(*_VERSION_WORDS, *_CHANGE_WORDS, *_words("drop drops dropped dropping remove removes removed add adds introduces need needs require requires gain gains cards card")),
        key="change up",
    ),
    Intent(
        name="requires",
        pattern=r"^(?!.*\b(still|only|drop\w*|remov\w*)\b)(?!.*\b(i|we|you|one) needs?\b).*\b(what|which|anything|features?|cases?)\b"
        r"(?!.*\b(cuda|toolkit|version|release|driver)\b).*\b(needs?|requires?|adds?|added|introduced?|introduces|new)\b",
        needs=("target", "bare"),
        lacks=("toolkit", "release", "library"),
        words=_words("features cases need needs require requires add adds added introduce introduced introduces new over least minimum instructions what's"),
        key="target",
    ),
    Intent(
        name="drop",
        pattern=r"\b(drop|dropping|dropped|still needs?|get rid|removing|remove|end support|stop (supporting|building|shipping))\b"
        r"|\b(what|which|anything)\b(?!.*\b(cuda|toolkit|version|driver)\b.*\bneed).*\b(only|needs?|requires?)\b",
        needs=("bare",),
        words=_words("features cases only needs need requires require drop dropping dropped rid end stop remove removing shipping ship supporting safe safely lose loses wheels wheel still"),
        key="each",
    ),
    Intent(
        name="first",
        pattern=r"\b(need(s|ed)?|required?|requires|necessary)\b",
        needs=("target", "toolkit", "bare"),
        lacks=("release", "header"),
        words=(*_VERSION_WORDS, *_NEED_WORDS),
        key="target",
    ),
    Intent(
        name="fails",
        pattern=r"\b(what|which|anything|everything|cases|features|list)\b.*(\bfail\w*|\bnot (work|build|compile|supported)\w*"
        r"|n'?t (work|build|compile)|\bcannot\b|\bbroken\b|\brefuse[sd]?\b|\bunsupported\b)"
        r"|^(what|which (cases|features)) (works?|builds?|compiles?)\b",
        needs=("bare",),
        words=_words("cases features everything list refused refuses refuse failing failures failed thing things"),
    ),
    Intent(
        name="code",
        pattern=r"^(?!.*\b(what|which)\b).*(\b(run|runs|running|load|loads|work|works|execute\w*|compatib\w+|forward|jit)\b.*\b(on|with|to)\b"
        r"|\b(cubins?|sass|ptx|binar\w+)\b.*\bon\b|\b(can|does|will|do)\b.*\b(run|load|execute)s?\b)",
        needs=("two", "bare"),
        lacks=("toolkit", "release", "library", "tool", "host"),
        words=_words("cubin cubins sass ptx binary binaries code compiled built build jit jitted forward backward backwards run runs load loads execute executes driver gpu"),
        key="code",
    ),
    Intent(
        name="limits",
        pattern=r"(\bhow (much|many|large|big)\b|\bmax(imum)?\b|\blimits?\b|\blargest\b|\bbiggest\b|\bmost\b)"
        r".*(shared|smem|register|thread|constant|parameter|block)|(shared|smem|register|thread|constant|parameter|grid|cluster)\w*.*(\blimits?\b|\bmax(imum)?\b|\bper (thread|block|sm|multiprocessor)\b)"
        r"|\b(max\w*|largest|biggest|limits?|most|how (many|large|big))\b.*\b(clusters?|grids?|griddim\w*)\b|\b(threads?|blocks?|warps?)\b.*\b(sm|multiprocessor)\b"
        r"|\b(warp|wave|wavefront) ?size\b|\bopt(ed)?[ -]?in\b.*(shared|smem)|(shared|smem).*\bopt(ed)?[ -]?in\b",
        needs=("bare",),
        words=_LIMIT_WORDS,
        key="target or none",
    ),
    Intent(
        name="tensor",
        pattern=r"tensor ?cores?\b",
        needs=("target", "bare"),
        words=_words("tensor core cores tensorcore tensorcores"),
        key="target",
    ),
    Intent(
        name="hosts",
        pattern=r"\b(which|what|newest|latest|max\w*|highest|last|supported|range)\b",
        needs=("toolkit", "host", "bare"),
        lacks=("target", "header"),
        words=(*_VERSION_WORDS, "host", "max", "maximum", "highest", "range", "up"),
        key="release",
        decides=False,
    ),
    Intent(
        name="hosts",
        pattern=r"\bhost compilers?\b",
        needs=("toolkit", "bare"),
        lacks=("target", "header", "host"),
        words=(*_VERSION_WORDS, "host", "compilers", "max", "maximum", "highest", "range", "up"),
        key="release",
        decides=False,
    ),
    Intent(
        name="host",
        pattern=r"\b(first|since|earliest|oldest|minimum|min|lowest|when|which|what)\b",
        needs=("host", "bare"),
        lacks=("target", "header", "toolkit"),
        words=(*_VERSION_WORDS, "host", "need", "needs"),
        key="host",
        decides=False,
    ),
    Intent(
        name="host",
        pattern="",
        needs=("toolkit", "host", "bare"),
        lacks=("target", "header"),
        words=_words("host as combination together"),
        key="host",
    ),
    Intent(
        name="minimum",
        pattern=r"\b(min(imum)?|lowest|oldest|earliest|smallest|least)\b.*\b(compute capabilit\w+|cc|gpus?|arch\w*|cards?|sm)\b",
        needs=("toolkit", "bare"),
        lacks=("target",),
        words=_VERSION_WORDS,
        key="release",
    ),
    Intent(
        name="driver",
        pattern=r"\bdrivers?\b",
        needs=("toolkit", "bare"),
        lacks=("target",),
        words=_words("driver drivers linux nvidia min minimum least oldest lowest version need needs needed require requires required run runs"),
        key="release",
    ),
    Intent(
        name="ptx",
        pattern=r"\bptx\b.*\b(isa|versions?)\b|\b(isa|versions?)\b.*\bptx\b|^(what|which) ptx\b",
        needs=("toolkit", "bare"),
        lacks=("target",),
        words=_words("ptx isa .version write writes emit emits"),
        key="release",
    ),
    Intent(
        name="supported",
        pattern=r"\b(which|what|list|all)\b.*\b(arch\w*|gpus?|targets?|cards?|compute capabilit\w+|sms?)\b"
        r"|\bsupported (arch\w*|gpus?|targets?|cards?|compute capabilit\w+)\b|\b(arch\w*|targets?|compute capabilities)( supported)?$",
        needs=("toolkit", "bare"),
        lacks=("target",),
        words=_VERSION_WORDS,
        key="release",
    ),
    Intent(
        name="feature",
        pattern=r"\b(first|last|latest|newest|final|earliest|oldest|minimum|min|lowest|since|when|which|what)\b",
        needs=("target", "library", "bare"),
        lacks=("toolkit", "release"),
        words=_VERSION_WORDS,
    ),
    Intent(
        name="last",
        pattern=r"\b(last|latest|newest|final|most recent|deprecated|obsolete)\b",
        needs=("target", "bare"),
        lacks=("toolkit", "release", "header"),
        words=_VERSION_WORDS,
        key="target",
    ),
    Intent(
        name="first",
        pattern=r"\b(first|earliest|oldest|minimum|min|lowest|since|when)\b|\b(which|what)\b.*\b(cuda|toolkit|release|version)\b",
        needs=("target", "bare"),
        lacks=("toolkit", "release", "header"),
        words=_VERSION_WORDS,
        key="target",
    ),
    Intent(
        name="capability",
        pattern=r"compute capabilit|\bcc\b|^(is|are)\b.*\bor\b|\b(same( \w+)? as|differ|difference|vs|versus)\b|\b(which|what) (gpus?|cards?|products?) (are|is|have|use)\b|\bwhat('s| is| are)\b|\b(which|what) (arch\w*|sm|cc|generation)\b|\bsm (version|number)\b|\b(valid|known)\b",
        needs=("target", "bare"),
        lacks=("toolkit", "release"),
        words=(*_VERSION_WORDS, "number", "generation", "cuda", "same", "differ", "difference", "between", "as", "vs", "versus"),
        key="target",
    ),
    Intent(
        name="supports",
        pattern=r"\b(deprecated|removed|dropped|unsupported|gone|obsolete)\b",
        needs=("target", "toolkit", "bare"),
        lacks=("release", "library"),
        words=(*_VERSION_WORDS, "removed", "dropped", "gone", "obsolete"),
        key="pair",
        decides=False,
    ),
    Intent(
        name="with",
        pattern="",
        needs=("library", "toolkit", "bare"),
        lacks=("target",),
        words=(*_VERSION_WORDS, "together", "combination"),
        key="combination",
    ),
    Intent(name="supports", pattern="", needs=("target", "toolkit", "bare"), lacks=("release", "library"), words=_VERSION_WORDS, key="pair"),
    Intent(
        name="negative",
        pattern=r"\b(broken|deprecated|removed|dropped|obsolete|unsupported|unusable|buggy|faulty|disallowed|forbidden|illegal|crash\w*|failures?|hangs?|segfault\w*)\b"
        r"|^(does|do|did|will|would|is|are|was|were|has|have|can|could)\b.*\b(fail\w*|break\w*|broke|regress\w*|miscompil\w*)\b",
        words=_words("deprecated removed dropped obsolete buggy faulty segfault segfaults disallowed forbidden illegal"),
        decides=False,
    ),
    Intent(
        name="needs",
        pattern=r"^(?!.*\b(which|what|when|how)\b).*\b(needs?|needed|requires?|required|necessary|mandatory)\b",
        words=(*_NEED_WORDS, "mandatory"),
        decides=False,
    ),
    Intent(
        name="since",
        pattern=r"\b(which|what)\b.*\b(cuda|toolkit|release|version)\b.*\b(needs?|needed|requires?|required)\b|\bsince\b|\bfrom (which|what)\b|\bfirst\b|\bearliest\b|\bwhen (did|was|were|is|are)\b|\b(introduced|added|fixed|solved) in\b|\b(which|what)\b.*\b(release|version)\b.*\b(fix\w*|solve\w*)\b|\bstarting\b",
        words=_words("first earliest introduced added fixes solves solved starting release toolkit allowed need needs needed require requires required"),
    ),
)  # fmt: skip
"""Every intent. The first intent that matches applies. A question that matches none asks whether a feature builds."""

FEATURE = Intent(name="feature", pattern="")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A question with its intent.

    Parameters
    ----------
    intent : Intent
        The intent of the question.
    chips : tuple of Chip
        The chips of the question, without the words that express the intent.
    keys : tuple of str
        Keys of the replies: ``breaks cuda 12.9 13.0``. Empty if the features answer the question.
    """

    intent: Intent
    chips: tuple[Chip, ...]
    keys: tuple[str, ...] = ()


def read(text: str, vocabulary: Vocabulary, tried: Mapping[str, Sequence[str]]) -> Reading:
    """Read a question.

    Parameters
    ----------
    text : str
        The typed text.
    vocabulary : Vocabulary
        The known names.
    tried : Mapping[str, sequence of str]
        Tried releases by name, oldest first.
    """
    chips = parse(text, vocabulary)
    packaged = with_packages(text, vocabulary)
    lower = " ".join(text.lower().split()).rstrip("?!. ")
    for intent in INTENTS:
        if re.search(intent.pattern, lower):
            read_as = packaged if intent.key == "package" else chips
            left = [chip for chip in read_as if not _tells(chip, intent)]
            named = _named(left, vocabulary)
            if named.issuperset(intent.needs) and named.isdisjoint(intent.lacks):
                keys = _keys(intent, left, tried, vocabulary)
                if keys or not intent.key:
                    return Reading(intent=intent, chips=tuple(left), keys=keys)
    return Reading(intent=FEATURE, chips=tuple(chips))


def _tells(chip: Chip, intent: Intent) -> bool:
    """Return whether a word expresses the intent, and not a feature.

    A size in a question about limits does, and a number in a question about drivers.
    """
    numeric = intent.key == "target or none" or intent.name == "driver"
    size = numeric and (chip.name.isdigit() or chip.text.replace(".", "").isdigit())
    return chip.kind in ("word", "unknown") and (size or chip.text in intent.words)


def _named(chips: Sequence[Chip], vocabulary: Vocabulary) -> frozenset[str]:
    """Return the kinds of names in a question, as in `Intent.needs`."""
    found = {chip.kind for chip in chips}
    if any(name != "cuda" for name, _ in _releases(chips, vocabulary)) or (
        "toolkit" in found and "target" not in found
    ):
        found.add("release")
    if not found & {"word", "unknown"}:
        found.add("bare")
    if len(narrowest(chips)) == 2:
        found.add("two")
    tools = [chip for chip in chips if chip.kind not in ("host", "word")]
    if any(backend in vocabulary.libraries for chip in tools for backend in vocabulary.tools.get(chip.name, ())):
        found.add("library")
    if "package" in found and not any(chip.name in vocabulary.tools for chip in chips if chip.kind == "package"):
        found.add("own")
    return frozenset(found)


def _releases(chips: Sequence[Chip], vocabulary: Vocabulary) -> list[tuple[str, Sequence[str]]]:
    """Return names with the releases in the question."""
    return [
        (vocabulary.libraries.get(chip.name, chip.name), chip.values)
        for chip in chips
        if chip.kind in RELEASE_KINDS and chip.values
    ]


def _keys(
    intent: Intent, chips: Sequence[Chip], tried: Mapping[str, Sequence[str]], vocabulary: Vocabulary
) -> tuple[str, ...]:
    # Facts about compute_120 are those of sm_120.
    targets = list(dict.fromkeys(chip.name.replace("compute_", "sm_") for chip in narrowest(chips)))
    releases = [
        (name, [value for value in values if value in tried.get(name, ())])
        for name, values in _releases(chips, vocabulary)
    ]
    releases = [(name, values) for name, values in releases if values]
    last = [f"{name} {values[-1]}" for name, values in releases]
    found: list[str] = []
    if intent.key == "target" or (intent.key in ("each", "target or none") and targets):
        found = targets
    elif intent.key == "target or none":
        found = ["every"]
    elif intent.key == "each":
        found = last
    elif intent.key == "package":
        numbers = dict.fromkeys(_number(value) for chip in narrowest(chips) for value in chip.values)
        if "110" in numbers:
            numbers.pop("101", None)  # the former number of the same GPU
        names = ["@".join((chip.name, *chip.values)) for chip in chips if chip.kind == "package"]
        found = [f"{name} {number}" for name in names for number in numbers] if numbers else names
    elif intent.key == "code":
        found = _codes(narrowest(chips))
    elif intent.key == "host":
        named = [f"{chip.name} {chip.values[-1]}" for chip in chips if chip.kind == "host" and chip.values]
        cuda = [values[-1] for name, values in releases if name == "cuda"]
        found = [" ".join((name, *cuda[:1])) for name in named[:1]]
    elif intent.key == "pair":
        found = [f"{target} {releases[0][1][0]} {releases[0][1][-1]}" for target in targets if releases]
    elif intent.key == "vendor":
        tools = [chip for chip in chips if chip.kind != "word"]
        backends = dict.fromkeys(backend for chip in tools for backend in vocabulary.tools.get(chip.name, ()))
        found = [
            f"{backend} {start}"
            for start, names in vocabulary.builders.items()
            if targets and all(chip.values[0].startswith(start) for chip in narrowest(chips))
            for backend in list(backends)[:1]
            if not set(names).intersection(backends)
        ]
    elif intent.key == "combination":
        found = _combinations(chips, releases, tried, vocabulary)
    elif intent.key.startswith("change") and releases:
        name, (first, *_) = releases[0][0], releases[0][1]
        both = [values[-1] for other, values in releases if other == name][:2]
        if intent.key != "change":
            both.sort(key=tried[name].index, reverse=intent.key == "change down")
        found = [f"{name} {' '.join(both)}" if len(both) > 1 else f"{name} {first}"]
    elif intent.key == "release":
        found = last[:1]
    return tuple(f"{intent.name} {key}" for key in found)


def _combinations(
    chips: Sequence[Chip],
    releases: Sequence[tuple[str, Sequence[str]]],
    tried: Mapping[str, Sequence[str]],
    vocabulary: Vocabulary,
) -> list[str]:
    """Return a library, its newest release in the question or ``*``, and the first and last CUDA release."""
    of = dict(releases)
    names = dict.fromkeys(
        vocabulary.libraries[backend]
        for chip in chips
        for backend in vocabulary.tools.get(chip.name, ())
        if backend in vocabulary.libraries
    )
    if len(names) != 1 or "cuda" not in of:
        return []
    (name,), cuda = names, of["cuda"]
    asked = any(chip.values for chip in chips if chip.kind == "tool")
    if asked and name not in of:
        return []
    return [f"{name} {of[name][-1] if asked else '*'} {cuda[0]} {cuda[-1]}"] if name in tried else []


def _codes(chips: Sequence[Chip]) -> list[str]:
    """Return the targets of device code, each with the compute capability of a GPU: ``sm_90a 100``.

    A product is the GPU. Otherwise the architecture that comes last is.
    """
    plain = [chip for chip in chips if re.match("(sm|compute)_", chip.name)]
    code = plain[0] if len(plain) == 1 else chips[0]
    numbers = dict.fromkeys(_number(value) for chip in chips if chip is not code for value in chip.values)
    codes = dict.fromkeys(value.replace("compute_", "sm_") for value in code.values)
    return [f"{each} {number}" for each in codes for number in numbers]


def _number(target: str) -> str:
    """Return the digits of a compute capability; a target of another vendor keeps its name."""
    own = Target.parse(target)
    return str(own.cc) if own.vendor is NVIDIA else target


def to_json() -> list[dict[str, Any]]:
    """Return the table as plain values for the page's script."""
    return [asdict(intent) for intent in INTENTS]
