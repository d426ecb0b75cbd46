"""A slow candidate under a maker's profiler, by the real evaluator, fork servers, guard and cage.

The profilers are STAND-INS (tests/support/standins): they run the wrapped command for real and write files of the
documented form with made-up numbers. The real ncu: tests/gpu/test_profilers_on_gpu.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.processes import left_behind
from support.small_problems import LINEAR, candidate_file, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, IsolationLevel, Problem, Status, Track, Verdict
from hkbench.sandbox.client import ForkServer
from hkbench.sandbox.environment import kept_environment

pytestmark = [pytest.mark.alone, pytest.mark.asyncio(loop_scope="module")]

STANDINS = Path(__file__).resolve().parents[1] / "support" / "standins"
SETTINGS = EvaluationSettings(
    busy_wait=0.0,
    shapes=0,
    track=Track.ANY,
    trials=1,
    timing_runs=5,
    timing_seconds=5.0,
    warmups=1,
    load_timeout=30.0,
    run_timeout=20.0,
    memory_gib=4.0,
)
#: Slow, and it says what it would launch: one kernel a pass.
SLOW = """
import os, time
import torch, torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.linear = nn.Linear(width, out)

    def forward(self, x):
        print("launch slow_linear<4>(float*, int)", flush=True)
        time.sleep(0.02)
        return self.linear(x)
"""
PAUSE = "        time.sleep(0.02)\n"


@dataclass(frozen=True)
class Bench:
    """One evaluator whose judge finds in `tools` what a test puts there."""

    evaluator: LocalEvaluator
    tools: Path
    kept: Path

    def put(self, name: str | None, mode: str = "") -> None:
        """The stand-in `name`, and nothing else that could be taken for a profiler."""
        shutil.rmtree(self.kept, ignore_errors=True)
        for path in self.tools.iterdir():
            path.unlink()
        if name is not None:
            program = self.tools / name
            program.write_text(f"#!{sys.executable}\n" + (STANDINS / f"{name}.py").read_text())
            program.chmod(0o755)
        if mode:
            (self.tools / "standin").write_text(mode)

    async def judge(self, problem: Problem, folder: Path, source: str = SLOW, timeout: float = 120.0) -> Verdict:
        self.evaluator._settings = SETTINGS.model_copy(
            update={"profile_timeout": timeout, "keep_profile": str(self.kept)}
        )
        code = candidate_file(folder, source)
        done = await self.evaluator.evaluate(problem, code, folder / "build", "cpp")
        assert done.verdict is not None
        assert done.verdict.status is Status.SLOW, done.verdict.failure
        return done.verdict

    def said(self) -> dict[str, Any]:
        """What was kept of the first step."""
        (folder,) = self.kept.iterdir()
        loaded: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
        return loaded


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    root = tmp_path_factory.mktemp("profilers")
    tools = root / "tools" / "bin"
    tools.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tools}:/usr/bin:/bin")
        for name in ("CUDA_HOME", "ROCM_PATH"):
            patch.setenv(name, str(root / "nothing"))
        evaluator = LocalEvaluator(DeviceKind.CPU, SETTINGS)
        own = kept_environment() | {"PYTHONPATH": os.pathsep.join(sys.path)}
        evaluator._workers = ForkServer("support.standins.worker", own)
        async with evaluator:
            yield Bench(evaluator, tools, root / "kept")
    assert left_behind() == {}


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return problem_file(tmp_path / "problems", LINEAR)


def notes(verdict: Verdict) -> str:
    return "\n".join(verdict.conditions.warnings)


async def test_ncu_profiles_a_slow_candidate(bench: Bench, problem: Problem, tmp_path: Path) -> None:
    bench.put("ncu")
    verdict = await bench.judge(problem, tmp_path)
    assert verdict.profile is not None, notes(verdict)
    assert verdict.profile.source.startswith("ncu"), notes(verdict)
    assert [(use.name, use.calls) for use in verdict.profile.kernels] == [("slow_linear<4>(float*, int)", 1)]
    assert verdict.profile.kernels[0].registers == 32
    assert verdict.profile.kernels[0].seconds == pytest.approx(1e-5)
    assert "profiler" not in notes(verdict)
    said = bench.said()
    assert said["returncode"] == 0
    assert said["output"].count("launch ") == 4  # two warm-ups, two passes
    (kept,) = bench.kept.glob("*/ncu.csv")
    assert kept.read_text().count("slow_linear") == 2


async def test_rocprofv3_takes_four_runs(bench: Bench, problem: Problem, tmp_path: Path) -> None:
    bench.put("rocprofv3")
    verdict = await bench.judge(problem, tmp_path)
    assert verdict.profile is not None, notes(verdict)
    assert verdict.profile.source == "rocprofv3 (kernel trace, 3 counter passes)", notes(verdict)
    (use,) = verdict.profile.kernels
    assert (use.calls, use.vgprs, use.scratch_bytes) == (1, 32, 64)
    assert use.counters["SQ_WAVES"] == 100.0
    assert any("scratch" in finding for finding in verdict.profile.findings)


@pytest.mark.parametrize(
    ("mode", "timeout", "expected"),
    [
        ("refused", 120.0, "NVreg_RestrictProfilingToAdminUsers=0"),
        ("nothing", 120.0, "launched no kernel on the GPU"),
        ("sleep", 3.0, "did not end in time"),
    ],
)
async def test_one_that_fails_says_what_to_do_and_torch_takes_over(
    bench: Bench, problem: Problem, tmp_path: Path, mode: str, timeout: float, expected: str
) -> None:
    bench.put("ncu", mode)
    verdict = await bench.judge(problem, tmp_path, timeout=timeout)
    assert expected in notes(verdict)
    assert "torch's profiler was used" in notes(verdict)
    assert verdict.profile is not None
    assert verdict.profile.source.startswith("torch.profiler")


async def test_where_none_is_installed_the_profile_says_so(bench: Bench, problem: Problem, tmp_path: Path) -> None:
    bench.put(None)
    verdict = await bench.judge(problem, tmp_path)
    assert verdict.profile is not None
    assert verdict.profile.source.startswith("torch.profiler")
    assert any("ncu is not installed" in note for note in verdict.profile.notes)
    assert "profiler" not in notes(verdict)


async def test_the_profiled_process_is_as_confined_as_the_runner(
    bench: Bench, problem: Problem, tmp_path: Path
) -> None:
    """It tries, within a forward pass, what a runner cannot do, and leaves a link where the second cage is made."""
    if bench.evaluator.isolation.level is not IsolationLevel.FULL:
        pytest.skip("runners are not fully confined on this machine")
    bench.put("ncu")
    secret = tmp_path / "secret"
    secret.write_text("of the user")
    tries = f"""
        import socket
        from pathlib import Path
        reached = []
        for what, attempt in {{
            "file": lambda: open("{secret}"),
            "file by tmp": lambda: open("/tmp/secret"),
            "network": lambda: socket.socket(socket.AF_INET),
            "device node": lambda: os.mknod("node", 0o020600, os.makedev(1, 3)),
            "processes": lambda: os.kill({os.getpid()}, 0),
        }}.items():
            try:
                attempt()
                reached.append(what)
            except OSError:
                pass
        print("in", Path.cwd().name, "reached", reached, flush=True)
        if Path.cwd().name == "candidate" and not os.path.islink("tmp"):
            os.rename("tmp", "moved")
            os.symlink("{tmp_path}", "tmp")
