from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import START, RunFolder, correct, incorrect, run_config, sample_run

from hkbench.records import FailureKind, GenerationFailed, RunStarted, SampleKey, Stage, Status, Usage
from hkbench.store.events import CorruptEntry, read_events
from hkbench.store.samples import RUNNING, Phase
from hkbench.store.state import RunState


def state_of(run: RunFolder) -> RunState:
    state = RunState(run.config)
    for event in read_events(run.paths.journal):
        assert not isinstance(event, CorruptEntry)
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


def test_a_run_that_stopped_has_nothing_under_way_and_keeps_its_replies(tmp_path: Path) -> None:
    """Ctrl-C and kill alike; a resume judges a reply without asking again."""
    run = RunFolder(tmp_path)
    run.start()
    run.asked("1_ReLU", 1, 1)
    key = run.asked("1_ReLU", 1, 2)
    run.answered(key)
    run.entered(key, Stage.BUILD)
    killed = state_of(run)
    killed.mark_killed()
    run.close(complete=False, reason="interrupted")
    for state in (killed, state_of(run)):
        assert [state.in_phase(phase) for phase in RUNNING] == [[], [], []]
        assert [place for place, _ in state.in_phase(Phase.KEPT)] == [key]
        assert not state.problems["1_ReLU"].running
    run.tick(3600)
    run.start(resumed=True)
    run.begin("1_ReLU")
    assert state_of(run).problems["1_ReLU"].pending == "reply on disk"
    run.entered(key, Stage.BUILD)
    ((_, sample),) = state_of(run).in_phase(Phase.EVALUATED)
    assert sample.begun == run.now  # its time is that of this session


def test_a_killed_run_has_no_clock(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    state = state_of(run)
    assert state.seconds_left(run.now + 500) is not None
    state.mark_killed()
    assert state.over
    assert state.elapsed(run.now + 500) == run.now - START - 1
    assert state.seconds_left(run.now + 500) is None
    state.apply(RunStarted(time=run.now + 1000, resumed=True))
    assert not state.over


def test_a_long_silence_has_no_estimate_unless_the_process_is_there(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    state, later = state_of(run), run.now + 2000
    assert state.is_silent(later) and state.seconds_left(later) is None
    state.alive = True
    assert not state.is_silent(later) and state.seconds_left(later) is not None


def test_what_a_problem_waits_for(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()

    def pending() -> tuple[str, int]:
        state = state_of(run)
        return state.problems["1_ReLU"].pending, state.preparing

    assert pending() == ("", 0)
    run.begin("1_ReLU")
    assert pending() == ("preparing prompt", 1)
    run.prompted("1_ReLU", "gemm.txt")
    assert pending() == ("queued for model", 0)
    key = run.asked("1_ReLU", 1, 1)
    assert pending() == ("", 0)
    run.answered(key)
    run.judged(key, incorrect("1_ReLU"))
    assert pending() == ("preparing prompt", 1)
    run.end("1_ReLU")
    assert pending() == ("", 0)


def test_a_failure_of_the_service_is_not_the_candidates(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    key = run.asked("1_ReLU", 1, 1)
    run.emit(GenerationFailed(time=run.tick(), key=key, error="ModelUnavailable", message="503"))
    state = state_of(run)
    assert state.failures == {}
    assert state.errors == {"ModelUnavailable": 1}
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


def test_time_left_is_never_nothing_while_a_problem_is_open(tmp_path: Path) -> None:
    """Finished problems took one attempt; one that is in its second needs at least the rest of that."""
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum", "3_Softmax")))
    run.start()
    start = run.now
    for name in ("1_ReLU", "2_Sum"):
        run.begin(name)
        for sample in (1, 2):
            run.sample(name, 1, sample, correct(name, 2.0))
        run.end(name, solved=True)
    for sample in (1, 2):
        run.sample("3_Softmax", 1, sample, incorrect("3_Softmax"))
    # six samples in 60 s, and the attempt that follows has two
    assert state_of(run).seconds_left(start + 60) == pytest.approx(20)
    run.entered(run.asked("3_Softmax", 2, 1), Stage.BUILD)
    assert state_of(run).seconds_left(start + 60) == pytest.approx(20)
    run.judged(SampleKey(problem="3_Softmax", attempt=2, sample=1), incorrect("3_Softmax"))
    assert state_of(run).seconds_left(start + 70) == pytest.approx(10)
    run.sample("3_Softmax", 2, 2, incorrect("3_Softmax"))
    assert state_of(run).seconds_left(start + 80) is None  # nothing is left but its end
    run.end("3_Softmax")
    run.close()
    assert state_of(run).seconds_left(start + 90) is None


def test_time_left_goes_by_the_problems_that_took_longer(tmp_path: Path) -> None:
    names = ("1_ReLU", "2_Sum", "3_Softmax")
    run = RunFolder(tmp_path, run_config(names, samples=1, attempts=9))
    run.start()
    start = run.now
    for name, attempts in zip(names, (1, 6, 2), strict=True):
        for attempt in range(1, attempts + 1):
            run.sample(name, attempt, 1, incorrect(name))
        if name != "3_Softmax":
            run.end(name)
    # nine samples in 90 s; of those that took more than two samples one took six
    assert state_of(run).seconds_left(start + 90) == pytest.approx(40)


def test_a_problem_that_ended_early_is_not_waited_for(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    run.end("1_ReLU", error="the GPU is gone")
    run.begin("2_Sum")
    state = state_of(run)
    # one sample in 10 s; the four of the other problem are left
    assert state.seconds_left(START + 1 + 10) == pytest.approx(40)


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
    assert state.problems["1_ReLU"].best == 2.0


def test_what_changed_is_told_once(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.sample("2_Sum", 1, 1, incorrect("2_Sum"))
    state = RunState(run.config)
    for event in read_events(run.paths.journal):
        assert not isinstance(event, CorruptEntry)
        state.apply(event)
    assert "2_Sum" in state.take_changed()
    assert state.take_changed() == set()
