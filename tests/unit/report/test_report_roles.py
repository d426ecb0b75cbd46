"""What a judge's calls and a strategy's decisions are in the report, and a row of each call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.run_folder import RunFolder
from support.strategy_runs import NAME, judged_run

from hkbench.records import QuestionKind, Role, SampleKey
from hkbench.report.build import detail
from hkbench.report.model import DecisionReport, Place, Report
from hkbench.report.text import render_text
from hkbench.store.reader import read_run


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return detail(read_run(judged_run(tmp_path).paths))


def test_the_judges_calls_count(report: Report) -> None:
    problem, overall = report.problems[0], report.overall
    for part in (problem, overall):
        assert (part.tokens.input.total, part.tokens.output.total) == (340, 120)
        assert (part.calls.made, part.calls.failed) == (4, 1)
        assert part.cost.total == pytest.approx(0.41 + 0.1), "each by the price of its model"
        assert part.generation_seconds == 2 * 2.5 + 2 * 1.5
    coder, judge = overall.roles
    assert (coder.role, coder.models, coder.calls.made, coder.calls.failed) == (Role.CODER, ("test-model",), 2, 0)
    assert (judge.role, judge.models, judge.calls.made, judge.calls.failed) == (Role.JUDGE, ("a-judge",), 2, 1)
    assert (judge.tokens.input.total, judge.cost.total, judge.seconds) == (40, 0.1, 3.0)
    text = " ".join(render_text(report).split())
    assert "a-judge: 2 calls made, 0 replayed, 1 given up; 40 input and 10 output tokens; cost 0.1 USD" in text


def test_advice_and_decisions_stand_with_their_problem(report: Report) -> None:
    problem = report.problems[0]
    unusable, usable = problem.advice
    assert (unusable.said, unusable.note, unusable.cost) == (None, "it holds no JSON object", 0.022)
    assert (usable.attempt, usable.call, usable.kind, usable.about) == (
        2,
        2,
        QuestionKind.REPAIR,
        Place(attempt=1, sample=1),
    )
    assert usable.said is not None and usable.said["critical_issue"] == "the mask"
    assert problem.decisions == (DecisionReport(attempt=2, what="advice", choice="none", why="a reason"),)
    assert [attempt.parent for attempt in problem.attempts] == [None, Place(attempt=1, sample=1)]


def test_an_answer_that_a_crash_kept_from_the_journal_is_counted(tmp_path: Path) -> None:
    run = judged_run(tmp_path)
    folder = run.paths.problem(NAME).advice(2, 2)
    folder.response.write_text("{}")
    folder.exchange.write_text(json.dumps({"model": "a-judge", "usage": {"input": 7, "output": 8}}))
    lines = run.paths.journal.read_text().splitlines()
    run.paths.journal.write_text("\n".join(line for line in lines if '"call":2' not in line) + "\n")
    report = detail(read_run(run.paths))
    last = report.problems[0].advice[-1]
    assert (last.tokens.input, last.kind, last.said is not None) == (7, QuestionKind.REPAIR, True)
    assert last.about == Place(attempt=1, sample=1) and report.overall.roles[1].calls.failed == 0
    folder.advice.write_text("{")
    damaged = detail(read_run(run.paths))
    assert damaged.problems[0].advice[-1].kind is None and damaged.damage[0].file.endswith("judge_2/advice.json")


def test_without_a_judge_there_is_one_role(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.answered(SampleKey(problem=NAME, attempt=1, sample=1))
    assert [role.role for role in detail(read_run(run.paths)).overall.roles] == [Role.CODER]
