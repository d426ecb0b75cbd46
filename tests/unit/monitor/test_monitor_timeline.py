from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect

from hkbench.monitor.live import Watch
from hkbench.monitor.timeline import sample_line
from hkbench.records import SlotTimes, Stage, VerdictReached


def test_bars_lie_where_the_samples_were_under_way(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    first = run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    run.chosen(first)
    run.sample("1_ReLU", 2, 1, correct("1_ReLU", 1.25))
    run.asked("1_ReLU", 2, 2)
    watch = Watch(run.paths)
    watch.look()
    assert watch.state is not None
    problem = watch.state.problems["1_ReLU"]
    lines = [sample_line(problem, key, 80, run.now + 5).plain for key in ((1, 1), (2, 1), (2, 2))]
    assert lines[0].startswith("1.1*  × build_error")
    assert lines[1].startswith("2.1   + faster 1.25x")
    assert lines[2].startswith("2.2   … waiting for model") and "5 s" in lines[2]
    bars = [(line.index("─"), len(line)) for line in lines]
    assert bars[0][1] <= bars[1][0] + 1 and bars[1][1] <= bars[2][0] + 1
    assert max(map(len, lines)) <= 80
    assert "─" not in sample_line(problem, (1, 1), 40, run.now).plain


def test_waiting_and_work_are_told_apart(tmp_path: Path) -> None:
    """By the turns of the verdict: three seconds with the model, six of waiting, four of building, two on a device."""
    run = RunFolder(tmp_path)
    run.start()
    key = run.asked("1_ReLU", 1, 1)
    start = run.now
    run.tick(2)
    run.answered(key)
    run.entered(key, Stage.BUILD)
    turns = SlotTimes(
        asked=start + 3, building=start + 6, loaded=start + 10, device=0, lent=start + 13, returned=start + 15
    )
    reached = VerdictReached.of(key, correct("1_ReLU", 2.0), turns)
    run.emit(reached.model_copy(update={"time": start + 15}))
    watch = Watch(run.paths)
    watch.look()
    assert watch.state is not None
    line = sample_line(watch.state.problems["1_ReLU"], (1, 1), 53 + 30, run.now).plain
    assert "15 s (6 s waiting)" in line
    assert line[53:] == "─" * 6 + "┈" * 6 + "━" * 8 + "┈" * 6 + "█" * 4
