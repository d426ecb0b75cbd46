"""Attempts in flight: each is told of as it is judged, and a resume tells of them in the same order."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.run_folder import FACTS, correct, run_config

from hkbench.engine.completion import EvaluationResult
from hkbench.errors import BudgetReached, WorkerLost
from hkbench.lab import Lab, Proposal, Stop
from hkbench.llm.client import NobodyClient
from hkbench.records import AnyEvent, AttemptClosed, CandidateExtracted, Problem, VerdictReached
from hkbench.store.events import read_history
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder
from hkbench.store.state import RunState

NAME = "1_ReLU"


class Killed(BaseException):
    """What a kill is for those who are under way."""


class Gates:
    """Judges a candidate when its gate is open; one whose text says so loses its worker."""

    def __init__(self, *opened: str) -> None:
        self.codes: list[str] = []
        self.cancelled: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}
        for name in opened:
            self.open(name)

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    def open(self, name: str) -> None:
        self._gate(name).set()

    async def evaluate(self, problem: Problem, code: Path, *_: object, **__: object) -> EvaluationResult:
        source = code.read_text()
        self.codes.append(source)
        try:
            await self._gate(source).wait()
        except asyncio.CancelledError:
            self.cancelled.append(source)
            raise
        if source == "lost":
            raise WorkerLost("gone")
        found = correct(problem.name, 1.0 + len(source))
        conditions = found.conditions.model_copy(update={"candidate_sha256": sha256(source.encode()).hexdigest()})
        return EvaluationResult(found.model_copy(update={"conditions": conditions}))


class Session:
    """One session of a run: what it writes, and the lab of its one problem."""

    def __init__(self, root: Path, gates: Gates, stop: Stop | None = None) -> None:
        self.events: list[AnyEvent] = []
        config = run_config((NAME,), samples=1)
        self.recorder = Recorder(RunPaths(root), self.events.append)
        self.recorder.begin(config, FACTS)
        before = RunState.after(read_history(RunPaths(root).journal), config).problems[NAME]
        problem = Problem(number=1, name=NAME, level=1, path=Path(NAME), source="", sha256="0" * 64)
        prompter = SimpleNamespace(backend="cpp")
        parts = (cast(Any, prompter), NobodyClient(), cast(Any, gates), self.recorder, "none")
        self.lab = Lab(problem, *parts, stop=stop, before=before)

    def close(self) -> None:
        self.recorder.close()

    def told(self, kind: type[VerdictReached] | type[CandidateExtracted]) -> list[int]:
        return [event.key.attempt for event in self.events if isinstance(event, kind)]

    def closed(self) -> list[int]:
        return [event.attempt for event in self.events if isinstance(event, AttemptClosed)]


def step(name: str) -> Proposal:
    return Proposal(name, "a rule")


async def test_the_next_is_begun_when_one_is_judged(tmp_path: Path) -> None:
    gates = Gates()
    session = Session(tmp_path, gates)
    async with session.lab.flight() as flight:
        assert [await flight.begin(step(name)) for name in ("slow", "quick")] == [1, 2]
        gates.open("quick")
        attempt, (sample,) = await flight.next_judged()
        assert attempt == 2 and sample.verdict is not None and session.closed() == [2]
        assert await flight.begin(step("third")) == 3
        gates.open("third")
        assert (await flight.next_judged())[0] == 3
        gates.open("slow")
    assert session.closed() == [2, 3, 1], "what is under way at the end comes to its end"
    assert [sample.key.attempt for sample in session.lab.samples] == [1, 2, 3]
    session.close()


async def test_a_resume_tells_in_the_recorded_order_and_then_goes_on(tmp_path: Path) -> None:
    first = Session(tmp_path, Gates("two", "three"))

    async def fly() -> None:
        async with first.lab.flight() as flight:
            for name in ("one", "two", "three"):
                await flight.begin(step(name))
            assert (await flight.next_judged())[0] == 2
            while first.told(VerdictReached) != [2, 3]:
                await asyncio.sleep(0)
            raise Killed

    with pytest.raises(Killed):
        await fly()
    first.close()

    gates = Gates("one", "four")
    second = Session(tmp_path, gates)
    async with second.lab.flight() as flight:
        assert [await flight.begin(step(name)) for name in ("one", "two", "three")] == [1, 2, 3]
        assert (await flight.next_judged())[0] == 2
        assert await flight.begin(step("four")) == 4
        assert (await flight.next_judged())[0] == 3 and gates.codes == [], "the others wait for what is recorded"
        assert [(await flight.next_judged())[0] for _ in range(2)] == [1, 4]
    assert gates.codes == ["one", "four"] and second.told(CandidateExtracted) == [4]
    second.close()


async def test_what_a_kill_left_without_its_event_gets_it(tmp_path: Path) -> None:
    first = Session(tmp_path, Gates("one", "two"))
    await first.lab.expand([step("one"), step("two")])
    first.close()
    journal = RunPaths(tmp_path).journal
    kept = [line for line in journal.read_text().splitlines(keepends=True) if '"attempt":2' not in line]
    journal.write_text("".join(kept))
    second = Session(tmp_path, Gates())
    async with second.lab.flight() as flight:
        for name in ("one", "two"):
            await flight.begin(step(name))
        assert [(await flight.next_judged())[0] for _ in range(2)] == [1, 2]
    assert second.told(VerdictReached) == second.told(CandidateExtracted) == [2]
    second.close()


async def test_one_that_is_lost_ends_the_flight_when_the_others_are_judged(tmp_path: Path) -> None:
    gates = Gates("lost", "one")
    session = Session(tmp_path, gates)

    async def fly() -> None:
        async with session.lab.flight() as flight:
            for name in ("one", "lost", "two"):
                await flight.begin(step(name))
            while True:
                await flight.next_judged()
                gates.open("two")

    with pytest.raises(WorkerLost):
        await fly()
    assert sorted(session.told(VerdictReached)) == session.closed() == [1, 3]
    session.close()


async def test_a_stop_lets_those_in_flight_come_to_their_end(tmp_path: Path) -> None:
    stop = Stop()
    session = Session(tmp_path, Gates("one", "two"), stop)

    async def fly() -> None:
        async with session.lab.flight() as flight:
            for name in ("one", "two"):
                await flight.begin(step(name))
            await flight.next_judged()
            stop.request(lambda: BudgetReached("spent"))
            await flight.begin(step("three"))

    with pytest.raises(BudgetReached):
        await fly()
    assert session.told(CandidateExtracted) == session.closed() == [1, 2]
    session.close()


async def test_a_fault_cancels_those_in_flight(tmp_path: Path) -> None:
    gates = Gates("one")
    session = Session(tmp_path, gates)

    async def fly() -> None:
        async with session.lab.flight() as flight:
            for name in ("one", "two"):
                await flight.begin(step(name))
            await flight.next_judged()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fly()
    assert gates.cancelled == ["two"] and session.closed() == [1]
    session.close()
