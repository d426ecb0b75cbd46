"""The process that a profiler looks at, as the process that it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hkbench.runner import profiled

ROOT = Path(__file__).resolve().parents[3]
PROBLEM = """
import torch
rows, width = 4, 6
def get_inputs():
    return [torch.rand(rows, width), {"scale": [torch.ones(rows)]}, 2]
def get_init_inputs():
    return [width]
"""
CANDIDATE = """
import torch, torch.nn as nn
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))
    def forward(self, x, more, times):
        assert not torch.is_grad_enabled()
        print(tuple(x.shape), tuple(more["scale"][0].shape), times, round(self.weight.sum().item(), 4))
        return x * self.weight * times
"""


def asked(folder: Path, **changed: Any) -> Path:
    (folder / "problem.py").write_text(PROBLEM)
    (folder / "candidate.py").write_text(CANDIDATE)
    fields = {
        "code": str(folder / "candidate.py"),
        "problem": str(folder / "problem.py"),
        "overrides": {},
        "device": "cpu",
        "seed": 7,
        "warmups": 2,
        "forwards": 3,
    }
    path = folder / "passes.json"
    path.write_text(json.dumps(fields | changed))
    return path


def test_it_makes_warm_ups_and_passes_on_the_problems_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiled.main(str(asked(tmp_path, overrides={"rows": 5})))
    lines = capsys.readouterr().out.splitlines()
    torch.manual_seed(7)
    weight = round(torch.rand(6).sum().item(), 4)
    assert lines == [f"(5, 6) (5,) 2 {weight}"] * 5


def test_it_finds_its_packages_where_the_project_is_not_installed(tmp_path: Path) -> None:
    # As a profiler starts it, but without what `pip install -e` left in this environment.
    folder = Path(profiled.__file__).parent
    start = (
        "import sys, runpy\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
        f"sys.path[:] = [{str(folder)!r}, *(p for p in sys.path if p not in ('', {str(ROOT)!r}))]\n"
        f"sys.argv = ['profiled.py', {str(asked(tmp_path))!r}]\n"
        f"runpy.run_path({profiled.__file__!r}, run_name='__main__')\n"
    )
    command = [sys.executable, "-c", start]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5


def test_an_exception_of_the_candidates_ends_it_with_a_status(tmp_path: Path) -> None:
    path = asked(tmp_path)
    (tmp_path / "candidate.py").write_text("raise RuntimeError('no kernel here')")
    command = [sys.executable, profiled.__file__, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no kernel here" in done.stderr


def test_the_passes_are_told_apart_from_what_came_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(profiled, "_begin", lambda _device: order.append("begin"))
    monkeypatch.setattr(profiled, "_end", lambda _device: order.append("end"))
    monkeypatch.setattr("builtins.print", lambda *_: order.append("pass"))
    profiled.main(str(asked(tmp_path)))
    assert order == ["pass", "pass", "begin", "pass", "pass", "pass", "end"]
