"""From a run folder's view to the reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hkbench.headline import own_kernels, sentence, title
from hkbench.records import Decided, Interval, MachineFailed, Outcome, Ownership, RunFacts, SampleKey, Usage
from hkbench.report import tally
from hkbench.report.budget import budget_of
from hkbench.report.disagreements import disagreements
from hkbench.report.model import (
    DEFINITIONS,
    FAST_P,
    AdviceReport,
    AttemptGain,
    AttemptReport,
    DamageReport,
    DecisionReport,
    Estimate,
    Headline,
    Overall,
    OwnKernels,
    PassAtK,
    Place,
    ProblemReport,
    ProblemState,
    Report,
    SampleReport,
    Summary,
    SummaryRow,
)
from hkbench.stats import bootstrap_interval, fast_p, geometric_mean, pass_at_k
from hkbench.store.plain import strip_escapes
from hkbench.store.reader import AdviceView, ProblemView, RunView, SampleView

_SAID = 4000  # characters of a field of the judge's advice; advice.json has the whole of it


def detail(run: RunView) -> Report:
    """The detailed report: a pure function of the folder, so the same folder gives the same bytes."""
    because = _incomplete_because(run)
    overall = _overall(run)
    return Report(
        title=title(run.config, run.facts),
        headline=_headline_sentences(run, overall.outcomes),
        track=run.config.judge.track,
        device_name=run.facts.device.name if run.facts.device is not None else run.facts.hardware.get("device"),
        complete=because is None,
        incomplete_because=because,
        config=run.config,
        facts=run.facts,
        overall=overall,
        problems=tuple(_problem(run, problem) for problem in run.problems),
        disagreements=disagreements(run),
        damage=tuple(DamageReport(file=d.file, line=d.line, message=d.message) for d in run.damage),
        definitions=DEFINITIONS,
    )


def _headline_sentences(run: RunView, outcomes: dict[Outcome, int]) -> tuple[str, ...]:
    best = [(tally.ownership_of(sample), tally.language_of(sample)) for sample in _faster(run.problems)]
    said = own_kernels(best, run.config.backend)
    return (sentence(outcomes), *([said] if said is not None else []))


def _faster(problems: Iterable[ProblemView]) -> list[SampleView]:
    """The best samples of the problems that are faster."""
    return [best for best in _best_samples(problems) if tally.outcome(best) is Outcome.FASTER]


def summarise(run: RunView) -> Summary:
    """The short report, a row a problem."""
    return summary_of(detail(run))


def summary_of(report: Report) -> Summary:
    return Summary(
        complete=report.complete,
        incomplete_because=report.incomplete_because,
        started=report.facts.started,
        model=report.config.model,
        backend=report.config.backend,
        device=report.config.device,
        sizes=report.config.sizes,
        overall=report.overall,
        problems=tuple(map(_row, report.problems)),
    )


def _row(problem: ProblemReport) -> SummaryRow:
    best = problem.best_speedup
    return SummaryRow(
        problem=problem.problem,
        state=problem.state,
        outcome=problem.outcome,
        solved=problem.solved,
        correct=problem.correct,
        best_speedup=best.value if best else None,
        best_speedup_low=best.low if best else None,
        best_speedup_high=best.high if best else None,
        best_attempt=problem.best_attempt,
        best_sample=problem.best_sample,
        own=problem.own,
        language=problem.language,
        failed_kind=problem.failed_kind,
        solved_at_attempt=problem.solved_at_attempt,
        attempts=len(problem.attempts),
        samples_judged=problem.judged,
        samples_correct=problem.correct_samples,
        samples_refused=problem.refused_samples,
        samples_compiled=problem.compiled,
        weak=bool(problem.weak) if problem.weak is not None else None,
        calls_made=problem.calls.made,
        calls_replayed=problem.calls.replayed,
        tokens_input=problem.tokens.input.total,
        tokens_output=problem.tokens.output.total,
        tokens_reasoning=problem.tokens.reasoning.total,
        tokens_cached_input=problem.tokens.cached_input.total,
        cost=problem.cost.total,
        unpriced_replies=problem.cost.unpriced_replies,
        currency=problem.cost.currency,
        wall_seconds=problem.wall_seconds,
        error=problem.error,
    )


def _incomplete_because(run: RunView) -> str | None:
    closed = run.journal.closed
    if closed is not None:
        if closed.complete:
            return None
        return tally.message_of(closed.reason) if closed.reason else "the run ended before its plan did"
    open_ = sum(not problem.closed for problem in run.problems)
    if open_:
        return f"{open_} of {len(run.problems)} problems are unfinished (run still active or interrupted)"
    failed = sum(problem.error is not None for problem in run.problems)
    if failed:
        return f"{failed} of {len(run.problems)} problems were ended by the machine or the service"
    return None


def _problem(run: RunView, problem: ProblemView) -> ProblemReport:
    samples = problem.samples
    judged = [sample for sample in samples if tally.is_judged(sample)]
    best = tally.best_of(samples)
    verdict = best.verdict if best is not None else None
    failure = tally.furthest_failure(samples) if best is None else None
    attempts = tuple(_attempt(problem, attempt) for attempt in range(1, len(problem.attempts) + 1))
    return ProblemReport(
        problem=problem.name,
        state=_state(problem),
        outcome=tally.outcome_of_all(samples),
        error=tally.message_of(problem.error) if problem.error is not None else None,
        judged=len(judged),
        compiled=sum(map(tally.is_compiled, samples)),
        correct_samples=sum(map(tally.is_correct, samples)),
        refused_samples=sum(map(tally.is_refused, samples)),
        weak=_weak(run).get(problem.name),
        correct=best is not None,
        solved=any(map(tally.is_fast, samples)),
        solved_at_attempt=next((a.attempt for a in attempts if a.solved_so_far), None),
        best_attempt=best.key.attempt if best is not None else None,
        best_sample=best.key.sample if best is not None else None,
        best_speedup=estimate(verdict.speedup) if verdict is not None else None,
        baseline_seconds=_value(verdict.baseline) if verdict is not None else None,
        candidate_seconds=_value(verdict.candidate) if verdict is not None else None,
        own=verdict.own if verdict is not None else None,
        ownership=tally.ownership_of(best) if best is not None else None,
        language=verdict.language if verdict is not None else None,
        failed_stage=failure.stage if failure is not None else None,
        failed_kind=failure.kind if failure is not None else None,
        fast_p=_fast_p([best] if best is not None else [], 1) if judged and measured(run) else None,
        pass_at_k=_pass_at_k(run, [problem]),
        attempts=attempts,
        model_failures=tally.model_failures(samples),
        tokens=tally.tokens(problem.calls),
        cost=tally.cost(problem.calls, run.facts),
        calls=tally.calls(problem.calls, _failures_of(run, problem.name)),
        wall_seconds=tally.seconds([problem.seconds]),
        generation_seconds=tally.seconds(call.generation_seconds for call in problem.calls),
        evaluation_seconds=tally.seconds(sample.evaluation_seconds for sample in samples),
        samples=tuple(_sample(sample, run.facts) for sample in samples),
        decisions=tuple(map(_decision, problem.decisions)),
        advice=tuple(advice_report(advice, run.facts) for advice in problem.advice),
    )


def _failures_of(run: RunView, problem: str) -> list[MachineFailed]:
    return [event for event in run.journal.machine_failures if event.key.problem == problem]


def _state(problem: ProblemView) -> ProblemState:
    if problem.closed and problem.error is None:
        return ProblemState.FINISHED
    return ProblemState.UNFINISHED if problem.started else ProblemState.NOT_STARTED


def _decision(found: Decided) -> DecisionReport:
    what, choice, why = (tally.message_of(text) for text in (found.what, found.choice, found.why))
    return DecisionReport(attempt=found.attempt, what=what, choice=choice, why=why)


def advice_report(advice: AdviceView, facts: RunFacts | None = None) -> AdviceReport:
    """An answer of the judge; its cost where `facts` have a price."""
    said = advice.said
    return AdviceReport(
        attempt=advice.key.attempt,
        call=advice.key.call,
        kind=advice.kind,
        about=place(advice.about),
        form=advice.form,
        note=tally.message_of(advice.note) if advice.note is not None else None,
        said={name: strip_escapes(text)[:_SAID] for name, text in said.items()} if said is not None else None,
        model=advice.model,
        tokens=advice.usage,
        cost=tally.cost_of_call(advice, facts) if facts is not None else None,
        seconds=tally.seconds([advice.generation_seconds]),
        tries=advice.tries,
        replayed=advice.replayed,
        finish_reason=advice.finish_reason,
    )


def place(key: SampleKey | None) -> Place | None:
    return Place(attempt=key.attempt, sample=key.sample) if key is not None else None


def _sample(sample: SampleView, facts: RunFacts) -> SampleReport:
    verdict = sample.verdict
    failure = verdict.failure if verdict is not None else None
    return SampleReport(
        attempt=sample.key.attempt,
        sample=sample.key.sample,
        outcome=tally.outcome(sample),
        status=verdict.status if verdict is not None else None,
        stage=failure.stage if failure is not None else None,
        kind=failure.kind if failure is not None else None,
        message=tally.message_of(failure.message) if failure is not None else None,
        language=tally.language_of(sample),
        own=tally.own_of(sample),
        ownership=tally.ownership_of(sample),
        speedup=estimate(verdict.speedup) if verdict is not None else None,
        baseline_seconds=_value(verdict.baseline) if verdict is not None else None,
        candidate_seconds=_value(verdict.candidate) if verdict is not None else None,
        replayed=sample.replayed,
        finish_reason=sample.finish_reason,
        tokens=sample.usage or Usage(),
        cost=tally.cost_of_call(sample, facts),
        generation_seconds=tally.seconds([sample.generation_seconds]),
        evaluation_seconds=tally.seconds([sample.evaluation_seconds]),
        warnings=tuple(map(tally.message_of, verdict.warnings)) if verdict is not None else (),
        copy_of=place(verdict.copy_of) if verdict is not None else None,
    )


def _attempt(problem: ProblemView, attempt: int) -> AttemptReport:
    these = problem.attempts[attempt - 1]
    so_far = _until(problem, attempt)
    best = tally.best_of(so_far)
    return AttemptReport(
        attempt=attempt,
        parent=place(problem.parents.get(attempt)),
        judged=sum(map(tally.is_judged, these)),
        correct=sum(map(tally.is_correct, these)),
        fast=sum(map(tally.is_fast, these)),
        solved_so_far=any(map(tally.is_fast, so_far)),
        best_speedup_so_far=tally.speedup_of(best) if best is not None else None,
    )


def _until(problem: ProblemView, attempt: int) -> list[SampleView]:
    return [sample for samples in problem.attempts[:attempt] for sample in samples]


def _overall(run: RunView) -> Overall:
    samples = [sample for problem in run.problems for sample in problem.samples]
    calls = [call for problem in run.problems for call in problem.calls]
    whole = _headline(run, run.problems)
    weak = _weak(run)
    weak_names = tuple(problem.name for problem in run.problems if weak.get(problem.name))
    planned = set(run.config.problems)
    failures = [event for event in run.journal.machine_failures if event.key.problem in planned]
    cost = tally.cost(calls, run.facts)
    return Overall(
        problems=whole.problems,
        finished=sum(_state(problem) is ProblemState.FINISHED for problem in run.problems),
        judged=whole.judged,
        outcomes=whole.outcomes,
        own_kernels=whole.own_kernels,
        correct=whole.correct,
        correct_share=whole.correct / whole.judged if whole.judged else None,
        solved=whole.solved,
        compiled=sum(any(map(tally.is_compiled, problem.samples)) for problem in run.problems),
        samples_judged=sum(map(tally.is_judged, samples)),
        samples_correct=sum(map(tally.is_correct, samples)),
        samples_refused=sum(map(tally.is_refused, samples)),
        samples_compiled=sum(map(tally.is_compiled, samples)),
        languages=tally.languages(samples),
        weak_problems=weak_names,
        not_audited=tuple(problem.name for problem in run.problems if problem.name not in weak),
        without_weak=_headline(run, [p for p in run.problems if p.name not in weak_names]) if weak_names else None,
        fast_p=whole.fast_p,
        pass_at_k=whole.pass_at_k,
        geometric_mean_speedup=whole.geometric_mean_speedup,
        geometric_mean_speedup_all=whole.geometric_mean_speedup_all,
        attempts=_gains(run.problems),
        model_failures=tally.model_failures(samples),
        machine_failures=tally.machine_failures(failures, run.problems),
        tokens=tally.tokens(calls),
        cost=cost,
        cost_per_solved=tally.cost_per_solved(cost, whole.solved),
        calls=tally.calls(calls, failures),
        roles=tally.roles(calls, failures, run.facts),
        budget=budget_of(run) if run.config.strategy == "staged" else None,
        sessions=run.journal.sessions,
        wall_seconds=tally.seconds([run.journal.seconds]),
        generation_seconds=tally.seconds(call.generation_seconds for call in calls),
        evaluation_seconds=tally.seconds(sample.evaluation_seconds for sample in samples),
    )


def _weak(run: RunView) -> dict[str, tuple[str, ...]]:
    """What the run recorded of its audited problems; nothing in a folder from before there were audits."""
    return run.facts.weak or {}


def _headline(run: RunView, problems: Sequence[ProblemView]) -> Headline:
    judged = [problem for problem in problems if _is_judged(problem)]
    best = _best_samples(judged)
    speedups = list(map(tally.speedup_of, best))
    return Headline(
        problems=len(problems),
        judged=len(judged),
        outcomes=_outcomes(problems),
        own_kernels=_own_kernels(_faster(judged)),
        correct=len(best),
        solved=sum(any(map(tally.is_fast, problem.samples)) for problem in judged),
        fast_p=_fast_p(best, len(judged)) if judged and measured(run) else None,
        pass_at_k=_pass_at_k(run, problems),
        geometric_mean_speedup=_mean_speedup(speedups),
        geometric_mean_speedup_all=_mean_speedup([max(1.0, x) for x in speedups] + [1.0] * (len(judged) - len(best)))
        if measured(run)
        else None,
    )


def _outcomes(problems: Iterable[ProblemView]) -> dict[Outcome, int]:
    found = [tally.outcome_of_all(problem.samples) for problem in problems]
    return {outcome: found.count(outcome) for outcome in Outcome}


def _own_kernels(faster: Sequence[SampleView]) -> OwnKernels:
    whose = list(map(tally.ownership_of, faster))
    return OwnKernels(
        faster=len(faster),
        own=whose.count(Ownership.OWN),
        not_established=whose.count(Ownership.NOT_ESTABLISHED),
        not_profiled=whose.count(None),
        languages=tally.languages(faster),
    )


def measured(run: RunView) -> bool:
    """Whether candidates were run: else nothing but a failure is known of any."""
    return run.config.compiled_for is None


def _is_judged(problem: ProblemView) -> bool:
    """One of which a kernel compiled, where nothing is run, is not: nobody knows whether that one is correct."""
    return any(map(tally.is_judged, problem.samples)) and not any(map(tally.is_compiled, problem.samples))


def _best_samples(problems: Iterable[ProblemView]) -> list[SampleView]:
    found = (tally.best_of(problem.samples) for problem in problems)
    return [sample for sample in found if sample is not None]


def _fast_p(best: Sequence[SampleView], total: int) -> dict[str, float]:
    speedups = list(map(tally.speedup_of, best))
    return {f"{p:g}": fast_p(speedups, total, p) for p in FAST_P}


def _pass_at_k(run: RunView, problems: Sequence[ProblemView]) -> tuple[PassAtK, ...]:
    counts = []  # (n, c) of each problem
    for problem in problems if measured(run) else ():
        first = [s for s in problem.attempts[0] if tally.is_judged(s)] if problem.attempts else []
        counts.append((len(first), sum(map(tally.is_correct, first))))
    rows = []
    for k in range(1, run.config.samples + 1):
        values = [pass_at_k(n, c, k) for n, c in counts if n >= k]
        rows.append(PassAtK(k=k, value=sum(values) / len(values) if values else None, problems=len(values)))
    return tuple(rows)


def _mean_speedup(speedups: Sequence[float]) -> Estimate | None:
    if not speedups:
        return None
    if len(speedups) == 1:  # a resample of one value is that value: no interval rather than one of no width
        return Estimate(value=speedups[0], low=None, high=None)
    return estimate(bootstrap_interval(speedups, geometric_mean))


def _gains(problems: Sequence[ProblemView]) -> tuple[AttemptGain, ...]:
    rows: list[AttemptGain] = []
    for attempt in range(1, max((len(problem.attempts) for problem in problems), default=0) + 1):
        so_far = [_until(problem, attempt) for problem in problems]
        speedups = [tally.speedup_of(b) for b in map(tally.best_of, so_far) if b is not None]
        solved = sum(any(map(tally.is_fast, samples)) for samples in so_far)
        tried = [p.attempts[attempt - 1] for p in problems if len(p.attempts) >= attempt]
        rows.append(
            AttemptGain(
                attempt=attempt,
                problems_tried=sum(any(map(tally.is_judged, samples)) for samples in tried),
                solved=solved,
                newly_solved=solved - (rows[-1].solved if rows else 0),
                correct=len(speedups),
                geometric_mean_speedup=geometric_mean(speedups) if speedups else None,
            )
        )
    return tuple(rows)


def estimate(interval: Interval | None) -> Estimate | None:
    if interval is None:
        return None
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def _value(interval: Interval | None) -> float | None:
    return interval.value if interval is not None else None
