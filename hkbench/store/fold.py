"""What a journal comes to, event by event.

Wall time is counted per session: a session begins with a `run_started` and ends with its last event, so that
the hours between a crash and the resume are in nobody's time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hkbench.records import (
    AdviceFailed,
    AdviceReceived,
    AnyEvent,
    AttemptClosed,
    Decided,
    EvaluationFailed,
    GenerationFailed,
    MachineFailed,
    ProblemClosed,
    ProblemStarted,
    PromptRendered,
    ReplyReceived,
    RunClosed,
    RunStarted,
    SampleKey,
    VerdictReached,
)


@dataclass
class SampleFold:
    """The last word of the journal on one sample."""

    reply: ReplyReceived | None = None
    verdict: VerdictReached | None = None


@dataclass
class _Span:
    """Seconds between first and last event, summed over sessions."""

    total: float = 0.0
    first: float | None = None
    last: float = 0.0

    def see(self, time: float) -> None:
        if self.first is None:
            self.first = self.last = time
        self.last = max(self.last, time)  # a clock that was set back does not take time away

    def close(self) -> None:
        if self.first is not None:
            self.total += self.last - self.first
        self.first = None

    @property
    def seconds(self) -> float:
        return self.total + (self.last - self.first if self.first is not None else 0.0)


@dataclass
class ProblemFold:
    """One problem's events."""

    samples: dict[tuple[int, int], SampleFold] = field(default_factory=dict)  #: by (attempt, sample)
    advice: dict[tuple[int, int], AdviceReceived] = field(default_factory=dict)  #: by (attempt, call)
    #: by (attempt, what, choice); a resumed run says again what it decided before
    decisions: dict[tuple[int, str, str], Decided] = field(default_factory=dict)
    prompts: dict[int, PromptRendered] = field(default_factory=dict)  #: by attempt
    #: by attempt, the sample that its prompt tells of. An older run does not say: there it is the best sample of the
    #: attempt before, as it was when the prompt was made. Attempts of which neither is known are left out.
    parents: dict[int, SampleKey] = field(default_factory=dict)
    best: dict[int, SampleKey] = field(default_factory=dict)  #: by closed attempt, its best sample
    started: bool = False
    closed: bool = False
    error: str | None = None
    span: _Span | None = None

    @property
    def seconds(self) -> float | None:
        return None if self.span is None else self.span.seconds


@dataclass
class JournalFold:
    """The whole journal, folded."""

    sessions: int = 0
    machine_failures: list[MachineFailed] = field(default_factory=list)
    closed: RunClosed | None = None  #: how the last session ended; `None`: it runs, or it was killed
    _problems: dict[str, ProblemFold] = field(default_factory=dict)
    _span: _Span | None = None

    @property
    def seconds(self) -> float | None:
        """Wall time of all sessions; `None` for an empty journal."""
        return None if self._span is None else self._span.seconds

    def problem_names(self) -> Iterable[str]:
        return tuple(self._problems)

    def problem(self, name: str) -> ProblemFold:
        """The events of a problem; empty when there are none."""
        return self._problems.get(name, ProblemFold())

    def apply(self, event: AnyEvent) -> None:
        """Take the next event."""
        if isinstance(event, RunStarted):
            self._new_session()
        self._span = self._span or _Span()
        self._span.see(event.time)
        if isinstance(event, RunClosed):
            self.closed = event
        elif not isinstance(event, RunStarted):
            self._apply_to_problem(event)

    def _new_session(self) -> None:
        self.sessions += 1
        self.closed = None
        for span in (self._span, *(problem.span for problem in self._problems.values())):
            if span is not None:
                span.close()

    def _apply_to_problem(self, event: AnyEvent) -> None:
        key = getattr(event, "key", None)
        name = getattr(key or event, "problem", None)
        if not isinstance(name, str):
            return
        problem = self._problems.setdefault(name, ProblemFold())
        problem.span = problem.span or _Span()
        problem.span.see(event.time)
        sample = None
        if isinstance(key, SampleKey):
            sample = problem.samples.setdefault((key.attempt, key.sample), SampleFold())
        match event:
            case ProblemStarted():
                problem.started, problem.closed, problem.error = True, False, None
            case ProblemClosed():
                problem.closed, problem.error = True, event.error
            case GenerationFailed() | AdviceFailed() | EvaluationFailed():
                self.machine_failures.append(event)
            case PromptRendered():
                problem.prompts[event.attempt] = event
                parent = event.parent or problem.best.get(event.attempt - 1)
                if parent is not None:
                    problem.parents[event.attempt] = parent
            case AttemptClosed() if event.best_sample is not None:
                best = SampleKey(problem=event.problem, attempt=event.attempt, sample=event.best_sample)
                problem.best[event.attempt] = best
            case AdviceReceived():
                problem.advice[event.key.attempt, event.key.call] = event
            case Decided():
                problem.decisions[event.attempt, event.what, event.choice] = event
            case ReplyReceived() if sample is not None:
                sample.reply = event
            case VerdictReached() if sample is not None:
                sample.verdict = event
            case _:
                pass


def folded(events: Iterable[AnyEvent]) -> JournalFold:
    """All of `events`, in order."""
    journal = JournalFold()
    for event in events:
        journal.apply(event)
    return journal
