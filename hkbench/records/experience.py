"""What a run may ask of earlier ones: a kernel, what mended an error, what moves brought. None of it is trusted."""

from __future__ import annotations

from enum import StrEnum

from hkbench.records.base import FolderName, Record
from hkbench.records.verdict import Interval, Status


class HintKind(StrEnum):
    """Where a hint in a prompt comes from."""

    RULE = "rule"  #: the prompts' own, by the kind of failure and the classes of its errors
    ADVICE = "advice"  #: a model that has read the kernel
    REMEDY = "remedy"  #: an earlier run


class Hint(Record):
    """A hint that a prompt showed."""

    kind: HintKind
    text: str


class Source(Record):
    """The sample of an earlier run that something comes from."""

    run: str  #: the name of the run's folder
    problem: FolderName
    attempt: int
    sample: int

    @property
    def described(self) -> str:
        """The sample, as "2026-05-01_gpt of 4_RMSNorm, 2.1"."""
        return f"{self.run} of {self.problem}, {self.attempt}.{self.sample}"


class KernelSource(Record):
    """Where a known kernel comes from, and what it was there."""

    source: Source
    sha256: str
    device_name: str
    arch: str | None = None
    status: Status
    speedup: Interval | None = None  #: `None`: no time was measured there


class KnownKernel(Record):
    """A kernel that was correct for the same problem facts, device kind and backend; it is to be judged again."""

    code: str
    origin: KernelSource


class Remedy(Record):
    """What mended an error elsewhere, with its record there; nobody vouches for it."""

    text: str
    symbol: str | None = None  #: that the error spoke of
    source: Source  #: where it was seen first
    helped: int  #: samples that came past the error after it
    tried: int  #: samples that were written after it

    @property
    def record(self) -> str:
        """How often it helped, as "helped 3 of 4"."""
        return f"helped {self.helped} of {self.tried}"


class Pitfall(Record):
    """An error that kernels of several problems had, with the surest of what mended it."""

    error: str  #: what was said of it, without places and numbers
    problems: int  #: of earlier runs in which it was met
    remedy: Remedy


class RecallKind(StrEnum):
    """What was asked of the experience."""

    KERNEL = "kernel"
    REMEDIES = "remedies"
    MOVES = "moves"
    PITFALLS = "pitfalls"


class ExperienceFacts(Record):
    """The database of a run with experience, as it was when the run began."""

    digest: str  #: of its content, in hexadecimal
    bytes: int
    runs: int
