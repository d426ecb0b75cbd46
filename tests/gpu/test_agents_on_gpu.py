"""The Triton replies of strategy `agents` for real, each problem its labelled way: `pytest -m gpu`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support import doors
from support.strategy_examples import EXAMPLES, ROOT, rows

from hkbench.records import Decided, VerdictReached

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]
SECONDS = 600


def test_each_problem_goes_its_way_to_the_target(tmp_path: Path) -> None:
    command = [sys.executable, "run_batch.py", "1", "4", "--strategy", "agents", "--backend", "triton"]
    command += ["--device", "cuda", "--replay", str(EXAMPLES / "agents.toml"), "--results", str(tmp_path / "run")]
    done = subprocess.run(
        command, cwd=ROOT, env=doors.environment(), check=False, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    events = doors.events(tmp_path / "run")
    verdicts = {
        (one.key.problem, one.key.attempt): str(one.kind or one.status)
        for one in events
        if isinstance(one, VerdictReached)
    }
    labels = {(row.problem, row.attempt): row.label for row in rows("agents", "triton")}
    assert verdicts == labels
    ends = {one.problem: one.choice for one in events if isinstance(one, Decided) and one.what == "end"}
    assert ends == dict.fromkeys({problem for problem, _ in labels}, "target met")
    profiled = [one for one in events if isinstance(one, Decided) and one.what == "branch" and one.choice == "profiled"]
    assert {one.problem for one in profiled} == set(ends)
