from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect, run_config, sample_run
from support.search_runs import search_run

from hkbench.report.build import detail
from hkbench.report.model import Report
from hkbench.report.page import scores
from hkbench.report.page.scores import score_figure
from hkbench.store.reader import read_run


def report_of(run: RunFolder) -> Report:
    return detail(read_run(run.paths))


def test_a_panel_a_problem_with_several_attempts(tmp_path: Path) -> None:
    figure = score_figure(report_of(sample_run(tmp_path)).problems)
    assert figure is not None
    assert [row[0] for row in figure.rows] == ["2_Sum", "3_Softmax", "4_RMSNorm_fp32"], "1_ReLU has one attempt"
    assert figure.rows[0][1:] == ("1: -, 2: 1.25x", "1.25x", "2") and figure.rows[2][2] == "-"
    assert all(name in figure.svg for name in ("2_Sum", "3_Softmax", "4_RMSNorm_fp32", "attempt"))
    assert "1 became faster" in figure.says and "var(--wrong)" in figure.svg


def test_more_problems_than_panels_are_said(tmp_path: Path) -> None:
    names = tuple(f"{number}_P" for number in range(1, scores.PANELS + 3))
    run = RunFolder(tmp_path, run_config(names, samples=1))
    for name in names:
        run.sample(name, 1, 1, incorrect(name))
        run.sample(name, 2, 1, correct(name, 2.0))
    figure = score_figure(report_of(run).problems)
    assert figure is not None and len(figure.rows) == scores.PANELS
    assert f"The first {scores.PANELS} of {len(names)} such problems." in figure.note
    assert names[scores.PANELS - 1] in figure.svg and names[-1] not in figure.svg


def test_one_attempt_makes_no_curve(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    assert score_figure(report_of(run).problems) is None


def test_the_way_to_the_best_has_rings(tmp_path: Path) -> None:
    figure = score_figure(report_of(search_run(tmp_path)).problems)
    assert figure is not None and figure.rows[0][3] == "1, 2, 5"
    rings = figure.svg.count("stroke: var(--accent)") - 1  # one is the line of the best so far
    assert rings >= 1 and "fill: none" in figure.svg
    assert "<desc id=" in figure.svg
