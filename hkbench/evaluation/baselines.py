"""Baselines besides eager: torch.compile of the reference, and a library's call that the problem names.

They are made in the baseline's runner and timed in turn with eager there, by the clock of all calls, while the device
is lent to the candidate's evaluation. The candidate's speed-up over one is that over eager, divided by that of the
baseline over eager: both hold eager's calls of their own minutes, so that what drifts between them cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from hkbench.evaluation import failures
from hkbench.evaluation.session import Session, draw_seed
from hkbench.evaluation.taking import taken
from hkbench.evaluation.timing import Timing
from hkbench.protocol import messages
from hkbench.records import BaselineName, FurtherBaseline, Interval, Stage

CHECKED_CALLS = 3


def further_baselines(
    session: Session, names: Sequence[BaselineName], speedup: Interval
) -> tuple[FurtherBaseline, ...]:
    """Time each of `names`; `speedup` is the candidate's over eager.

    Raises:
        WorkerLost: the baseline's runner went away.
    """
    return tuple(_measured(session, name, speedup) for name in names)


def _measured(session: Session, name: BaselineName, speedup: Interval) -> FurtherBaseline:
    session.tell(f"baseline {name.value}")
    inputs = session.fresh_inputs(draw_seed())
    regions = session.memory.regions_of(session.baseline)
    regions.put_inputs(inputs, judged=False)
    made = session.baseline.made(name.value)
    if isinstance(made, messages.Raised):
        return FurtherBaseline(name=name, reason=f"it cannot be made: {made.message}")
    notes = made.notes if name is BaselineName.COMPILE else []
    try:
        _check(session, name)
    except failures.CandidateFailed as failed:
        return FurtherBaseline(name=name, notes=tuple(notes), reason=f"its answers are wrong: {failed.failure.message}")
    found = Timing(session).beside(name.value)
    after = session.baseline.checked(session.baseline.made(name.value))
    if name is BaselineName.COMPILE and after.graphs > made.graphs:
        notes = [*notes, f"{after.graphs - made.graphs} graphs were compiled anew while it was timed"]
    return FurtherBaseline(
        name=name,
        timing=found.candidate,
        eager=found.baseline,
        over_eager=found.speedup,
        speedup=quotient(speedup, found.speedup),
        notes=tuple(notes),
    )


def _check(session: Session, name: BaselineName) -> None:
    """Compare answers with the reference's, as those of a candidate's timed calls are.

    Raises CandidateFailed where one is wrong.
    """
    checker = session.checker.another()
    for _ in range(CHECKED_CALLS):
        inputs = session.fresh_inputs(draw_seed())
        checker.check_again(_outputs(session, name, inputs), inputs)


def _outputs(session: Session, name: BaselineName, inputs: list[object]) -> dict[str, torch.Tensor]:
    regions, side = session.memory.regions_of(session.baseline), session.baseline
    gated, reveal = session.memory.call(side, inputs, takes=True)
    answer = side.request(messages.Call(variant=name.value), reveal, False, gated)
    leaves = session.check_leaves(answer.leaves, None, None)
    if gated is not None:
        outputs = gated.outputs
    elif session.memory.leaves_outputs:
        outputs = taken(side, leaves, regions.output_places, Stage.TIME)
    else:
        outputs = regions.outputs()
    side.request(messages.Prepare())
    regions.leave()
    return outputs


def quotient(left: Interval, right: Interval) -> Interval:
    """Divide one ratio by another: relative errors of a quotient add in quadrature."""
    value = left.value / right.value
    below = math.hypot(_log(left.value, left.low), _log(right.high, right.value))
    above = math.hypot(_log(left.high, left.value), _log(right.value, right.low))
    return Interval(value=value, low=value * math.exp(-below), high=value * math.exp(above))


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller > 0.0 else math.inf
