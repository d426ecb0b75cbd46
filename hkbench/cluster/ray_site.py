"""Ray as the cluster's engine: one actor a card. This module alone imports ray."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from typing import Any, TypeVar, cast

from hkbench.cluster import messages
from hkbench.cluster.address import ClusterUnavailable, demand_token, find_cluster
from hkbench.cluster.card import Card
from hkbench.cluster.lane import CardLost, NodeGone
from hkbench.cluster.messages import CardOrder, Entered, Failed, Judged, Work
from hkbench.cluster.node import describe_node
from hkbench.cluster.site import Node
from hkbench.errors import Unavailable, WorkerLost
from hkbench.evaluation import frames
from hkbench.records import BackendName, NodeFacts, Problem, ProblemFacts, Record

M = TypeVar("M", bound=Record)

DESCRIBE_SECONDS = 120.0
CLOSE_SECONDS = 10.0  #: for a card's process to end by itself
STORE_BYTES = 80 << 20  #: of a cluster that is started here: messages are small
AT_ONCE = 1000  #: calls that an actor takes side by side


def open_site(asked: str) -> RaySite:
    """Connect to the cluster at an address (HOST:PORT), or with `auto` to this machine's; start one where none runs.

    Raises:
        UsageError: the address is none.
        ClusterUnavailable: ray is not installed, there is no cluster, or it lets everybody in.
    """
    # Ray reads these when it is imported. Of a cluster that is started here it would let the cards' processes run after
    # everything else (niceness 15), which is to be timed as without a cluster.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    os.environ.setdefault("RAY_worker_niceness", "0")
    address = find_cluster(asked, os.environ)
    demand_token(address, os.environ)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ClusterUnavailable(
            f"--cluster needs {error.name}, which is not installed: run `pip install 'hkbench[cluster]'`"
        ) from None
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    try:
        if address is None:
            ray.init("local", include_dashboard=False, object_store_memory=STORE_BYTES, **quiet)
        else:
            ray.init(address, **quiet)
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError) as error:
        where = "a cluster of this machine alone" if address is None else f"the cluster at {address}"
        raise ClusterUnavailable(f"{where} cannot be joined: {_line(error)}") from error
    # It prints what its nodes complain of on standard output, where --display json has the events alone.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
    return RaySite(ray)


class RaySite:
    """The cluster that this process has joined."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._actor = ray.remote(Card)
        self._describe = ray.remote(_described)

    async def nodes(self) -> tuple[Node, ...]:
        """Return those that are alive, by name. Those of one name have a part of their keys in it."""
        try:
            found = await asyncio.to_thread(self._ray.nodes)
        except self._ray.exceptions.RayError as error:
            raise ClusterUnavailable(f"the cluster does not answer: {_line(error)}") from error
        alive = [node for node in found if node["Alive"]]
        names = [node["NodeName"] for node in alive]
        nodes = []
        for node in alive:
            key, name, has = node["NodeID"], node["NodeName"], node["Resources"]
            name = name if names.count(name) == 1 else f"{name} ({key[:6]})"
            nodes.append(Node(key, name, int(has.get("CPU", 0)), int(has.get("GPU", 0))))
        return tuple(sorted(nodes, key=lambda node: (node.name, node.key)))

    async def describe(self, node: Node) -> NodeFacts:
        """Ask a node what it is.

        Raises:
            Unavailable: it does not say; hkbench may be missing there.
        """
        task = self._describe.options(num_cpus=0, max_retries=1, **self.on(node.key))
        try:
            async with asyncio.timeout(DESCRIBE_SECONDS):
                told = await task.remote(node.name, node.gpus, node.cores)
        except TimeoutError:
            raise Unavailable(f"{node.name} did not say within {DESCRIBE_SECONDS:g} s what it is") from None
        except self._ray.exceptions.RayError as error:
            raise Unavailable(
                f"{node.name} cannot say what it is ({_line(error)}): is the same hkbench installed there?"
            ) from error
        return NodeFacts.model_validate_json(told)

    def card(self, node: Node, number: int, of: int, order: CardOrder) -> RayCard:
        return RayCard(self, node, number, of, order)

    async def close(self) -> None:
        """Leave the cluster, or end it where this process started it."""
        await asyncio.to_thread(self._ray.shutdown)

    def on(self, key: str) -> dict[str, Any]:
        """Return the options by which something runs on this very node."""
        strategies = self._ray.util.scheduling_strategies
        return {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(key, soft=False)}

    async def start(self, node: Node, of: int, order: CardOrder) -> Any:
        """Start the actor of one of the `of` cards of a node, with its share of the cores."""
        if node.key not in {one.key for one in await self.nodes()}:
            raise NodeGone("its node is gone")
        share = {"num_cpus": node.cores // of, "num_gpus": 1 if node.gpus else 0}
        options = self._actor.options(**share, max_restarts=0, max_concurrency=AT_ONCE, **self.on(node.key))
        return options.remote(messages.written(order))

    async def answer(self, reference: Awaitable[bytes]) -> bytes:
        """Wait for what an actor returns. Raises CardLost."""
        try:
            return await reference
        except self._ray.exceptions.RayError as error:
            raise CardLost(_line(error)) from error

    def cancel(self, work: Any) -> None:
        """Have an actor end what it was asked for; nobody waits for it."""
        with suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.cancel(work)

    def kill(self, actor: Any) -> None:
        """End an actor's process."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(actor)


class RayCard:
    """The way to the actor of one card."""

    def __init__(self, site: RaySite, node: Node, number: int, of: int, order: CardOrder) -> None:
        self._site = site
        self._node = node
        self._of = of
        self._order = order
        self._actor: Any = None
        self.node = node.key
        self.name = f"{node.name}, card {number}" if of > 1 else node.name

    async def start(self) -> messages.Ready:
        """See `CardLink`."""
        self._actor = await self._site.start(self._node, self._of, self._order)
        return await self._ask(self._actor.start.remote(), messages.Ready)

    async def ping(self) -> float:
        return cast("float", await self._site.answer(self._there.ping.remote()))

    async def require(self, backend: BackendName) -> None:
        await self._ask(self._there.require.remote(backend), messages.Answered)

    async def facts(self, problem: Problem, seconds: float | None) -> ProblemFacts:
        sent = self._there.facts.remote(messages.written(problem), seconds)
        return (await self._ask(sent, messages.FactsFound)).facts

    async def judge(self, work: Work, code: bytes) -> AsyncGenerator[Entered | Judged, None]:
        """See `CardLink`."""
        told = self._there.judge.options(num_returns="streaming").remote(messages.written(work), code)
        over = False
        try:
            async for reference in told:
                message = messages.read(await self._site.answer(reference))
                over = not isinstance(message, Entered)
                if not isinstance(message, Entered | Judged):
                    raise _failure(message)
                yield message
        finally:
            if not over:
                self._site.cancel(told)

    async def stop(self) -> None:
        """Have the process end by itself, or kill it."""
        actor, self._actor = self._actor, None
        if actor is None:
            return
        with suppress(TimeoutError, CardLost):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._site.answer(actor.close.remote())
        self._site.kill(actor)

    @property
    def _there(self) -> Any:
        if self._actor is None:
            raise CardLost("its process was ended")
        return self._actor

    async def _ask(self, reference: Awaitable[bytes], kind: type[M]) -> M:
        message = messages.read(await self._site.answer(reference))
        if not isinstance(message, kind):
            raise _failure(message)
        return message


def _described(name: str, cards: int, cores: int) -> bytes:
    return messages.written(describe_node(name, cards, cores))


def _failure(message: Record) -> Exception:
    if isinstance(message, Failed):
        return frames.failure(frames.Failed(error=message.error, message=message.message))
    return WorkerLost(f"a card said {type(message).__name__}, which was not asked")


def _line(error: BaseException) -> str:
    """Return the part of Ray's message that says what happened: its first sentence, or the exception that it quotes."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    quoted = [line for line in lines[1:] if re.match(r"[\w.]*(Error|Exception): ", line)]
    return (quoted or [re.split(r"(?<=\.) |\. Some", lines[0])[0]])[-1][:300]
