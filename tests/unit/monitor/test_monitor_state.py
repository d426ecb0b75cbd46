from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import START, RunFolder, correct, incorrect, run_config, sample_run

from hkbench.monitor.state import Phase, RunState
from hkbench.records import FailureKind, GenerationFailed, SampleKey, Stage, Status, Usage
from hkbench.store.events import Damage, read_events


def state_of(run: RunFolder) -> RunState:
    state = RunState(run.config)
    for event in read_events(run.paths.journal):
        assert not isinstance(event, Damage)
        state.apply(event)
    return state


def test_a_finished_run(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    state = state_of(run)
    assert (state.finished, state.solved, state.judged) == (4, 2, 14)
    assert [state.status_count(s) for s in (Status.FAST, Status.SLOW, Status.INCORRECT)] == [2, 5, 7]
    assert state.failures == {
        FailureKind.BUILD_ERROR: 2, FailureKind.CRASH: 4, FailureKind.WRONG_VALUES: 1,
    }  # fmt: skip
    assert state.problems["2_Sum"].best == 1.25
    assert state.problems["4_RMSNorm_fp32"].best is None
    assert state.closed is not None
    assert state.elapsed(run.now + 1000) == state.elapsed(run.now) == run.now - START - 1
    assert state.seconds_left(run.now) is None


def test_phases_of_a_sample(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    key = run.asked("1_ReLU", 1, 1)
    assert state_of(run).in_phase(Phase.ASKED)[0][0] == key
    run.answered(key)
    assert state_of(run).in_phase(Phase.ANSWERED)[0][0] == key
    run.entered(key, Stage.BUILD)
    ((_, sample),) = state_of(run).in_phase(Phase.EVALUATED)
    assert sample.stage is Stage.BUILD
    run.judged(key, incorrect("1_ReLU"))
    state = state_of(run)
    assert state.in_phase(Phase.EVALUATED) == []
    assert state.judged == 1
    assert not state.problems["1_ReLU"].running


def test_a_run_that_stopped_has_nothing_under_way(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.asked("1_ReLU", 1, 1)
    run.entered(run.asked("1_ReLU", 1, 2), Stage.BUILD)
    run.close(complete=False, reason="interrupted")
    state = state_of(run)
    assert [state.in_phase(phase) for phase in Phase] == [[]] * len(Phase)
    assert not state.problems["1_ReLU"].running


def test_a_failure_of_the_service_is_not_the_candidates(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    key = run.asked("1_ReLU", 1, 1)
    run.emit(GenerationFailed(time=run.tick(), key=key, error="ModelUnavailable", message="503"))
    state = state_of(run)
    assert state.failures == {}
    assert state.machine_failures == {"ModelUnavailable": 1}
    assert state.judged == 0
    assert len(state.in_phase(Phase.LOST)) == 1


def test_a_resume_forgets_what_was_under_way_and_the_time_between(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    run.asked("1_ReLU", 1, 2)
    before = run.now
    run.tick(3600)
    run.start(resumed=True)
    state = state_of(run)
    assert state.in_phase(Phase.ASKED) == []
    assert state.judged == 1
    assert state.elapsed(run.now + 10) == before - START - 1 + 10
    assert state.seconds_left(run.now + 10) is None  # nothing judged in this session yet


def test_time_left_expects_every_attempt_until_a_problem_is_finished(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    start = run.now
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    # one sample took 10 s; 2 problems x 4 samples - 1 are left
    assert state_of(run).seconds_left(start + 10) == pytest.approx(70)


def test_time_left_learns_from_finished_problems(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum", "3_Softmax")))
    run.start()
    start = run.now
    run.begin("1_ReLU")
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    run.sample("1_ReLU", 1, 2, correct("1_ReLU", 2.0))
    run.end("1_ReLU", solved=True)
    # two samples in 30 s; a problem takes two: four samples at 15 s
    assert state_of(run).seconds_left(start + 30) == pytest.approx(60)


def test_samples_of_a_phase_are_the_longest_there_first(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("2_Sum", "1_ReLU")))
    run.asked("1_ReLU", 1, 1)
    run.asked("2_Sum", 1, 2)
    run.asked("2_Sum", 1, 1)
    assert [key for key, _ in state_of(run).in_phase(Phase.ASKED)] == [
        SampleKey(problem="1_ReLU", attempt=1, sample=1),
        SampleKey(problem="2_Sum", attempt=1, sample=2),
        SampleKey(problem="2_Sum", attempt=1, sample=1),
    ]


def test_a_sample_judged_twice_counts_once(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    key = run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    run.start(resumed=True)
    run.judged(key, incorrect("1_ReLU", FailureKind.CRASH, Stage.RUN))
    state = state_of(run)
    assert state.failures == {FailureKind.CRASH: 1}
    assert state.judged == 1


def test_tokens_of_a_reply_that_is_told_of_twice_count_once(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    key = run.asked("1_ReLU", 1, 1)
    run.answered(key, Usage(input=10))
    run.answered(key, Usage(input=12, output=5))
    tokens = state_of(run).tokens
    assert (tokens.input, tokens.output) == (12, 5)


def test_progress_and_pace(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    start = run.now
    assert (state_of(run).progress(), state_of(run).per_minute(run.now)) == (0.0, None)
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    run.end("1_ReLU", solved=True)
    run.sample("2_Sum", 1, 1, incorrect("2_Sum"))
    state = state_of(run)
    assert state.progress() == pytest.approx((1 + 1 / 4) / 2)
    assert state.per_minute(start + 60) == pytest.approx(2)
    assert state.best == [("1_ReLU", 2.0)]


def test_what_changed_is_told_once(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.sample("2_Sum", 1, 1, incorrect("2_Sum"))
    state = RunState(run.config)
    for event in read_events(run.paths.journal):
        assert not isinstance(event, Damage)
        state.apply(event)
    assert "2_Sum" in state.take_changed()
    assert state.take_changed() == set()
