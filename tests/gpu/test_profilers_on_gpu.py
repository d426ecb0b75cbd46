"""A slow candidate under the machine's own profiler, the user's way: `pytest -m gpu`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hkbench.profile.installed import find_program
from hkbench.records import Owner, Status, Verdict

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = ROOT / "problems" / "level1" / "4_RMSNorm_fp32.py"
EXAMPLES = ROOT / "examples" / "candidates"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
    pytest.mark.skipif(
        torch.version.cuda is None or find_program("ncu") is None, reason="needs an NVIDIA GPU and Nsight Compute's ncu"
    ),
]


@pytest.mark.parametrize(
    ("file", "kernel"), [("slow_cuda.py", "rms_norm_by_rows"), ("slow_triton.py", "rms_norm_in_pieces")]
)
def test_ncu_profiles_a_slow_candidate(tmp_path: Path, file: str, kernel: str) -> None:
    output = tmp_path / "verdict.json"
    command = [sys.executable, str(ROOT / "eval.py"), "--code", str(EXAMPLES / file), "--problem", str(PROBLEM)]
    done = subprocess.run([*command, "--output", str(output)], check=False, capture_output=True, text=True)
    assert output.exists(), done.stderr
    verdict = Verdict.model_validate(json.loads(output.read_text()))
    assert verdict.status is Status.SLOW, verdict.failure
    profile = verdict.profile
    assert profile is not None
    assert profile.source.startswith("ncu"), verdict.conditions.warnings
    first = profile.kernels[0]
    assert kernel in first.name
    assert (first.owner, first.calls) == (Owner.CANDIDATE, 1)
    assert verdict.candidate is not None
    assert verdict.candidate.median.value / 3 < first.seconds < 3 * verdict.candidate.median.value
    assert {"bandwidth", "L2 hit rate", "occupancy"} <= set(first.figures)
    assert first.registers and first.grid and first.block
    assert 1 <= len(profile.findings) <= 3


def test_the_prompt_is_made_from_what_ncu_measured(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "capture_profile.py"), "--code", str(EXAMPLES / "slow_cuda.py")]
    done = subprocess.run(
        [*command, "--problem", str(PROBLEM), "--out", str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = Verdict.model_validate(json.loads((tmp_path / "verdict.json").read_text()))
    assert verdict.profile is not None
    for text in ((tmp_path / "section.md").read_text(), (tmp_path / "prompt.txt").read_text()):
        assert "rms_norm_by_rows" in text
        assert all(finding in text for finding in verdict.profile.findings)
    assert [path.name for path in tmp_path.glob("profile/*/ncu.csv")] == ["ncu.csv"]
