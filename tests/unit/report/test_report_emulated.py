"""A run on an emulated GPU: correct kernels without a speed-up, in every report and on the monitor."""

from __future__ import annotations

import json
from pathlib import Path

from support.run_folder import RunFolder, emulated, incorrect, run_config

import hkbench
from hkbench.headline import sentence
from hkbench.monitor.result import Result, classes, figures
from hkbench.records import DeviceKind, KernelLanguage, Outcome
from hkbench.report.build import detail
from hkbench.report.compare import compare
from hkbench.report.last_lines import last_lines
from hkbench.report.write import write_reports
from hkbench.store.reader import read_run

PROBLEMS = ("1_A", "2_B")


def folder(root: Path) -> RunFolder:
    """The first problem is solved at its second attempt; the second one never."""
    config = run_config(PROBLEMS, samples=1).model_copy(update={"device": DeviceKind.EMULATED_GFX942})
    run = RunFolder(root, config)
    run.start()
    language = KernelLanguage(backend="hip", reason="row_sum ran", ran=True)
    right = emulated("1_A").model_copy(update={"language": language})
    for problem, last in zip(PROBLEMS, (right, incorrect("2_B")), strict=True):
        run.begin(problem)
        run.sample(problem, 1, 1, incorrect(problem))
        run.sample(problem, 2, 1, last)
        run.end(problem, solved=last.failure is None)
    run.close()
    return run


def test_the_report_counts_what_is_correct_and_knows_no_speed_up(tmp_path: Path) -> None:
    folder(tmp_path)
    report = write_reports(tmp_path)
    overall, first = report.overall, report.problems[0]
    assert (overall.correct, overall.solved, overall.judged, overall.samples_correct) == (1, 1, 2, 1)
    assert (overall.fast_p, overall.geometric_mean_speedup, overall.geometric_mean_speedup_all) == (None, None, None)
    assert (first.outcome, first.solved_at_attempt, first.best_speedup) == (Outcome.EMULATED, 2, None)
    assert [row.value for row in overall.pass_at_k] == [0.0]
    assert [(gain.correct, gain.solved) for gain in overall.attempts] == [(0, 0), (1, 1)]
    assert (first.language, overall.languages[0].language, overall.languages[0].count) == ("hip", "hip", 1)
    assert "1 of 2 problems" in sentence(overall.outcomes)


def test_no_text_speaks_of_a_speed_up_that_nobody_measured(tmp_path: Path) -> None:
    run = folder(tmp_path)
    report = write_reports(tmp_path)
    page = run.paths.report_page.read_text()
    text = run.paths.report_text.read_text().split("What the words mean")[0]
    for told in (text, "\n".join(last_lines(report, tmp_path)), page.split("<script")[0]):
        assert Outcome.EMULATED.label in told
        assert "Faster than PyTorch" not in told and "faster than PyTorch" not in told
    data = json.loads(run.paths.report_json.read_text())
    assert data["problems"][0]["samples"][1]["status"] == "emulated"


def test_the_monitor_agrees_with_the_report(tmp_path: Path) -> None:
    folder(tmp_path)
    result = Result.of(read_run(hkbench.load_run(tmp_path)._view.paths).state)
    assert (result.judged, result.solved, result.speedups, result.fast_1) == (2, 1, (), None)
    assert f"{Outcome.EMULATED.label} 1" in classes(result).plain
    assert "1/2" in figures(result).plain


def test_two_runs_are_compared_by_what_is_correct(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder(tmp_path / name)
    found = compare([(name, detail(hkbench.load_run(tmp_path / name)._view)) for name in ("a", "b")])
    whole = found.against[0].whole
    assert (whole.a.correct, whole.b.correct) == (1, 1)
    assert not found.worse
