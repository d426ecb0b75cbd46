"""A real, small language model behind a real server, through every strategy (docs/small_model.md says how to start it).

Its kernels are bad; tokenizer, streaming, forms that are not kept and replies that are cut are real.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import doors

from hkbench.records.events import MachineFailed
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run
from hkbench.strategies import STRATEGIES

VARIABLE = "HKBENCH_SMALL_MODEL"
ADDRESS = os.environ.get(VARIABLE)
MODEL = "smollm2-135m"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(ADDRESS is None, reason=f"{VARIABLE} names no server of a model")]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_goes_through_every_strategy(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "LIMIT", 1800.0)
    problem, results = doors.problem(tmp_path / "problems", "1_Loop", 1), tmp_path / "results"
    asked = ("--model", MODEL, "--base-url", ADDRESS, "--max-reply-tokens", 200, "--samples", 1, "--attempts", 2)
    call = ("--problems", problem, "--results", results, "--device", "cpu", *doors.QUICK, "--strategy", strategy)
    done = doors.call("run_batch", *call, *map(str, asked), env={"LLM_GATEWAY_KEY": "any"})
    assert done.returncode == 0, done.stderr
    view = read_run(RunPaths(results))
    assert view.state.closed is not None and view.state.closed.complete
    (found,) = view.problems
    assert found.samples and all(sample.outcome is not None for sample in found.samples)
    assert not [event for event in doors.events(results) if isinstance(event, MachineFailed)]
