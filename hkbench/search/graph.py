"""The graph: states that were reached, each measured once, and the moves between them with what they gained."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from hkbench.search.constants import Constants
from hkbench.search.requests import Move, Outcome


@dataclass
class Edge:
    """A move that was tried from a node."""

    move: str
    child: str
    gain: float  #: log speed-up of the child over the parent; 0 inside the interval, and where it failed


@dataclass
class Node:
    """A state.

    Attributes:
        time: log of its seconds; None: it failed.
        spread: half the width of the interval of `time`.
        reward: log speed-up over the start, a gain inside the interval taken as none.
        rewards: those of all that was found below it, in the order in which they came.
        in_flight: evaluations that are under way below it.
        tried: how often each move was opened.
    """

    key: str
    features: tuple[float, ...] | None
    time: float | None
    spread: float
    reward: float
    measurements: int = 1
    visits: int = 0
    in_flight: int = 0
    rewards: list[float] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    tried: dict[str, int] = field(default_factory=dict)


class Graph:
    """Nodes by key. `start` is the root: it has the reward 0."""

    def __init__(self, start: Outcome, features: tuple[float, ...] | None, constants: Constants) -> None:
        if start.seconds is None:
            raise ValueError(f"a search starts from a state that was measured, and {start.key} failed")
        self._constants = constants
        self.start = start.key
        self.nodes: dict[str, Node] = {}
        time, spread = logs(start)
        self.nodes[start.key] = Node(start.key, features, time, spread, 0.0)
        self.best = start.key

    def __contains__(self, key: str) -> bool:
        return key in self.nodes

    @property
    def root(self) -> Node:
        return self.nodes[self.start]

    @property
    def incumbent(self) -> Node:
        return self.nodes[self.best]

    def reach(self, parent: str, move: Move, outcome: Outcome) -> tuple[Edge, bool]:
        """Add what a move led to. Returns the edge, and whether the state is new."""
        above = self.nodes[parent]
        new = outcome.key not in self.nodes
        if new:
            time, spread = logs(outcome)
            reward = self._constants.failure
            if time is not None:
                reward = above.reward if self._same(above, time, spread) else self._reward(time)
            self.nodes[outcome.key] = Node(outcome.key, move.features, time, spread, reward)
        child = self.nodes[outcome.key]
        edge = Edge(move.name, child.key, self._gain(above, child))
        above.edges.append(edge)
        return edge, new

    def measured_again(self, key: str, outcome: Outcome) -> None:
        """Take the mean of all measurements of a state, in log; one that fails now has failed."""
        node = self.nodes[key]
        time, spread = logs(outcome)
        node.measurements += 1
        if time is None or node.time is None:
            node.time, node.reward = None, self._constants.failure
            return
        weight = 1.0 / node.measurements
        node.time += weight * (time - node.time)
        node.spread = max(node.spread, spread) / math.sqrt(node.measurements)
        node.reward = self._reward(node.time)

    def beats(self, node: Node) -> bool:
        """Return whether a node is faster than the incumbent, by more than their intervals."""
        best = self.incumbent
        if node.time is None or best.time is None:
            return node.time is not None
        return node.time < best.time and not self._same(best, node.time, node.spread)

    def back_up(self, path: list[str], reward: float) -> None:
        for key in path:
            node = self.nodes[key]
            node.visits += 1
            node.rewards.append(reward)

    def value(self, node: Node) -> float:
        """Return what a node stands for: the best of what was found from it on, or the chosen quantile, or the mean."""
        found = [node.reward, *node.rewards]
        quantile = self._constants.backup
        if quantile is None:
            return math.fsum(found) / len(found)
        if quantile == 1.0:
            return max(found)
        return sorted(found)[min(len(found) - 1, int(quantile * len(found)))]

    def to_json(self) -> dict[str, Any]:
        return {"start": self.start, "best": self.best, "nodes": [asdict(node) for node in self.nodes.values()]}

    def _reward(self, time: float) -> float:
        assert self.root.time is not None
        return max(0.0, self.root.time - time)

    def _gain(self, above: Node, child: Node) -> float:
        if above.time is None or child.time is None or self._same(above, child.time, child.spread):
            return 0.0
        return above.time - child.time

    @staticmethod
    def _same(node: Node, time: float, spread: float) -> bool:
        """Return whether a time cannot be told from a node's: the interval of the difference holds 0."""
        return node.time is not None and abs(node.time - time) <= math.hypot(node.spread, spread)


def logs(outcome: Outcome) -> tuple[float | None, float]:
    """Return log seconds and half the width of its interval."""
    if outcome.seconds is None:
        return None, 0.0
    if not (math.isfinite(outcome.seconds) and outcome.seconds > 0.0):
        raise ValueError(f"the time of {outcome.key} has to be a positive number of seconds, not {outcome.seconds}")
    if outcome.low is None or outcome.high is None:
        return math.log(outcome.seconds), 0.0
    return math.log(outcome.seconds), (math.log(outcome.high) - math.log(outcome.low)) / 2.0
