"""The headline of a run, as the report has it."""

from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, compiled, correct, incorrect, run_config, sample_run

from hkbench.monitor.live import Watch
from hkbench.monitor.result import Result, bar, classes, figures
from hkbench.records import Outcome, Work
from hkbench.report.build import detail
from hkbench.store.reader import read_run


def result_of(run: RunFolder) -> Result:
    watch = Watch(run.paths)
    watch.look()
    assert watch.state is not None
    return Result.of(watch.state)


def test_it_agrees_with_the_report(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    found, overall = result_of(run), detail(read_run(run.paths)).overall
    mean = overall.geometric_mean_speedup
    assert mean is not None and overall.fast_p is not None
    assert (found.solved, found.judged) == (overall.solved, overall.judged)
    assert found.mean() == (mean.value, mean.low, mean.high)
    assert found.fast_1 == overall.fast_p["1"]


def test_a_speedup_whose_interval_holds_one_is_on_a_par(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_A", "2_B", "3_C")))
    run.start()
    run.sample("1_A", 1, 1, correct("1_A", 1.05))
    run.sample("1_A", 1, 2, correct("1_A", 0.5))  # its best sample counts
    run.sample("2_B", 1, 1, incorrect("2_B"))
    found = result_of(run)
    assert classes(found).plain == "faster 0 · on a par 1 · slower 0 · wrong 1 · not judged 1"
    assert figures(found).plain == "solved 1/2 judged · geo-mean 1.05x · fast_1 50.0 %"
    assert bar(found, 9).plain == "██████░░░"


def test_nothing_is_measured(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_A", "2_B")).model_copy(update={"compiled_for": "gfx942"}))
    run.start()
    run.sample("1_A", 1, 1, compiled("1_A"))
    found = result_of(run)
    assert classes(found).plain == "wrong 0 · compiled 1 · not judged 1 · nothing is measured"
    assert figures(found).plain == ""


def test_whose_kernels_the_faster_ones_are(tmp_path: Path) -> None:
    """Said where not all are own; an older run says nothing of it."""
    run = RunFolder(tmp_path, run_config(("1_A", "2_B")))
    run.start()
    run.sample("1_A", 1, 1, correct("1_A", 2.0))
    assert result_of(run).own_kernels is None
    work = Work(own=0.1, pytorch=0.9, library=0.0, other=0.0, source="kineto")
    run.sample("2_B", 1, 1, correct("2_B", 2.0).model_copy(update={"work": work}))
    found = result_of(run)
    assert found.outcomes[Outcome.FASTER] == 2
    assert found.own_kernels is not None and "0 of 2" in found.own_kernels
