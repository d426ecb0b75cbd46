"""What is counted of a batch whose machines were killed."""

from __future__ import annotations

import json

from support.run_folder import correct, incorrect

from benchmarks.cluster_kills import PROBLEMS, SAMPLES, Figures, count, told_within
from hkbench.records import (
    AnyEvent,
    CardFailed,
    DevicePlace,
    GenerationStarted,
    ReplyReceived,
    SampleKey,
    VerdictReached,
)
from hkbench.records.generation import Usage


def key(sample: int) -> SampleKey:
    return SampleKey(problem="1_One", attempt=1, sample=sample)


def test_lost_doubled_false_and_paid_twice() -> None:
    figures = Figures(nodes=2)
    reply = ReplyReceived(key=key(1), model="m", usage=Usage(), seconds=1.0, tries=1, replayed=True, finish_reason=None)
    right, wrong = correct("1_One", 2.0), incorrect("1_One")
    found = [VerdictReached.of(key(1), right), VerdictReached.of(key(2), right), VerdictReached.of(key(3), wrong)]
    asked = GenerationStarted(key=key(1))
    count(figures, [asked, reply, asked, *found, found[0]])
    assert (figures.lost, figures.doubled, figures.false) == (PROBLEMS * SAMPLES - 3, 1, 1)
    assert figures.paid_twice == 1 and json.dumps(vars(figures))


def test_how_soon_the_journal_tells_of_a_kill() -> None:
    place = DevicePlace(index=0, name="a")
    events: list[AnyEvent] = [
        CardFailed(time=moment, place=place, message="killed", left_out=False) for moment in (10.0, 13.0, 40.0)
    ]
    kills = [(11.0, "process"), (20.0, "node"), (30.0, "controller")]
    assert told_within(kills, events) == [2.0]
