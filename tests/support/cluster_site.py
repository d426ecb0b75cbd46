"""A cluster without processes: nodes and cards that do what a test tells them, behind the engine's own interface."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from hkbench.cluster.lane import CardLost, NodeGone
from hkbench.cluster.messages import CardOrder, Entered, Judged, Ready, Work
from hkbench.cluster.pool import Tempo
from hkbench.cluster.site import Node
from hkbench.errors import HkbenchError, Unavailable
from hkbench.records import (
    BackendName,
    Conditions,
    DeviceFacts,
    DeviceKind,
    Failure,
    FailureKind,
    Interval,
    Isolation,
    IsolationLevel,
    NodeFacts,
    Problem,
    ProblemFacts,
    SizeSet,
    SlotTimes,
    Stage,
    Status,
    Timing,
    Verdict,
)

QUICK = Tempo(ping=0.02, answer=0.05, silent=0.5, start=1.0, again=0.01, grace=0.1)
CONFINED = Isolation(level=IsolationLevel.FULL, layers=("guard",), holds=())


def problem(name: str = "1_One") -> Problem:
    return Problem(number=1, name=name, level=None, path=Path(f"/problems/{name}.py"), source="", sha256="0" * 64)


def timed(work: Work, code: bytes, seconds: float) -> Verdict:
    """The verdict on a reference as its own candidate, which is not the candidate's own work."""
    median = Interval(value=seconds, low=seconds, high=seconds)
    timing = Timing(samples=(seconds,) * 3, median=median, clock="perf_counter", warmups=1)
    failure = Failure(stage=Stage.TIME, kind=FailureKind.NOT_OWN, message="PyTorch did the work")
    update = {"status": Status.REFUSED, "failure": failure, "baseline": timing, "candidate": timing}
    return verdict(work, code).model_copy(update=update)


def verdict(work: Work, code: bytes) -> Verdict:
    """The verdict on any candidate: wrong."""
    conditions = Conditions(
        backend=work.backend, device=DeviceKind.CPU, device_name="a CPU", problem_sha256=work.problem.sha256,
        candidate_sha256=sha256(code).hexdigest(), isolation=CONFINED,
    )  # fmt: skip
    failure = Failure(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, message="wrong")
    return Verdict(problem=work.problem.name, status=Status.INCORRECT, failure=failure, conditions=conditions)


@dataclass
class Behaviour:
    """How a card behaves from now on; all its processes share it."""

    model: str = "a CPU"
    seconds: float = 0.01  #: of an evaluation
    deaf: bool = False  #: answers nothing
    stuck: bool = False  #: answers, and comes to no verdict
    takes: float | None = None  #: seconds of a call; candidates are references, and not wrong
    ahead: float = 0.0  #: its clock
    opening: list[HkbenchError | CardLost] = field(default_factory=list)  #: what the next starts fail at
    failing: list[HkbenchError | CardLost] = field(default_factory=list)  #: what the next evaluations fail at
    lacks: HkbenchError | CardLost | None = None  #: what `require` says
    judged: list[bytes] = field(default_factory=list)  #: codes, whose verdicts were sent
    started: int = 0
    stopped: int = 0


class FakeCard:
    def __init__(self, site: FakeSite, node: Node, number: int, of: int, order: CardOrder) -> None:
        self.node = node.key
        self.name = f"{node.name}, card {number}" if of > 1 else node.name
        self.order = order
        self._site = site

    @property
    def does(self) -> Behaviour:
        return self._site.behaviours.setdefault(self.name, Behaviour())

    async def start(self) -> Ready:
        self.does.started += 1
        if not any(node.key == self.node for node in self._site.alive):
            raise NodeGone("its node is gone")
        if self.does.opening:
            raise self.does.opening.pop(0)
        facts = DeviceFacts(kind=self.order.kind or DeviceKind.CPU, index=0, name=self.does.model)
        return Ready(devices=(facts,), isolation=CONFINED, sizes=SizeSet.CPU)

    async def ping(self) -> float:
        await self._answer()
        return time.time() + self.does.ahead

    async def require(self, backend: BackendName) -> None:
        if self.does.lacks is not None:
            raise self.does.lacks

    async def facts(self, problem: Problem, seconds: float | None) -> ProblemFacts:
        await self._answer()
        return ProblemFacts(sizes=SizeSet.CPU, inputs=(), init_inputs=(), outputs=(), parameters=(), graph=None)

    async def judge(self, work: Work, code: bytes) -> AsyncGenerator[Entered | Judged, None]:
        begun = time.time() + self.does.ahead
        yield Entered(stage=Stage.BUILD, lent=False)
        await asyncio.sleep(self.does.seconds)
        if self.does.failing:
            raise self.does.failing.pop(0)
        await self._answer()
        while self.does.stuck:
            await asyncio.sleep(0.01)
        yield Entered(stage=Stage.RUN, lent=True)
        self.does.judged.append(code)
        turns = SlotTimes(asked=begun, building=begun, loaded=begun, device=0, lent=begun, returned=begun + 1.0)
        found = verdict(work, code) if self.does.takes is None else timed(work, code, self.does.takes)
        yield Judged(verdict=found, turns=turns)

    async def stop(self) -> None:
        self.does.stopped += 1

    async def _answer(self) -> None:
        while self.does.deaf:
            await asyncio.sleep(0.01)


class FakeSite:
    """`gpus` of each node by its name; 0 makes a CPU of it."""

    def __init__(self, **gpus: int) -> None:
        self.behaviours: dict[str, Behaviour] = {}
        self.decisive: dict[str, dict[str, str]] = {}
        self.closed = False
        self.silent: set[str] = set()  #: names of nodes that cannot say what they are
        self._starts = 0
        self.alive: list[Node] = []
        for name, count in gpus.items():
            self.join(name, count)

    def join(self, name: str, gpus: int = 0) -> None:
        self._starts += 1
        self.alive.append(Node(f"{name}-{self._starts}", name, 2, gpus))

    def leave(self, name: str) -> None:
        self.alive = [node for node in self.alive if node.name != name]

    def does(self, name: str) -> Behaviour:
        return self.behaviours.setdefault(name, Behaviour())

    async def nodes(self) -> tuple[Node, ...]:
        return tuple(self.alive)

    async def describe(self, node: Node) -> NodeFacts:
        if node.name in self.silent:
            raise Unavailable(f"{node.name} has no hkbench")
        return NodeFacts(
            name=node.name,
            host=f"host of {node.name}",
            kind=DeviceKind.CUDA if node.gpus else DeviceKind.CPU,
            cards=node.gpus,
            cores=node.cores,
            decisive=self.decisive.get(node.name, {"hkbench": "1", "torch": "2"}),
            tools={"driver": f"of {node.name}"},
        )

    def card(self, node: Node, number: int, of: int, order: CardOrder) -> FakeCard:
        return FakeCard(self, node, number, of, order)

    async def close(self) -> None:
        self.closed = True
