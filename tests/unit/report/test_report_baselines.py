"""Further baselines and the share of the floor, from verdicts to reports, and runs ranked by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import RunFolder, correct, incorrect, run_config

from hkbench.records import BaselineName, BoundQuality, Contention, Floor, FurtherBaseline, Interval, Outcome, Verdict
from hkbench.report.build import detail
from hkbench.report.compare import compare
from hkbench.report.comparison import RankBy
from hkbench.report.model import Report
from hkbench.report.samples import sample_rows
from hkbench.report.text import render_text
from hkbench.store.reader import read_run

TIGHT = {"bytes": 90, "bound": "bytes", "all_bytes": 100, "all_operations": 0}


def judged(name: str, speedup: float, over_compile: float | None, share: float | None) -> Verdict:
    """Return a verdict with speed-ups over eager and over torch.compile, and a share of the floor."""
    verdict = correct(name, speedup)
    assert verdict.candidate is not None
    seconds = verdict.candidate.median.value
    floor = None if share is None else Floor.model_validate({**TIGHT, "seconds": share * seconds})
    further: tuple[FurtherBaseline, ...] = ()
    if over_compile is not None:
        over = Interval(value=over_compile, low=0.9 * over_compile, high=1.1 * over_compile)
        further = (FurtherBaseline(name=BaselineName.COMPILE, timing=verdict.baseline, speedup=over),)
    return verdict.model_copy(update={"floor": floor, "baselines": further})


def run_of(root: Path, *verdicts: Verdict | None) -> RunFolder:
    names = tuple(f"{n}_P" for n in range(1, len(verdicts) + 1))
    run = RunFolder(root, run_config(names, samples=1, attempts=1))
    run.start()
    for name, verdict in zip(names, verdicts, strict=True):
        run.begin(name)
        run.sample(name, 1, 1, incorrect(name) if verdict is None else verdict)
        run.end(name)
    run.close()
    return run


def report_of(root: Path, *verdicts: Verdict | None) -> Report:
    return detail(read_run(run_of(root, *verdicts).paths))


def test_headlines_over_the_fastest_baseline(tmp_path: Path) -> None:
    report = report_of(tmp_path, judged("1_P", 4.0, 0.5, 0.8), judged("2_P", 1.5, 2.0, 0.2), None)
    overall = report.overall
    assert overall.fast_p is not None and overall.fast_p["1"] == pytest.approx(2 / 3)
    assert overall.fast_p_over_best is not None and overall.fast_p_over_best["1"] == pytest.approx(1 / 3)
    assert overall.over_baselines[BaselineName.COMPILE].value == pytest.approx(1.0)
    assert overall.sol is not None and overall.sol.value == pytest.approx(0.4)
    assert overall.sol_bounds == {BoundQuality.TIGHT: 2}
    text = render_text(report)
    assert "Over compile" in text and "Of the floor" in text and "fast_p, best" in text


def test_eager_alone_has_no_headline_over_others(tmp_path: Path) -> None:
    overall = report_of(tmp_path, judged("1_P", 4.0, None, None), judged("2_P", 1.5, 2.0, None)).overall
    assert overall.fast_p_over_best is None and overall.sol is None and overall.sol_bounds == {}


def test_a_row_a_sample_has_them(tmp_path: Path) -> None:
    run = run_of(tmp_path, judged("1_P", 4.0, 0.5, 0.8), judged("2_P", 4.0, None, None))
    first, second = sample_rows(read_run(run.paths))
    assert first.over_compile == 0.5 and first.over_library is None
    assert first.sol == pytest.approx(0.8) and first.sol_bound is BoundQuality.TIGHT
    assert (second.over_compile, second.sol, second.sol_bound) == (None, None, None)


def test_runs_are_ranked_by_the_floor(tmp_path: Path) -> None:
    quick = report_of(tmp_path / "a", judged("1_P", 9.0, None, 0.1), judged("2_P", 9.0, None, 0.1))
    near = report_of(tmp_path / "b", judged("1_P", 2.0, None, 0.9), None)
    pair = [("a", quick), ("b", near)]
    assert compare(pair).ranking == ("A", "B")
    found = compare(pair, rank_by=RankBy.SOL)
    assert found.ranking == ("B", "A")
    shares = [run.figures.sol for run in found.runs if run.figures is not None]
    assert shares == pytest.approx([0.1, 0.45]), "0 where no kernel is correct"


def test_what_was_timed_beside_other_work_is_not_faster(tmp_path: Path) -> None:
    doubtful = correct("1_P", 9.0).model_copy(update={"contention": Contention(reasons=("others were at work",))})
    report = report_of(tmp_path, doubtful, correct("2_P", 2.0))
    assert report.overall.outcomes[Outcome.UNSETTLED] == report.overall.outcomes[Outcome.FASTER] == 1
    assert "unsettled on 1" in " ".join(report.headline)
