"""The A/A test's own arithmetic."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from benchmarks.equals_figures import KERNELBENCH, Figure, of_means, ratio_of_means, schedule, summary
from hkbench.records import Interval


def figure(value: float, low: float, high: float, problem: str = "1_A", rounds: int = 1) -> Figure:
    interval = Interval(value=value, low=low, high=high)
    return Figure("hkbench", problem, "fast", 2.0, speedup=interval, first_round=interval, rounds=rounds)


def test_stopping_early_leaves_each_problem_equally_often() -> None:
    order = schedule(["a", "b", "c"], 31, seed=1)
    assert len(order) == 31
    assert max(Counter(order[:18]).values()) == min(Counter(order[:18]).values()) == 6
    assert order != schedule(["a", "b", "c"], 31, seed=2)
    assert order == schedule(["a", "b", "c"], 31, seed=1)


def test_the_readers_interval_holds_the_ratio_as_often_as_it_says() -> None:
    generator = random.Random(0)
    held = 0
    for _ in range(1000):
        left, right = ([generator.gauss(1.0, 0.1) for _ in range(100)] for _ in "12")
        found = ratio_of_means(left, right)
        held += found.low <= 1.0 <= found.high
    assert 930 <= held <= 970


def test_what_lies_outside_and_what_misses_are_counted_apart() -> None:
    alarm = Figure("hkbench", "2_B", "refused", 3.0, "suspect: clocks")
    text = summary([figure(1.001, 1.0005, 1.002), figure(1.03, 0.99, 1.05, rounds=3), alarm])
    assert "| 1_A | 2 | 0 | 1 (50.0%) | 1 (50.0%) |" in text
    assert "| all | 3 | 1 | 1 (33.3%) | 1 (33.3%) |" in text
    assert "false alarm: 2_B: refused: suspect: clocks" in text
    assert "1: 1, 3: 1" in text


def test_figures_survive_their_file() -> None:
    made = [figure(1.0, 0.9, 1.1), Figure("hkbench", "2_B", "refused", 3.0, "suspect")]
    assert [Figure.from_json(json.loads(json.dumps(one.to_json()))) for one in made] == made


def test_kernelbenchs_times_and_its_failure() -> None:
    answer = {
        "baseline_ms": [2.0, 2.0],
        "candidate_ms": [1.0, 1.0],
        "baseline_stats": {"mean": 2.0},
        "candidate_stats": {"mean": 1.01},
    }
    made = of_means("1_A", answer, 1.0)
    assert made.evaluator == KERNELBENCH
    assert made.speedup is not None
    assert made.speedup.value == pytest.approx(2.0)
    assert made.samples[0] == (0.002, 0.002)
    assert made.printed == pytest.approx(2.0 / 1.01)
    assert of_means("1_A", {"error": "out of memory"}, 1.0).speedup is None
