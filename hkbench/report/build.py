"""From a run folder's view to the reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hkbench.headline import is_timed, own_kernels, sentence, title
from hkbench.records import (
    BaselineName,
    BoundQuality,
    Decided,
    Interval,
    Outcome,
    Ownership,
    RuleSet,
    RunFacts,
    SampleKey,
    Shapes,
    best_of,
    problem_outcome,
    speedup_of,
)
from hkbench.report import aggregate
from hkbench.report.budget import budget_of
from hkbench.report.cards import cards_of
from hkbench.report.definitions import DEFINITIONS
from hkbench.report.disagreements import disagreements
from hkbench.report.experience import experience_of, experience_sentence
from hkbench.report.model import (
    FAST_P,
    AdviceReport,
    AttemptGain,
    AttemptReport,
    DamageReport,
    DecisionReport,
    Estimate,
    FailedShape,
    Headline,
    Overall,
    OwnKernels,
    PassAtK,
    Place,
    ProblemReport,
    ProblemState,
    Report,
    SampleReport,
    ShapesReport,
    Summary,
    SummaryRow,
)
from hkbench.report.search import gain_of, way_to_best
from hkbench.stats import bootstrap_interval, fast_p, geometric_mean, pass_at_k
from hkbench.store.reader import AdviceView, ProblemView, RunView, SampleView
from hkbench.store.sanitize import strip_escapes

_SAID = 4000  # characters of a field of the judge's advice; advice.json has the whole of it


def detail(run: RunView) -> Report:
    """Return the detailed report: a pure function of the folder, so the same folder gives the same bytes."""
    because = _incomplete_because(run)
    overall = _overall(run)
    return Report(
        title=title(run.config, run.facts),
        headline=_headline_sentences(run, overall.outcomes),
        track=run.config.evaluation.track,
        device_name=run.facts.device.name if run.facts.device is not None else run.facts.hardware.get("device"),
        complete=because is None,
        incomplete_because=because,
        config=run.config,
        facts=run.facts,
        overall=overall,
        problems=tuple(_problem(run, problem) for problem in run.problems),
        disagreements=disagreements(run),
        damage=tuple(DamageReport(file=d.file, line=d.line, message=d.message) for d in run.corrupt),
        experience=experience_of(run),
        cards=cards_of(run),
        definitions=DEFINITIONS,
    )


def _headline_sentences(run: RunView, outcomes: dict[Outcome, int]) -> tuple[str, ...]:
    best = [(sample.ownership, sample.language) for sample in _faster(run.problems)]
    said = own_kernels(best, run.config.backend)
    recalled = experience_sentence(experience_of(run))
    return (sentence(outcomes), *([said] if said is not None else []), *_other_rules(run), *recalled)


def _other_rules(run: RunView) -> tuple[str, ...]:
    """Say, of a run by other rules than hkbench's, of how many problems those would refuse the best sample."""
    if run.config.evaluation.rules is RuleSet.HKBENCH:
        return ()
    best = _best_samples(problem.samples for problem in run.problems)
    refused = sum(bool(sample.would_fail) for sample in best)
    return (f"Judged by KernelBench's rules; hkbench's would refuse the best of {refused} of {len(best)} correct.",)


def _faster(problems: Iterable[ProblemView]) -> list[SampleView]:
    """Return the best samples of the problems that are faster."""
    return [best for best in _best_samples(problem.samples for problem in problems) if best.outcome is Outcome.FASTER]


def summary_of(report: Report) -> Summary:
    """Return the short report, a row a problem."""
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
    closed = run.state.closed
    if closed is not None:
        if closed.complete:
            return None
        return aggregate.message_of(closed.reason) if closed.reason else "the run ended before its plan did"
    open_ = sum(not problem.closed for problem in run.problems)
    if open_:
        return f"{open_} of {len(run.problems)} problems are unfinished (run still active or interrupted)"
    failed = sum(problem.error is not None for problem in run.problems)
    if failed:
        return f"{failed} of {len(run.problems)} problems were ended by the machine or the service"
    return None


