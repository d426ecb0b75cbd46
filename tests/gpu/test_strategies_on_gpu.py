"""The CUDA replies of examples/replies for real, each problem its labelled way, ncu in the prompts: `pytest -m gpu`.

The replies are for an H200: what is skipped at 85 % of the roofline, and what is slow, depends on the device.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support import doors
from support.strategy_examples import EXAMPLES, ROOT, Row, rows

from hkbench.categories import key_metrics, load_categories, metric_names
from hkbench.profile.installed import find_program
from hkbench.records import (
    AdviceReceived,
    Decided,
    DeviceKind,
    KernelProfile,
    PromptRendered,
    QuestionKind,
    SampleKey,
    Status,
    Verdict,
    VerdictReached,
)
from hkbench.store.layout import RunPaths

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
    pytest.mark.skipif(
        torch.version.cuda is None or find_program("ncu") is None, reason="needs an NVIDIA GPU and Nsight Compute's ncu"
    ),
]

PROBLEMS = {int(row.problem.split("_")[0]): row.problem for row in rows("judge", "cuda")}
CATEGORIES, CATEGORY = ROOT / "prompts" / "categories.toml", "fusion-memory"
SECONDS = 900
KERNEL = re.compile(r"(\w+)(?:<[^(]*>)?\(")  #: its name in ncu's, which has template arguments and parameters


def run(folder: Path, strategy: str, *more: str) -> Path:
    command = [sys.executable, "run_batch.py", "1", "4", "--device", "cuda", "--timing-runs", "40", *more]
    command += ["--strategy", strategy, "--replay", str(EXAMPLES / f"{strategy}.toml"), "--results", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=doors.environment(), check=False, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("strategies") / "judge", "judge", "--rounds", "3")


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("strategies") / "staged", "staged")


def verdicts(results: Path) -> dict[tuple[str, int], str]:
    """By problem and attempt `fast`, `slow`, or the failure kind."""
    return {
        (event.key.problem, event.key.attempt): str(event.kind or event.status)
        for event in doors.events(results)
        if isinstance(event, VerdictReached)
    }


def labels(strategy: str) -> dict[tuple[str, int], str]:
    table = (row for row in rows(strategy, "cuda") if not row.judge and row.who != "spare")
    return {(row.problem, row.attempt): row.label for row in table}


def speedups(results: Path, problem: str) -> dict[int, float]:
    events = [event for event in doors.events(results) if isinstance(event, VerdictReached)]
    return {one.key.attempt: one.speedup for one in events if one.key.problem == problem and one.speedup is not None}


def profile_of(results: Path, key: SampleKey) -> KernelProfile:
    """What the profiler saw of a correct kernel."""
    path = RunPaths(results).problem(key.problem).sample(key.attempt, key.sample).result
    verdict = Verdict.model_validate(json.loads(path.read_text(encoding="utf-8")))
    assert verdict.status in (Status.FAST, Status.SLOW)
    assert verdict.profile is not None, verdict.conditions.warnings
    assert verdict.profile.source.startswith("ncu"), verdict.conditions.warnings
    return verdict.profile


def test_the_judge_leads_each_problem_its_way(judged: Path) -> None:
    assert verdicts(judged) == labels("judge")
    advice = {
        Row(event.key.problem, event.key.attempt, event.key.folder, event.form.value)
        for event in doors.events(judged)
        if isinstance(event, AdviceReceived)
    }
    assert advice == {row for row in rows("judge", "cuda") if row.judge}
    decided = [event for event in doors.events(judged) if isinstance(event, Decided) and event.what == "advice"]
    assert {(event.problem, event.attempt) for event in decided} == {(PROBLEMS[4], 2)}
    second = speedups(judged, PROBLEMS[2])
    assert second[3] < second[2] < 1 <= second[4], "advice that makes it worse"
    fourth = speedups(judged, PROBLEMS[4])
    assert fourth[3] < 1 <= fourth[2], "advice against what was measured"


def test_a_question_shows_what_ncu_measured_of_the_kernel_under_review(judged: Path) -> None:
    asked = [
        event
        for event in doors.events(judged)
        if isinstance(event, AdviceReceived) and event.kind is QuestionKind.OPTIMISE and event.key.call == 1
    ]
    assert {(event.key.problem, event.key.attempt) for event in asked} >= {
        (PROBLEMS[1], 3), (PROBLEMS[2], 3), (PROBLEMS[3], 2), (PROBLEMS[4], 2),
    }  # fmt: skip
    for event in asked:
        problem = RunPaths(judged).problem(event.key.problem)
        prompt = problem.advice(event.key.attempt, event.key.call).prompt.read_text(encoding="utf-8")
        profile = profile_of(judged, event.about)
        lines = key_metrics(profile, metric_names(profile))
        assert lines and all(f"- {line}" in prompt for line in lines), (event.key, lines)
        assert {"dram__bytes_read.sum", "bandwidth of peak", "occupancy"} <= set(metric_names(profile))
        code = problem.sample(event.about.attempt, event.about.sample).code.read_text(encoding="utf-8")
        assert code.strip() in prompt
        for use in profile.kernels:
            name = KERNEL.search(use.name)
            assert name is not None and re.search(rf"\b{name[1]}\b", code), (event.key, use.name)


def test_stages_go_their_way(staged: Path) -> None:
    assert verdicts(staged) == labels("staged")
    decided = [event for event in doors.events(staged) if isinstance(event, Decided)]
    began: dict[tuple[str, str], int] = {}
    for row in rows("staged", "cuda"):
        if row.who not in ("seed", "spare"):
            began.setdefault((row.problem, row.who), row.attempt)
    assert {(one.problem, one.choice): one.attempt for one in decided if one.what == "stage"} == began
    skipped = {(one.problem, one.choice) for one in decided if one.what == "skip"}
    assert skipped == {(PROBLEMS[2], "access"), (PROBLEMS[2], "reductions"), (PROBLEMS[3], "reductions")}
    assert {(one.problem, one.choice) for one in decided if one.what == "exit"} == {(PROBLEMS[1], "before reductions")}
    fourth = speedups(staged, PROBLEMS[4])
    assert fourth[1] < 1 <= fourth[2] < fourth[4]


def test_a_stage_shows_what_ncu_measured_of_the_best_kernel(staged: Path) -> None:
    """Also after a stage that broke the kernel twice: problem 3 goes on from its seed."""
    stages = {stage.name: stage for stage in load_categories(CATEGORIES).category(CATEGORY).stages}
    rendered = {
        (event.problem, event.attempt): event
        for event in doors.events(staged)
        if isinstance(event, PromptRendered) and event.parent is not None
    }
    firsts = ((2, 2, "one-pass", 1), (3, 2, "one-pass", 1), (3, 4, "access", 1))
    for number, attempt, stage, best in (*firsts, (4, 2, "one-pass", 1), (4, 3, "access", 2), (4, 4, "reductions", 3)):
        event = rendered[PROBLEMS[number], attempt]
        assert event.parent is not None and event.parent.attempt == best
        lines = key_metrics(profile_of(staged, event.parent), stages[stage].metrics[DeviceKind.CUDA])
        assert lines and event.metrics == lines
        prompt = RunPaths(staged).problem(event.problem).prompt(attempt).read_text(encoding="utf-8")
        assert all(f"- {line}" in prompt for line in lines)
