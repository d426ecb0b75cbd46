"""The batch benchmark's arithmetic, on made-up intervals, and what it writes and reads."""

from __future__ import annotations

import ast
import time
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.batch import Plan, environment, tasks, visible
from benchmarks.batch_figures import Judged, Run, busy_seconds, idle_share, longest_gap, ratios, scaling, table
from benchmarks.kernelbench_batch import Outcome, precision_of
from benchmarks.replies import Kind, made, write_replies
from benchmarks.utilisation import Utilisation, samples
from hkbench.llm.extract import extract
from hkbench.llm.replay import ReplayClient
from hkbench.problems import find_problems
from hkbench.records import DeviceKind, Interval, SampleKey, SlotTimes

ROOT = Path(__file__).resolve().parents[3]
PROBLEMS = find_problems(ROOT / "problems", 1, 1, 40)


def one(number: int, device: int | None, lent: float, returned: float, kind: Kind = Kind.EQUAL) -> Judged:
    """A verdict that held a device from `lent` to `returned`; without a device, whose build failed then."""
    key = SampleKey(problem=f"{number}_A", attempt=1, sample=1)
    if device is None:
        turns = SlotTimes(asked=lent, building=lent, loaded=returned)
        return Judged(key, kind, "incorrect", "build_error", turns)
    turns = SlotTimes(asked=0.0, building=1.0, loaded=2.0, device=device, lent=lent, returned=returned)
    return Judged(key, kind, "fast", None, turns, Interval(value=1.01, low=1.0, high=1.02), 2e-3, 1e-3)


def run(gpus: int, *judged: Judged, complete: bool = True) -> Run:
    return Run(gpus, planned=9, seconds=60.0, complete=complete, judged=list(judged))


@pytest.mark.parametrize(
    ("spans", "busy"),
    [
        ([], 0.0),
        ([(10.0, 20.0)], 10.0),
        ([(10.0, 12.0), (14.0, 20.0)], 8.0),
        ([(14.0, 20.0), (10.0, 15.0)], 10.0),  # of overlapping ones each second counts once
        ([(11.0, 19.0), (12.0, 13.0)], 8.0),
        ([(5.0, 11.0), (19.0, 30.0)], 2.0),  # cut to the window
        ([(1.0, 2.0), (30.0, 31.0)], 0.0),
    ],
)
def test_busy_and_idle(spans: list[tuple[float, float]], busy: float) -> None:
    window = (10.0, 20.0)
    assert busy_seconds(spans, window) == pytest.approx(busy)
    assert idle_share(spans, window) == pytest.approx(1.0 - busy / 10.0)


def test_the_longest_gap() -> None:
    window = (10.0, 20.0)
    assert longest_gap([(10.0, 12.0), (15.0, 19.0)], window) == pytest.approx(3.0)
    assert longest_gap([(14.0, 20.0), (10.0, 13.5)], window) == pytest.approx(0.5)
    assert longest_gap([(10.0, 12.0)], window) == pytest.approx(8.0)
    assert longest_gap([], window) == pytest.approx(10.0)
    assert longest_gap([(5.0, 30.0)], window) == 0.0


def test_a_run_on_one_device() -> None:
    made = run(1, one(1, 0, 10.0, 14.0), one(2, 0, 15.0, 20.0), one(3, None, 3.0, 12.0))
    assert made.window == (10.0, 20.0)
    assert made.idle == [pytest.approx(0.1)]
    assert made.per_hour(made.window) == pytest.approx(3 * 360.0)


def test_the_window_of_several_devices_is_common_to_them() -> None:
    made = run(2, one(1, 0, 10.0, 20.0), one(2, 1, 12.0, 15.0), one(3, 1, 15.0, 18.0))
    assert made.window == (10.0, 20.0)
    assert made.idle == [pytest.approx(0.0), pytest.approx(0.4)]
    assert made.steady == (10.0, 18.0)
    assert made.finished(made.steady) == 2


def test_a_device_that_was_never_used_is_idle() -> None:
    assert run(2, one(1, 0, 10.0, 20.0)).idle == [0.0, 1.0]


def test_what_was_under_way_when_a_run_was_stopped_is_not_taken_for_idleness() -> None:
    made = run(2, one(1, 0, 10.0, 12.0), one(2, 1, 10.0, 19.0), complete=False)
    assert made.window == (10.0, 12.0)
    assert made.idle == [0.0, 0.0]
    assert made.finished(made.window) == 1


def test_nothing_measured() -> None:
    made = run(1, one(1, None, 1.0, 2.0))
    assert made.window is None and made.idle == [] and made.per_hour(made.window) is None
    assert table([made]).splitlines()[-1].count("|") == table([made]).splitlines()[0].count("|")


