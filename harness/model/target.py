"""Targets: real architectures (``sm_90a``), virtual ones (``compute_90``), and lists of them.

`VENDORS` defines the names, the syntax and the order of targets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache


class TargetError(ValueError):
    """A text that is not spelled like a target."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Vendor:
    """A vendor of GPUs, with the syntax and the list of its targets.

    Parameters
    ----------
    name : str
        Key in `VENDORS`.
    label : str
        Name in sentences.
    rank : int
        Position in the order of targets.
    real, virtual : str
        Prefixes of real and virtual targets: ``sm_`` and ``compute_``. `virtual` is empty for a vendor without virtual
        targets.
    number : str
        Pattern of the digits.
    base : int
        10 for decimal digits, 16 for hexadecimal digits (``gfx90a``).
    minors : int
        Number of minor digits in a compute capability: one in 8.0.
    suffix : str
        Pattern of the suffix, which may be empty.
    short : str
        Pattern of the short form of real targets; its groups form the number and the suffix. Empty if users write
        targets in full.
    known, old : tuple of str
        Numbers with suffixes, in order: those of current toolkits, and those that only old toolkits support. ``all``
        does not select old ones.
    default : str
        Default targets of a run.
    examples : str
        Example targets for the message about an invalid target.
    toolkit : str
        Name of a toolkit release: ``CUDA release``.
    """

    name: str
    label: str
    rank: int
    real: str
    virtual: str = ""
    number: str
    base: int = 10
    minors: int = 1
    suffix: str = ""
    short: str = ""
    known: tuple[str, ...]
    old: tuple[str, ...] = ()
    default: str
    examples: str
    toolkit: str

    @property
    def kinds(self) -> tuple[str, ...]:
        """Prefixes of targets, real before virtual."""
        return tuple(filter(None, (self.real, self.virtual)))

    @cached_property
    def pattern(self) -> str:
        """Syntax of targets, with groups for prefix, number and suffix."""
        return rf"({'|'.join(self.kinds)})({self.number})({self.suffix})"

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """Known targets, in order."""
        return tuple(Target.parse(kind + number) for kind in self.kinds for number in self.known)

    @cached_property
    def old_targets(self) -> tuple[Target, ...]:
        """Targets that only old toolkits support, in order."""
        return tuple(Target.parse(kind + number) for kind in self.kinds for number in self.old)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Pickle the name only, since a copy would compare as another vendor."""
        return _vendor, (self.name,)


NVIDIA = Vendor(
    name="nvidia",
    label="NVIDIA",
    rank=0,
    real="sm_",
    virtual="compute_",
    number=r"\d{2,3}",
    suffix="[af]?",
    short=r"(\d{1,2})\.?(\d)([af]?)",
    # Compute capabilities of the toolkits in toolkits/releases.toml, as `ptxas --help` lists them (CUDA 11.8 to 13.5).
    # This table sets only the order and the spelling. Each toolkit itself decides which targets it supports.
    known=tuple(
        "50 52 53 60 61 62 70 72 75 80 86 87 88 89 90 90a 100 100a 100f 101 101a 101f "
        "103 103a 103f 107 107a 107f 110 110a 110f 120 120a 120f 121 121a 121f".split()
    ),
    old=("35", "37"),  # of CUDA 11.8
    default="sm_50,sm_60,sm_70,sm_75,sm_80,sm_89,sm_90,sm_100,sm_120",  # one per generation, Maxwell to both Blackwells
    examples="sm_80, sm_90a or compute_80",
    toolkit="CUDA release",
)

AMD = Vendor(
    name="amd",
    label="AMD",
    rank=1,
    real="gfx",
    number=r"\d{1,2}[0-9a-f]{2}",
    base=16,
    minors=2,
    suffix="",
    # Processors from Vega on, as https://llvm.org/docs/AMDGPUUsage.html#processors lists them.
    known=tuple(
        "900 906 908 90a 942 950 1010 1011 1012 1030 1031 1032 1034 1035 1036 1100 1101 1102 1103 1150 1151 1152 1153 "
        "1200 1201 1250".split()
    ),
    old=("803", "940", "941"),
    default="gfx90a,gfx942,gfx1100",
    examples="gfx942 or gfx1100",
    toolkit="ROCm release",
)

VENDORS: dict[str, Vendor] = {vendor.name: vendor for vendor in (NVIDIA, AMD)}
"""Every vendor by name."""


def _vendor(name: str) -> Vendor:
    return VENDORS[name]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One architecture to compile for.

    Parameters
    ----------
    virtual : bool
        True for ``compute_XY`` (the result is PTX), False for ``sm_XY`` (the result is a cubin).
    cc : int
        Compute capability in one number: 80 for 8.0, 121 for 12.1.
    suffix : str
        ``""``, ``"a"`` (architecture-specific) or ``"f"`` (family-specific).
    vendor : Vendor
        Vendor of the GPU.
    """

    virtual: bool
    cc: int
    suffix: str = ""
    vendor: Vendor = field(default=NVIDIA, repr=False)

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read ``sm_90a`` or ``compute_80``.

        Raises
        ------
        TargetError
            If `text` is spelled differently.
        """
        return _parsed(text)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return self.kind + self.number

    @property
    def kind(self) -> str:
        """Prefix of real or virtual targets: ``sm_``."""
        return self.vendor.virtual if self.virtual else self.vendor.real

    @cached_property
    def number(self) -> str:
        """Target without its prefix: ``"80"``, ``"90a"``."""
        return f"{self._digits}{self.suffix}"

    @property
    def _digits(self) -> str:
        return format(self.cc, "x" if self.vendor.base == 16 else "d")

    @cached_property
    def capability(self) -> str:
        """Compute capability as in CUDA's documentation: ``"8.0"``."""
        digits, minors = self._digits, self.vendor.minors
        return ".".join([digits[:-minors], *(str(int(digit, self.vendor.base)) for digit in digits[-minors:])])

    @property
    def real(self) -> Target:
        """Real architecture of the same compute capability."""
        return Target(virtual=False, cc=self.cc, suffix=self.suffix, vendor=self.vendor)

    @property
    def plain(self) -> Target:
        """Real architecture without suffix."""
        return Target(virtual=False, cc=self.cc, vendor=self.vendor)

    @property
    def as_virtual(self) -> Target:
        """Virtual architecture of the same compute capability; the real one of a vendor without virtual targets."""
        return Target(virtual=bool(self.vendor.virtual), cc=self.cc, suffix=self.suffix, vendor=self.vendor)

    @property
    def sort_key(self) -> tuple[int, bool, int, str]:
        """Key that sorts by vendor, real before virtual, compute capability and suffix."""
        return (self.vendor.rank, self.virtual, self.cc, self.suffix)

    def masked(self, text: str) -> str:
        """Replace the number of this target by XX, so messages on several targets have the same text: ``sm_XX``."""
        return self._spelled.sub(r"\1XX", text) if self.number in text else text

    def unmasked(self, text: str) -> str:
        """Insert the number of this target into a text of `masked`."""
        return re.sub(rf"\b({'|'.join(self.vendor.kinds)})XX\b", rf"\g<1>{self.number}", text)

    @cached_property
    def _spelled(self) -> re.Pattern[str]:
        return re.compile(rf"\b({'|'.join(self.vendor.kinds)}){re.escape(self.number)}\b")


