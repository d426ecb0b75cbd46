"""The clocked evaluator: importing it puts clocks around its functions, so that happens in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_part_that_it_clocks_is_there() -> None:
    code = "from benchmarks import evaluator_probe; print(len(evaluator_probe.PARTS))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
