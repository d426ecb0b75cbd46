"""The time limit of an answer that builds put off, and the gate of a call."""

from __future__ import annotations

import time

import pytest

from hkbench.evaluation.awaited import BuildLimit, GateWatch
from hkbench.protocol import wire


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_build_has_a_limit_of_its_own(clock: list[float]) -> None:
    limit = BuildLimit(10.0, 60.0)
    clock[0] += 4.0
    assert limit.begin() and limit.building and limit.deadline == 164.0
    clock[0] += 20.0
    assert limit.end() == 20.0 and not limit.building
    assert limit.deadline == clock[0] + 6.0


def test_all_builds_together_have_one(clock: list[float]) -> None:
    limit = BuildLimit(10.0, 60.0)
    limit.begin()
    clock[0] += 50.0
    limit.end()
    limit.begin()
    assert limit.deadline == clock[0] + 10.0


def test_builds_side_by_side_count_once(clock: list[float]) -> None:
    limit = BuildLimit(10.0, 60.0)
    assert limit.begin() and not limit.begin()
    clock[0] += 5.0
    assert limit.end() == 0.0 and limit.building
    clock[0] += 5.0
    assert limit.end() == 10.0


class Call:
    """A call that wants to be looked at twice."""

    number = 1
    hold_seconds = 0.5

    def __init__(self) -> None:
        self.did: list[str] = []

    def release(self) -> None:
        self.did.append("release")

    def look(self) -> float | None:
        self.did.append("look")
        return 0.25 if self.did.count("look") < 3 else None

    def end(self, told: wire.Message) -> None:
        self.did.append("end")


def test_a_call_is_released_when_it_has_been_held_and_then_looked_at() -> None:
    call, waited = Call(), list[float]()

    def speaks(seconds: float) -> bool:
        waited.append(seconds)
        return False

    gate = GateWatch(call, speaks)
    gate.wait()
    assert call.did == [] and waited == []
    assert gate.told({"event": "begun"})
    gate.wait()
    assert call.did == ["release", "look", "look", "look"]
    assert waited[0] == pytest.approx(0.5, abs=0.1) and waited[1:] == [0.25, 0.25]


def test_whoever_speaks_is_heard_first() -> None:
    call = Call()
    gate = GateWatch(call, lambda _seconds: True)
    gate.told({"event": "begun"})
    gate.wait()
    assert call.did == []
    gate.release()
    gate.release()
    gate.wait()
    assert call.did == ["release", "look"]


def test_what_is_not_of_the_call_is_left_to_others() -> None:
    gate = GateWatch(Call(), lambda _seconds: False)
    assert gate.told({"event": "begun"}) and not gate.told({"event": "begun"})
    assert gate.told({"event": "end"}) and not gate.told({"event": "lowers"})
    assert not GateWatch(None, lambda _seconds: False).told({"event": "end"})