"""
    verdict = await bench.judge(problem, tmp_path, SLOW.replace(PAUSE, tries + PAUSE))
    said = bench.said()["output"]
    assert said.count("in profile reached []") == 4, notes(verdict) + said
    assert "reached ['" not in said


async def test_a_profiled_process_over_its_memory_costs_the_profile_only(
    bench: Bench, problem: Problem, tmp_path: Path
) -> None:
    bench.put("ncu")
    grow = """        if os.getcwd().endswith("profile"):
            hold = [torch.ones(1 << 28) for _ in range(8)]
            time.sleep(5)
"""
    verdict = await bench.judge(problem, tmp_path, SLOW.replace(PAUSE, grow + PAUSE))
    assert "(memory)" in notes(verdict)
    assert verdict.profile is not None
    assert verdict.profile.source.startswith("torch.profiler")


async def test_the_script_that_writes_it_all_down(bench: Bench, problem: Problem, tmp_path: Path) -> None:
    """As a user runs it, here where there is no GPU: torch's profiler, which the exit code says."""
    bench.put(None)
    script = Path(__file__).resolve().parents[2] / "scripts" / "capture_profile.py"
    out = tmp_path / "out"
    command = [sys.executable, str(script), "--code", str(candidate_file(tmp_path, SLOW)), "--device", "cpu"]
    command += ["--problem", str(problem.path), "--timing-runs", "5", "--out", str(out)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    verdict = Verdict.model_validate_json((out / "verdict.json").read_text())
    assert verdict.profile is not None
    assert verdict.profile.source in done.stdout
    section = (out / "section.md").read_text()
    assert section.startswith("## Your attempt 1\nIt is correct, but slower")
    assert "One profiled forward pass:" in section
    assert section.splitlines()[-1] in (out / "prompt.txt").read_text()
    assert "class ModelNew" not in section
    assert (out / "machine.txt").read_text()
