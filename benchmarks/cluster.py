#!/usr/bin/env python3
"""How busy the controller of a cluster keeps its cards, what a candidate costs it, and what is lost when machines fail.

    python benchmarks/cluster.py --nodes 125 --cards 8 --candidates 100000
    python benchmarks/cluster.py --nodes 4 --cards 4 --candidates 2000 --kills 50

Nodes and cards are simulated: they build and measure by sleeping, and send a verdict's real JSON. Scheduling, messages
and supervision are the code of a run (hkbench/cluster), without Ray; the figures contain what the simulation itself
costs. A card builds up to `--builds` candidates side by side and measures one at a time; times are drawn.

With --kills, processes are killed, cards hang, and nodes go and come back, at random moments all over the run.

Exit code: 0 every candidate got exactly one verdict, 1 not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hkbench.cluster import ClusterEvaluator, members, messages  # noqa: E402
from hkbench.cluster.lane import CardLost, NodeGone  # noqa: E402
from hkbench.cluster.messages import CardOrder, Entered, Judged, Ready, Work  # noqa: E402
from hkbench.cluster.pool import Tempo  # noqa: E402
from hkbench.cluster.site import Node  # noqa: E402
from hkbench.engine.slots import LOADED_AHEAD  # noqa: E402
from hkbench.errors import HkbenchError  # noqa: E402
from hkbench.records import (  # noqa: E402
    BackendName,
    Conditions,
    DeviceFacts,
    DeviceKind,
    EvaluationSettings,
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
    Trial,
    Verdict,
)

CONFINED = Isolation(level=IsolationLevel.FULL, layers=("guard",), holds=())
RUNS = 100  #: timed calls of each side in a verdict
SPREAD = 0.5  #: of the logarithm of a time

M = TypeVar("M", Entered, Judged)


@dataclass
class Card:
    """A simulated card: its processes, and how long it was lent."""

    builds: asyncio.Semaphore
    device: asyncio.Lock = field(default_factory=asyncio.Lock)
    busy: float = 0.0
    life: int = 0  #: of its process; work of an earlier one is lost
    deaf: float = 0.0  #: until when it answers nothing


class SimulatedSite:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.alive = {
            f"node-{number}": Node(f"node-{number}:0", f"node-{number}", 64, options.cards)
            for number in range(options.nodes)
        }
        self.cards: dict[str, Card] = {}
        self.judged: Counter[str] = Counter()
        self._lives = 0

    def draw(self, mean: float) -> float:
        return mean * self.random.lognormvariate(-SPREAD * SPREAD / 2, SPREAD)

    async def nodes(self) -> tuple[Node, ...]:
        return tuple(self.alive.values())

    async def describe(self, node: Node) -> NodeFacts:
        return NodeFacts(
            name=node.name, host=node.name, kind=DeviceKind.ROCM, cards=node.gpus, cores=node.cores,
            decisive={"hkbench": "this one"},
        )  # fmt: skip

    def card(self, node: Node, number: int, of: int, order: CardOrder) -> SimulatedCard:  # noqa: ARG002
        name = f"{node.name}, card {number}"
        self.cards.setdefault(name, Card(asyncio.Semaphore(order.builds)))
        return SimulatedCard(self, node.key, name)

    async def close(self) -> None:
        pass

    def restart(self, name: str) -> None:
        """Let a node go, and another process of it come."""
        node = self.alive[name]
        self._lives += 1
        self.alive[name] = Node(f"{name}:{self._lives}", name, node.cores, node.gpus)
        for number in range(node.gpus):
            self.cards[f"{name}, card {number}"].life += 1


class SimulatedCard:
    def __init__(self, site: SimulatedSite, node: str, name: str) -> None:
        self.node, self.name = node, name
        self._site = site
        self._card = site.cards[name]
        self._life = -1

    async def start(self) -> Ready:
        if self.node not in {node.key for node in self._site.alive.values()}:
            raise NodeGone("its node is gone")
        self._card.life, self._card.deaf = self._card.life + 1, 0.0  # another process
        self._life = self._card.life
        facts = DeviceFacts(kind=DeviceKind.ROCM, index=0, name="a simulated card")
        return Ready(devices=(facts,), isolation=CONFINED, sizes=SizeSet.FULL)

    async def ping(self) -> float:
        await self._answer()
        return time.time()

    async def require(self, backend: BackendName) -> None:
        pass

    async def facts(self, problem: Problem, seconds: float | None) -> ProblemFacts:
        raise NotImplementedError

    async def judge(self, work: Work, code: bytes) -> AsyncGenerator[Entered | Judged, None]:
        site, card, asked = self._site, self._card, time.time()
        sent = messages.written(work)
        async with card.builds:
            building = time.time()
            yield _crossed(Entered(stage=Stage.BUILD, lent=False), Entered)
            await asyncio.sleep(site.draw(site.options.build_seconds))
            loaded = time.time()
        async with card.device:
            lent = time.time()
            yield _crossed(Entered(stage=Stage.RUN, lent=True), Entered)
            await asyncio.sleep(site.draw(site.options.seconds))
            card.busy += time.time() - lent
        await self._answer()
        turns = SlotTimes(asked=asked, building=building, loaded=loaded, device=0, lent=lent, returned=time.time())
        again = Work.model_validate_json(sent)
        site.judged[again.file_name] += 1
        yield _crossed(Judged(verdict=verdict(again.problem, code), turns=turns), Judged)

    async def stop(self) -> None:
        pass

    async def _answer(self) -> None:
        while time.time() < self._card.deaf:
            await asyncio.sleep(0.05)
        if self._life != self._card.life:
            raise CardLost("its process was killed")


def _crossed(message: M, kind: type[M]) -> M:
    """Return a message as it arrives."""
    found = messages.read(messages.written(message))
    assert isinstance(found, kind)
    return found


def verdict(problem: Problem, code: bytes) -> Verdict:
    """Return a verdict as large as one of a correct candidate."""
    timing = Timing(
        samples=tuple(1e-3 + 1e-9 * run for run in range(RUNS)),
        median=Interval(value=1e-3, low=0.9e-3, high=1.1e-3),
        clock="simulated",
        warmups=3,
    )
    conditions = Conditions(
        backend="hip", device=DeviceKind.ROCM, device_name="a simulated card", isolation=CONFINED,
        problem_sha256=problem.sha256, candidate_sha256=sha256(code).hexdigest(),
    )  # fmt: skip
    return Verdict(
        problem=problem.name,
        status=Status.FAST,
        trials=tuple(Trial(seed=seed, passed=True) for seed in range(5)),
        baseline=timing,
        candidate=timing,
        speedup=Interval(value=1.0, low=0.9, high=1.1),
        conditions=conditions,
    )


@dataclass(frozen=True)
class Figures:
    """Of one simulated run. `busy`: share of the time that cards were lent, 0..1, until the queue was empty."""

    cards: int
    candidates: int
    seconds: float
    busy: float
    busy_to_the_end: float
    cpu_seconds_a_candidate: float
    mib: list[int]  #: of memory, after each tenth of the candidates
    kills: int
    moved: int  #: evaluations that a card did for nothing, since it was lost before the controller had their verdict
    given_up: int  #: evaluations that ended as an error of machines, and were asked for again
    lost: int
    doubled: int


async def simulate(options: argparse.Namespace) -> Figures:
    site = SimulatedSite(options)
    got: Counter[str] = Counter()
    kills = given_up = 0
    mib: list[int] = []
    tempo = Tempo(ping=options.ping, answer=3 * options.ping, silent=3600.0, again=0.1, grace=60.0)
    members.NODES_SECONDS = options.ping
    left = iter(range(options.candidates))
    queue_empty: tuple[float, float] | None = None
    with tempfile.TemporaryDirectory() as folder:
        problem = Problem(number=1, name="1_One", level=1, path=Path(folder), source="x" * 4000, sha256="0" * 64)
        async with ClusterEvaluator(site, None, EvaluationSettings(), builds=options.builds, tempo=tempo) as evaluator:
            begun, cpu = time.time(), time.process_time()

            async def judged(code: Path) -> bool:
                nonlocal given_up
                try:
                    found = await evaluator.evaluate(problem, code, Path(folder), "hip")
                except HkbenchError:  # of machines: a resume does the same
                    given_up += 1
                    return False
                assert found.verdict is not None
                got[code.name] += 1
                return True

            async def work() -> None:
                nonlocal queue_empty
                for number in left:
                    code = Path(folder, f"{number}.py")
                    code.write_text(f"# {number}\n" * 300)
                    while not await judged(code):
                        pass
                    code.unlink()
                    if len(got) % max(1, options.candidates // 10) == 0:
                        mib.append(memory())
                queue_empty = queue_empty or (time.time(), sum(card.busy for card in site.cards.values()))

            async def harm() -> None:
                nonlocal kills
                expected = options.candidates / len(site.cards) * options.seconds
                for _ in range(options.kills):
                    await asyncio.sleep(site.random.uniform(0.2, 1.8) * 0.8 * expected / options.kills)
                    kills += 1
                    await strike(site)

            harming = asyncio.create_task(harm())
            at_once = len(site.cards) * (options.builds + LOADED_AHEAD)
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(work())
            ended, cpu = time.time(), time.process_time() - cpu
            harming.cancel()
    assert queue_empty is not None
    cards = len(site.cards)
    return Figures(
        cards=cards,
        candidates=options.candidates,
        seconds=ended - begun,
        busy=queue_empty[1] / cards / (queue_empty[0] - begun),
        busy_to_the_end=sum(card.busy for card in site.cards.values()) / cards / (ended - begun),
        cpu_seconds_a_candidate=cpu / options.candidates,
        mib=mib,
        kills=kills,
        moved=sum(site.judged.values()) - sum(got.values()),
        given_up=given_up,
        lost=options.candidates - len(got),
        doubled=sum(count > 1 for count in got.values()),
    )


async def strike(site: SimulatedSite) -> None:
    """Kill a process, have a card hang, or restart a node."""
    name = site.random.choice(sorted(site.cards))
    match site.random.randrange(3):
        case 0:
            site.cards[name].life += 1
        case 1:
            site.cards[name].deaf = time.time() + 10 * site.options.ping
        case _:
            site.restart(name.partition(",")[0])


def memory() -> int:
    """Return the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--nodes", type=int, default=4, metavar="N", help="simulated nodes (default: 4)")
    found.add_argument("--cards", type=int, default=4, metavar="N", help="cards of each (default: 4)")
    found.add_argument("--candidates", type=int, default=1000, metavar="N", help="default: 1000")
    found.add_argument("--seconds", type=float, default=8.0, metavar="S", help="of a measurement (default: 8)")
    found.add_argument("--build-seconds", type=float, default=20.0, metavar="S", help="of a build (default: 20)")
    found.add_argument("--builds", type=int, default=8, metavar="N", help="side by side for each card (default: 8)")
    found.add_argument("--kills", type=int, default=0, metavar="N", help="of processes and nodes (default: none)")
    found.add_argument("--ping", type=float, default=5.0, metavar="S", help="as `Tempo.ping` (default: 5)")
    found.add_argument("--seed", type=int, default=0, metavar="S", help="the same seed draws the same (default: 0)")
    return found


def main() -> int:
    figures = asyncio.run(simulate(parser().parse_args()))
    print(json.dumps(asdict(figures), indent=1))
    return 0 if not figures.lost and not figures.doubled else 1


if __name__ == "__main__":
    sys.exit(main())
