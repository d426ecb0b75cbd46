"""A slow candidate under a maker's profiler, by the real evaluator, fork servers, guard and cage.

The profilers are STAND-INS (tests/support/standins): they run the wrapped command for real and write files of the
documented form with made-up numbers. The real ncu: tests/gpu/test_profilers_on_gpu.py.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import living
from support.small_problems import LINEAR, candidate_file, problem_file

from hkbench.engine.evaluator import Evaluator
from hkbench.records import Backend, DeviceKind, JudgeSettings, Problem, Status, Track, Verdict
from hkbench.sandbox.client import ForkServer
from hkbench.sandbox.environment import kept_environment

STANDINS = Path(__file__).resolve().parents[1] / "support" / "standins"
SETTINGS = JudgeSettings(
    track=Track.ANY,
    trials=1,
    timing_runs=5,
    timing_seconds=5.0,
    warmups=1,
    load_timeout=30.0,
    run_timeout=20.0,
    memory_gib=4.0,
    profile_timeout=60.0,
)
#: Slow, and it says what it would launch: one kernel a pass. What it looks at besides tells where it runs.
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


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts stand-ins on PATH, and nothing else that could be taken for a profiler."""
    folder = tmp_path / "tools" / "bin"
    folder.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name in ("CUDA_HOME", "ROCM_PATH"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))

    def put(name: str, mode: str = "") -> Path:
        program = folder / name
        program.write_text(f"#!{sys.executable}\n" + (STANDINS / f"{name}.py").read_text())
        program.chmod(0o755)
        if mode:
            (folder / "standin").write_text(mode)
        return program

    return put


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return problem_file(tmp_path / "problems", LINEAR)


async def judge(problem: Problem, folder: Path, source: str = SLOW, settings: JudgeSettings = SETTINGS) -> Verdict:
    evaluator = Evaluator(DeviceKind.CPU, settings)
    evaluator._judges = ForkServer("support.standins.judge", kept_environment() | {"PYTHONPATH": ":".join(sys.path)})
    async with evaluator:
        done = await evaluator.evaluate(problem, candidate_file(folder, source), folder / "build", Backend.CPP)
    assert done.verdict is not None
    assert done.verdict.status is Status.SLOW, done.verdict.failure
    assert living() == {}
    return done.verdict


def notes(verdict: Verdict) -> str:
    return "\n".join(verdict.conditions.warnings)


async def test_ncu_profiles_a_slow_candidate(tools: Callable[..., Path], problem: Problem, tmp_path: Path) -> None:
    tools("ncu")
    kept = tmp_path / "kept"
    verdict = await judge(problem, tmp_path, settings=SETTINGS.model_copy(update={"keep_profile": str(kept)}))
    assert verdict.profile is not None, notes(verdict)
    assert verdict.profile.source.startswith("ncu"), notes(verdict)
    assert [(use.name, use.calls) for use in verdict.profile.kernels] == [("slow_linear<4>(float*, int)", 1)]
    assert verdict.profile.kernels[0].registers == 32
    assert verdict.profile.kernels[0].seconds == pytest.approx(1e-5)
    assert "profiler" not in notes(verdict)
    (folder,) = kept.iterdir()
    said = json.loads((folder / "metrics.json").read_text())
    assert said["returncode"] == 0
    assert said["output"].count("launch ") == 4  # two warm-ups, two passes
    assert (folder / "ncu.csv").read_text().count("slow_linear") == 2


async def test_rocprofv3_takes_four_runs(tools: Callable[..., Path], problem: Problem, tmp_path: Path) -> None:
    tools("rocprofv3")
    verdict = await judge(problem, tmp_path)
    assert verdict.profile is not None, notes(verdict)
    assert verdict.profile.source == "rocprofv3 (kernel trace, 3 counter passes)", notes(verdict)
    (use,) = verdict.profile.kernels
    assert (use.calls, use.vgprs, use.scratch_bytes) == (1, 32, 64)
    assert use.counters["SQ_WAVES"] == 100.0
    assert any("scratch" in finding for finding in verdict.profile.findings)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("refused", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("nothing", "launched no kernel on the GPU"),
        ("sleep", "did not end in time"),
    ],
)
async def test_one_that_fails_says_what_to_do_and_torch_takes_over(
    tools: Callable[..., Path], problem: Problem, tmp_path: Path, mode: str, expected: str
) -> None:
    tools("ncu", mode)
    verdict = await judge(problem, tmp_path, settings=SETTINGS.model_copy(update={"profile_timeout": 15.0}))
    assert expected in notes(verdict)
    assert "torch's profiler was used" in notes(verdict)
    assert verdict.profile is not None
    assert verdict.profile.source.startswith("torch.profiler")


async def test_where_none_is_installed_the_profile_says_so(
    tools: Callable[..., Path], problem: Problem, tmp_path: Path
) -> None:
    verdict = await judge(problem, tmp_path)
    assert verdict.profile is not None
    assert verdict.profile.source.startswith("torch.profiler")
    assert any("ncu is not installed" in note for note in verdict.profile.notes)
    assert "profiler" not in notes(verdict)


async def test_the_profiled_process_is_as_confined_as_the_runner(
    tools: Callable[..., Path], problem: Problem, tmp_path: Path
) -> None:
    """It tries, within a forward pass, what a runner cannot do, and leaves links where its second cage is made."""
    tools("ncu")
    (tmp_path / "secret").write_text("of the user")
    tries = f"""
        import shutil, socket
        from pathlib import Path
        def got(what):
            try:
                return bool(what()) or True
            except OSError:
                return False
        reached = {{
            "secret": got(lambda: open("{tmp_path}/secret").read()),
            "by tmp": got(lambda: open("/tmp/secret").read()),
            "network": got(lambda: socket.socket(socket.AF_INET)),
            "device": got(lambda: os.mknod("node", 0o020600, os.makedev(1, 3))),
            "other": got(lambda: os.kill({__import__("os").getpid()}, 0)),
        }}
        print("reached", [name for name, yes in reached.items() if yes], flush=True)
        own = Path(os.environ["TMPDIR"])
        if own.parent.name == "candidate":
            shutil.rmtree(own)
            own.symlink_to("{tmp_path}")
"""
    source = SLOW.replace("        time.sleep(0.02)\n", tries + "        time.sleep(0.02)\n")
    kept = tmp_path / "kept"
    verdict = await judge(problem, tmp_path, source, SETTINGS.model_copy(update={"keep_profile": str(kept)}))
    (folder,) = kept.iterdir()
    said = json.loads((folder / "metrics.json").read_text())["output"]
    assert "reached []" in said, notes(verdict) + said
    assert "reached ['" not in said
    shutil.rmtree(kept)


async def test_a_profiled_process_over_its_memory_costs_the_profile_only(
    tools: Callable[..., Path], problem: Problem, tmp_path: Path
) -> None:
    tools("ncu")
    grow = """        if "candidate" not in os.getcwd():
            hold = [torch.ones(1 << 28) for _ in range(8)]
            time.sleep(5)
"""
    source = SLOW.replace("        time.sleep(0.02)\n", grow + "        time.sleep(0.02)\n")
    verdict = await judge(problem, tmp_path, source)
    assert "memory" in notes(verdict)
    assert verdict.profile is not None
    assert verdict.profile.source.startswith("torch.profiler")
