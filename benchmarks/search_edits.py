"""Simulated edits of a kernel, of which only the name is known before they are made.

Calibrated to 7,590 recorded evaluations of agents (geometric means; docs/search.md has both columns): one in ten edits
fails and one in five after a failure, two thirds change nothing, gains come early, one in fifteen leads to a state that
was there before. What was not recorded is assumed: that the nine moves differ in what they bring on a kernel by a gamma
distribution of shape 1, and that a large edit is two at once.
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from hkbench.search import Move, Outcome, Request, Size

MOVES = ("pipeline", "vectorize", "matrix unit", "pad", "blocks", "cache", "atomics", "group", "fuse")
#: The chance that an edit of a state with so many gains brings one more, of a move of average worth.
CHANCES = (2.2, 0.70, 0.36, 0.22, 0.11, 0.05, 0.025, 0.01, 0.005)
#: Sizes of a gain: quantiles of the speed-up over the state before.
QUANTILES = ((0.0, 1.02), (0.25, 1.04), (0.5, 1.09), (0.75, 1.40), (0.9, 2.59), (1.0, 4.0))
#: What the log of a gain is multiplied by, in a state with so many: early gains are the large ones.
WEIGHTS = (1.3, 0.9, 0.3, 0.2, 0.1)
FAILS, FAILS_AGAIN = 0.10, 0.25  #: the chance of a failure, and in a state where one was seen
KNOWN = 0.07  #: the chance that an edit leads to a state that was there before
SLOWER, MUCH_SLOWER = 0.12, 0.034
NOISE = 0.01  #: standard deviation of a measured time; its interval is twice that to both sides


@dataclass(frozen=True)
class Version:
    """A state: its time and how many gains it holds; None: it does not work."""

    time: float | None
    gains: int


class Edits:
    """One kernel, and one run of a search on it: the outcome of an edit depends on how often it was tried before."""

    def __init__(self, kernel: int) -> None:
        draw = random.Random(kernel)
        weights = [draw.gammavariate(1.0, 1.0) for _ in MOVES]
        scale = len(MOVES) / sum(weights)
        self._kernel = kernel
        self._worth = {name: weight * scale for name, weight in zip(MOVES, weights, strict=True)}
        self.versions = {"start": Version(1.0, 0)}
        self._parents: dict[str, str] = {}
        self._tries: dict[tuple[str, str], int] = {}
        self._failed: set[str] = set()
        self._measured = 0

    def start(self) -> Outcome:
        return self.measure("start")

    def moves(self, key: str) -> Sequence[Move]:
        return [] if self.versions[key].time is None else [Move(name) for name in MOVES]

    def large(self, key: str, random: random.Random) -> Move | None:  # noqa: ARG002
        return Move(f"{random.choice(MOVES)}+{random.choice(MOVES)}", size=Size.LARGE)

    def fresh(self, random: random.Random) -> Move | None:  # noqa: ARG002
        return None

    def outcome(self, request: Request) -> Outcome:
        return self.measure(request.move.to or self.make(request.parent, request.move.name))

    def measure(self, key: str) -> Outcome:
        self._measured += 1
        time = self.versions[key].time
        if time is None:
            return Outcome(key, None)
        read = time * math.exp(random.Random(f"{self._kernel} {key} {self._measured}").gauss(0.0, NOISE))
        return Outcome(key, read, read * math.exp(-2 * NOISE), read * math.exp(2 * NOISE))

    def make(self, parent: str, name: str) -> str:
        """Make the edit, or each of a large one in turn, and return the state's key."""
        for part in name.split("+"):
            parent = self._edit(parent, part)
            if self.versions[parent].time is None:
                break
        return parent

    def _edit(self, parent: str, name: str) -> str:
        tries = self._tries[parent, name] = self._tries.get((parent, name), 0) + 1
        draw = random.Random(f"{self._kernel} {parent} {name} {tries}")
        before = self.versions[parent]
        assert before.time is not None
        key = f"{parent}/{name}{tries}"
        if draw.random() < KNOWN:
            return self._parents.get(parent, parent)
        if draw.random() < (FAILS_AGAIN if parent in self._failed else FAILS):
            self._failed.add(parent)
            self.versions[key] = Version(None, before.gains)
        elif draw.random() < min(0.95, CHANCES[min(before.gains, len(CHANCES) - 1)] * self._worth[name]):
            # What a move brings is the kernel's: tried elsewhere, it brings the same.
            rank = random.Random(f"{self._kernel} {name} {before.gains}").random()
            self.versions[key] = Version(before.time / gain(rank, before.gains), before.gains + 1)
        else:
            self.versions[key] = Version(before.time * slowdown(draw), before.gains)
        self._parents[key] = parent
        return key


def gain(rank: float, before: int) -> float:
    """Return the speed-up at a rank among all gains, between the quantiles in log, after `before` others."""
    place = min(bisect([q for q, _ in QUANTILES], rank), len(QUANTILES) - 1)
    (low, below), (high, above) = QUANTILES[place - 1], QUANTILES[place]
    size = float(below * (above / below) ** ((rank - low) / (high - low)))
    return float(max(QUANTILES[0][1], size ** WEIGHTS[min(before, len(WEIGHTS) - 1)]))


def slowdown(draw: random.Random) -> float:
    rank = draw.random()
    if rank < MUCH_SLOWER:
        return draw.uniform(1.2, 2.0)
    return draw.uniform(1.02, 1.2) if rank < MUCH_SLOWER + SLOWER else draw.uniform(0.995, 1.005)
