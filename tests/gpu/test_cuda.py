"""On a real NVIDIA or AMD GPU: `pytest -m gpu`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hkbench.device_kinds.cuda import CUDA
from hkbench.llm.extract import extract
from hkbench.llm.replies import replies_in_file
from hkbench.records import Status, Verdict

ROOT = Path(__file__).resolve().parents[2]
REPLIES = replies_in_file(ROOT / "examples" / "replies" / "reflect.toml", "cuda")
BY_LIBRARY = ("8_Linear_bias_GELU_fp32",)  #: whose first reply leaves the product to cuBLAS
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]


def judge(tmp_path: Path, problem: Path, source: str, *options: str) -> tuple[int, Verdict]:
    """eval.py as a user runs it."""
    code, output = tmp_path / "candidate.py", tmp_path / "verdict.json"
    code.write_text(source)
    command = [sys.executable, str(ROOT / "eval.py"), "--code", str(code), "--problem", str(problem)]
    options = options or ("--track", "any")  # most of these candidates are PyTorch's own kernels
    done = subprocess.run([*command, "--output", str(output), *options], check=False, capture_output=True, text=True)
    assert output.exists(), done.stderr
    return done.returncode, Verdict.model_validate(json.loads(output.read_text()))


def reply(problem: str, sample: int) -> str:
    source = extract(REPLIES[f"{problem}/attempt_1/sample_{sample}"].text, None).source
    assert source is not None
    return source


@pytest.mark.skipif(torch.version.cuda is None, reason="the CUDA replies need a CUDA build of torch")
@pytest.mark.parametrize("problem", sorted({name.partition("/")[0] for name in REPLIES}))
def test_the_first_cuda_reply_beats_eager(tmp_path: Path, problem: str) -> None:
    track = "any" if problem in BY_LIBRARY else "own"
    file = ROOT / "problems" / "level1" / f"{problem}.py"
    code, verdict = judge(tmp_path, file, reply(problem, 1), "--track", track)
    assert (code, verdict.status) == (0, Status.FAST), verdict.failure
    assert verdict.candidate is not None
    assert verdict.candidate.clock == CUDA.evaluators_clock
    assert verdict.language is not None
    assert (verdict.language.backend, verdict.language.ran) == ("cuda", True)
    assert verdict.conditions.device_facts is not None and verdict.conditions.device_facts.sources["name"] == "torch"


PROBLEM = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2
def get_inputs():
    return [torch.randn(4096, 4096)]
def get_init_inputs():
    return []
"""


def candidate(body: str) -> str:
    return f"import torch, torch.nn as nn\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        {body}\n"


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "1_Relu_twice.py"
    path.write_text(PROBLEM)
    return path


def test_unwritten_output_is_wrong(tmp_path: Path, problem: Path) -> None:
    code, verdict = judge(tmp_path, problem, candidate("return torch.empty_like(x)"))
    assert code == 2
    assert verdict.failure is not None


def test_work_on_a_side_stream_is_timed(tmp_path: Path, problem: Path) -> None:
    body = """s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        y = torch.empty_like(x)
        with torch.cuda.stream(s):
            for _ in range(40): y.copy_(torch.relu(x) * 2)
        return y"""
    code, _ = judge(tmp_path, problem, candidate(body))
    assert code in (1, 2), "forty times the work cannot be fast"


def test_copies_by_the_host_give_the_same_verdict(tmp_path: Path, problem: Path) -> None:
    code, verdict = judge(tmp_path, problem, candidate("return torch.relu(x) * 2"), "--host-copies", "--track", "any")
    assert code in (0, 1), verdict.failure
    code, verdict = judge(tmp_path, problem, candidate("x += 1; return torch.relu(x - 1) * 2"), "--host-copies")
    assert code == 2
    assert verdict.failure is not None
    assert verdict.failure.kind == "input_modified"


def test_an_illegal_access_is_a_crash_and_the_next_candidate_is_judged_right(tmp_path: Path, problem: Path) -> None:
    wild = candidate("return x.flatten()[torch.full((1,), 2**33, device=x.device)] + x")
    code, verdict = judge(tmp_path, problem, wild)
    assert code == 2
    assert verdict.failure is not None
    assert verdict.failure.kind in ("crash", "runtime_error")
    code, verdict = judge(tmp_path, problem, candidate("return torch.relu(x) * 2"))
    assert code in (0, 1)


def test_a_slow_candidate_is_profiled_by_torch_where_no_other_profiler_ends_in_time(
    tmp_path: Path, problem: Path
) -> None:
    slow = candidate("return (torch.relu(x.double()) * 2).float()")
    code, verdict = judge(tmp_path, problem, slow, "--track", "any", "--profile-timeout", "0.01")
    assert code == 1
    assert verdict.profile is not None
    assert "device" in verdict.profile.source
    assert len(verdict.profile.kernels) >= 3
