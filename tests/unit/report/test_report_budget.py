"""What rules saved and might have cost, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import sample_run
from support.strategy_runs import staged_run

from hkbench.records import SampleKey
from hkbench.report.build import detail
from hkbench.report.format import WIDTH
from hkbench.report.model import Saved, StageBudget
from hkbench.report.text import render_text
from hkbench.store.reader import read_run


def test_by_category(tmp_path: Path) -> None:
    report = detail(read_run(staged_run(tmp_path).paths))
    assert report.overall.budget is not None
    conv, sums = report.overall.budget
    assert (conv.category, conv.problems, conv.worked, conv.skipped, conv.left_out) == ("conv", 2, 3, 1, 2)
    # Worked: tiles with two attempts and feeding with one of 1_Conv, tiles with one of 2_Conv; 200 tokens and
    # 2.5 s of calls and 4 s of evaluations an attempt; three stages were not worked.
    assert conv.saved == Saved(attempts=4.0, tokens=800.0, cost=None, seconds=26.0)
    tiles, feeding, balance = conv.stages
    assert (tiles.stage, tiles.worked, tiles.gained) == ("tiles", 2, 2)
    assert tiles.geometric_mean_gain == pytest.approx(2.0)
    assert (feeding.worked, feeding.skipped, feeding.left_out, feeding.gained) == (1, 0, 1, 0)
    assert feeding.geometric_mean_gain == 1.0, "the best so far stays"
    assert balance == StageBudget(stage="balance", worked=0, skipped=1, left_out=1, gained=0, geometric_mean_gain=None)
    assert (sums.category, sums.worked, sums.left_out) == ("sums", 0, 1)
    assert sums.saved == Saved(attempts=None, tokens=None, cost=None, seconds=None), "nothing to estimate it by"


def test_in_the_text(tmp_path: Path) -> None:
    text = render_text(detail(read_run(staged_run(tmp_path).paths)))
    part = text[text.index("What skipping and early exits saved") :]
    assert "conv             2       3        1         2       4.0     800     -  26.0 s" in part
    (tiles,) = [line.split() for line in part.splitlines() if line.startswith("conv, tiles")]
    assert tiles == ["conv,", "tiles", "2", "0", "0", "2", "of", "2", "2.00x"] and "Estimates." in part
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_stage_that_the_run_ended_in_is_no_measure(tmp_path: Path) -> None:
    run = staged_run(tmp_path)
    lines = run.paths.journal.read_text().splitlines()
    ended = [line for line in lines if not ('"problem_closed"' in line and "1_Conv" in line)]
    run.paths.journal.write_text("\n".join(ended) + "\n")
    budget = detail(read_run(run.paths)).overall.budget
    assert budget is not None and budget[0].worked == 2


def test_a_call_without_its_tokens_makes_them_unknown(tmp_path: Path) -> None:
    run = staged_run(tmp_path)
    run.answered(SampleKey(problem="1_Conv", attempt=4, sample=1))
    budget = detail(read_run(run.paths)).overall.budget
    assert budget is not None and (budget[0].saved.tokens, budget[0].saved.attempts) == (None, 4.0)


def test_other_strategies_have_none(tmp_path: Path) -> None:
    report = detail(read_run(sample_run(tmp_path).paths))
    assert report.overall.budget is None and "early exits saved" not in render_text(report)
