"""Simulated agents: an experience helps them, and a tenth of it may be false."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from benchmarks import experience_agents as agents
from benchmarks.experience import Arm, arms

LEAST_GAIN = {agents.USUAL: 0.05, agents.NEW_LANGUAGE: 0.2}


def evaluations(arm: Arm) -> float:
    return statistics.fmean(arm.evaluations)


@pytest.mark.parametrize("agent", LEAST_GAIN, ids=lambda agent: agent.name)
def test_warm_agents_are_sooner_right_and_a_tenth_of_false_entries_harms_none(
    tmp_path: Path, agent: agents.Agent
) -> None:
    cold, warm, unheeded, partly_false, false, told = arms(tmp_path, agent, 6, runs=2)
    assert evaluations(warm) < evaluations(unheeded), "half of what it is warned of is not done"
    assert evaluations(warm) < (1.0 - LEAST_GAIN[agent]) * evaluations(cold)
    assert evaluations(partly_false) < 1.05 * evaluations(cold)
    assert evaluations(told) < evaluations(false), "what was shown in vain is shown no more"
