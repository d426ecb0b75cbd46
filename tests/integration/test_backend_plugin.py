"""A backend that somebody else adds, by one file and one entry point: a run of it, from the prompt to the report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import plugins
from support.small_problems import problem_file

from hkbench.errors import UsageError
from hkbench.records import Status, Verdict
from hkbench.registry import backend_names

ROOT = Path(__file__).parents[2]
PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return 2.0 * x + 1.0


def get_inputs():
    return [torch.randn(2048, 2048)]


def get_init_inputs():
    return []
"""
REPLY = '''```python
import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = """
void affine(const float *x, float *y, long count) {
  for (long i = 0; i < count; ++i) y[i] = 2.0f * x[i] + 1.0f;
}
"""
Path("affine.c").write_text(SOURCE)
subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "affine.c", "-o", "libaffine.so"], check=True)
affine = ctypes.CDLL(str(Path("libaffine.so").resolve())).affine
affine.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        affine(x.data_ptr(), y.data_ptr(), x.numel())
        return y
```
'''


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of an interpreter in which the plug-in is installed."""
    return plugins.installed(tmp_path / "packages", "plain_c", "hkbench.backends: plain_c = plain_c:PLAIN_C")


def test_a_run_of_a_backend_that_was_added(tmp_path: Path, installed: dict[str, str]) -> None:
    problem = problem_file(tmp_path / "problems", PROBLEM)
    reply = tmp_path / "replies" / problem.name / "attempt_1" / "sample_1" / "response.txt"
    reply.parent.mkdir(parents=True)
    reply.write_text(REPLY)
    results = tmp_path / "results"
    words = [str(problem.number), str(problem.number), "--problems", str(problem.path.parent), "--backend", "plain_c"]
    words += ["--device", "cpu", "--samples", "1", "--attempts", "1", "--replay", str(tmp_path / "replies")]
    words += ["--busy-wait", "0", "--shapes", "0"]
    command = [sys.executable, str(ROOT / "run_batch.py"), *words, "--results", str(results)]
    done = subprocess.run(
        command, env=installed, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr

    prompt = next(results.rglob("prompt_1.txt")).read_text()
    assert "## Plain C" in prompt and "written in plain C, called through ctypes" in prompt
    verdict = Verdict.model_validate_json(next(results.rglob("result_1.json")).read_text())
    assert verdict.status in (Status.FAST, Status.SLOW)
    assert verdict.conditions.backend == "plain_c" and verdict.conditions.versions["c"] == "C17"
    assert verdict.language is not None and verdict.language.backend == "plain_c"
    assert "plain_c on" in (results / "detailed_report.txt").read_text()


def test_a_backend_that_is_not_installed_is_not_known() -> None:
    assert "plain_c" not in backend_names()
    words = ["eval.py", "--backend", "plain_c", "--problem", "1", "--code", "none.py"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == UsageError.exit_code and "plain_c" in done.stderr
