from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.run_folder import RunFolder, sample_run
from support.strategy_runs import NAME, judged_run, staged_run

from hkbench.report.write import write_reports


def files(run: RunFolder, problem: str) -> list[dict[str, Any]]:
    write_reports(run.root)
    folder = run.paths.problem(problem).evaluation(0).parent
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*"))]


def test_of_the_judge_with_what_it_said(tmp_path: Path) -> None:
    run = judged_run(tmp_path)
    seed, repaired = files(run, NAME)
    assert (seed["evaluation"], seed["round"], seed["mode"], seed["starts_from"]) == (0, 0, "seed", None)
    assert (seed["status"], seed["kind"], seed["best_so_far"], seed["advice"]) == (
        "incorrect",
        "build_error",
        None,
        None,
    )
    assert (repaired["round"], repaired["mode"]) == (1, "repair")
    assert repaired["starts_from"] == {"attempt": 1, "sample": 1}
    assert repaired["advice"]["said"]["minimal_fix_hint"] == "use <"
    assert repaired["advice"]["said"]["critical_issue"] == "the mask", "without escapes"
    assert repaired["metrics_shown"] == ["relu_kernel: time share 99 %"]
    assert (repaired["speedup"]["value"], repaired["speedup"]["low"]) == (2.0, 1.8)
    assert repaired["best_so_far"] == {"attempt": 2, "sample": 1}


def test_of_the_stages_with_the_best_so_far(tmp_path: Path) -> None:
    run = staged_run(tmp_path)
    found = files(run, "1_Conv")
    assert [one["mode"] for one in found] == ["seed", "tiles", "tiles", "feeding"]
    assert [one["best_speedup_so_far"] for one in found] == [0.5, 0.5, 1.0, 1.0]
    assert [one["metrics_shown"] for one in found] == [[], ["conv: occupancy 40 %"], [], []]


def test_the_same_bytes_again_and_nothing_left_of_a_verdict_that_is_gone(tmp_path: Path) -> None:
    run = staged_run(tmp_path)
    first = files(run, "1_Conv")
    assert files(run, "1_Conv") == first
    run.paths.problem("1_Conv").sample(4, 1).result.unlink()
    assert files(run, "1_Conv") == first[:3]


def test_other_strategies_have_none(tmp_path: Path) -> None:
    assert files(sample_run(tmp_path), "1_ReLU") == []
