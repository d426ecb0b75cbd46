"""An event in one line of English, safe for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from hkbench.headline import card_lines, plural
from hkbench.monitor.format import duration
from hkbench.records import (
    AdviceAsked,
    AdviceFailed,
    AdviceKey,
    AdviceReceived,
    AnswerForm,
    AnyEvent,
    AttemptClosed,
    CallKey,
    CallRetried,
    CandidateExtracted,
    CardFailed,
    CardJoined,
    CardsChecked,
    Decided,
    EvaluationFailed,
    ExperienceRecalled,
    GenerationFailed,
    GenerationStarted,
    ProblemClosed,
    ProblemStarted,
    PromptRendered,
    ReplyReceived,
    RunClosed,
    RunStarted,
    RunStopping,
    SampleKey,
    StageEntered,
    VerdictReached,
    outcome_of,
)
from hkbench.store.figures import speedup, speedup_interval
from hkbench.store.sanitize import one_line

_DETAILS = frozenset({"branch", "hint"})  #: decisions of which there are several an attempt
_MESSAGE = 200  # characters of a message
_FAILURE = 700  # of what the service or the machine failed at: the advice stands at its end


def matters(event: AnyEvent) -> bool:
    """Return whether someone who waits for the run wants to know: results, failures, beginnings and ends."""
    return isinstance(
        event,
        RunStarted
        | ProblemStarted
        | GenerationFailed
        | AdviceFailed
        | VerdictReached
        | EvaluationFailed
        | ProblemClosed
        | RunStopping
        | RunClosed,
    ) or (
        (isinstance(event, PromptRendered) and bool(event.metrics))
        or (isinstance(event, ExperienceRecalled) and event.found)
        or (isinstance(event, Decided) and event.what not in _DETAILS)
    )


def describe(event: AnyEvent) -> str:
    """Return text such as `4_RMSNorm attempt 1 sample 2: wrong, build_error (12.3 s)`."""
    key = getattr(event, "key", None)
    if isinstance(event, CallRetried):
        return f"{_call(event.key)}: {trouble(event)}"
    if isinstance(key, SampleKey):
        return f"{_call(key)}: {_of_sample(event)}"
    if isinstance(key, AdviceKey):
        return f"{_call(key)}: {_of_judge(event)}"
    match event:
        case Decided(what="stage") if event.place is not None:
            stage = f"[Stage {event.place}/{event.places}] {_name(event.choice)}"
            return f"{_name(event.problem)} attempt {event.attempt}: {stage}, {one_line(event.why, _MESSAGE)}"
        case Decided(what="result"):
            return f"{_name(event.problem)} attempt {event.attempt}: {_name(event.why)}"
        case Decided():
            why = one_line(event.why, _MESSAGE)
            return f"{_name(event.problem)} attempt {event.attempt}: {_name(event.what)} {_name(event.choice)} ({why})"
        case RunStarted():
            return "the run resumes" if event.resumed else "the run begins"
        case CardJoined():
            return f"{_name(event.place.name)} takes part"
        case CardFailed():
            became = "is left out" if event.left_out else "failed, and its work goes elsewhere"
            return f"{_name(event.place.name)} {became}: {one_line(event.message, _MESSAGE)}"
        case CardsChecked():
            return one_line("; ".join(card_lines(event)), _FAILURE)
        case ProblemStarted():
            return f"{_name(event.problem)}: begun, preparing its prompt"
        case PromptRendered() if event.metrics:
            shown = one_line("; ".join(event.metrics), 2 * _MESSAGE)
            metrics = f"extracted {plural(_count(event.metrics), 'key metric')}: {shown}"
            return f"{_name(event.problem)} attempt {event.attempt}: {metrics}"
        case PromptRendered():
            return f"{_name(event.problem)} attempt {event.attempt}: prompt from {_name(event.template)}"
        case ExperienceRecalled():
            return f"{_name(event.problem)}: {_recalled(event)}"
        case AttemptClosed():
            best = f"best is sample {event.best_sample}" if event.best_sample is not None else "no sample"
            ratio = f", {speedup(event.speedup)}" if event.speedup is not None else ""
            status = f", {event.status}" if event.status is not None else ""
            return f"{_name(event.problem)} attempt {event.attempt}: closed, {best}{status}{ratio}"
        case ProblemClosed():
            category = f" ({_name(event.category)})" if event.category is not None else ""
            return f"{_name(event.problem)}{category}: {_end_of_problem(event)}"
        case RunStopping():
            return f"stopping: {one_line(event.reason, _MESSAGE)}"
        case RunClosed():
            if event.complete:
                return "the run is complete"
            return "the run stopped" + (f": {one_line(event.reason, _FAILURE)}" if event.reason else "")
        case _:
            return event.event


def _recalled(event: ExperienceRecalled) -> str:
    if event.kernel is not None:
        return f"recalled a kernel: {_name(event.kernel.source.described)}"
    if event.remedies:
        return f"recalled {plural(len(event.remedies), 'remedy', 'remedies')} for {event.about}"
    if event.pitfalls:
        return f"recalled {plural(len(event.pitfalls), 'pitfall')}"
    return f"recalled {plural(len(event.moves), 'move')}" if event.moves else f"recalled nothing ({event.what})"


def failure(event: AnyEvent) -> str | None:
    """Return what the service or the machine failed at, in the words that all events share; None for other events."""
    match event:
        case GenerationFailed() | AdviceFailed() | EvaluationFailed():
            return event.message
        case ProblemClosed() if event.error is not None:
            return event.error.partition(": ")[2]
        case RunClosed() if not event.complete:
            return event.reason
        case _:
            return None


def trouble(event: CallRetried) -> str:
    """Return text such as `no answer (HTTP 503: busy): trying again in 8 s (try 3, for up to 30 min)`."""
    until = f"of up to {event.max_tries}" if event.limit is None else f"for up to {duration(event.limit)}"
    what = "no usable answer" if event.limit is None else "no answer"
    cause = one_line(event.cause, _MESSAGE)
    return f"{what} ({cause}): trying again in {duration(event.wait)} (try {event.tries + 1}, {until})"


def _call(key: CallKey) -> str:
    number = f"sample {key.sample}" if isinstance(key, SampleKey) else f"{_words(key.role)} {key.call}"
    return f"{_name(key.problem)} attempt {key.attempt} {number}"


def _of_sample(event: AnyEvent) -> str:
    match event:
        case GenerationStarted():
            return "model asked"
        case ReplyReceived():
            how = "replayed" if event.replayed else f"answered by {_name(event.model)}"
            tokens = f", {event.usage.output} tokens" if event.usage.output is not None else ""
            ended = f", ended by {_name(event.finish_reason)}" if event.finish_reason not in (None, "stop") else ""
            return f"{how}{tokens}{ended}{_seconds(event.seconds)}"
        case GenerationFailed():
            return f"model call failed, {_name(event.error)}: {one_line(event.message, _FAILURE)}"
        case CandidateExtracted():
            return "no code found" if event.sha256 is None else f"code found ({event.rule})"
        case StageEntered():
            return f"stage {event.stage}"
        case VerdictReached():
            return _verdict(event)
        case EvaluationFailed():
            return f"evaluation failed, {_name(event.error)}: {one_line(event.message, _FAILURE)}"
        case _:
            return event.event


def _verdict(event: VerdictReached) -> str:
    """Return text such as `faster 1.52x [1.48, 1.55] (12.3 s)` or `slower 0.84x, same code as 2.1`."""
    word = outcome_of(event.status, event.speedup, event.low, event.high, unsettled=event.unsettled).label
    ratio = f" {speedup_interval(event.speedup, event.low, event.high)}" if event.speedup is not None else ""
    kind = f", {event.kind}" if event.kind is not None else ""
    if event.copy_of is not None:
        return f"{word}{ratio}{kind}, same code as {event.copy_of.attempt}.{event.copy_of.sample}"
    return f"{word}{ratio}{kind}{_seconds(event.seconds)}"


def _count(lines: Iterable[str]) -> int:
    """Return the figures in lines of key metrics, each with a kernel's name in backticks before them."""
    return sum(line.rpartition("`")[2].count(", ") + 1 for line in lines)


def _of_judge(event: AnyEvent) -> str:
    match event:
        case AdviceAsked():
            return f"asked to {_words(event.kind)} {event.about.attempt}.{event.about.sample}"
        case AdviceReceived():
            how = "replayed" if event.replayed else f"answered by {_name(event.model)}"
            if event.form is AnswerForm.UNUSABLE:
                how += f", unusable: {one_line(event.note or '', _MESSAGE)}"
            return f"{how}{_seconds(event.seconds)}"
        case AdviceFailed():
            return f"model call failed, {_name(event.error)}: {one_line(event.message, _FAILURE)}"
        case _:
            return event.event


def _end_of_problem(event: ProblemClosed) -> str:
    if event.error is not None:
        return f"ended early: {one_line(event.error, _FAILURE)}"
    if event.compiled:
        return "compiled, not measured"
    word = "solved" if event.solved else "not solved"
    return word if event.speedup is None else f"{word}, best {speedup(event.speedup)}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _name(text: str) -> str:
    return one_line(text, 100)


def _seconds(value: float | None) -> str:
    return "" if value is None else f" ({value:.1f} s)"
