"""The words that records use for how far a cell got, what happened, and what that means."""

from enum import StrEnum


class Stage(StrEnum):
    """Stages of a cell, in order."""

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
    """Outcome of a cell: a fact, independent of the expectation."""

    BUILT = "built"
    REJECTED = "rejected"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    HARNESS_ERROR = "harness_error"

    @property
    def answered(self) -> bool:
        """Return whether a compiler answered: a run without any answer proves nothing."""
        return self not in (Status.UNSUPPORTED, Status.UNAVAILABLE, Status.HARNESS_ERROR)


class Verdict(StrEnum):
    """Meaning of a status against the case's expectation; derived, never stored as a fact."""

    PASS = "pass"
    FAIL = "fail"
    XFAIL = "xfail"
    XPASS = "xpass"
    UNSUPPORTED = "unsupported"
    UNRESOLVED = "unresolved"
