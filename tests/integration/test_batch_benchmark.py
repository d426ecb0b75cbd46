"""benchmarks/batch.py as a user runs it, small and on a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import doors

pytestmark = [pytest.mark.alone, pytest.mark.slow]


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(doors.ROOT / "benchmarks" / "batch.py"), "--device", "cpu"]
    command += ["--folder", str(folder / "runs"), "--json", str(folder / "figures.json"), *map(str, arguments)]
    return subprocess.run(
        command, env=doors.environment(), capture_output=True, text=True, timeout=doors.LIMIT, check=False
    )


def test_a_small_batch(tmp_path: Path) -> None:
    quick = ("--timing-runs", 3, "--warmup", 1, "--trials", 2, "--run-timeout", 20, "--busy-wait", 0, "--shapes", 0)
    done = run(tmp_path, "--problems", 9, 10, "--samples", 2, "--written", 0, "--", *quick)
    assert done.returncode == 0, done.stderr
    assert "4 candidates: 0 written, 2 equal, 2 contiguous, 0 scaled" in done.stdout
    (found,) = json.loads((tmp_path / "figures.json").read_text())["runs"]
    assert found["complete"] and len(found["judged"]) == 4 and found["lost"] == 0
    begin, end = found["window"]
    assert 0 < end - begin < found["seconds"]
    (idle,) = found["idle"]
    assert 0.0 <= idle < 1.0
    held = sorted((one["turns"]["lent"], one["turns"]["returned"]) for one in found["judged"])
    assert begin == held[0][0] and end == held[-1][1]
    assert idle == pytest.approx(1.0 - sum(returned - lent for lent, returned in held) / (end - begin), abs=1e-6)
    assert found["per_hour"] == pytest.approx(4 * 3600 / (end - begin))
    assert done.stdout.count("| 1 | 4 | 4 |") == 1
    assert all(one["speedup"]["value"] > 0 for one in found["judged"])


def test_a_batch_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    done = run(tmp_path, "--problems", 9, 12, "--samples", 3, "--written", 0, "--time-limit", 32)
    assert "the batch is stopped after" in done.stdout
    (found,) = json.loads((tmp_path / "figures.json").read_text())["runs"]
    assert not found["complete"] and len(found["judged"]) < 12
    assert found["seconds"] < 32 + doors.LIMIT / 4
    assert ", stopped |" in done.stdout
