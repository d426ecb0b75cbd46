"""A verdict: what became of one candidate, and how that was established."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import model_validator

from hkbench.records.base import BackendName, DeviceKind, Record
from hkbench.records.device import DeviceFacts, Readback
from hkbench.records.failures import DEMANDS, REFUSALS, FailureKind
from hkbench.records.generation import SampleKey
from hkbench.records.problem import ShapeKind, SizeSet
from hkbench.records.profile import IdleWait, KernelProfile, KernelResources
from hkbench.records.trust import (
    Clocks,
    Contention,
    Finding,
    Floor,
    Isolation,
    KernelLanguage,
    LoweredPrecision,
    Ownership,
    Rule,
    RuleSet,
    Sol,
    Track,
    Work,
)


class Stage(StrEnum):
    """The steps of an evaluation, in order."""

    EXTRACT = "extract"
    PARSE = "parse"
    BUILD = "build"
    LOAD = "load"
    RUN = "run"
    COMPARE = "compare"
    TIME = "time"
    SHAPES = "shapes"  #: further ones, of a correct candidate

    @property
    def place(self) -> int:
        """The number of the stages before it."""
        return _STAGES.index(self)


_STAGES = tuple(Stage)


class Status(StrEnum):
    """What a verdict comes to."""

    FAST = "fast"  #: correct, speed-up >= 1.0 (exit 0)
    SLOW = "slow"  #: correct, slower than the baseline (exit 1)
    INCORRECT = "incorrect"  #: not correct: any failure (exit 2)
    REFUSED = "refused"  #: the answers were right, but not the clock or not the kernels: never counts (exit 2)
    COMPILED = "compiled"  #: built only, never run (exit 0 of --build-only)
    EMULATED = "emulated"  #: correct on an emulated GPU, never run on the hardware, so without a time (exit 0)


class Mismatch(Record):
    """Where an output differs most from what is expected."""

    output: str  #: path of the output leaf, e.g. "output" or "output[1]"
    index: tuple[int, ...]  #: of the largest excess over the tolerance
    expected: float | int | bool
    got: float | int | bool
    max_abs_error: float | None
    max_rel_error: float | None  #: error over |expected|, where expected is not 0
    wrong_elements: int
    elements: int


class Failure(Record):
    """The stage that failed, what kind of failure, and the useful part of the message."""

    stage: Stage
    kind: FailureKind
    message: str
    detail: str | None = None  #: longer text of the tool that failed (compiler output, traceback), cut to size
    mismatch: Mismatch | None = None
    signal: str | None = None  #: "SIGSEGV", for a crash
    trial: int | None = None
    line: int | None = None  #: of the candidate's file, where it is known; `None`: it is not, or an older record

    @property
    def rule(self) -> Rule | None:
        """The fair-play rule that was broken."""
        return DEMANDS[self.kind].rule if self.kind in DEMANDS else None

    @property
    def change(self) -> str | None:
        """The one change by which it would pass, as an imperative."""
        return DEMANDS[self.kind].change if self.kind in DEMANDS else None

    @property
    def is_beyond_kernelbench(self) -> bool:
        """Whether KernelBench's rules do not ask for what is broken, so that they let it pass."""
        return self.kind in DEMANDS and DEMANDS[self.kind].kernelbench is None


class Tolerance(Record):
    """|got - expected| <= rtol * |expected| + rtol * scale, scale the root mean square of the expected output.

    With an `atol` it is KernelBench's instead: |got - expected| <= atol + rtol * |got|, expected what eager gives.

    Of one output, at its first comparison. Errors are the largest of all its comparisons, repeated and timed calls
    included, in units of |expected| + scale: one of at most `rtol` passes. Eager's is not looked for in timed calls
    whose error is neither beyond the usual tolerance nor the largest.
    """

    dtype: str
    rtol: float
    widened_by_eager: bool = False  #: eager's own error asked for more (see analysis/compare.py)
    plain_rtol: float | None = None  #: without that; `None`: an older record
    atol: float | None = None  #: under KernelBench's rules only, where there are no errors below
    error: float | None = None  #: of the candidate; `None`: nothing passed yet, or an older record
    eager_error: float | None = None  #: of eager, or a bound of it; `None`: not a finite number, or an older record


class Trial(Record):
    """One correctness trial: fresh inputs from one seed."""

    seed: int
    passed: bool
    inputs: str = (
        "own"  #: the distribution: "own", "shifted", "heavy-tailed", "outliers" (see analysis/input_distributions.py)
    )
    integers: str | None = None  #: how they were drawn anew: "Zipf", "repeated", ... (see analysis/integer_inputs.py)
    parameters: str = "own"  #: "own", or "random" when they were changed after construction
    max_abs_error: float | None = None
    max_error_over_tolerance: float | None = None  #: <= 1 passes

    @property
    def drawn(self) -> str:
        """How its inputs were drawn, in words."""
        return self.inputs if self.integers is None else f"{self.inputs} with {self.integers} integers"


