from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.run_folder import PRICED, RunFolder, run_config, sample_run

from hkbench.monitor.head import head
from hkbench.monitor.live import Watch
from hkbench.records import GenerationFailed, Stage, Usage


def snapshot_of(run: RunFolder, after: float = 0.0) -> dict[str, object]:
    watch = Watch(run.paths)
    watch.look()
    found: dict[str, object] = json.loads(watch.snapshot(run.now + after).model_dump_json())
    return found


def test_a_finished_run(tmp_path: Path) -> None:
    found = snapshot_of(sample_run(tmp_path))
    assert (found["condition"], found["progress"], found["judged"]) == ("finished", 1.0, 14)
    assert found["statuses"] == {"fast": 2, "slow": 5, "incorrect": 7}
    assert found["failures"] == {"crash": 4, "build_error": 2, "wrong_values": 1}
    assert (found["tokens_input"], found["tokens_output"]) == (1300, 650)
    assert found["under_way"] == [] and found["resume"] is None
    assert found["outcomes"] == {"faster": 2, "slower": 1, "wrong": 1} and found["fast_1"] == 0.5
    assert found["speedup"] == {
        "value": pytest.approx((2.0 * 1.25 * 0.6) ** (1 / 3)), "low": pytest.approx(0.6), "high": pytest.approx(2.0)
    }  # fmt: skip
    assert found["calls"] == 14
    problems = found["problems"]
    assert isinstance(problems, list)
    assert problems[1] == {
        "name": "2_Sum", "category": None, "state": "finished", "solved": True, "outcome": "faster", "best": 1.25,
        "best_interval": [1.125, 1.375], "best_sample": {"problem": "2_Sum", "attempt": 2, "sample": 1},
        "newest_failure": "build_error", "judged": 4, "tokens": 450,
        "statuses": {"incorrect": 2, "fast": 1, "slow": 1}, "failures": {"wrong_values": 1, "build_error": 1},
    }  # fmt: skip


def test_a_run_at_work(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.begin("1_ReLU")
    key = run.asked("1_ReLU", 1, 1)
    run.answered(key)
    run.entered(key, Stage.TIME)
    lost = run.asked("1_ReLU", 1, 2)
    run.emit(GenerationFailed(time=run.tick(), key=lost, error="ModelUnavailable", message="503"))
    found = snapshot_of(run, after=3.0)
    assert found["condition"] == "running"
    assert found["under_way"] == [
        {"key": {"problem": "1_ReLU", "attempt": 1, "sample": 1}, "phase": "evaluated", "stage": "time", "seconds": 5.0}
    ]
    assert found["machine_failures"] == {"ModelUnavailable": 1}
    assert found["left"] is None and found["samples_per_minute"] is None and found["tokens_input"] is None


def test_a_run_that_stopped(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.close(complete=False, reason="no \x1b[2Jmoney")
    found = snapshot_of(run)
    assert (found["condition"], found["reason"]) == ("stopped", "no money")


def test_money_where_there_is_a_price(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(), facts=PRICED)
    run.start()
    watch = Watch(run.paths)
    for usage, said, cost, unpriced in (
        (Usage(input=100, output=50), ", 200.00 XTS", 200.0, 0),
        (Usage(input=3), ", 200.00 XTS+", 200.0, 1),
    ):
        run.answered(run.asked("1_ReLU", 1, 1 + unpriced), usage)
        watch.look()
        assert watch.state is not None
        lines = [line.plain for line in head(watch.state, "run", run.now, watch.facts)]
        assert [line for line in lines if line.endswith(said) and "tokens" in line]
        found = snapshot_of(run)
        assert (found["cost"], found["currency"], found["unpriced_replies"]) == (cost, "XTS", unpriced)


def test_money_without_a_price_is_unknown(tmp_path: Path) -> None:
    found = snapshot_of(sample_run(tmp_path))
    assert (found["cost"], found["currency"], found["unpriced_replies"]) == (None, None, 14)
