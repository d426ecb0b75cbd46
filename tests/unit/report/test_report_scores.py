from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
from support.run_folder import sample_run
from support.strategy_runs import staged_run

from hkbench.report.build import detail
from hkbench.report.scores import Score, bounds, scores
from hkbench.report.write import write_reports
from hkbench.store.reader import read_run

PNG = b"\x89PNG\r\n\x1a\n"


def test_an_attempts_best_and_the_best_so_far(tmp_path: Path) -> None:
    problems = detail(read_run(staged_run(tmp_path).paths)).problems
    curve = scores(problems[0])
    assert curve == [
        Score(1, 0.5, 0.5, led_to_best=True),
        Score(2, None, 0.5),
        Score(3, 1.0, 1.0, led_to_best=True),
        Score(4, 0.8, 1.0),
    ]
    low, high = bounds([curve])
    assert low < 0.5 and high > 1.0


def test_of_several_samples_the_best_counts(tmp_path: Path) -> None:
    problems = detail(read_run(sample_run(tmp_path).paths)).problems
    assert scores(problems[1]) == [Score(1, None, None), Score(2, 1.25, 1.25, led_to_best=True)]


def test_each_problem_has_a_picture_with_the_same_bytes_each_time(tmp_path: Path) -> None:
    run = staged_run(tmp_path)
    write_reports(tmp_path)
    first = {name: run.paths.problem(name).score.read_bytes() for name in run.config.problems}
    assert all(data.startswith(PNG) for data in first.values()) and len(set(first.values())) == 3
    assert b"Software" not in first["1_Conv"]
    with mpl.rc_context({"lines.linewidth": 9.0}), warnings.catch_warnings(action="error"):
        write_reports(tmp_path)
    assert {name: run.paths.problem(name).score.read_bytes() for name in first} == first


def test_other_strategies_have_none(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    write_reports(tmp_path)
    assert not run.paths.problem("2_Sum").score.exists()
