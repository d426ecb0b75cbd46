"""Which problems a resumed run leaves alone."""

from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect, run_config

from hkbench.store.events import Damage, read_events
from hkbench.store.resume import finished_problems

NAMES = ("1_A", "2_B", "3_C", "4_D")


def finished(run: RunFolder) -> dict[str, bool]:
    events = [event for event in read_events(run.paths.journal) if not isinstance(event, Damage)]
    return {name: event.solved for name, event in finished_problems(run.paths, events).items()}


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
