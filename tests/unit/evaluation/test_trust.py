"""What the witnesses of a correct candidate say together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from hkbench.evaluation.measure import Measurement, Samples
from hkbench.evaluation.timing import Observations
from hkbench.evaluation.trust import CandidateContext, compare_clocks
from hkbench.records import Contention, DeviceKind

EVIDENCE = cast(
    "CandidateContext",
    SimpleNamespace(
        session=SimpleNamespace(
            computes=True, quiet=SimpleNamespace(reason=None), side=SimpleNamespace(ran_while_frozen=0)
        ),
        job=SimpleNamespace(device=DeviceKind.CPU),
    ),
)
QUIET = Samples([1e-3] * 20, [1.1e-3] * 20, [1.2e-3] * 20, [1e-4] * 20)
#: A call that waited for a processor while it was watched.
SLOW_WHEN_WATCHED = cast(
    "Observations",
    SimpleNamespace(answer=SimpleNamespace(trace={}, seconds=0.1), only_here=False, sampled_seconds=[0.1] * 5),
)


@pytest.mark.parametrize(
    ("contention", "agree"),
    [(None, False), (Contention(), False), (Contention(reasons=("other work",)), True)],
    ids=["not counted", "quiet", "beside other work"],
)
def test_a_slow_watched_call_beside_other_work_is_no_lie(contention: Contention | None, agree: bool) -> None:
    measured = cast("Measurement", SimpleNamespace(samples=(QUIET, QUIET), contention=contention))
    assert compare_clocks(EVIDENCE, measured, SLOW_WHEN_WATCHED).agree == agree