def _problem(run: RunView, problem: ProblemView) -> ProblemReport:
    samples = problem.samples
    judged = [sample for sample in samples if sample.judged]
    best = best_of(samples)
    failure = aggregate.furthest_failure(samples) if best is None else None
    way = way_to_best(problem)
    attempts = tuple(
        _attempt(problem, attempt, way, run.config.strategy.stepwise) for attempt in range(1, len(problem.attempts) + 1)
    )
    return ProblemReport(
        problem=problem.name,
        state=_state(problem),
        outcome=problem_outcome(samples),
        error=aggregate.message_of(problem.error) if problem.error is not None else None,
        judged=len(judged),
        compiled=sum(one.compiled for one in samples),
        correct_samples=sum(one.correct for one in samples),
        refused_samples=sum(one.refused for one in samples),
        weak=_weak(run).get(problem.name),
        correct=best is not None,
        solved=any(one.solved for one in samples),
        solved_at_attempt=next((a.attempt for a in attempts if a.solved_so_far), None),
        best_attempt=best.key.attempt if best is not None else None,
        best_sample=best.key.sample if best is not None else None,
        best_over_baselines={} if best is None else {name: Estimate.of(found) for name, found in best.over.items()},
        best_sol=best.sol if best is not None else None,
        best_speedup=estimate(best.speedup) if best is not None else None,
        baseline_seconds=best.baseline if best is not None else None,
        candidate_seconds=best.candidate if best is not None else None,
        own=best.own if best is not None else None,
        ownership=best.ownership if best is not None else None,
        language=best.language if best is not None else None,
        failed_stage=failure.stage if failure is not None else None,
        failed_kind=failure.kind if failure is not None else None,
        fast_p=_fast_p([best] if best is not None else [], 1) if judged and is_timed(run.config) else None,
        pass_at_k=_pass_at_k(run, [problem]),
        attempts=attempts,
        model_failures=aggregate.model_failures(samples),
        tokens=aggregate.tokens(problem.calls),
        cost=aggregate.cost(problem.calls, run.facts),
        calls=aggregate.calls(
            problem.calls, [event for event in run.state.machine_failures if event.key.problem == problem.name]
        ),
        wall_seconds=aggregate.seconds([problem.seconds]),
        generation_seconds=aggregate.seconds(call.generation_seconds for call in problem.calls),
        evaluation_seconds=aggregate.seconds(sample.evaluation_seconds for sample in samples),
        samples=tuple(_sample(sample, run.facts) for sample in samples),
        decisions=tuple(map(_decision, problem.decisions)),
        advice=tuple(advice_report(advice, run.facts) for advice in problem.advice),
    )


def _state(problem: ProblemView) -> ProblemState:
    if problem.closed and problem.error is None:
        return ProblemState.FINISHED
    return ProblemState.UNFINISHED if problem.started else ProblemState.NOT_STARTED


def _decision(found: Decided) -> DecisionReport:
    what, choice, why = (aggregate.message_of(text) for text in (found.what, found.choice, found.why))
    return DecisionReport(attempt=found.attempt, what=what, choice=choice, why=why)


def advice_report(advice: AdviceView, facts: RunFacts | None = None) -> AdviceReport:
    """Return an answer on a kernel; its cost where `facts` have a price."""
    said = advice.said
    return AdviceReport(
        attempt=advice.key.attempt,
        call=advice.key.call,
        role=advice.key.role,
        kind=advice.kind,
        about=place(advice.about),
        form=advice.form,
        note=aggregate.message_of(advice.note) if advice.note is not None else None,
        said={name: strip_escapes(text)[:_SAID] for name, text in said.items()} if said is not None else None,
        model=advice.model,
        tokens=advice.usage,
        cost=aggregate.cost_of_call(advice, facts) if facts is not None else None,
        seconds=aggregate.seconds([advice.generation_seconds]),
        tries=advice.tries or 1,
        replayed=bool(advice.replayed),
        finish_reason=advice.finish_reason,
    )


def place(key: SampleKey | None) -> Place | None:
    return Place(attempt=key.attempt, sample=key.sample) if key is not None else None