class Interval(Record):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def is_above(self, other: Interval) -> bool:
        """Tell whether it is the higher one by more than both intervals."""
        return self.low > other.high


class Timing(Record):
    """Times of one side. Seconds everywhere."""

    samples: tuple[float, ...]
    median: Interval
    clock: str  #: the evaluator's own, or where that does not work the runner's, as `DeviceModel` names them
    warmups: int
    judge_wall: tuple[float, ...] | None = None  #: the same calls by the evaluator's own clock, transfer included
    judge_rest: tuple[float, ...] | None = None  #: and from the end of the call to its answer, 0 where that is the end
    unreported: float = (
        0.0  #: of each sample: what the evaluator's clock saw and the candidate's process did not report
    )


class ShapeResult(Record):
    """What became of the candidate at one further shape."""

    constants: dict[str, int | float]  #: of the problem's file, that differ from those of the sizes in force
    kind: ShapeKind
    failure: Failure | None = None
    speedup: Interval | None = None  #: of few runs; `None`: wrong, or on a device that measures no time
    baseline_seconds: float | None = None
    candidate_seconds: float | None = None
    untimed: str | None = None  #: why there is no speed-up although the answers are right

    @property
    def visible(self) -> bool:
        """Whether the candidate's author could know of it."""
        return self.kind is ShapeKind.NAMED

    @property
    def described(self) -> str:
        """The constants, as "rows=1, columns=8192"."""
        return ", ".join(f"{name}={value}" for name, value in self.constants.items())


class Shapes(Record):
    """What became of a correct candidate at further shapes, each with a fresh model and fresh inputs."""

    seed: int  #: by which visible ones were chosen and hidden ones drawn, once the candidate was loaded
    required: bool = False  #: that all are right (`--require-shapes`)
    results: tuple[ShapeResult, ...] = ()
    not_checked: tuple[str, ...] = ()  #: why there are fewer than were asked for

    @property
    def right(self) -> int:
        """How many shapes the candidate is right at."""
        return sum(result.failure is None for result in self.results)

    @property
    def failed(self) -> tuple[ShapeResult, ...]:
        return tuple(result for result in self.results if result.failure is not None)

    @property
    def described(self) -> str:
        """One line: how many are right, and which are not."""
        if not self.results:
            return f"no further shape: {'; '.join(self.not_checked) or 'none was asked for'}"
        said = f"right on {self.right} of {len(self.results)} further shapes"
        wrong = "; ".join(f"{one.described} ({one.failure.kind})" for one in self.failed if one.failure is not None)
        return f"{said}, not on {wrong}" if wrong else said


class BaselineName(StrEnum):
    """What a candidate is timed against."""

    EAGER = "eager"  #: the problem's `Model` as it stands: it decides the status
    COMPILE = "compile"  #: the same by torch.compile, warm
    BEST = "best"  #: the problem's `ModelBest`: the library's call that is the best-known way


class FurtherBaseline(Record):
    """Another way to compute what the reference does, timed in turn with eager in the process of the baseline."""

    name: BaselineName
    timing: Timing | None = None  #: `None`: not measured, for `reason`
    eager: Timing | None = None  #: of the calls in between
    over_eager: Interval | None = None  #: eager's time over its own
    speedup: Interval | None = None  #: of the candidate over it; `None` without a speed-up over eager too
    notes: tuple[str, ...] = ()  #: what torch.compile left to eager, or compiled anew while it was timed
    reason: str | None = None  #: it cannot be made, or its answers are wrong


class StageTime(Record):
    stage: Stage
    seconds: float


