"""The graph search: PUCT where only the names of moves are known, a surrogate where it is known what they lead to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hkbench.search.graph import Edge, Node
from hkbench.search.requests import Move, Request, Size
from hkbench.search.searcher import Searcher
from hkbench.search.surrogate import Surrogate

Open = dict[str, tuple[str, Move]]  #: by the key that a move leads to: its parent and the move


class GraphSearch(Searcher):
    """Moves whose `to` and `features` are known are ranked together, over the whole graph, by the surrogate.

    Others are selected from the root (or from where the search restarted) downwards: by PUCT, with progressive
    widening, noise at the root, priors learnt from what each move has gained in this search.

    Args:
        surrogate: False leaves it out (an ablation).
        learning: False keeps the priors of moves as the space gives them (an ablation).
    """

    def __init__(self, *arguments: Any, surrogate: bool = True, learning: bool = True, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._surrogate = Surrogate(len(self.graph.root.features or ())) if surrogate else None
        self._learning = learning
        self._roots = [self.graph.start]  #: the start, and where the search was restarted
        self._paths: dict[int, list[str]] = {}  #: by request: the nodes that it was selected through
        self._yields: dict[str, list[float]] = {}  #: by name of a move: its gains, in log
        self._noise: dict[str, float] = {}  #: of the moves at the root
        self._pool: list[Move] = []  #: fresh states to choose among
        self._pool_age = 0
        self.pruned = 0  #: moves that were left out for a weak prediction, each time that it was

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {
            "roots": list(self._roots),
            "yields": self._yields,
            "pruned": self.pruned,
            "pool": [move.to for move in self._pool],
        }

    def _choose(self) -> tuple[str, Move] | None:
        if self._surrogate is not None and self.graph.root.features is not None:
            return self._by_surrogate(self._surrogate)
        return self._by_puct()

    # What leads where is known.

    def _by_surrogate(self, surrogate: Surrogate) -> tuple[str, Move] | None:
        nodes = [node for node in self.graph.nodes.values() if node.features is not None]
        if len(nodes) + len(self.pending) <= self.constants.initial and (fresh := self._fresh()) is not None:
            return fresh
        asked = {request.move.to for request in self.pending.values()}
        open_ = {to: found for to, found in self._open(nodes).items() if to not in self.graph and to not in asked}
        if not open_:
            return self._fresh()
        features = [node.features for node in nodes]
        times = [math.nan if node.time is None else node.time for node in nodes]
        # What is in flight counts as failed, which is as slow as the median: no second request goes to the same place.
        # Taking the predicted mean or the best time in its stead made no difference (docs/search.md).
        waiting = [request.move.features for request in self.pending.values() if request.move.features is not None]
        keys = list(open_)
        gains = surrogate.improvements(
            np.array(features + waiting, dtype=np.float64),
            np.array(times + [math.nan] * len(waiting), dtype=np.float64),
            np.array([open_[key][1].features for key in keys], dtype=np.float64),
        )
        best = int(np.argmax(gains))
        if gains[best] < self.constants.min_gain:
            self.pruned += len(keys)
            return None
        return open_[keys[best]]

    def _open(self, nodes: list[Node]) -> Open:
        """Return what the surrogate chooses among: moves of the best nodes, large edits of them, fresh states."""
        best = sorted((node for node in nodes if node.time is not None), key=lambda node: (node.time, node.key))
        best = best[: self.constants.top_nodes]
        found: Open = {}
        for node in best:
            for move in self.space.moves(node.key):
                if move.to is not None and move.features is not None:
                    found.setdefault(move.to, (node.key, move))
        for _ in range(self.constants.large_moves):
            node = self.random.choice(best)
            large = self.space.large(node.key, self.random)
            if large is not None and large.to is not None:
                found.setdefault(large.to, (node.key, large))
        if self._pool_age == 0:
            drawn = (self.space.fresh(self.random) for _ in range(self.constants.fresh_states))
            self._pool = list({move.to: move for move in drawn if move is not None and move.to is not None}.values())
        self._pool_age = (self._pool_age + 1) % self.constants.fresh_for
        for move in self._pool:
            assert move.to is not None
            found.setdefault(move.to, (self.graph.start, move))
        return found

    # Only the names of moves are known.

    def _by_puct(self) -> tuple[str, Move] | None:
        quiet = self.evaluations - self.last_gain
        if quiet and quiet % self.constants.restart_after == 0 and (fresh := self._fresh()) is not None:
            return fresh
        root = max(self._roots, key=lambda key: (self._worth(self.graph.nodes[key]), key))
        path = [root]
        while True:
            node = self.graph.nodes[path[-1]]
            moves = self._worth_trying(node)
            opened = len(node.edges) + node.in_flight
            wide = opened < self.constants.widen * max(1, node.visits) ** self.constants.widen_power
            child = self._best_child(node, path)
            if moves and (wide or child is None):
                return self._open_move(path, moves, self.random.random() < self.constants.large_share)
            if child is None:
                return self._elsewhere()
            path.append(child)

    def _best_child(self, node: Node, path: list[str]) -> str | None:
        """Return the child with the highest PUCT score; None where all failed or lead to worse."""
        scores: dict[str, float] = {}
        total = math.sqrt(1.0 + node.visits)
        for edge in node.edges:
            child = self.graph.nodes[edge.child]
            if child.time is None or child.key in path or child.reward < node.reward:
                continue
            prior = self._prior(edge.move) * self._noise.get(edge.move, 1.0)
            score = self._worth(child) + self.constants.puct * prior * total / (1.0 + child.visits + child.in_flight)
            scores[child.key] = max(score, scores.get(child.key, -math.inf))
        return max(scores, key=lambda key: (scores[key], key)) if scores else None

    def _open_move(self, path: list[str], moves: list[Move], large: bool) -> tuple[str, Move]:
        """Take the move with the best prior that was tried least here."""
        node = self.graph.nodes[path[-1]]
        chosen = self.space.large(node.key, self.random) if large else None
        if chosen is None or not self._free(chosen):
            noise = self._root_noise(moves) if node.key == self.graph.start else {}

            def score(move: Move) -> tuple[float, float]:
                prior = move.prior * self._prior(move.name)
                share = self.constants.noise_share if noise else 0.0
                mixed = (1.0 - share) * prior + share * noise.get(move.name, 0.0)
                return mixed / (1.0 + node.tried.get(move.name, 0)), self.random.random()

            chosen = max(moves, key=score)
        node.tried[chosen.name] = node.tried.get(chosen.name, 0) + 1
        for key in path:
            self.graph.nodes[key].in_flight += 1
        self._paths[self._proposed + 1] = path
        return node.key, chosen

    def _elsewhere(self) -> tuple[str, Move] | None:
        """Return an open move of the best node that has one; else a restart."""
        for node in sorted(self.graph.nodes.values(), key=lambda node: (-node.reward, node.key)):
            moves = self._worth_trying(node) if node.time is not None else []
            if moves:
                return self._open_move([node.key], moves, large=False)
        return self._fresh()

    def _worth_trying(self, node: Node) -> list[Move]:
        """Return the open moves of a node whose predicted gain is not too weak; the others are counted."""
        open_ = [move for move in self.space.moves(node.key) if self._free(move)]
        if self.constants.min_gain == 0.0:
            return open_
        promising = [move for move in open_ if self.predicted_gain(move) >= self.constants.min_gain]
        self.pruned += len(open_) - len(promising)
        return promising

    def predicted_gain(self, move: Move) -> float:
        """Return the log speed-up that a move brings on average, as far as this search and the prior tell."""
        return move.prior * self._expected(move.name)

    def _worth(self, node: Node) -> float:
        return self.graph.value(node) - self.constants.virtual_loss * node.in_flight

    def _prior(self, name: str) -> float:
        return self._expected(name) / self._mean_gain()

    def _expected(self, name: str) -> float:
        """Return the mean gain of a move so far, drawn towards that of all moves."""
        overall = self._mean_gain()
        if not self._learning:
            return overall
        gains = self._yields.get(name, [])
        weight = self.constants.gain_prior
        return (math.fsum(gains) + weight * overall) / (len(gains) + weight)

    def _mean_gain(self) -> float:
        """Return the mean gain of all moves so far, with one of `first_gain` taken as seen before."""
        count = sum(map(len, self._yields.values()))
        return (math.fsum(map(math.fsum, self._yields.values())) + self.constants.first_gain) / (count + 1)

    def _root_noise(self, moves: list[Move]) -> dict[str, float]:
        """Draw Dirichlet noise for the moves at the root, once for each; its mean is 1."""
        shape = self.constants.noise_total / len(moves)
        for move in moves:
            if move.name not in self._noise:
                self._noise[move.name] = self.random.gammavariate(shape, 1.0 / shape)
        return self._noise

    def _learn(self, request: Request, edge: Edge) -> None:
        child = self.graph.nodes[edge.child]
        if request.move.size is Size.FRESH:
            if child.time is not None and child.key not in self._roots:
                self._roots.append(child.key)
        else:
            self._yields.setdefault(request.move.name, []).append(max(0.0, edge.gain))
        path = self._paths.pop(request.number, None)
        if path is not None:
            for key in path:
                self.graph.nodes[key].in_flight -= 1
            self.graph.back_up(path, child.reward)