def _sample(sample: SampleView, facts: RunFacts) -> SampleReport:
    failure = sample.failure
    return SampleReport(
        attempt=sample.key.attempt,
        sample=sample.key.sample,
        outcome=sample.outcome,
        status=sample.status,
        stage=failure.stage if failure is not None else None,
        kind=failure.kind if failure is not None else None,
        message=aggregate.message_of(failure.message) if failure is not None else None,
        language=sample.language,
        own=sample.own,
        ownership=sample.ownership,
        would_fail=sample.would_fail,
        speedup=estimate(sample.speedup),
        over_baselines={name: Estimate.of(found) for name, found in sample.over.items()},
        sol=sample.sol,
        baseline_seconds=sample.baseline,
        candidate_seconds=sample.candidate,
        replayed=sample.replayed,
        finish_reason=sample.finish_reason,
        tokens=sample.usage,
        cost=aggregate.cost_of_call(sample, facts),
        generation_seconds=aggregate.seconds([sample.generation_seconds]),
        evaluation_seconds=aggregate.seconds([sample.evaluation_seconds]),
        warnings=tuple(map(aggregate.message_of, sample.warnings)),
        copy_of=place(sample.copy_of),
        shapes=None if sample.shapes is None else _shapes(sample.shapes),
    )


def _shapes(shapes: Shapes) -> ShapesReport:
    failed = [
        FailedShape(constants=one.constants, visible=one.visible, kind=one.failure.kind)
        for one in shapes.failed
        if one.failure is not None
    ]
    return ShapesReport(checked=len(shapes.results), right=shapes.right, failed=tuple(failed))


