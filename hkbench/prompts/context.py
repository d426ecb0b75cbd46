"""What a template can see."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from hkbench.device_kinds import DeviceModel, model_of
from hkbench.records import (
    BackendName,
    DeviceKind,
    FailureKind,
    HintKind,
    Pitfall,
    Problem,
    ProblemFacts,
    Record,
    Remedy,
    Stage,
    Status,
    Track,
)

Dialect = Literal["cdna3", "cdna4"]


class DeviceSheet(Record):
    """What a prompt says of the device. Units are in the names; `None` is left out of the prompt."""

    name: str
    arch: str | None = None  #: "gfx942", "sm_90", or the CPU's instruction sets
    kind: DeviceKind
    memory_gb: float
    bandwidth_gbs: float | None = None
    peak_tflops: dict[str, float] = Field(default_factory=dict)  #: dense peak by dtype
    lds_kib: int | None = None  #: LDS of a compute unit, shared memory of a multiprocessor
    compute_units: int | None = None  #: compute units, multiprocessors or cores
    wave_size: int | None = None
    llc_mib: int | None = None  #: last-level cache
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> DeviceModel:
        """Return the description of the device's kind, for its words."""
        return model_of(self.kind)


class Best(Record):
    """The best kernel so far, where the prompt is about another one."""

    attempt: int
    outcome: str  #: "correct, speed-up 0.8"
    code: str


class Reflection(Record):
    """What the next prompt says about the parent: its code and what became of it."""

    attempt: int  #: of the parent, counted from 1
    sample: int = 1  #: of that attempt
    code: str | None  #: `None` when the reply held none
    status: Status
    kind: FailureKind | None = None
    stage: Stage | None = None
    message: str | None = None
    detail: str | None = None
    mismatch: str | None = None
    speedup: float | None = None
    baseline_ms: float | None = None
    candidate_ms: float | None = None
    profile: tuple[str, ...] = ()  #: lines: the kernels of a pass, then the findings
    metrics: tuple[str, ...] = ()  #: lines: what a profiler counted of the longest kernels, where that was asked for
    resources: tuple[str, ...] = ()  #: lines: registers, spills, LDS as the compiler reports them
    hints: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()  #: what mended such a failure in earlier runs (--experience)
    history: tuple[str, ...] = ()  #: lines: what each attempt so far came to, from the second on
    sent_before: int | None = None  #: the earlier attempt that held this very code
    best: Best | None = None
    advice: dict[str, str] = Field(default_factory=dict)  #: a judge's answer: what it is about -> what it says


class StageSheet(Record):
    """What a prompt says of the stage that it is for (strategy staged)."""

    name: str
    focus: str
    guidance: tuple[str, ...]


class HintTopic(StrEnum):
    """What a hint of strategy agents is about."""

    COMPILE = "compile"
    CORRECTNESS = "correctness"
    RESEARCH = "research"
    DIVERSITY = "diversity"
    PERFORMANCE = "performance"


class AgentHint(Record):
    """What an agent tells the one that writes the next kernel."""

    version: Literal[1] = 1
    topic: HintTopic
    text: str
    origin: str  #: who says it: "compile reasoner", "rule"

    @property
    def kind(self) -> HintKind:
        """Where it comes from, as the journal has it."""
        return HintKind.RULE if self.topic in (HintTopic.RESEARCH, HintTopic.DIVERSITY) else HintKind.ADVICE


class SynthesisTask(Record):
    """What the agents give to the one that writes the next kernel, beside the reflection on the last one."""

    version: Literal[1] = 1
    plan: tuple[str, ...] = ()  #: lines
    hints: tuple[AgentHint, ...] = ()


class Question(Record):
    """What a model is asked on a kernel, beside the reflection that it is about."""

    shape: str  #: the JSON object that it is to answer with
    unusable: str | None = None  #: its answer before, which could not be read
    because: str | None = None  #: why not
    told: dict[str, Any] = Field(default_factory=dict)  #: what else an agent is given, by name


class PromptContext(Record):
    """Everything a prompt is made from."""

    problem: Problem
    facts: ProblemFacts
    backend: BackendName
    device: DeviceSheet
    contract: str  #: the evaluator's rules (rules.contract)
    track: Track = Track.OWN  #: whose kernels have to do the work
    dialect: str | None = None  #: of the backend, for the device's architecture
    pitfalls: tuple[Pitfall, ...] = ()  #: the commonest errors of earlier runs (--experience)
    reflection: Reflection | None = None
    stage: StageSheet | None = None
    task: SynthesisTask | None = None  #: of strategy agents
    question: Question | None = None  #: only in templates of questions on a kernel
