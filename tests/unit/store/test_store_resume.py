"""Which problems a resumed run leaves alone."""

from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect, run_config

from hkbench.records import SampleKey
from hkbench.store.events import read_history
from hkbench.store.resume import finished_problems
from hkbench.store.state import RunState

NAMES = ("1_A", "2_B", "3_C", "4_D")


def finished(run: RunFolder, extended: float | None = None) -> dict[str, bool]:
    return {name: event.solved for name, event in finished_problems(run.paths, state_of(run), extended).items()}


def state_of(run: RunFolder) -> RunState:
    return RunState.after(read_history(run.paths.journal), run.config)


def test_closed_problems_are_finished_unless_the_machine_failed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", run_config(NAMES))
    run.start()
    for name, solved, error in (("1_A", True, None), ("2_B", False, None), ("3_C", False, "WorkerLost: gone")):
        run.begin(name)
        run.sample(name, 1, 1, correct(name, 2.0) if solved else incorrect(name))
        run.end(name, solved=solved, error=error)
    run.begin("4_D")
    assert finished(run) == {"1_A": True, "2_B": False}


def test_a_missing_verdict_or_a_later_start_opens_a_problem_again(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", run_config(NAMES))
    run.start()
    for name in NAMES[:2]:
        run.begin(name)
        run.sample(name, 1, 1, correct(name, 2.0))
        run.end(name, solved=True)
    run.paths.problem("1_A").sample(1, 1).result.unlink()
    assert finished(run) == {"2_B": True}
    run.start(resumed=True)
    assert finished(run) == {"2_B": True}
    run.begin("2_B")
    assert finished(run) == {}


def test_more_samples_or_attempts_open_what_was_closed_before(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", run_config(NAMES))
    run.start()
    for name in NAMES[:2]:
        run.begin(name)
        run.sample(name, 1, 1, correct(name, 2.0))
        run.end(name, solved=True)
    extended = run.tick()
    assert finished(run, extended) == {}
    run.start(resumed=True)
    run.begin("1_A")
    run.end("1_A", solved=True)
    assert finished(run, extended) == {"1_A": True}


def test_an_attempt_is_decided_by_the_samples_before_the_next_prompt(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", run_config(NAMES, samples=3))
    run.start()
    run.prompted("1_A", "default.txt", 1)
    for sample in (1, 2):
        run.sample("1_A", 1, sample, incorrect("1_A"))
    run.chosen(SampleKey(problem="1_A", attempt=1, sample=1))
    run.prompted("1_A", "default.txt", 2)
    for attempt, sample in ((1, 3), (2, 1)):
        run.sample("1_A", attempt, sample, incorrect("1_A"))
    assert state_of(run).problems["1_A"].deciding == {1: frozenset({1, 2})}


def test_an_attempt_in_flight_is_not_decided_by_those_of_its_samples_that_are_judged(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", run_config(NAMES, samples=2))
    run.start()
    for attempt in (1, 2):
        run.prompted("1_A", "default.txt", attempt)
    run.sample("1_A", 2, 1, incorrect("1_A"))
    run.prompted("1_A", "default.txt", 3)
    assert state_of(run).problems["1_A"].deciding == {}
    run.sample("1_A", 2, 2, incorrect("1_A"))
    run.chosen(SampleKey(problem="1_A", attempt=2, sample=1))
    run.sample("1_A", 1, 1, incorrect("1_A"))
    run.prompted("1_A", "default.txt", 4)
    problem = state_of(run).problems["1_A"]
    assert problem.deciding == {2: frozenset({1, 2})}
    assert problem.order == {(2, 1): 0, (2, 2): 1, (1, 1): 2}
