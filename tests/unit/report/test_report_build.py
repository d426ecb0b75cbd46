from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.run_folder import PRICED, RunFolder, compiled, correct, incorrect, run_config, sample_run

from hkbench.records import (
    EvaluationFailed,
    Failure,
    FailureKind,
    GenerationFailed,
    KernelLanguage,
    SampleKey,
    Stage,
    Status,
    Usage,
)
from hkbench.report.build import detail
from hkbench.report.model import FailureCount, PassAtK, ProblemState, Report
from hkbench.report.text import render_text
from hkbench.store.reader import read_run


def report_of(run: RunFolder) -> Report:
    return detail(read_run(run.paths))


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return report_of(sample_run(tmp_path))


def test_counts(report: Report) -> None:
    overall = report.overall
    assert report.complete
    assert report.incomplete_because is None
    assert (overall.problems, overall.finished, overall.judged) == (4, 4, 4)
    assert (overall.solved, overall.correct, overall.correct_share) == (2, 3, 0.75)
    assert (overall.samples_judged, overall.samples_correct) == (14, 7)


def test_kernels_are_counted_by_what_they_are_written_in(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU",), samples=4).model_copy(update={"backend": "hipkittens"}))
    run.start()
    run.begin("1_ReLU")
    for sample, backend in enumerate(("hip", "hipkittens", "hip"), 1):
        language = KernelLanguage(backend=backend, reason="a reason", ran=True)
        run.sample("1_ReLU", 1, sample, correct("1_ReLU", 2.0).model_copy(update={"language": language}))
    run.sample("1_ReLU", 1, 4, incorrect("1_ReLU"))
    run.asked("1_ReLU", 2, 1)  # no verdict: counted nowhere
    report = report_of(run)
    found = [(one.language, one.count) for one in report.overall.languages]
    assert found == [("hip", 2), ("hipkittens", 1), (None, 1)]
    assert [sample.language for sample in report.problems[0].samples] == [
        "hip", "hipkittens", "hip", None, None,
    ]  # fmt: skip
    assert "Languages   asked for hipkittens; samples: 2 hip, 1 hipkittens, 1 not known" in render_text(report)


def test_fast_p_by_hand(report: Report) -> None:
    # best speed-ups 2.0, 1.25, 0.6 and one never correct
    assert report.overall.fast_p == {"0": 0.75, "0.5": 0.75, "0.8": 0.5, "1": 0.5, "1.5": 0.25, "2": 0.0}
    assert report.problems[1].fast_p == {"0": 1, "0.5": 1, "0.8": 1, "1": 1, "1.5": 0, "2": 0}


def test_overall_fast_p_is_the_mean_over_problems(report: Report) -> None:
    assert report.overall.fast_p is not None
    for p, share in report.overall.fast_p.items():
        values = [problem.fast_p[p] for problem in report.problems if problem.fast_p is not None]
        assert share == sum(values) / len(values)


def test_pass_at_k_uses_attempt_one_only(report: Report) -> None:
    # correct of two in attempt 1: 1, 0, 2, 0
    assert report.overall.pass_at_k == (
        PassAtK(k=1, value=(0.5 + 0 + 1 + 0) / 4, problems=4),
        PassAtK(k=2, value=(1 + 0 + 1 + 0) / 4, problems=4),
    )
    assert report.problems[1].pass_at_k[1].value == 0.0  # solved, but by attempt 2


def test_geometric_mean_of_the_best_kernels(report: Report) -> None:
    mean = report.overall.geometric_mean_speedup
    assert mean is not None
    assert mean.value == pytest.approx((2.0 * 1.25 * 0.6) ** (1 / 3))
    assert mean.low is not None
    assert mean.high is not None
    assert 0.6 - 1e-9 <= mean.low < mean.value < mean.high <= 2.0 + 1e-9


def test_what_each_attempt_gained(report: Report) -> None:
    one, two = report.overall.attempts
    assert (one.problems_tried, one.solved, one.newly_solved, one.correct) == (4, 1, 1, 2)
    assert one.geometric_mean_speedup == pytest.approx(math.sqrt(2.0 * 0.5))
    assert (two.problems_tried, two.solved, two.newly_solved, two.correct) == (3, 2, 1, 3)
    slow = report.problems[2].attempts
    assert [a.best_speedup_so_far for a in slow] == pytest.approx([0.5, 0.6])
    assert report.problems[1].solved_at_attempt == 2
    assert report.problems[2].solved_at_attempt is None


def test_failures_are_in_the_order_of_the_stages(report: Report) -> None:
    assert report.overall.model_failures == (
        FailureCount(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, count=2),
        FailureCount(stage=Stage.RUN, kind=FailureKind.CRASH, count=4),
        FailureCount(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, count=1),
    )
    assert report.overall.machine_failures == ()


def test_an_incorrect_sample_never_has_a_speedup(report: Report) -> None:
    samples = [sample for problem in report.problems for sample in problem.samples]
    failed = [sample for sample in samples if sample.kind is not None]
    assert len(failed) == 7
    assert all(sample.speedup is None and sample.candidate_seconds is None for sample in failed)
    assert report.problems[3].best_speedup is None
    assert report.problems[3].fast_p == dict.fromkeys(("0", "0.5", "0.8", "1", "1.5", "2"), 0.0)


def test_unknown_tokens_are_null_and_counted(report: Report) -> None:
    tokens = report.overall.tokens
    assert (tokens.output.total, tokens.output.unreported_replies) == (13 * 50, 1)
    assert (tokens.cached_input.total, tokens.cached_input.unreported_replies) == (None, 14)


def test_a_reported_zero_stays_zero(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"), Usage(cached_input=0))
    assert report_of(run).overall.tokens.cached_input.total == 0


def test_calls_and_times(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.begin("1_ReLU")
    run.answered(run.asked("1_ReLU", 1, 1), tries=3)
    run.answered(run.asked("1_ReLU", 1, 2), replayed=True)
    calls = report_of(run).overall.calls
    assert (calls.made, calls.replayed, calls.retries, calls.failed) == (1, 1, 2, 0)
    assert report_of(run).overall.generation_seconds == 5.0
    assert report_of(run).overall.evaluation_seconds is None


def test_failures_of_the_machine_are_apart_from_the_models(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.begin("1_ReLU")
    key = run.asked("1_ReLU", 1, 1)
    for message in ("503", "504 \x1b[2Jat the gateway"):
        run.emit(GenerationFailed(time=run.tick(), key=key, error="ModelUnavailable", message=message))
    other = SampleKey(problem="1_ReLU", attempt=1, sample=2)
    run.answered(other)
    run.emit(EvaluationFailed(time=run.tick(), key=other, error="DeviceUnavailable", message="gone"))
    run.end("1_ReLU", error="the device is gone")
    run.sample("2_Sum", 1, 1, incorrect("2_Sum"))
    run.end("2_Sum")
    run.close(complete=False, reason="1 problem was ended early")
    report = report_of(run)
    overall = report.overall
    assert [(f.step, f.error, f.count) for f in overall.machine_failures] == [
        ("generation", "ModelUnavailable", 2),
        ("evaluation", "DeviceUnavailable", 1),
        ("problem", "ended early", 1),
    ]
    assert overall.machine_failures[0].last_message == "504 at the gateway"
    assert [f.count for f in overall.model_failures] == [1]
    assert overall.calls.failed == 2
    assert overall.judged == 1  # the problem that the machine ended is in no share
    assert overall.fast_p is not None
    assert overall.fast_p["0"] == 0.0
    assert report.problems[0].state is ProblemState.UNFINISHED
    assert report.problems[0].fast_p is None
    assert report.incomplete_because == "1 problem was ended early"


def test_an_empty_run_is_incomplete_and_has_no_figures(tmp_path: Path) -> None:
    report = report_of(RunFolder(tmp_path))
    assert not report.complete
    assert report.overall.fast_p is None
    assert report.overall.geometric_mean_speedup is None
    assert [p.value for p in report.overall.pass_at_k] == [None, None]
    assert report.overall.tokens.input.total is None
    assert report.overall.wall_seconds is None
    assert report.overall.attempts == ()
    assert report.problems[0].state is ProblemState.NOT_STARTED


def test_a_killed_run_says_how_far_it_came(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.begin("1_ReLU")
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    run.end("1_ReLU", solved=True)
    run.begin("2_Sum")
    run.asked("2_Sum", 1, 1)
    report = report_of(run)
    assert report.incomplete_because is not None
    assert report.incomplete_because.startswith("1 of 2 problems are unfinished")
    assert [problem.state for problem in report.problems] == ["finished", "unfinished"]
    mean = report.overall.geometric_mean_speedup
    assert mean is not None
    assert (mean.value, mean.low, mean.high) == (2.0, None, None)  # one problem: no interval


def test_all_problems_finished_is_complete_before_the_run_is_closed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.begin("1_ReLU")
    run.end("1_ReLU")
    assert report_of(run).complete


def test_a_resumed_run_is_open_again(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.close(complete=False, reason="interrupted")
    assert report_of(run).incomplete_because == "interrupted"
    run.start(resumed=True)
    because = report_of(run).incomplete_because
    assert because is not None
    assert because.startswith("2 of 2")


def test_what_was_only_compiled_is_neither_correct_nor_a_failure(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.sample("1_ReLU", 1, 1, compiled("1_ReLU"))
    report = report_of(run)
    assert report.problems[0].compiled == 1
    assert report.problems[0].judged == 0
    assert not report.problems[0].correct
    assert report.overall.judged == 0
    assert report.overall.model_failures == ()


def test_a_run_that_compiles_only_measures_nothing(tmp_path: Path) -> None:
    config = run_config(("1_ReLU", "2_Sum", "3_Max")).model_copy(update={"compiled_for": "gfx942"})
    run = RunFolder(tmp_path, config)
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    run.sample("1_ReLU", 1, 2, compiled("1_ReLU"))
    run.sample("2_Sum", 1, 1, incorrect("2_Sum"))
    overall = report_of(run).overall
    assert (overall.compiled, overall.samples_compiled, overall.samples_judged) == (1, 1, 2)
    assert overall.judged == 1, "of a problem with a kernel that compiles nobody knows whether it is solved"
    assert (overall.fast_p, [found.value for found in overall.pass_at_k]) == (None, [None, None])
    assert [problem.fast_p for problem in report_of(run).problems] == [None] * 3


def test_a_problem_with_fewer_samples_than_k_is_left_out_of_that_k(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    run.sample("1_ReLU", 1, 2, incorrect("1_ReLU"))
    run.sample("2_Sum", 1, 1, incorrect("2_Sum"))
    assert report_of(run).overall.pass_at_k == (
        PassAtK(k=1, value=0.25, problems=2),
        PassAtK(k=2, value=1.0, problems=1),
    )


def with_weak(run: RunFolder, weak: dict[str, tuple[str, ...]]) -> Report:
    view = read_run(run.paths)
    return detail(replace(view, facts=view.facts.model_copy(update={"weak": weak})))


def test_headlines_are_given_again_without_the_weak_problems(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    report = with_weak(run, {"1_ReLU": ("zeros",), "2_Sum": (), "3_Softmax": ()})
    overall = report.overall
    assert overall.solved == 2
    assert overall.weak_problems == ("1_ReLU",)
    assert overall.not_audited == ("4_RMSNorm_fp32",)
    without = overall.without_weak
    assert without is not None
    assert (without.problems, without.judged, without.solved, without.correct) == (3, 3, 1, 2)
    assert without.fast_p is not None
    assert without.fast_p["1"] == pytest.approx(1 / 3)
    assert without.geometric_mean_speedup is not None
    assert without.geometric_mean_speedup.value == pytest.approx(math.sqrt(1.25 * 0.6))
    text = render_text(report)
    assert len(re.findall(r"Speed-up .*geometric mean", text)) == 2
    assert "Left out    1_ReLU" in text


def test_nothing_is_said_twice_where_no_problem_is_weak(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    report = with_weak(run, dict.fromkeys(run.config.problems, ()))
    assert report.overall.without_weak is None
    text = render_text(report)
    assert len(re.findall(r"Speed-up .*geometric mean", text)) == 1
    assert "no problem is weak" in text


def test_a_refused_sample_is_counted_and_never_correct(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    failure = Failure(stage=Stage.TIME, kind=FailureKind.SUSPECT, message="the clocks disagree")
    verdict = incorrect("1_ReLU").model_copy(update={"status": Status.REFUSED, "failure": failure})
    run.sample("1_ReLU", 1, 1, verdict)
    report = report_of(run)
    assert (report.overall.samples_refused, report.overall.samples_correct, report.overall.solved) == (1, 0, 0)
    assert report.overall.judged == 1
    assert "1 refused" in render_text(report)


def test_money_of_a_run_with_a_price(tmp_path: Path) -> None:
    """A reply that did not say its tokens costs something unknown; a replayed one costs nothing."""
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum", "3_Softmax")), facts=PRICED)
    run.start()
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0), Usage(input=100, output=50))
    run.sample("1_ReLU", 1, 2, incorrect("1_ReLU"), Usage(input=1, output=2))
    run.sample("2_Sum", 1, 1, incorrect("2_Sum"), Usage(input=7))
    key = run.asked("2_Sum", 1, 2)
    run.answered(key, Usage(input=10, output=10), replayed=True)
    report = report_of(run)
    found = [(p.cost.total, p.cost.currency, p.cost.unpriced_replies) for p in report.problems]
    assert found == [(205.0, "XTS", 0), (None, "XTS", 1), (0.0, "XTS", 0)]
    assert [sample.cost for problem in report.problems for sample in problem.samples] == [200.0, 5.0, None, 0.0]
    overall = report.overall
    assert (overall.cost.total, overall.cost.unpriced_replies, overall.cost_per_solved) == (205.0, 1, None)
    text = render_text(report)
    assert "Cost        205.00 XTS+; the cost of 1 reply is unknown" in text
    assert "in XTS for a million tokens: input 1e+06, cached as input, output 2e+06 (test-* in" in text
    assert " unknown " in next(line for line in text.splitlines() if line.startswith("2_Sum "))


def test_money_for_a_solved_problem(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")), facts=PRICED)
    run.start()
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0), Usage(input=100, output=50))
    run.sample("2_Sum", 1, 1, incorrect("2_Sum"), Usage(input=100, output=0))
    report = report_of(run)
    assert (report.overall.cost.total, report.overall.cost_per_solved) == (300.0, 300.0)
    assert "Cost        300.00 XTS; 300.00 XTS a solved problem" in render_text(report)
