"""The newcomer's batch: three problems with recorded replies, built, judged and reported for real.

Calls are timed less often than by `make demo`, which test_readme.py runs as it stands, and the third attempts, which
hand in a second's kernel once more, are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow

#: Labels that do not depend on the machine's speed.
CERTAIN = {"build_error", "no_code", "wrong_dtype", "no_model_new", "crash", "timeout", "wrong_shape", "runtime_error"}


def batch(results: Path, limit: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "run_batch.py", "2,3,5", "--attempts", "2", "--device", "cpu"]
    command += ["--run-timeout", "10"]
    command += ["--busy-wait", "0", "--shapes", "0", "--trials", "3", "--timing-runs", "10", "--warmup", "1"]
    command += ["--replay", "examples/replies/reflect.toml", "--results", str(results)]
    environment = os.environ | {"XDG_CACHE_HOME": str(results.parent / "cache")}
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=limit
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "results"
    done = batch(folder, 1500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((folder.parent / "cache").rglob("*.gch")), "no headers were precompiled"
    return folder


def test_each_problem_has_a_correct_kernel_and_some_of_those_beat_eager(results: Path) -> None:
    report = json.loads((results / "detailed_report.json").read_text())
    assert report["complete"] is True
    verdicts = {path.relative_to(results).parent: json.loads(path.read_text()) for path in results.rglob("result.json")}
    correct = {path.parts[0] for path, verdict in verdicts.items() if verdict["status"] in ("fast", "slow")}
    seen = "\n".join(f"{path}: {v['status']} {v['speedup']} {v['failure']}" for path, v in sorted(verdicts.items()))
    assert len(correct) == 3, seen
    assert report["overall"]["solved"] >= 1, seen  # which of them are faster depends on the machine
    assert "5_Scaled_masked_softmax_fp32" in (results / "report.html").read_text()


def test_failures_are_what_the_replies_are_labelled(results: Path) -> None:
    readme = (ROOT / "examples" / "replies" / "README.md").read_text()
    rows = [row.split("|") for row in readme.splitlines() if row.startswith("| `")]
    checked = 0
    for _, problem, attempt, sample, label, *_ in rows:
        name, kind = problem.strip(" `"), label.strip(" `")
        path = results / name / f"attempt_{attempt.strip()}" / f"sample_{sample.strip()}" / "result.json"
        if kind in CERTAIN and path.exists():
            verdict = json.loads(path.read_text())
            assert verdict["failure"]["kind"] == kind, path
            assert verdict["speedup"] is None
            checked += 1
    assert checked >= 4


def test_the_next_prompt_says_what_failed(results: Path) -> None:
    prompt = (results / "2_SwiGLU_fp32" / "prompt_2.txt").read_text()
    verdict = json.loads((results / "2_SwiGLU_fp32" / "result_1.json").read_text())
    assert verdict["failure"]["message"].split("error: ")[1][:30] in prompt
    slow = (results / "3_GELU_tanh_fp16" / "prompt_2.txt").read_text()
    assert "aten::" in slow, "a slow kernel's profile names PyTorch's operators"


def test_the_same_command_again_has_nothing_left_to_do(results: Path) -> None:
    before = sorted((path, path.read_bytes()) for path in results.rglob("result.json"))
    assert batch(results, 300).returncode == 0
    assert before == sorted((path, path.read_bytes()) for path in results.rglob("result.json"))
    events = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
    keys = [json.dumps(event["key"]) for event in events if event["event"] == "generation_started"]
    assert len(keys) == len(set(keys))
