"""Build run folders from real records, with a clock of their own."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from hkbench.records import (
    AdviceFailed,
    AdviceKey,
    AdviceRead,
    AdviceReceived,
    AnswerForm,
    AnyEvent,
    AttemptClosed,
    Conditions,
    Decided,
    DeviceKind,
    DevicePlace,
    ExtractionRule,
    Failure,
    FailureKind,
    Interval,
    Isolation,
    IsolationLevel,
    KernelLanguage,
    Price,
    Protection,
    QuestionKind,
    Rates,
    Record,
    Reply,
    ReplyReceived,
    RunConfig,
    RunFacts,
    SampleKey,
    SizeSet,
    Stage,
    Status,
    Timing,
    Trial,
    Usage,
    Verdict,
    VerdictReached,
)
from hkbench.records.events import (
    CandidateExtracted,
    GenerationStarted,
    ProblemClosed,
    ProblemStarted,
    PromptRendered,
    RunClosed,
    RunStarted,
    StageEntered,
)
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths
from hkbench.strategies import STRATEGIES

START = 1_700_000_000.0  # seconds since the epoch
FACTS = RunFacts(
    started="2026-01-02T03:04:05Z",
    hkbench="0.1.0",
    versions={"torch": "2.13.0", "python": "3.11.9"},
    hardware={"cpu": "a CPU of two cores"},
)

#: One token of input is one unit of money, one of output two.
PRICED = FACTS.model_copy(
    update={"price": Price(currency="XTS", entry="test-*", rates=Rates(input=1e6, output=2e6), source="prices.toml")}
)


def run_config(
    problems: tuple[str, ...] = ("1_ReLU",), *, samples: int = 2, attempts: int = 2, strategy: str = "reflect"
) -> RunConfig:
    return RunConfig(
        strategy=STRATEGIES[strategy].record(STRATEGIES[strategy].Options()),
        problems=problems,
        problem_hashes=tuple("0" * 64 for _ in problems),
        level=1,
        backend="cpp",
        device=DeviceKind.CPU,
        sizes=SizeSet.CPU,
        samples=samples,
        attempts=attempts,
        model="test-model",
        prompts_sha256="0" * 64,
        categories_sha256="0" * 64 if STRATEGIES[strategy].uses_categories else None,
    )


ISOLATED = Isolation(level=IsolationLevel.LIMITS, layers=("guard",), holds=(Protection.LIMITS,))


def _conditions() -> Conditions:
    return Conditions(
        backend="cpp",
        device=DeviceKind.CPU,
        device_name="a CPU",
        candidate_sha256="0" * 64,
        problem_sha256="0" * 64,
        isolation=ISOLATED,
    )


WRITTEN = KernelLanguage(backend="cpp", reason="native code of its ext.so ran", ran=True)


def correct(problem: str, speedup: float, *, baseline: float = 1e-3) -> Verdict:
    """Return a correct verdict with this speed-up, its interval ten per cent to either side."""

    def timing(median: float) -> Timing:
        interval = Interval(value=median, low=median, high=median)
        return Timing(samples=(median,) * 3, median=interval, clock="perf_counter", warmups=1)

    return Verdict(
        problem=problem,
        status=Status.FAST if speedup >= 1.0 else Status.SLOW,
        trials=(Trial(seed=1, passed=True),),
        baseline=timing(baseline),
        candidate=timing(baseline / speedup),
        speedup=Interval(value=speedup, low=speedup * 0.9, high=speedup * 1.1),
        language=WRITTEN,
        conditions=_conditions().model_copy(update={"candidate_sha256": f"{speedup:064}"}),
    )


def incorrect(
    problem: str,
    kind: FailureKind = FailureKind.BUILD_ERROR,
    stage: Stage = Stage.BUILD,
    message: str = "error: expected ';'",
) -> Verdict:
    return Verdict(
        problem=problem,
        status=Status.INCORRECT,
        failure=Failure(stage=stage, kind=kind, message=message),
        conditions=_conditions(),
    )


def emulated(problem: str) -> Verdict:
    """Return a verdict of an emulated GPU: correct, without times."""
    return Verdict(
        problem=problem, status=Status.EMULATED, trials=(Trial(seed=1, passed=True),), conditions=_conditions()
    )


def compiled(problem: str) -> Verdict:
    return Verdict(problem=problem, status=Status.COMPILED, conditions=_conditions())


@dataclass
class RunFolder:
    """A run being written: every event takes one second."""

    root: Path
    config: RunConfig = field(default_factory=run_config)
    now: float = START
    facts: RunFacts = FACTS

    def __post_init__(self) -> None:
        self.paths = RunPaths(self.root)
        self.root.mkdir(parents=True, exist_ok=True)
        self._write(self.paths.run, {"config": self.config, "facts": self.facts})

    @staticmethod
    def _write(path: Path, parts: dict[str, Record]) -> None:
        data = {name: part.model_dump(mode="json") for name, part in parts.items()}
        write_atomic(path, json.dumps(data))  # a monitor may be looking

    def tick(self, seconds: float = 1.0) -> float:
        self.now += seconds
        return self.now

    def emit(self, *events: AnyEvent) -> None:
        with self.paths.journal.open("a") as file:
            for event in events:
                file.write(event.model_dump_json() + "\n")

    def start(self, *, resumed: bool = False, host: str | None = None, devices: tuple[DevicePlace, ...] = ()) -> None:
        self.emit(RunStarted(time=self.tick(), resumed=resumed, host=host, devices=devices))

    def close(self, *, complete: bool = True, reason: str | None = None) -> None:
        self.emit(RunClosed(time=self.tick(), complete=complete, reason=reason))

    def begin(self, problem: str) -> None:
        self.emit(ProblemStarted(time=self.tick(), problem=problem))

    def end(self, problem: str, *, solved: bool = False, error: str | None = None) -> None:
        self.emit(ProblemClosed(time=self.tick(), problem=problem, solved=solved, best=None, speedup=None, error=error))

    def asked(self, problem: str, attempt: int, sample: int) -> SampleKey:
        key = SampleKey(problem=problem, attempt=attempt, sample=sample)
        self.emit(GenerationStarted(time=self.tick(), key=key))
        return key

    def answered(self, key: SampleKey, usage: Usage | None = None, *, replayed: bool = False, tries: int = 1) -> None:
        usage = usage or Usage()
        self.paths.problem(key.problem).sample(key.attempt, key.sample).root.mkdir(parents=True, exist_ok=True)
        self.emit(
            ReplyReceived(
                time=self.tick(), key=key, model="test-model", usage=usage, seconds=2.5, tries=tries,
                replayed=replayed, finish_reason="stop",
            ),
            CandidateExtracted(
                time=self.tick(), key=key, rule=ExtractionRule.ONLY_BLOCK, sha256="0" * 64
            ),
        )  # fmt: skip

    def prompted(
        self,
        problem: str,
        template: str,
        attempt: int = 1,
        *,
        parent: SampleKey | None = None,
        metrics: tuple[str, ...] = (),
    ) -> None:
        self.emit(
            PromptRendered(
                time=self.tick(), problem=problem, attempt=attempt, template=template, sha256="0" * 64, parent=parent,
                metrics=metrics,
            )
        )  # fmt: skip

    def entered(self, key: SampleKey, stage: Stage, device: int | None = None) -> None:
        self.emit(StageEntered(time=self.tick(), key=key, stage=stage, device=device))

    def judged(self, key: SampleKey, verdict: Verdict) -> None:
        folder = self.paths.problem(key.problem).sample(key.attempt, key.sample)
        folder.root.mkdir(parents=True, exist_ok=True)
        folder.result.write_text(verdict.model_dump_json())
        self.emit(VerdictReached.of(key, verdict).model_copy(update={"time": self.tick(), "seconds": 4.0}))

    def chosen(self, key: SampleKey) -> None:
        """Its attempt is closed with it as the best."""
        self.emit(
            AttemptClosed(
                time=self.tick(), problem=key.problem, attempt=key.attempt, best_sample=key.sample, status=None,
                speedup=None,
            )
        )  # fmt: skip

    def sample(
        self, problem: str, attempt: int, sample: int, verdict: Verdict, usage: Usage | None = None
    ) -> SampleKey:
        """Return a sample from the question to the verdict."""
        key = self.asked(problem, attempt, sample)
        self.answered(key, usage)
        self.entered(key, Stage.BUILD)
        self.judged(key, verdict)
        return key

    def advised(
        self,
        about: SampleKey,
        said: dict[str, str] | None,
        *,
        kind: QuestionKind = QuestionKind.REPAIR,
        call: int = 1,
        usage: Usage | None = None,
        metrics: tuple[str, ...] = (),
    ) -> AdviceKey:
        """Return the judge's answer on a sample, for the prompt of the next attempt; `None`: it cannot be used."""
        key = AdviceKey(problem=about.problem, attempt=about.attempt + 1, call=call)
        form, note = (AnswerForm.JSON, None) if said is not None else (AnswerForm.UNUSABLE, "it holds no JSON object")
        folder = self.paths.problem(key.problem).advice(key.attempt, key.call)
        folder.root.mkdir(parents=True, exist_ok=True)
        read = AdviceRead(kind=kind, about=about, metrics=metrics, form=form, note=note, said=said)
        folder.advice.write_text(read.model_dump_json())
        self.emit(
            AdviceReceived(
                time=self.tick(), key=key, kind=kind, about=about, form=form, note=note, model="a-judge",
                usage=usage or Usage(), seconds=1.5, tries=1, replayed=False, finish_reason="stop",
            )
        )  # fmt: skip
        return key

    def no_advice(self, key: AdviceKey, message: str = "503") -> None:
        self.emit(AdviceFailed(time=self.tick(), key=key, error="ModelUnavailable", message=message))

    def decided(self, problem: str, attempt: int, what: str, choice: str, why: str = "a reason") -> None:
        self.emit(Decided(time=self.tick(), problem=problem, attempt=attempt, what=what, choice=choice, why=why))

    def store_exchange(self, key: SampleKey, reply: Reply) -> None:
        """exchange.json alone, as a crash between the file and the journal leaves it."""
        folder = self.paths.problem(key.problem).sample(key.attempt, key.sample)
        folder.root.mkdir(parents=True, exist_ok=True)
        folder.exchange.write_text(reply.model_dump_json(exclude={"text"}))


