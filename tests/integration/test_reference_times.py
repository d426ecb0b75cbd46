"""The forty references against themselves, as `make bench` runs them; here one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]


def test_a_reference_is_timed_against_itself() -> None:
    words = ["4", "4", "--device", "cpu", "--timing-runs", "10", "--trials", "1"]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "reference_times.py", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "1 of 1 problems timed"
    assert "4_RMSNorm_fp32" in done.stdout and " ms " in done.stdout
