"""The words that records use for how far a cell got, what happened, and what that means."""

from enum import StrEnum


class Stage(StrEnum):
    """How far a cell got, in the order in which the stages happen."""

    PREPROCESS = "preprocess"
    COMPILE = "compile"
    ASSEMBLE = "assemble"
    LINK = "link"
    LOAD = "load"
    LAUNCH = "launch"
    VERIFY = "verify"

    @property
    def rank(self) -> int:
        """Position of the stage in the pipeline, from 0."""
        return list(Stage).index(self)


class Status(StrEnum):
    """What happened to a cell: a fact, independent of what anybody expected."""

    BUILT = "built"
    REJECTED = "rejected"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    HARNESS_ERROR = "harness_error"

    @property
    def answered(self) -> bool:
        """Whether a compiler had its say: a run in which none had is no proof of anything."""
        return self not in (Status.UNSUPPORTED, Status.UNAVAILABLE, Status.HARNESS_ERROR)


class Verdict(StrEnum):
    """What a status means against the case's expectation; derived, never stored as a fact."""

    PASS = "pass"
    FAIL = "fail"
    XFAIL = "xfail"
    XPASS = "xpass"
    UNSUPPORTED = "unsupported"
    UNRESOLVED = "unresolved"
