"""What all searchers share: requests by number, what is in flight, confirmation, the incumbent, replay."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from hkbench.errors import HkbenchError
from hkbench.search.constants import DEFAULTS, Constants
from hkbench.search.graph import Edge, Graph, Node
from hkbench.search.requests import Kind, Move, Outcome, Request, Space

#: One step of a search as it went: a request that was proposed, or one that was answered.
Event = tuple[Request, Outcome | None]


class SearchMismatch(HkbenchError):
    """A replay did not propose what was recorded: the space, the seed or the constants are others."""


class Searcher(ABC):
    """Propose what to measure, and be told what came of it, in any order.

    `start` is a state that was measured. `history` is enough to continue elsewhere (`replay`).
    """

    #: Whether a new best is measured a second time.
    confirms = True

    def __init__(
        self,
        space: Space,
        start: Outcome,
        *,
        features: tuple[float, ...] | None = None,
        seed: int = 0,
        constants: Constants = DEFAULTS,
    ) -> None:
        self.space = space
        self.constants = constants
        self.graph = Graph(start, features, constants)
        self.random = random.Random(seed)
        self.history: list[Event] = []
        self.pending: dict[int, Request] = {}
        self.evaluations = 0  #: states that were made and measured, without the start
        self.confirmations = 0  #: measurements of such a state again: nothing is made for them
        self.last_gain = 0  #: the evaluations when the incumbent last changed
        self._to_confirm: list[str] = []
        self._proposed = 0

    @property
    def best(self) -> Node:
        return self.graph.incumbent

    @property
    def confirming(self) -> bool:
        """Whether the next request is a confirmation, or one is in flight."""
        return self._unconfirmed() is not None or bool(self._confirmed_now())

    def propose(self) -> Request | None:
        """Return the next request. None: there is nothing to try, or not before one in flight is answered."""
        key = self._unconfirmed()
        if key is not None:
            self._to_confirm.remove(key)
            chosen: tuple[str, Move] | None = (key, Move("confirm", to=key))
            kind = Kind.CONFIRM
        else:
            chosen, kind = self._choose(), Kind.MEASURE
        if chosen is None:
            return None
        self._proposed += 1
        request = Request(self._proposed, kind, *chosen)
        self.pending[request.number] = request
        self.history.append((request, None))
        return request

    def tell(self, request: Request, outcome: Outcome) -> None:
        """Take what came of a request.

        Raises:
            ValueError: the request is not in flight, or the outcome is of another state than the one asked for.
        """
        if self.pending.get(request.number) != request:
            raise ValueError(f"request {request.number} is not in flight: it was answered, or never proposed here")
        if request.move.to is not None and outcome.key != request.move.to:
            raise ValueError(f"request {request.number} is for {request.move.to}, and the outcome for {outcome.key}")
        del self.pending[request.number]
        self.history.append((request, outcome))
        if request.kind is Kind.CONFIRM:
            self.confirmations += 1
            self.graph.measured_again(outcome.key, outcome)
            self._consider(self.graph.nodes[outcome.key], confirmed=True)
            return
        edge, new = self.graph.reach(request.parent, request.move, outcome)
        if new:
            self.evaluations += 1
            self._consider(self.graph.nodes[edge.child], confirmed=False)
        self._learn(request, edge)

    @property
    def stop(self) -> bool:
        """Whether to end early: the last evaluations brought nothing, and so will the next."""
        quiet = self.evaluations - self.last_gain
        least = self.constants.stop_least
        return self.evaluations >= least and quiet >= self.constants.stop_share * self.evaluations

    def to_json(self) -> dict[str, Any]:
        """Return all that later proposals depend on: two searches that give the same go on alike."""
        return {
            "graph": self.graph.to_json(),
            "random": repr(self.random.getstate()),
            "pending": sorted(self.pending),
            "evaluations": self.evaluations,
            "confirmations": self.confirmations,
            "last_gain": self.last_gain,
            "to_confirm": list(self._to_confirm),
        }

    @abstractmethod
    def _choose(self) -> tuple[str, Move] | None:
        """Return a parent and a move that leads to no state that has a node, as far as that is known."""

    def _learn(self, request: Request, edge: Edge) -> None:  # noqa: B027 - not every searcher learns
        """Take in what a move came to."""

    def _free(self, move: Move) -> bool:
        """Return whether nothing is known of where a move leads, nor asked for."""
        return move.to is None or (
            move.to not in self.graph and all(asked.move.to != move.to for asked in self.pending.values())
        )

    def _fresh(self) -> tuple[str, Move] | None:
        """Return a restart that leads to a new state; None after many draws of known ones."""
        for _ in range(self.constants.fresh_states):
            move = self.space.fresh(self.random)
            if move is None:
                return None
            if self._free(move):
                return self.graph.start, move
        return None

    def _unconfirmed(self) -> str | None:
        """Return the fastest state that has to be confirmed; None where a faster one is being confirmed.

        Of several that came to their end together only the fastest can be the new best, unless it is not confirmed.
        """
        waiting = [key for key in self._to_confirm if self.graph.beats(self.graph.nodes[key])]
        key = min(waiting, key=self._log_time, default=None)
        if key is None or any(self._log_time(other) <= self._log_time(key) for other in self._confirmed_now()):
            return None
        return key

    def _confirmed_now(self) -> list[str]:
        """Return the states of which a confirmation is in flight."""
        return [asked.parent for asked in self.pending.values() if asked.kind is Kind.CONFIRM]

    def _log_time(self, key: str) -> float:
        time = self.graph.nodes[key].time
        return math.inf if time is None else time

    def _consider(self, node: Node, confirmed: bool) -> None:
        if node.key == self.graph.best or not self.graph.beats(node):
            return
        if self.confirms and not confirmed and node.spread > 0.0:
            self._to_confirm.append(node.key)
            return
        self.graph.best = node.key
        self.last_gain = self.evaluations


def replay(make: Callable[[], Searcher], history: Iterable[Event]) -> Searcher:
    """Return a new searcher that stands where another one stood; what was in flight is in its `pending`.

    Raises:
        SearchMismatch: it would have proposed something else.
    """
    searcher = make()
    for request, outcome in history:
        if outcome is not None:
            searcher.tell(request, outcome)
        elif (proposed := searcher.propose()) != request:
            raise SearchMismatch(
                f"request {request.number} was {request}, and is {proposed} now: "
                "continue a search with the space, the seed and the constants that it began with"
            )
    return searcher
