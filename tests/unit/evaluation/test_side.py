"""The two runners as the session sees them."""

from __future__ import annotations

from typing import cast

import pytest

from hkbench.errors import WorkerLost
from hkbench.evaluation.failures import CandidateFailed
from hkbench.evaluation.link import RunnerLink, TreeState
from hkbench.evaluation.side import MAX_UNSTOPPED, BaselineClient, RunnerClient
from hkbench.records import EvaluationSettings, FailureKind


class _Unstoppable:
    """A link to a runner with a thread that no stop reaches."""

    def __init__(self, running: int) -> None:
        self._running = running

    def freeze(self) -> TreeState:
        return TreeState(processes=1, threads=2, running=self._running, cpu_seconds=0.0, at=0.0)


def _stops(client: RunnerClient) -> None:
    for _ in range(MAX_UNSTOPPED):
        client._freeze()


def test_who_cannot_be_stopped_is_out() -> None:
    link, settings = cast("RunnerLink", _Unstoppable(1)), EvaluationSettings()
    with pytest.raises(CandidateFailed) as failed:
        _stops(RunnerClient(link, settings))
    assert failed.value.failure.kind is FailureKind.LIMIT
    with pytest.raises(WorkerLost):
        _stops(BaselineClient(link, settings, "problem"))


def test_who_stops_is_never_out() -> None:
    client = RunnerClient(cast("RunnerLink", _Unstoppable(0)), EvaluationSettings())
    for _ in range(3):
        _stops(client)
