"""Which nodes take part: those that judge alike, from the beginning or later, until they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hkbench.cluster.node import NodesDiffer, check_same, other_differences
from hkbench.cluster.pool import Pool
from hkbench.cluster.site import Node, Site
from hkbench.device_kinds import model_of
from hkbench.errors import DeviceUnavailable, HkbenchError
from hkbench.records import DeviceKind, NodeFacts

NODES_SECONDS = 5.0  #: between two looks at who is there


class Members:
    """The nodes of a site that measure on devices of one kind. `enter` gives a node's cards to the pool."""

    def __init__(
        self,
        site: Site,
        pool: Pool,
        kind: DeviceKind | None,
        enter: Callable[[Node, NodeFacts, DeviceKind], None],
        tell: Callable[[str], None],
    ) -> None:
        self._site = site
        self._pool = pool
        self._kind = kind
        self._enter = enter
        self._tell = tell
        self._known: dict[str, NodeFacts | None] = {}  # by key; `None`: it takes no part
        self.facts: tuple[NodeFacts, ...] = ()  #: at the beginning

    async def begin(self) -> DeviceKind:
        """Take in the nodes that are there; return the kind of their devices.

        Raises:
            NodesDiffer: they do not judge alike.
            DeviceUnavailable: none has such a device.
        """
        nodes = await self._site.nodes()
        self._known = {node.key: None for node in nodes}
        answers = await asyncio.gather(*map(self._described, nodes))
        described = [(node, facts) for node, facts in zip(nodes, answers, strict=True) if facts is not None]
        kind = self._kind = self._kind or _best([facts for _, facts in described])
        chosen = [(node, facts) for node, facts in described if _serves(facts, kind)]
        if not chosen:
            there = ", ".join(f"{facts.name} ({facts.cards} GPUs, torch for {facts.kind})" for _, facts in described)
            raise DeviceUnavailable(f"no node of the cluster measures on {kind}; its nodes: {there or 'none'}")
        self.facts = tuple(facts for _, facts in chosen)
        check_same(self.facts)
        for line in other_differences(self.facts):
            self._tell(f"the nodes of the cluster differ: {line}; verdicts may differ by it")
        for node, facts in chosen:
            self._known[node.key] = facts
            self._enter(node, facts, kind)
        return kind

    async def follow(self) -> None:
        """Take in nodes that come and let those go that are gone, for good."""
        silent = False
        while True:
            await asyncio.sleep(NODES_SECONDS)
            try:
                await self.look()
                silent = False
            except HkbenchError as error:
                if not silent:
                    self._tell(f"{error}; its nodes are asked again")
                silent = True

    async def look(self) -> None:
        """Compare who is there with who was."""
        nodes = {node.key: node for node in await self._site.nodes()}
        for key in [key for key in self._known if key not in nodes]:
            facts = self._known.pop(key)
            if facts is not None:
                self._tell(f"node {facts.name} is gone")
                self._pool.lose_node(key, "its node is gone")
        for key in [key for key in nodes if key not in self._known]:
            self._known[key] = None
            try:
                await self._admit(nodes[key])
            except NodesDiffer as error:
                self._tell(f"node {nodes[key].name} takes no part: {error}")

    async def _described(self, node: Node) -> NodeFacts | None:
        """Return what a node is; `None` where it cannot say."""
        try:
            return await self._site.describe(node)
        except HkbenchError as error:
            self._tell(f"node {node.name} takes no part: {error}")
            return None

    async def _admit(self, node: Node) -> None:
        facts = await self._described(node)
        assert self._kind is not None, "it has begun"
        if facts is None or not _serves(facts, self._kind):
            return
        check_same((*self.facts[:1], facts))
        self._known[node.key] = facts
        self._tell(f"node {node.name} takes part")
        self._enter(node, facts, self._kind)


def _best(described: Sequence[NodeFacts]) -> DeviceKind:
    """Return the kind that most cards have; the CPU where there is no GPU."""
    cards: dict[DeviceKind, int] = {}
    for facts in described:
        if facts.kind is not DeviceKind.CPU:
            cards[facts.kind] = cards.get(facts.kind, 0) + facts.cards
    if len(cards) > 1:
        said = ", ".join(f"{count} of {kind}" for kind, count in cards.items())
        raise NodesDiffer(f"the cluster has GPUs of several kinds ({said}): name one with --device")
    return next(iter(cards), DeviceKind.CPU)


def _serves(facts: NodeFacts, kind: DeviceKind) -> bool:
    if model_of(kind).on_host:
        return facts.cores > 0  # a head that only schedules lends none
    return facts.kind is kind and facts.cards > 0
