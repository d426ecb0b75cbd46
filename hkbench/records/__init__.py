"""Frozen data that every room may use: no behaviour, no torch."""

from hkbench.records.base import Backend, DeviceKind, Record
from hkbench.records.device import DeviceFacts
from hkbench.records.generation import (
    Candidate,
    Extraction,
    ExtractionRule,
    Prompt,
    Reply,
    SampleKey,
    Usage,
)
from hkbench.records.problem import Problem, ProblemFacts, ScalarFact, SizeSet, TensorFact
from hkbench.records.profile import KernelProfile, KernelResources, KernelUse, Owner
from hkbench.records.run import (
    AnyEvent,
    AttemptClosed,
    CandidateExtracted,
    EvaluationFailed,
    Event,
    GenerationFailed,
    GenerationStarted,
    JudgeSettings,
    ProblemClosed,
    ProblemStarted,
    PromptRendered,
    ReplyReceived,
    RunClosed,
    RunConfig,
    RunFacts,
    RunStarted,
    StageEntered,
    VerdictReached,
)
from hkbench.records.verdict import (
    Conditions,
    Failure,
    FailureKind,
    Interval,
    Mismatch,
    Stage,
    StageTime,
    Status,
    Timing,
    Tolerance,
    Trial,
    Verdict,
)

__all__ = [
    "Backend", "DeviceFacts", "DeviceKind", "Record",
    "Candidate", "Extraction", "ExtractionRule", "Prompt", "Reply", "SampleKey", "Usage",
    "Problem", "ProblemFacts", "ScalarFact", "SizeSet", "TensorFact",
    "KernelProfile", "KernelResources", "KernelUse", "Owner",
    "AnyEvent", "AttemptClosed", "CandidateExtracted", "EvaluationFailed", "Event", "GenerationFailed",
    "GenerationStarted", "JudgeSettings", "ProblemClosed", "ProblemStarted", "PromptRendered",
    "ReplyReceived", "RunClosed", "RunConfig", "RunFacts", "RunStarted", "StageEntered", "VerdictReached",
    "Conditions", "Failure", "FailureKind", "Interval", "Mismatch", "Stage", "StageTime", "Status", "Timing",
    "Tolerance", "Trial", "Verdict",
]
