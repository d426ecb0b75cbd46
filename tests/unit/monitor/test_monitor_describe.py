"""The end of a problem in one line."""

from __future__ import annotations

import pytest

from hkbench.monitor.describe import describe, matters
from hkbench.records import (
    AnyEvent,
    Decided,
    ProblemClosed,
    PromptRendered,
    RunStopping,
    SampleKey,
    Status,
    VerdictReached,
)

CLOSED = ProblemClosed(time=0.0, problem="1_ReLU", solved=False, best=None, speedup=None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"solved": True, "speedup": 2.0}, "1_ReLU: solved, best 2.00x"),
        ({"speedup": 0.5}, "1_ReLU: not solved, best 0.50x"),
        ({}, "1_ReLU: not solved"),
        ({"solved": True, "speedup": 1.5, "category": "fusion"}, "1_ReLU (fusion): solved, best 1.50x"),
        ({"compiled": True}, "1_ReLU: compiled, not measured"),
        ({"compiled": True, "error": "the disk is full"}, "1_ReLU: ended early: the disk is full"),
    ],
)
def test_what_became_of_a_problem(changes: dict[str, object], said: str) -> None:
    assert describe(CLOSED.model_copy(update=changes)) == said


KEY = SampleKey(problem="1_ReLU", attempt=3, sample=1)
VERDICT = VerdictReached(
    time=0.0, key=KEY, status=Status.FAST, kind=None, stage=None, speedup=1.02, low=0.98, high=1.06, seconds=4.0
)
METRICS = ("`f<a, b>`: time share 81 %, calls 1 a pass", "`g` (PyTorch's): time share 12 %")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (VERDICT, "1_ReLU attempt 3 sample 1: on a par 1.02x [0.98, 1.06] (4.0 s)"),
        (
            VERDICT.model_copy(update={"copy_of": KEY.model_copy(update={"attempt": 2})}),
            "1_ReLU attempt 3 sample 1: on a par 1.02x [0.98, 1.06], same code as 2.1",
        ),
        (
            Decided(time=0, problem="1_ReLU", attempt=2, what="stage", choice="tiles", why="loops", place=1, places=3),
            "1_ReLU attempt 2: [Stage 1/3] tiles, loops",
        ),
        (
            Decided(time=0, problem="1_ReLU", attempt=2, what="result", choice="tiles", why="improved 0.50x -> 1.50x"),
            "1_ReLU attempt 2: improved 0.50x -> 1.50x",
        ),
        (
            PromptRendered(time=0, problem="1_ReLU", attempt=2, template="t", sha256="0", metrics=METRICS),
            f"1_ReLU attempt 2: extracted 3 key metrics: {METRICS[0]}; {METRICS[1]}",
        ),
        (RunStopping(time=0, reason="interrupted"), "stopping: interrupted"),
    ],
)
def test_what_happened(event: AnyEvent, said: str) -> None:
    assert describe(event) == said
    assert matters(event)
