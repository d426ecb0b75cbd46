"""The evaluator of a run whose cards are those of a cluster. It keeps no state that a resume would need."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, aclosing
from hashlib import sha256
from pathlib import Path

from hkbench.cluster.lane import CardLost, Lane
from hkbench.cluster.members import Members
from hkbench.cluster.messages import CardOrder, Judged, Work
from hkbench.cluster.node import NodesDiffer
from hkbench.cluster.pool import Pool, Tempo
from hkbench.cluster.site import Node, Site
from hkbench.device_kinds import model_of
from hkbench.engine.completion import EvaluationResult
from hkbench.engine.evaluator import OnStage, longest
from hkbench.engine.slots import loaded_ahead
from hkbench.errors import DeviceUnavailable, HkbenchError, WorkerLost
from hkbench.records import (
    AnyEvent,
    BackendName,
    CardCheck,
    CardFailed,
    CardJoined,
    CardsChecked,
    DeviceFacts,
    DeviceKind,
    DevicePlace,
    EvaluationSettings,
    Isolation,
    IsolationLevel,
    NodeFacts,
    Problem,
    ProblemFacts,
    SizeSet,
    Track,
    Verdict,
)
from hkbench.stats import ratio_of_medians
from hkbench.store.files import write_atomic


class ClusterEvaluator:
    """Evaluate each candidate on one card of a cluster. Use as an async context manager."""

    def __init__(
        self,
        site: Site,
        kind: DeviceKind | None,
        settings: EvaluationSettings,
        sizes: SizeSet | None = None,
        builds: int | None = None,
        mixed: bool = False,
        tell: Callable[[str], None] = lambda _line: None,
        tempo: Tempo | None = None,
    ) -> None:
        """Set up; `builds`: side by side for each card; `mixed`: cards of several models are one.

        `tell` gets lines for people: cards and nodes that are lost, left out, or come.
        """
        self._site = site
        self._settings = settings
        self._sizes = sizes
        self._builds = builds
        self._mixed = mixed
        self._tell = tell
        self._pool = Pool(tempo or Tempo(silent=longest(settings)), self._failed, self._check)
        self._members = Members(site, self._pool, kind, self._enter, tell)
        self._hosts: dict[str, str] = {}  # by a node's key
        self._model: str | None = None  # of the cards, where it has to be one
        self._placed: dict[int, DevicePlace] = {}  # cards that were open once, by their numbers in the run
        self._untold: list[AnyEvent] = []
        self._record: Callable[[AnyEvent], None] = self._untold.append
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> ClusterEvaluator:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._site.close)
            stack.push_async_callback(self._pool.close)
            await self._members.begin()
            await self._pool.opened()
            ready = self._pool.ready
            if not ready:
                said = "".join(f"\n  {name}: {why}" for name, why in self._pool.left_out.items())
                raise DeviceUnavailable(f"no card of the cluster can be used:{said}")
            self._devices = tuple(_facts(lane) for lane in ready)
            self._places = tuple(self._placed[lane.index] for lane in ready)
            self._first = ready[0].ready
            self._agree()
            # The session begins with these places in the journal.
            self._untold[:] = [e for e in self._untold if not (isinstance(e, CardJoined) and e.place in self._places)]
            following = asyncio.create_task(self._members.follow())
            stack.callback(following.cancel)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def record(self, record: Callable[[AnyEvent], None]) -> None:
        """Give the journal what became of cards, from the beginning on. To be called when the session is in it."""
        for event in self._untold:
            record(event)
        self._record = record

    @property
    def device(self) -> DeviceFacts:
        """The first card's."""
        return self._devices[0]

    @property
    def devices(self) -> tuple[DeviceFacts, ...]:
        """The cards at the beginning, by their numbers in the run."""
        return self._devices

    @property
    def places(self) -> tuple[DevicePlace, ...]:
        return self._places

    @property
    def nodes(self) -> tuple[NodeFacts, ...]:
        """The nodes at the beginning."""
        return self._members.facts

    @property
    def capacity(self) -> int:
        """What the cards take that are ready now; some may be lost or join."""
        return sum(lane.depth for lane in self._pool.ready)

    @property
    def track(self) -> Track:
        return self._settings.track

    @property
    def sizes(self) -> SizeSet:
        assert self._first is not None, "it has begun"
        return self._first.sizes

    @property
    def isolation(self) -> Isolation:
        """What confines runners on the first card; it is `full` on all."""
        assert self._first is not None, "it has begun"
        return self._first.isolation

    @property
    def compiled_for(self) -> str | None:
        """Candidates are measured."""
        return None

    async def require(self, backend: BackendName) -> None:
        """Check on every card what candidates of a backend need; leave out those that lack something.

        Raises:
            HkbenchError: of the first one, where none has it.
        """
        lacking: list[tuple[Lane, HkbenchError]] = []

        async def asked(lane: Lane) -> bool:
            try:
                await lane.link.require(backend)
            except HkbenchError as error:
                lacking.append((lane, error))
                return False
            except CardLost:  # it is started again, and looks for the tools at its first candidate
                return False
            return True

        if not any(await asyncio.gather(*map(asked, self._pool.ready))):
            raise lacking[0][1] if lacking else DeviceUnavailable("no card of the cluster is there any more")
        for lane, error in lacking:
            self._pool.leave_out(lane, str(error))

    async def problem_facts(self, problem: Problem, seconds: float | None = None) -> ProblemFacts:
        """Return shapes, dtypes and operators, by running the problem's code on a node.

        Raises:
            HkbenchError: see `LocalEvaluator.problem_facts`.
        """
        return await self._pool.run(lambda lane: lane.link.facts(problem, seconds))

    async def evaluate(
        self,
        problem: Problem,
        code: Path,
        folder: Path,  # noqa: ARG002 - builds lie on the node
        backend: BackendName,
        on_stage: OnStage = lambda _stage, _device: None,
        *,
        profile: bool = True,
    ) -> EvaluationResult:
        """Evaluate the candidate in the file `code` on a card that is free.

        Raises:
            HkbenchError: machines failed, not the candidate.
        """
        asked, content = time.time(), code.read_bytes()
        work = Work(problem=problem, backend=backend, file_name=code.name, profile=profile)
        lane, found = await self._pool.run(lambda lane: _judged(lane, work, content, on_stage))
        self._keep(found)
        return self._taken(lane, found, asked)

    async def check_cards(self, problem: Problem, backend: BackendName) -> CardsChecked:
        """Have each card that is there judge a problem's reference against itself, all at once."""
        work = Work(problem=problem, backend=backend, file_name="code.py", profile=False)
        content = f"{problem.source}\n\nModelNew = Model\n".encode()

        async def checked(lane: Lane) -> CardCheck:
            try:
                _, found = await self._pool.run_on(lane, lambda lane: _judged(lane, work, content))
            except (CardLost, HkbenchError) as error:
                return CardCheck(device=lane.index, name=self._placed[lane.index].name, message=str(error))
            return _check_of(self._placed[lane.index], found.verdict)

        return CardsChecked(problem=problem.name, cards=tuple(await asyncio.gather(*map(checked, self._pool.ready))))

    def _enter(self, node: Node, facts: NodeFacts, kind: DeviceKind) -> None:
        """Give the cards of a node to the pool."""
        self._hosts[node.key] = facts.host
        cards = 1 if model_of(kind).on_host else node.gpus
        builds = self._builds or max(1, node.cores // cards)
        settings = self._settings.model_copy(
            update={"require_isolation": IsolationLevel.FULL, "keep_profile": None}  # a folder of the controller's
        )
        order = CardOrder(
            kind=kind,
            settings=settings,
            sizes=self._sizes,
            builds=builds,
            keeps_profile=self._settings.keep_profile is not None,
        )
        for number in range(cards):
            depth = builds + loaded_ahead(model_of(kind), self._settings)
            self._pool.add(self._site.card(node, number, cards, order), depth)

    def _agree(self) -> None:
        """Check that all cards are of one model. Raises NodesDiffer."""
        names = {facts.name for facts in self._devices}
        if self._mixed:
            return
        if len(names) > 1:
            raise NodesDiffer(
                f"the cards of the cluster are of several models ({', '.join(sorted(names))}), whose speed-ups would "
                "be counted as one: leave out nodes, or say --mixed-cards"
            )
        self._model = names.pop()

    def _check(self, lane: Lane) -> None:
        """Refuse a card that comes later and is of another model. Raises NodesDiffer."""
        facts = _facts(lane)
        if self._model not in (None, facts.name):
            raise NodesDiffer(f"it is a {facts.name}, and the run's are {self._model}; see --mixed-cards")
        host = self._hosts[lane.link.node]
        place = DevicePlace(
            index=lane.index, name=f"{facts.name}, {lane.link.name}", uuid=facts.uuid, pci=facts.pci, host=host
        )
        if self._placed.get(lane.index) != place:
            self._placed[lane.index] = place
            self._record(CardJoined(place=place))

    def _failed(self, lane: Lane, reason: str) -> None:
        out = lane.standing.out is not None
        self._tell(f"{lane.link.name} {'is left out' if out else 'failed, and its work goes elsewhere'}: {reason}")
        unopened = DevicePlace(index=lane.index, name=lane.link.name, host=self._hosts[lane.link.node])
        place = self._placed.get(lane.index, unopened)
        self._record(CardFailed(place=place, message=reason, left_out=out))

    def _taken(self, lane: Lane, found: Judged, asked: float) -> EvaluationResult:
        """Return the verdict with where it was reached, by the run's number of the card and the controller's clock."""
        conditions = found.verdict.conditions
        facts = conditions.device_facts
        named = {
            "host": self._hosts[lane.link.node],
            "device_facts": None if facts is None else facts.model_copy(update={"index": lane.index}),
        }
        verdict = found.verdict.model_copy(update={"conditions": conditions.model_copy(update=named)})
        turns = found.turns
        if turns is not None:
            times = turns.model_dump(include={"building", "loaded", "lent", "returned"})
            here = {name: None if value is None else value - lane.skew for name, value in times.items()}
            index = None if turns.device is None else lane.index
            turns = turns.model_copy(update={**here, "asked": asked, "device": index})
        return EvaluationResult(verdict, turns=turns, assembly=found.assembly)

    def _keep(self, found: Judged) -> None:
        """Write what profilers left, where it is to be kept."""
        if self._settings.keep_profile is None:
            return
        for name, files in found.kept.items():
            folder = Path(self._settings.keep_profile, name)
            folder.mkdir(parents=True, exist_ok=True)
            for file, text in files.items():
                write_atomic(folder / file, text)


def _facts(lane: Lane) -> DeviceFacts:
    assert lane.ready is not None, "it was opened"
    return lane.ready.devices[0].model_copy(update={"index": lane.index})


async def _judged(
    lane: Lane, work: Work, code: bytes, on_stage: OnStage = lambda _stage, _device: None
) -> tuple[Lane, Judged]:
    async with aclosing(lane.link.judge(work, code)) as told:
        async for news in told:
            lane.hear()
            if isinstance(news, Judged):
                _check_whose(news.verdict, work.problem, code)
                return lane, news
            on_stage(news.stage, lane.index if news.lent else None)
    raise CardLost("it ended an evaluation without a verdict")


def _check_of(place: DevicePlace, verdict: Verdict) -> CardCheck:
    """Return the times of equals; they are there also where the rules refuse PyTorch's work as a candidate's own."""
    if verdict.baseline is None or verdict.candidate is None:
        failure = verdict.failure
        said = f"{failure.kind}: {failure.message}" if failure is not None else "its times were not measured"
        return CardCheck(device=place.index, name=place.name, message=said)
    ratio = ratio_of_medians(verdict.baseline.samples, verdict.candidate.samples)
    return CardCheck(device=place.index, name=place.name, seconds=verdict.baseline.median, ratio=ratio)


def _check_whose(verdict: Verdict, problem: Problem, code: bytes) -> None:
    """Raise WorkerLost for a verdict on something else than what was sent."""
    said = verdict.conditions
    if (said.problem_sha256, said.candidate_sha256) != (problem.sha256, sha256(code).hexdigest()):
        raise WorkerLost(f"a verdict came on another candidate than the one that was sent for {problem.name}")
