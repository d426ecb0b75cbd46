"""What each part of the search is worth: it is left out, and the runs are compared pair by pair at equal budget."""

from __future__ import annotations

import functools
import math
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from benchmarks.search_figures import FIGURES, Figure, Run, difference
from hkbench.search import DEFAULTS, GraphSearch, Move, Outcome, Request, Searcher, Space

Make = Callable[..., Searcher]
WHOLE = "graph search"
PUCT = "without surrogate"
NO_TRANSPOSITIONS = "without transpositions"
EDITS = 30  #: that are compared

_PUCT = functools.partial(GraphSearch, surrogate=False)
#: Where features are known: what is left out of the whole search.
WITH_FEATURES: dict[str, Make] = {
    WHOLE: GraphSearch,
    PUCT: _PUCT,
    NO_TRANSPOSITIONS: GraphSearch,
    "without large edits": functools.partial(GraphSearch, constants=replace(DEFAULTS, large_moves=0)),
    "without fresh states": functools.partial(GraphSearch, constants=replace(DEFAULTS, fresh_states=0, initial=1)),
}
#: Where they are not, or the surrogate is left out: PUCT.
_OF_PUCT: dict[str, Any] = {
    NO_TRANSPOSITIONS: {},
    "without learnt priors": {"learning": False},
    "without large edits": {"constants": replace(DEFAULTS, large_share=0.0)},
    "without widening": {"constants": replace(DEFAULTS, widen=math.inf)},
    "without noise": {"constants": replace(DEFAULTS, noise_share=0.0)},
    "mean back-up": {"constants": replace(DEFAULTS, backup=None)},
}
OF_PUCT: dict[str, Make] = {PUCT: _PUCT, **{name: functools.partial(_PUCT, **told) for name, told in _OF_PUCT.items()}}
OF_EDITS: dict[str, Make] = {
    WHOLE: GraphSearch,
    **{name: functools.partial(GraphSearch, **told) for name, told in _OF_PUCT.items()},
}
ON_SPACES = (FIGURES[2], FIGURES[4])
ON_EDITS = (
    Figure("time after 10 edits", lambda run: run.after(10), math.exp, True),
    Figure(f"time after {EDITS} edits", lambda run: run.after(EDITS), math.exp, True),
    Figure("area", lambda run: -sum(run.curve[:EDITS]) / EDITS, float, False),
)


class Answering(Space, Protocol):
    """A space of the proving ground."""

    def outcome(self, request: Request) -> Outcome: ...


class Unmerged:
    """A space in which a state that is reached by another way is another state, and is measured again."""

    def __init__(self, space: Answering) -> None:
        self._space = space

    def moves(self, key: str) -> Sequence[Move]:
        return [self._own(move, key) for move in self._space.moves(_plain(key))]

    def large(self, key: str, random: random.Random) -> Move | None:
        move = self._space.large(_plain(key), random)
        return None if move is None else self._own(move, key)

    def fresh(self, random: random.Random) -> Move | None:
        move = self._space.fresh(random)
        return None if move is None else self._own(move, "")

    def outcome(self, request: Request) -> Outcome:
        to = request.move.to
        if to is None:
            found = self._space.outcome(replace(request, parent=_plain(request.parent)))
            return replace(found, key=f"{found.key}|{request.number}")
        found = self._space.outcome(replace(request, move=replace(request.move, to=_plain(to))))
        return replace(found, key=to)

    @staticmethod
    def _own(move: Move, key: str) -> Move:
        """Return the move with the way that it takes in the key of the state that it leads to."""
        if move.to is None:
            return move
        return replace(move, to=f"{move.to}|{zlib.crc32(f'{key} {move.name}'.encode()):x}")


def _plain(key: str) -> str:
    return key.partition("|")[0]


def ablation_table(runs: Sequence[Run], whole: str, figures: Sequence[Figure]) -> str:
    """Return a row for each part that is left out: its area, and what the search is better by with it."""
    names = list(dict.fromkeys(run.searcher for run in runs))
    head = ["", "runs", "area", *(f"with it: {figure.title}" for figure in figures)]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for name in names:
        own = [run for run in runs if run.searcher == name]
        cells = [name, str(len(own)), f"{np.mean([figures[-1].of(run) for run in own]):.3f}"]
        cells += ["" if name == whole else difference(runs, whole, name, figure) for figure in figures]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
