"""The public interface from Python: one candidate, a batch, and the examples in examples/api as they stand."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import doors

import hkbench
from hkbench.errors import ConfigurationError, InputMissing, RunMismatch, UsageError
from hkbench.records import DeviceKind, FailureKind, Status

EXAMPLES = doors.ROOT / "examples" / "api"
QUICK = hkbench.EvaluationSettings.model_validate(
    {"track": "any", "trials": 2, "timing_runs": 3, "warmups": 1, "busy_wait": 0, "shapes": 0}
)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    return doors.problem(tmp_path / "problems", "1_Add", 3)


def settings(tmp_path: Path) -> dict[str, object]:
    """A batch of one attempt on a problem and a reply below `tmp_path`."""
    doors.reply(tmp_path / "replies", "1_Add", 1, 1, doors.fenced(doors.fast(3)))
    return {
        "numbers": [1], "problems": str(tmp_path / "problems"), "replay": str(tmp_path / "replies"), "device": "cpu",
        "attempts": 1, "samples": 1, "track": "any", "trials": 2, "timing_runs": 3, "warmup": 1, "busy_wait": 0,
        "shapes": 0,
    }  # fmt: skip


def test_a_text_and_a_file_get_the_same_verdict_also_within_a_loop(problem: Path, tmp_path: Path) -> None:
    async def in_a_notebook() -> hkbench.Verdict:
        return hkbench.evaluate(problem, doors.fast(3), device="cpu", settings=QUICK)

    assert asyncio.run(in_a_notebook()).status is Status.FAST
    file = tmp_path / "wrong.py"
    file.write_text(doors.wrong(3))
    verdict = hkbench.evaluate(problem, file, device=DeviceKind.CPU, backend="cpp", settings=QUICK)
    assert verdict.status is Status.INCORRECT and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.WRONG_VALUES


def test_what_cannot_be_judged_is_an_error_with_a_type(problem: Path, tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match=r"absent\.py"):
        hkbench.evaluate(problem, tmp_path / "absent.py", device="cpu")
    with pytest.raises(UsageError, match="cpu"):
        hkbench.evaluate(problem, doors.fast(3), device="abacus")
    with pytest.raises(UsageError):
        hkbench.evaluate(problem, doors.fast(3), device="cpu", backend="hip")


def test_a_batch_by_a_file_and_once_more_by_its_settings(problem: Path, tmp_path: Path) -> None:
    file = tmp_path / "batch.toml"
    told = {**settings(tmp_path)}
    lines = (f"{key} = {value!r}" for key, value in told.items())
    file.write_text("\n".join(lines) + "\n")
    first = hkbench.run(file, results=tmp_path / "first")
    assert first.complete and first.path == tmp_path / "first"
    assert list(first.samples.status) == ["fast"]
    again = hkbench.run(first.config, results=tmp_path / "again", problems=tmp_path / "problems")
    assert again.complete and again.config == first.config
    problem.write_text(problem.read_text() + "\n")
    with pytest.raises(RunMismatch, match="1_Add"):
        hkbench.run(first.config, results=tmp_path / "changed", problems=tmp_path / "problems")


def test_options_are_checked_as_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="sampels"):
        hkbench.run({"numbers": 1, "sampels": 3})
    with pytest.raises(InputMissing):
        hkbench.run(tmp_path / "absent.toml")
    (tmp_path / "broken.toml").write_text("numbers = = 1")
    with pytest.raises(ConfigurationError):
        hkbench.run(tmp_path / "broken.toml")


@pytest.mark.slow
def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    def example(name: str, *arguments: object) -> str:
        call = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
        env = doors.environment({"PYTHONPATH": os.pathsep.join([str(doors.ROOT)])})
        done = subprocess.run(
            call, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=doors.LIMIT
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert example("judge_a_candidate").split()[0] in {"fast", "slow"}
    results = tmp_path / "results"
    assert "True" in example("run_a_batch", doors.ROOT / "examples/replies/reflect.toml", results).split()
    assert "4_RMSNorm_fp32" in example("read_a_run", results)