class Conditions(Record):
    """How the verdict was reached."""

    backend: BackendName
    device: DeviceKind
    device_name: str
    arch: str | None = None
    host: str | None = None  #: the node of a cluster that reached it; `None`: that of the run, or an older record
    device_facts: DeviceFacts | None = (
        None  #: what floor and flush rest on, with the source of each; `None`: not reached
    )
    sizes: SizeSet = SizeSet.FULL
    versions: dict[str, str] = {}
    candidate_sha256: str | None  #: `None` when the reply held no code
    problem_sha256: str
    track: Track = Track.OWN
    rules: RuleSet = RuleSet.HKBENCH
    isolation: Isolation
    seeds: tuple[int, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    weights: Literal["state_dict", "order", "none"] | None = None  #: "order": by shape and order, names differ
    reference_precision: str | None = None  #: "float64", "float32" or "native"
    flush_bytes: int | None = None
    warmups: int | None = None  #: calls of each side before the timed ones; `None`: not timed, or an older record
    not_checked: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Verdict(Record):
    """The whole result of one evaluation."""

    schema_version: Literal[1] = 1
    problem: str
    status: Status
    failure: Failure | None = None
    #: What hkbench's rules would have refused, where those in force (`Conditions.rules`) let it pass; one a kind.
    would_fail: tuple[Failure, ...] = ()
    trials: tuple[Trial, ...] = ()
    baseline: Timing | None = None
    candidate: Timing | None = None
    speedup: Interval | None = None  #: baseline median / candidate median
    shapes: Shapes | None = None  #: `None`: not reached, not asked for, or an older record
    baselines: tuple[FurtherBaseline, ...] = ()  #: those of --baseline besides eager
    clocks: Clocks | None = None
    readback: Readback | None = None  #: of a timed candidate on a GPU; `None`: its driver does not say, or older
    contention: Contention | None = None  #: of a timed candidate on a CPU; `None`: an older record
    floor: Floor | None = None
    work: Work | None = None
    ownership: Ownership | None = None  #: whose work it was, in either track; `None`: not asked, or an older record
    language: KernelLanguage | None = None  #: of the kernels; `None` where none was seen, or nothing says
    precision: tuple[LoweredPrecision, ...] = ()  #: settings that lower it; the tolerance judges what they come to
    findings: tuple[Finding, ...] = ()  #: of the static reading, advisory unless `hard`
    profile: KernelProfile | None = None
    resources: tuple[KernelResources, ...] = ()  #: from the compiler, where it reports them
    idle_waits: tuple[IdleWait, ...] = ()  #: of a kernel that was executed on an emulated GPU
    stages: tuple[StageTime, ...] = ()
    conditions: Conditions
    copy_of: SampleKey | None = None  #: the sample with the same code whose verdict this is; `None`: its own
    output: str | None = None  #: what the candidate printed, capped

    @property
    def compiler_findings(self) -> int:
        """The number of findings in the compiler's figures of the kernels."""
        return sum(len(kernel.findings) for kernel in self.resources)

    @property
    def sol(self) -> Sol | None:
        """How near the candidate is to the least time of its device; `None` where that is not known, or nothing timed.

        What is faster than a floor of its own would be refused: at most 1, but for the margin of that refusal.
        """
        if self.floor is None or self.candidate is None or self.speedup is None or not self.floor.seconds:
            return None
        share = min(1.0, self.floor.seconds / self.candidate.median.value)
        return Sol(fraction=share, bound=self.floor.quality, counted=self.floor.counted)

    @property
    def over_best(self) -> Interval | None:
        """The speed-up over the fastest baseline that was measured; `None` where eager alone was asked for."""
        over = [one.speedup for one in self.baselines if one.speedup is not None]
        if self.speedup is None or not over:
            return None
        return min([self.speedup, *over], key=lambda found: found.value)

    @property
    def unsettled(self) -> bool:
        """Tell whether other work was on the processors, so that the stated speed-up cannot be relied on."""
        return self.speedup is not None and self.contention is not None and bool(self.contention.reasons)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        timed = self.baseline is not None or self.candidate is not None or self.speedup is not None
        match self.status:
            case Status.INCORRECT:
                if self.failure is None or self.failure.kind in REFUSALS | {FailureKind.SLOW}:
                    raise ValueError("an incorrect verdict names its failure")
                if timed:
                    raise ValueError("an incorrect candidate has no timing and no speed-up")
            case Status.REFUSED:
                if self.failure is None or self.failure.kind not in REFUSALS:
                    raise ValueError("a refused verdict names the reason")
                if self.speedup is not None:
                    raise ValueError("a refused candidate has no speed-up")
            case Status.COMPILED:
                if self.failure is not None or timed or self.trials:
                    raise ValueError("what was only compiled has no failure, trial or timing")
            case Status.EMULATED:
                if self.failure is not None or timed:
                    raise ValueError("what was emulated is correct and has no timing")
                if not self.trials or not all(t.passed for t in self.trials):
                    raise ValueError("an emulated verdict has passed every trial")
            case Status.FAST | Status.SLOW:
                if self.speedup is None or self.baseline is None or self.candidate is None:
                    raise ValueError("a correct verdict carries both timings and the speed-up")
                if self.failure is not None:
                    raise ValueError("a correct verdict has no failure")
                if (self.speedup.value >= 1.0) is not (self.status is Status.FAST):
                    raise ValueError("fast means a speed-up of at least 1.0")
                if not self.trials or not all(t.passed for t in self.trials):
                    raise ValueError("a correct verdict has passed every trial")
        return self