def sample_run(root: Path) -> RunFolder:
    """Return a finished run of four problems: solved at once, solved by the second attempt, slow, never correct."""
    names = ("1_ReLU", "2_Sum", "3_Softmax", "4_RMSNorm_fp32")
    run = RunFolder(root, run_config(names))
    known = Usage(input=100, output=50, reasoning=20)
    run.start()
    run.begin(names[0])
    run.sample(names[0], 1, 1, correct(names[0], 2.0), known)
    run.sample(names[0], 1, 2, incorrect(names[0]), known)
    run.end(names[0], solved=True)
    run.begin(names[1])
    wrong = incorrect(names[1], FailureKind.WRONG_VALUES, Stage.COMPARE, "output[0] at (3, 7): expected 1.0")
    run.sample(names[1], 1, 1, wrong, known)
    run.sample(names[1], 1, 2, incorrect(names[1]), known)
    run.sample(names[1], 2, 1, correct(names[1], 1.25), known)
    run.sample(names[1], 2, 2, correct(names[1], 0.75), Usage())
    run.end(names[1], solved=True)
    run.begin(names[2])
    for attempt in (1, 2):
        for sample in (1, 2):
            run.sample(names[2], attempt, sample, correct(names[2], 0.4 + 0.1 * attempt), known)
    run.end(names[2])
    run.begin(names[3])
    crash = incorrect(names[3], FailureKind.CRASH, Stage.RUN, "\x1b[31mdied by SIGSEGV\x1b[0m\nin forward")
    for attempt in (1, 2):
        for sample in (1, 2):
            run.sample(names[3], attempt, sample, crash, known)
    run.end(names[3])
    run.close()
    return run
