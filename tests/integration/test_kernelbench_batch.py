"""KernelBench's schedule around a stand-in for its evaluation, each candidate in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.kernelbench_batch import Task, evaluate_all

pytestmark = pytest.mark.slow

#: The two functions that are called, as they are there; both write to standard output.
EVALUATION = """
import os
import time
from types import SimpleNamespace


def get_torch_dtype_from_string(precision):
    return {"fp32": "float32", "bf16": "bfloat16"}[precision]


def build_compile_cache(source, verbose=False, build_dir=None):
    os.write(1, b"nvcc says something")
    open(os.path.join(build_dir, "built"), "w").close()
    return True, "", None


def eval_kernel_against_ref(original_model_src, custom_model_src, build_dir, device, precision, **given):
    assert given.pop("num_correct_trials") == 5 and given.pop("num_perf_trials") == 100
    print("evaluating")
    if custom_model_src == "hang":
        time.sleep(600)
    if custom_model_src == "raise":
        raise RuntimeError("CUDA error: it is gone")
    right = os.path.exists(os.path.join(build_dir, "built")) == (custom_model_src == "built")
    assert str(device).startswith("cuda:") and precision == "bfloat16"
    return SimpleNamespace(compiled=True, correctness=right, runtime=1.0 + device.index, ref_runtime=2.0)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    file = tmp_path / "checkout" / "src" / "kernelbench" / "eval.py"
    file.parent.mkdir(parents=True)
    file.write_text(EVALUATION)
    file.with_name("utils.py").touch()
    return tmp_path / "checkout"


def task(name: str, candidate: str) -> Task:
    return Task(f"1_A_bf16/{name}", "reference", candidate, "bf16", needs_build=candidate == "built")


def test_builds_come_first_and_each_gpu_has_one_candidate(checkout: Path) -> None:
    tasks = [task("1", "built"), task("2", "plain"), task("3", "raise")]
    outcome = evaluate_all(checkout, tasks, 2, dict(os.environ), lambda: 180.0)
    first, second, third = outcome.answers
    assert (first["correct"], first["runtime_ms"]) == (True, 1.0)
    assert (second["correct"], second["runtime_ms"]) == (True, 2.0)
    assert third["compiled"] is False and "it is gone" in third["error"]
    assert outcome.build_seconds > 0
    assert outcome.per_hour == pytest.approx(3 * 3600 / outcome.evaluation_seconds)
    assert [answer["name"] for answer in outcome.answers] == [one.name for one in tasks]


def test_what_the_time_limit_cuts_off_is_not_counted(checkout: Path) -> None:
    tasks = [task("1", "plain"), task("2", "hang"), task("3", "plain")]
    left = iter([180.0] * 3 + [3.0])  # before and within the first one, before the second one, within it
    outcome = evaluate_all(checkout, tasks, 1, dict(os.environ), lambda: next(left))
    assert [answer["name"] for answer in outcome.answers] == ["1_A_bf16/1"]
    assert next(left, None) is None


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    outcome = evaluate_all(tmp_path, [task("1", "plain")], 1, dict(os.environ), lambda: 180.0)
    assert "KERNELBENCH_DIR has to name a checkout" in outcome.answers[0]["error"]
