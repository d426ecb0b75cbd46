"""A cluster's engine as the controller needs it: the nodes that are alive, and the way to their cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hkbench.cluster.lane import CardLink
from hkbench.cluster.messages import CardOrder
from hkbench.records import NodeFacts


@dataclass(frozen=True)
class Node:
    """A node that is alive. `key` is new each time that it is started; `name` stays."""

    key: str
    name: str
    cores: int
    gpus: int


class Site(Protocol):
    """Ray (`ray_site.py`), or what stands for it where scheduling is tested."""

    async def nodes(self) -> tuple[Node, ...]: ...

    async def describe(self, node: Node) -> NodeFacts:
        """Ask a node what it is. Raises Unavailable where it cannot say, as without hkbench."""

    def card(self, node: Node, number: int, of: int, order: CardOrder) -> CardLink:
        """Return the way to a card, which is number `number` of the `of` cards of its node."""

    async def close(self) -> None: ...