def _attempt(problem: ProblemView, attempt: int, way: Sequence[int], stepwise: bool) -> AttemptReport:
    these = problem.attempts[attempt - 1]
    so_far = _until(problem, attempt)
    best = best_of(so_far)
    return AttemptReport(
        attempt=attempt,
        parent=place(problem.parents.get(attempt)),
        step=aggregate.step_of(problem, attempt) if stepwise or attempt in problem.steps else None,
        judged=sum(one.judged for one in these),
        correct=sum(one.correct for one in these),
        fast=sum(one.solved for one in these),
        solved_so_far=any(one.solved for one in so_far),
        best_speedup_so_far=speedup_of(best),
        gain=gain_of(problem, attempt),
        led_to_best=attempt in way,
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
    failures = [event for event in run.state.machine_failures if event.key.problem in planned]
    cost = aggregate.cost(calls, run.facts)
    return Overall(
        **dict(whole),
        finished=sum(_state(problem) is ProblemState.FINISHED for problem in run.problems),
        correct_share=whole.correct / whole.judged if whole.judged else None,
        compiled=sum(any(one.compiled for one in problem.samples) for problem in run.problems),
        samples_judged=sum(one.judged for one in samples),
        samples_correct=sum(one.correct for one in samples),
        samples_refused=sum(one.refused for one in samples),
        samples_compiled=sum(one.compiled for one in samples),
        languages=aggregate.languages(samples),
        weak_problems=weak_names,
        not_audited=tuple(problem.name for problem in run.problems if problem.name not in weak),
        without_weak=_headline(run, [p for p in run.problems if p.name not in weak_names]) if weak_names else None,
        attempts=_gains(run.problems),
        model_failures=aggregate.model_failures(samples),
        machine_failures=aggregate.machine_failures(failures, run.problems),
        tokens=aggregate.tokens(calls),
        cost=cost,
        cost_per_solved=aggregate.cost_per_solved(cost, whole.solved),
        calls=aggregate.calls(calls, failures),
        roles=aggregate.roles(calls, failures, run.facts),
        budget=budget_of(run) if run.config.categories_sha256 is not None else None,
        sessions=run.state.sessions,
        wall_seconds=aggregate.seconds([run.state.seconds]),
        generation_seconds=aggregate.seconds(call.generation_seconds for call in calls),
        evaluation_seconds=aggregate.seconds(sample.evaluation_seconds for sample in samples),
    )


def _weak(run: RunView) -> dict[str, tuple[str, ...]]:
    """Return what the run recorded of its audited problems; nothing in a folder from before there were audits."""
    return run.facts.weak or {}


def _headline(run: RunView, problems: Sequence[ProblemView]) -> Headline:
    judged = [problem for problem in problems if _is_judged(problem)]
    best = _best_samples(problem.samples for problem in judged)
    speedups = _speedups(best)
    return Headline(
        problems=len(problems),
        judged=len(judged),
        outcomes=_outcomes(problems),
        own_kernels=_own_kernels(_faster(judged)),
        correct=len(best),
        solved=sum(any(one.solved for one in problem.samples) for problem in judged),
        fast_p=_fast_p(best, len(judged)) if judged and is_timed(run.config) else None,
        fast_p_over_best=_fast_p_over_best(best, len(judged)),
        over_baselines=_over_baselines(best),
        sol=_mean_speedup([sample.sol.fraction for sample in best if sample.sol is not None]),
        sol_bounds=_sol_bounds(best),
        pass_at_k=_pass_at_k(run, problems),
        geometric_mean_speedup=_mean_speedup(speedups),
        geometric_mean_speedup_all=_mean_speedup([max(1.0, x) for x in speedups] + [1.0] * (len(judged) - len(best)))
        if is_timed(run.config)
        else None,
    )


def _outcomes(problems: Iterable[ProblemView]) -> dict[Outcome, int]:
    found = [problem_outcome(problem.samples) for problem in problems]
    return {outcome: found.count(outcome) for outcome in Outcome}


def _own_kernels(faster: Sequence[SampleView]) -> OwnKernels:
    whose = [sample.ownership for sample in faster]
    return OwnKernels(
        faster=len(faster),
        own=whose.count(Ownership.OWN),
        not_established=whose.count(Ownership.NOT_ESTABLISHED),
        not_profiled=whose.count(None),
        languages=aggregate.languages(faster),
    )


def _is_judged(problem: ProblemView) -> bool:
    """Return whether a sample is judged and none was only compiled: nobody knows whether such a one is correct."""
    return any(one.judged for one in problem.samples) and not any(one.compiled for one in problem.samples)


def _best_samples(problems: Iterable[Iterable[SampleView]]) -> list[SampleView]:
    return [sample for sample in map(best_of, problems) if sample is not None]


def _speedups(samples: Iterable[SampleView]) -> list[float]:
    return [sample.speedup.value for sample in samples if sample.speedup is not None]


def _fast_p(best: Sequence[SampleView], total: int) -> dict[str, float]:
    speedups = _speedups(best)
    return {f"{p:g}": fast_p(speedups, total, p) for p in FAST_P}


def _fast_p_over_best(best: Sequence[SampleView], total: int) -> dict[str, float] | None:
    """Return fast_p over each problem's fastest baseline; `None` where a sample was timed against eager alone."""
    speedups = [sample.over_best.value for sample in best if sample.over_best is not None]
    if not best or len(speedups) < len(best):
        return None
    return {f"{p:g}": fast_p(speedups, total, p) for p in FAST_P}


def _over_baselines(best: Sequence[SampleView]) -> dict[BaselineName, Estimate]:
    found = {name: [s.over[name].value for s in best if name in s.over] for name in BaselineName}
    means = {name: _mean_speedup(values) for name, values in found.items() if values}
    return {name: mean for name, mean in means.items() if mean is not None}


def _sol_bounds(best: Sequence[SampleView]) -> dict[BoundQuality, int]:
    bounds = [sample.sol.bound for sample in best if sample.sol is not None]
    return {bound: bounds.count(bound) for bound in BoundQuality if bound in bounds}


def _pass_at_k(run: RunView, problems: Sequence[ProblemView]) -> tuple[PassAtK, ...]:
    counts = []  # (n, c) of each problem
    for problem in problems if run.config.compiled_for is None else ():
        first = [s for s in problem.attempts[0] if s.judged] if problem.attempts else []
        counts.append((len(first), sum(s.correct for s in first)))
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
        best = _best_samples(so_far)
        speedups = _speedups(best)
        solved = sum(any(one.solved for one in samples) for samples in so_far)
        tried = [p.attempts[attempt - 1] for p in problems if len(p.attempts) >= attempt]
        rows.append(
            AttemptGain(
                attempt=attempt,
                problems_tried=sum(any(one.judged for one in samples) for samples in tried),
                solved=solved,
                newly_solved=solved - (rows[-1].solved if rows else 0),
                correct=len(best),
                geometric_mean_speedup=geometric_mean(speedups) if speedups else None,
            )
        )
    return tuple(rows)


def estimate(interval: Interval | None) -> Estimate | None:
    return Estimate.of(interval) if interval is not None else None
