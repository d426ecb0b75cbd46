from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect

from hkbench.monitor.live import Watch
from hkbench.monitor.timeline import sample_line


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
    lines = [sample_line(problem, key, 70, run.now + 5).plain for key in ((1, 1), (2, 1), (2, 2))]
    assert lines[0].startswith("1.1*  x build_error")
    assert lines[1].startswith("2.1   F fast 1.25x")
    assert lines[2].startswith("2.2   ? asked") and "5 s" in lines[2]
    bars = [(line.index("━"), len(line)) for line in lines]
    assert bars[0][1] <= bars[1][0] + 1 and bars[1][1] <= bars[2][0] + 1
    assert max(map(len, lines)) <= 70
    assert "━" not in sample_line(problem, (1, 1), 40, run.now).plain