@lru_cache(maxsize=256)
def _parsed(text: str) -> Target:
    for vendor in VENDORS.values():
        if match := re.fullmatch(vendor.pattern, text.strip()):
            virtual, number = match[1] == vendor.virtual, int(match[2], vendor.base)
            return Target(virtual=virtual, cc=number, suffix=match[3], vendor=vendor)
    examples = ", ".join(vendor.examples for vendor in VENDORS.values())
    raise TargetError(f"{text!r} is not a target: write {examples}")


TARGET_PATTERN = f"(?:{'|'.join(vendor.pattern for vendor in VENDORS.values())})"
"""Syntax of targets."""

VIRTUAL_PATTERN = (
    f"(?:{'|'.join(each.virtual + each.number + each.suffix for each in VENDORS.values() if each.virtual)})"
)
"""Syntax of virtual targets."""

KNOWN_TARGETS: tuple[Target, ...] = tuple(target for vendor in VENDORS.values() for target in vendor.targets)
"""Every target of a current toolkit, in sorting order."""

OLD_TARGETS: tuple[Target, ...] = tuple(target for vendor in VENDORS.values() for target in vendor.old_targets)
"""Targets that only old toolkits support."""

DEFAULT_TARGETS = NVIDIA.default
"""Default targets of a run."""


def parse_targets(text: str) -> list[Target]:
    """Read ``sm_75..sm_120,sm_90a``, ``compute_80`` or ``all``, and sort the targets.

    A range selects the targets of one kind without suffix. ``all`` selects every known target of NVIDIA, ``amd`` every
    one of AMD. ``80`` and ``8.0`` mean ``sm_80``.

    Raises
    ------
    TargetError
        If a part is not spelled like a target, or a range is empty.
    """
    found: dict[Target, None] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        if part == "all" or part in VENDORS:
            found.update(dict.fromkeys(VENDORS.get(part, NVIDIA).targets))
        elif ".." in part:
            found.update(dict.fromkeys(_range(part)))
        else:
            found[short_or_whole(part)] = None
    if not found:
        raise TargetError(f"{text!r} names no target: write sm_80, sm_75..sm_120, all or amd")
    return sorted(found, key=lambda target: target.sort_key)


def _range(text: str) -> list[Target]:
    low, high = (short_or_whole(end) for end in text.split("..", 1))
    if low.vendor is not high.vendor:
        raise TargetError(f"{text!r} mixes architectures of several vendors")
    if low.virtual != high.virtual:
        raise TargetError(f"{text!r} mixes real and virtual architectures")
    within = [
        target
        for target in low.vendor.targets
        if target.virtual == low.virtual and not target.suffix and low.cc <= target.cc <= high.cc
    ]
    if not within:
        raise TargetError(f"no known target is in {text}")
    return within


def check_known(target: Target) -> None:
    """Raise `TargetError` for a target that no toolkit of its vendor supports, and name the nearest targets."""
    vendor = target.vendor
    if target in vendor.targets or target in vendor.old_targets:
        return
    kind = [known for known in vendor.targets if known.virtual == target.virtual]
    near = [known for known in kind if known.cc == target.cc]
    if not near:
        plain = [known for known in kind if not known.suffix]
        below = [known for known in plain if known.cc < target.cc]
        near = [*below[-1:], *[known for known in plain if known.cc > target.cc][:1]]
    names = " and ".join(map(str, near))
    raise TargetError(f"no {vendor.toolkit} knows {target}; the nearest {'are' if len(near) > 1 else 'is'} {names}")


def short_or_whole(text: str) -> Target:
    """Read a target as users write it: ``sm_80``, ``80``, ``8.0`` or ``90a``.

    ``nvidia-smi`` and device queries print the number alone.
    """
    for vendor in VENDORS.values():
        if vendor.short and (number := re.fullmatch(vendor.short, text.strip())):
            return Target.parse(vendor.real + "".join(number.groups()))
    return Target.parse(text)
