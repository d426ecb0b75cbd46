"""`run_batch.py --problem FILE.json`: a batch over a problem that is described, and its resume without that file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import doors

from hkbench.records import VerdictReached

NAME = "3_Doubled"
CANDIDATE = "import torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
TOLD = {
    "name": "Doubled",
    "number": 3,
    "shapes": {"n": 128},
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["n", "n"]}],
    "reference": "def reference(x):\n    return x + x",
}


@pytest.mark.slow
def test_a_described_problem_is_run_and_resumed(tmp_path: Path) -> None:
    described, replies, results = tmp_path / "doubled.json", tmp_path / "replies", tmp_path / "run"
    described.write_text(json.dumps(TOLD))
    doors.reply(replies, NAME, 1, 1, doors.fenced(CANDIDATE))
    fixed = ("--device", "cpu", "--replay", replies, "--samples", 1, *doors.QUICK)
    done = doors.call("run_batch", "--problem", described, "--results", results, *fixed, "--attempts", 1)
    assert done.returncode == 0, done.stderr
    (reached,) = [event for event in doors.events(results) if isinstance(event, VerdictReached)]
    assert (reached.key.problem, reached.kind) == (NAME, None)
    described.unlink()
    doors.reply(replies, NAME, 2, 1, doors.fenced(CANDIDATE))
    done = doors.call("run_batch", "--resume", results, "--attempts", 2)
    assert done.returncode == 0, done.stderr


def test_a_wrong_one_is_refused_by_its_field(tmp_path: Path) -> None:
    described = tmp_path / "doubled.json"
    described.write_text(json.dumps(TOLD | {"shapes": {"m": 3}}))
    done = doors.call("run_batch", "--problem", described, "--dry-run", "--device", "cpu", "--replay", tmp_path)
    assert (done.returncode, "inputs.0.shape: there is no size n" in done.stderr) == (64, True)
    done = doors.call("run_batch", "1", "--problem", described)
    assert (done.returncode, "--problem names one problem" in done.stderr) == (64, True)
