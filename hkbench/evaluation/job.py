"""What an evaluation is of, and what one evaluator process hands to the next."""

from __future__ import annotations

from typing import Literal

from hkbench.profile.names import FolderRead
from hkbench.reading import SourceLines
from hkbench.records import (
    BackendName,
    DeviceKind,
    EvaluationSettings,
    Failure,
    Finding,
    Isolation,
    LoweredPrecision,
    Problem,
    Reach,
    Record,
    SizeSet,
    Stage,
)

#: Beside the private folder of a candidate's runner: that of its profiler.
PROFILE_FOLDER = "profile"


#: What an evaluator is given for one evaluation: channel and control of candidate and profiler, the socket to the
#: process of an emulated GPU (with nobody behind it on other devices), that by which those of further runners come, and
#: after them the files inbox, outbox and `Loaded`.
SOCKETS, FILES = 6, 3
ENDS = SOCKETS + FILES

#: What PyTorch imports when an operator first works on tensors without contents: seconds, and `forward` for further
#: shapes is the first that does.
OF_META_TENSORS = ("torch._dynamo",)


class Emulation(Record):
    """What stands for an AMD GPU that is emulated."""

    arch: str
    libraries: str  #: the folder of hkbench/toolchain/emulated.py
    hip: str  #: version


class EvaluateJob(Record):
    """Evaluate one candidate. Files: `code` is the candidate, `folder` its runner's private folder."""

    problem: Problem
    code: str
    folder: str
    backend: BackendName
    device: DeviceKind
    sizes: SizeSet
    settings: EvaluationSettings
    isolation: Isolation  #: what confines the runners
    #: Record the extension calls, really build and load, or compile what Triton launches for `arch`.
    build_only: Literal["capture", "real", "launch"] | None = None
    arch: str | None = None
    emulation: Emulation | None = None
    reach: Reach = Reach.ALL  #: of the candidate, on a GPU
    all_because: str | None = None  #: why that is all
    missed: Failure | None = None  #: how the candidate failed with less
    alone: bool = False  #: no other evaluation uses its device meanwhile
    gpu: dict[str, object] = {}  #: properties of the GPU that it will have, as PyTorch names them


class Loaded(Record):
    """What the evaluator that had a candidate built hands to the one that measures it, as JSON in a memory file."""

    text: str  #: of the candidate
    sha256: str  #: of its bytes
    findings: tuple[Finding, ...]
    lines: SourceLines
    seconds: dict[Stage, float]
    build_seconds: float
    lowered: tuple[LoweredPrecision, ...] = ()  #: what the candidate set, by its runner's word
    said: str  #: by the candidate's guard, behind its last whole line
    built: FolderRead
