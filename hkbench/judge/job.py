"""What the engine asks of a judge process, and the words between the two (wire frames on a private socket)."""

from __future__ import annotations

from typing import Literal

from hkbench.profile.names import Built
from hkbench.records import (
    Backend,
    DeviceFacts,
    DeviceKind,
    Finding,
    Isolation,
    JudgeSettings,
    Problem,
    Record,
    SizeSet,
    Stage,
)

#: Beside the private folder of a candidate's runner: that of its profiler.
PROFILE_FOLDER = "profile"


#: What a judge is given for one evaluation: channel and control of candidate and profiler, and after them the files
#: inbox, outbox and `Loaded`.
SOCKETS, FILES = 4, 3
ENDS = SOCKETS + FILES


class EvaluateJob(Record):
    """Judge one candidate. Files: `code` is the candidate, `folder` its runner's private folder."""

    job: Literal["evaluate"] = "evaluate"
    problem: Problem
    code: str
    folder: str
    backend: Backend
    device: DeviceKind
    sizes: SizeSet
    settings: JudgeSettings
    isolation: Isolation  #: what confines the runners
    #: Record the extension calls, really build and load, or compile what Triton launches for `arch`.
    build_only: Literal["capture", "real", "launch"] | None = None
    arch: str | None = None


class Loaded(Record):
    """What the judge that had a candidate built hands to the one that measures it, as JSON in a memory file."""

    text: str  #: of the candidate
    sha256: str  #: of its bytes
    findings: tuple[Finding, ...]
    seconds: dict[Stage, float]
    build_seconds: float
    said: str  #: by the candidate's guard, behind its last whole line
    built: dict[str, Built]  #: see `BuildFolder.known`


class StayJob(Record):
    """Stay with a device and measure what comes by the door: see `judge/worker.py`.

    Beside the door the process has channel and control of a runner for the baseline, which stays too.
    """

    job: Literal["stay"] = "stay"
    facts: DeviceFacts


class DescribeJob(Record):
    """Which devices there are; `kind` None asks for the best one."""

    job: Literal["describe"] = "describe"
    kind: DeviceKind | None


class FactsJob(Record):
    """The shapes and dtypes of a problem, by running its own code."""

    job: Literal["facts"] = "facts"
    problem: Problem
    sizes: SizeSet


class AuditJob(Record):
    """Which null controls pass a problem's checks. The process ends itself after `seconds`."""

    job: Literal["audit"] = "audit"
    problem: Problem
    sizes: SizeSet
    device: DeviceKind
    index: int
    trials: int
    seconds: float
