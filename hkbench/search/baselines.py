"""What a search has to beat: uniform sampling, greedy with restarts, a beam."""

from __future__ import annotations

from hkbench.search.graph import Edge, Node
from hkbench.search.requests import Move, Request, Size
from hkbench.search.searcher import Searcher


class Uniform(Searcher):
    """States drawn at random, each once; where the space has no fresh states, moves of the start."""

    confirms = False

    def _choose(self) -> tuple[str, Move] | None:
        if (fresh := self._fresh()) is not None:
            return fresh
        moves = [move for move in self.space.moves(self.graph.start) if self._free(move)]
        return (self.graph.start, self.random.choice(moves)) if moves else None


class Greedy(Searcher):
    """The first move that makes the state faster is taken; a state without one, or without luck, ends the climb."""

    confirms = False

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self._at = self.graph.start
        self._misses = 0

    def _choose(self) -> tuple[str, Move] | None:
        moves = self._settle()
        open_ = [move for move in moves if self._free(move)]
        unlucky = any(move.to is None for move in moves) and self._misses >= self.constants.restart_after
        if open_ and not unlucky:
            return self._at, self.random.choice(open_)
        self._misses = 0
        if (fresh := self._fresh()) is not None:
            return fresh
        self._at = self.graph.start
        moves = [move for move in self.space.moves(self._at) if self._free(move)]
        return (self._at, self.random.choice(moves)) if moves else None

    def _settle(self) -> list[Move]:
        """Step to faster neighbours that were measured before, which costs nothing; return the moves from there."""
        while True:
            moves = list(self.space.moves(self._at))
            here = self.graph.nodes[self._at].time
            times = {move.to: self.graph.nodes[move.to].time for move in moves if move.to in self.graph.nodes}
            faster = [key for key, time in times.items() if here is None or (time is not None and time < here)]
            if not faster:
                return moves
            assert faster[0] is not None
            self._at = faster[0]

    def _learn(self, request: Request, edge: Edge) -> None:
        child = self.graph.nodes[edge.child]
        if child.time is not None and (edge.gain > 0.0 or request.move.size is Size.FRESH):
            self._at, self._misses = child.key, 0
        else:
            self._misses += 1


class Beam(Searcher):
    """The `width` best states are extended by `branch` moves each, and then the best of all are taken anew."""

    confirms = False
    width = 4
    branch = 4

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self._queue: list[str] = []
        self._spent: dict[str, int] = {}

    def _choose(self) -> tuple[str, Move] | None:
        for _ in range(2):
            while self._queue:
                key = self._queue.pop(0)
                open_ = [move for move in self.space.moves(key) if self._free(move)]
                if open_:
                    self._spent[key] = self._spent.get(key, 0) + 1
                    return key, self.random.choice(open_)
            self._fill()
        return self._fresh()

    def _fill(self) -> None:
        def order(node: Node) -> tuple[float, str]:
            assert node.time is not None
            return node.time, node.key

        able = [
            node
            for node in self.graph.nodes.values()
            if node.time is not None
            and self._spent.get(node.key, 0) < 2 * self.branch
            and any(self._free(move) for move in self.space.moves(node.key))
        ]
        best = sorted(able, key=order)[: self.width]
        self._queue = [node.key for node in best for _ in range(self.branch)]
