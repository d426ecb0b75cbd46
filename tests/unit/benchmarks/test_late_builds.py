"""What the benchmark of late builds makes and reads."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks import late_builds
from benchmarks.batch_figures import Judged, Run
from benchmarks.replies import Kind
from hkbench.llm.replay import ReplayClient
from hkbench.records import DeviceKind, SampleKey, SlotTimes, Stage, StageEntered

KEY = SampleKey(problem="3_GELU", attempt=1, sample=1)


def entered(at: float, stage: Stage, device: int | None, key: SampleKey = KEY) -> str:
    return StageEntered(time=at, key=key, stage=stage, device=device).model_dump_json() + "\n"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Build for 10 s without the device, and for 2 s with it."""
    file = tmp_path / "journal.jsonl"
    other = KEY.model_copy(update={"sample": 2})
    file.write_text(
        entered(0.0, Stage.BUILD, None)
        + entered(10.0, Stage.LOAD, 0)
        + entered(11.0, Stage.BUILD, 0)
        + entered(11.5, Stage.BUILD, None, other)
        + entered(13.0, Stage.RUN, 0)
    )
    return file


def test_a_gpu_is_idle_while_its_candidate_compiles(journal: Path) -> None:
    assert [*late_builds.compiling(journal)] == [(11.0, 13.0)]
    turns = SlotTimes(asked=0.0, building=0.0, loaded=10.0, device=0, lent=10.0, returned=20.0)
    run = Run(1, 1, 30.0, complete=True, judged=[Judged(KEY, Kind.WRITTEN, "fast", None, turns)])
    found = late_builds.figures("init", run, journal)
    assert (found["idle"], found["compiling"]) == pytest.approx((0.2, 0.2))
    assert (found["correct"], found["others"], found["per_hour"]) == (1, {}, 360.0)
    assert "| init | 1 | 1 | 10 | 30 | 360 | 100% | 20.0% | 20.0% |" in late_builds.table([found])


@pytest.mark.parametrize("part", ["module", "init", "forward", "compile"])
def test_every_sample_of_a_part_has_its_reply(part: str, tmp_path: Path) -> None:
    candidates = late_builds.sources(DeviceKind.CPU, 2)
    options = argparse.Namespace(device="cpu", samples=2, more=[])
    plan = late_builds.make_plan(part, candidates, options, tmp_path)
    names = [problem.name for problem, _ in candidates]
    assert [problem.name for problem in plan.problems] == names
    recorded = ReplayClient(plan.replies, "cpp").recorded_samples(names)
    assert recorded is not None and len(plan.kinds) == 4
    texts = {path.read_text() for path in plan.replies.rglob("response.txt")}
    assert len(texts) == 4
    for text in texts:
        compile(text.split("```python\n")[1].removesuffix("```\n"), "code.py", "exec")


def test_a_triton_kernel_stands_for_the_problems_that_it_is_of() -> None:
    ((problem, _),) = late_builds.sources(DeviceKind.CPU, 1)
    relu = problem.model_copy(update={"number": 19})
    found = late_builds.of_part("triton", [(problem, ""), (relu, "")])
    ((of, text),) = found
    assert of == relu and "tl.where(x > 0, x, 0.0)" in text
