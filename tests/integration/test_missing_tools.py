"""Programs that go missing are failures of the machine, whatever a candidate says."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from support import doors

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.errors import ToolchainUnavailable
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, EvaluationSettings, FailureKind, SizeSet

SETTINGS = EvaluationSettings(busy_wait=0.0, trials=1, timing_runs=2, shapes=0, profile_slow=False)
LIAR = """import subprocess
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        subprocess.run(["c++", "--no-such-option"])
        raise RuntimeError("Error building extension 'x': /bin/sh: 1: c++: not found\\nFAILED: [code=127] main.o")
"""


async def test_a_tool_that_goes_missing_on_the_way_and_a_candidate_that_only_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = load_problem(doors.problem(tmp_path / "problems", "1_One", 1))
    code = tmp_path / "code.py"
    code.write_text(LIAR)
    async with LocalEvaluator(DeviceKind.CPU, SETTINGS, SizeSet.CPU) as evaluator:
        found = await evaluator.evaluate(problem, code, tmp_path / "build", "cpp")
        assert found.verdict is not None and found.verdict.failure is not None
        assert found.verdict.failure.kind in (FailureKind.BUILD_ERROR, FailureKind.RUNTIME_ERROR)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CXX", raising=False)
        with pytest.raises(ToolchainUnavailable, match="install g"):
            await evaluator.evaluate(problem, code, tmp_path / "build", "cpp")


def test_a_minimal_path_needs_no_helper_programs(tmp_path: Path) -> None:
    """The compilers are there, and no `sleep`."""
    problem = doors.problem(tmp_path / "problems", "1_One", 1)
    (tmp_path / "code.py").write_text(doors.fast(1))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("c++", "g++", "gcc", "as", "ld", "sh"):
        program = shutil.which(name)
        assert program is not None
        (programs / name).symlink_to(program)
    given = ("--code", tmp_path / "code.py", "--problem", problem, "--device", "cpu", *doors.QUICK)
    done = doors.run("eval", *given, env={"PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent)])})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
