"""examples/strategies for real: each file is used, and each problem goes the way that the README says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import doors
from support.strategy_examples import EXAMPLES, ROOT, Row, rows

from hkbench.records import AdviceReceived, Decided, Status, VerdictReached

pytestmark = pytest.mark.slow

PROBLEMS = {int(row.problem.split("_")[0]): row.problem for row in rows("judge")}
NO_REDUCTION = {PROBLEMS[number] for number in (1, 2, 3, 6)}


def run(folder: Path, strategy: str, *more: object) -> Path:
    command = [sys.executable, "run_batch.py", "1", "8", "--device", "cpu", "--run-timeout", "10"]
    command += ["--timing-runs", "10", "--strategy", strategy, *map(str, more)]
    command += ["--replay", str(EXAMPLES / strategy), "--results", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=doors.environment(), check=False, capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def verdicts(results: Path) -> set[tuple[str, int, str]]:
    """Problem, attempt, and `correct` or the failure kind."""
    found = set()
    for event in doors.events(results):
        if isinstance(event, VerdictReached):
            correct = event.status in (Status.FAST, Status.SLOW)
            found.add((event.key.problem, event.key.attempt, "correct" if correct else str(event.kind)))
    return found


def test_judge(tmp_path: Path) -> None:
    results = run(tmp_path / "judge", "judge", "--rounds", 3)
    expected = rows("judge")
    assert verdicts(results) == {(row.problem, row.attempt, row.label) for row in expected if not row.judge}
    advice = {
        Row(event.key.problem, event.key.attempt, event.key.folder, event.form.value)
        for event in doors.events(results)
        if isinstance(event, AdviceReceived)
    }
    assert advice == {row for row in expected if row.judge}
    without = {
        event.problem for event in doors.events(results) if isinstance(event, Decided) and event.what == "advice"
    }
    assert without == {PROBLEMS[2], PROBLEMS[6]}


def test_staged(tmp_path: Path) -> None:
    results = run(tmp_path / "staged", "staged")
    expected = rows("staged")
    assert verdicts(results) == {(row.problem, row.attempt, row.label) for row in expected}
    decided = [event for event in doors.events(results) if isinstance(event, Decided)]
    began: dict[tuple[str, str], int] = {}
    for row in expected:
        if row.who != "seed":
            began.setdefault((row.problem, row.who), row.attempt)
    assert {(e.problem, e.choice): e.attempt for e in decided if e.what == "stage"} == began
    assert {(e.problem, e.choice) for e in decided if e.what == "skip"} == {
        (name, "reductions") for name in NO_REDUCTION
    }
    exits = {e.problem: e.choice for e in decided if e.what == "exit"}
    assert exits == {PROBLEMS[4]: "before reductions", PROBLEMS[8]: "before product"}