def test_the_tables() -> None:
    alone = run(1, one(1, 0, 10.0, 14.0), one(2, 0, 14.0, 18.0), one(3, 0, 18.0, 22.0, Kind.SCALED))
    pair = run(2, one(1, 0, 50.0, 55.0), one(2, 1, 50.0, 54.0), one(3, 1, 54.0, 58.0, Kind.SCALED))
    pair.utilisation = [0.5, None]
    head, rule, first, second = table([alone, pair]).splitlines()
    assert head.count("|") == rule.count("|") == first.count("|") == second.count("|")
    assert "| 50%, - |" in second
    assert first.endswith("| 2 | 0 | 0 | 0 |")  # equals, not correct, outside, missed
    assert "| 2 | 1.50 |" in scaling([alone, pair])
    assert "1.000 (1.000 to 1.250), 1 of 3 outside" in scaling([alone, pair])


def test_ratios_are_of_the_same_candidates() -> None:
    keys = [SampleKey(problem=name, attempt=1, sample=1) for name in ("1_A", "2_B", "3_C")]
    assert ratios({keys[0]: 2.0, keys[1]: 4.0}, {keys[1]: 6.0, keys[2]: 1.0}) == [1.5]


def test_each_reply_is_another_file_and_replay_finds_them(tmp_path: Path) -> None:
    kinds = write_replies(tmp_path, PROBLEMS, 3, "cuda")
    assert len(kinds) == 120
    assert sum(kind is Kind.WRITTEN for kind in kinds.values()) == 16
    assert sum(kind is Kind.SCALED for kind in kinds.values()) == 40
    assert ReplayClient(tmp_path, "cuda").missing(kinds) == []
    found = [extract(path.read_text(), None).source for path in sorted(tmp_path.rglob("response.txt"))]
    assert None not in found and len(set(found)) == 120


@pytest.mark.parametrize(("written", "used"), [(0, 0), (3, 3), (None, 16)])
def test_the_share_of_hand_written_ones_is_chosen(written: int | None, used: int, tmp_path: Path) -> None:
    kinds = write_replies(tmp_path, PROBLEMS[:8], 2, "cuda", written)
    assert sum(kind is Kind.WRITTEN for kind in kinds.values()) == used


@pytest.mark.parametrize("kind", [Kind.EQUAL, Kind.CONTIGUOUS, Kind.SCALED])
def test_what_is_made_is_the_reference_with_a_class_more(kind: Kind) -> None:
    for problem in PROBLEMS:
        classes = {node.name for node in ast.parse(made(problem, kind, 1)).body if isinstance(node, ast.ClassDef)}
        assert {"Model", "ModelNew"} <= classes


def test_the_driver_s_samples() -> None:
    lines = [
        "2026/01/02 10:00:00.000, 0, GPU-a, 40\n",
        "2026/01/02 10:00:00.500, 0, GPU-a, 60\n",
        "2026/01/02 10:00:00.500, 1, GPU-b, [N/A]\n",
        "2026/01/02 10:00:09.000, 0, GPU-a, 0\n",
        "NVIDIA-SMI has failed\n",
        "2026/01/02 10:00:0",
    ]
    start = datetime(2026, 1, 2, 10).astimezone().timestamp()
    found = samples(lines)
    assert found["0"] == found["GPU-a"] == [(start, 0.4), (start + 0.5, 0.6), (start + 9.0, 0.0)]
    seen = Utilisation(["GPU-a", "1"])
    seen._lines = lines
    assert seen.shares(start, start + 1.0) == [pytest.approx(0.5), None]


def test_utilisation_without_a_tool_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Utilisation(["0"]) as seen:
        pass
    assert seen.shares(0.0, 1e12) == [None]


def test_utilisation_reads_its_tool_until_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '2026/01/02 10:00:00.000, 0, GPU-a, 40'\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with Utilisation(["0"]) as seen:
        while not seen._lines:
            time.sleep(0.01)
    assert seen.shares(0.0, 4e9) == [pytest.approx(0.4)]


def test_the_first_devices_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible(DeviceKind.CUDA, 2) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1,2")
    assert environment(DeviceKind.CUDA, 2)["CUDA_VISIBLE_DEVICES"] == "3,1"
    assert visible(DeviceKind.CPU, 1) == []
    with pytest.raises(SystemExit, match="fewer than 4"):
        visible(DeviceKind.CUDA, 4)


def test_kernelbench_s_share_is_spread_over_problems_and_kinds(tmp_path: Path) -> None:
    kinds = write_replies(tmp_path, PROBLEMS, 3, "cuda", written=0)
    chosen = tasks(Plan(PROBLEMS, 3, DeviceKind.CUDA, tmp_path, kinds, []), 12)
    assert len({task.name for task in chosen}) == 12
    assert len({task.name.rpartition("/")[2] for task in chosen[:3]}) == 3
    assert max(PROBLEMS.index(problem) for problem in PROBLEMS if chosen[2].name.startswith(problem.name)) > 20
    assert not any(task.needs_build for task in chosen)
    assert all("class ModelNew" in task.candidate and "class ModelNew" not in task.reference for task in chosen)


def test_kernelbench_s_precision_and_pace() -> None:
    assert [precision_of(name) for name in ("1_A_bf16", "2_B_fp32", "3_C")] == ["bf16", "fp32", "fp32"]
    assert Outcome(1, evaluation_seconds=30.0, answers=[{}, {}, {}]).per_hour == pytest.approx(360.0)
    assert Outcome(1).per_hour is None
