"""Spaces of the proving ground of the search: recorded ones, and simulated ones.

A space here also answers: `outcome` of a request, what the best time is, where a run starts.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from hkbench.search import Move, Outcome, Request, Size

START_ABOVE = 1.3  #: a run starts from a valid state that is at least so far off the optimum
MAX_STEPS = 4  #: of a large edit that walks


class Recorded:
    """Every configuration of a kernel with its time. A state's neighbours are one parameter, one step.

    A large edit sets one parameter to any of its values, or takes two to four steps; a restart is any configuration.
    """

    def __init__(self, name: str, parameters: Sequence[str], rows: Mapping[tuple[float, ...], float | None]) -> None:
        self.name = name
        self.parameters = list(parameters)
        self.values = [sorted({row[column] for row in rows}) for column in range(len(parameters))]
        place = [{value: index for index, value in enumerate(values)} for values in self.values]
        self.times = {
            tuple(place[column][value] for column, value in enumerate(row)): time for row, time in rows.items()
        }
        self.best = min(time for time in self.times.values() if time is not None)
        self._fresh = [self._move(state, "fresh", Size.FRESH) for state in self.times]
        self._moves: dict[str, list[Move]] = {}
        self.starts = [
            state for state, time in self.times.items() if time is not None and time >= START_ABOVE * self.best
        ]

    def start(self, seed: int) -> Outcome:
        return self.measure(random.Random(seed).choice(self.starts))

    def measure(self, state: tuple[int, ...]) -> Outcome:
        return Outcome(key_of(state), self.times[state])

    def outcome(self, request: Request) -> Outcome:
        assert request.move.to is not None
        return self.measure(state_of(request.move.to))

    def features(self, key: str) -> tuple[float, ...]:
        return tuple(map(float, state_of(key)))

    def moves(self, key: str) -> Sequence[Move]:
        if key not in self._moves:
            state = state_of(key)
            near = [
                (f"{name} {step:+d}", (*state[:column], state[column] + step, *state[column + 1 :]))
                for column, name in enumerate(self.parameters)
                for step in (-1, 1)
            ]
            self._moves[key] = [self._move(other, name, Size.SMALL) for name, other in near if other in self.times]
        return self._moves[key]

    def large(self, key: str, random: random.Random) -> Move | None:
        if random.random() < 0.5:
            state = list(state_of(key))
            column = random.randrange(len(state))
            state[column] = random.randrange(len(self.values[column]))
            other = tuple(state)
            return self._move(other, f"{self.parameters[column]} any", Size.LARGE) if other in self.times else None
        for _ in range(random.randint(2, MAX_STEPS)):
            moves = self.moves(key)
            if not moves:
                return None
            to = random.choice(moves).to
            assert to is not None
            key = to
        return self._move(state_of(key), "walk", Size.LARGE)

    def fresh(self, random: random.Random) -> Move | None:
        return self._fresh[int(random.random() * len(self._fresh))]

    @staticmethod
    def _move(state: tuple[int, ...], name: str, size: Size) -> Move:
        return Move(name, key_of(state), tuple(map(float, state)), size=size)


def key_of(state: tuple[int, ...]) -> str:
    return ",".join(map(str, state))


def state_of(key: str) -> tuple[int, ...]:
    return tuple(map(int, key.split(",")))


def load(path: Path) -> Recorded:
    """Read a table: a column a parameter, the last one the time, empty where the configuration failed."""
    with gzip.open(path, "rt") as file:
        head, *lines = csv.reader(file)
    rows = {tuple(map(float, line[:-1])): float(line[-1]) if line[-1] else None for line in lines}
    return Recorded(path.name.removesuffix(".csv.gz"), head[:-1], rows)


def synthetic(name: str, sizes: Sequence[int], seed: int, failing: float = 0.03) -> Recorded:
    """Make a space: each parameter has a best value, pairs of them interact, some configurations fail."""
    draw = random.Random(seed)
    rows: dict[tuple[float, ...], float | None] = {}
    best = [draw.randrange(size) for size in sizes]
    weights = [draw.uniform(0.2, 1.5) for _ in sizes]
    pairs = [(draw.randrange(len(sizes)), draw.randrange(len(sizes)), draw.uniform(0.0, 0.6)) for _ in sizes]

    def fill(state: tuple[int, ...]) -> None:
        if len(state) < len(sizes):
            for value in range(sizes[len(state)]):
                fill((*state, value))
            return
        off = [abs(value - good) / max(1, size - 1) for value, good, size in zip(state, best, sizes, strict=True)]
        cost = sum(w * o for w, o in zip(weights, off, strict=True))
        cost += sum(w * abs(off[a] - off[b]) for a, b, w in pairs) + draw.uniform(0.0, 0.05)
        rows[tuple(map(float, state))] = None if draw.random() < failing else math.exp(cost)

    fill(())
    return Recorded(name, [f"p{number}" for number in range(len(sizes))], rows)


def monotone(seed: int) -> Recorded:
    """Make a space in which every step of a parameter towards its last value pays."""
    draw = random.Random(seed)
    weights = [draw.uniform(0.05, 0.3) for _ in range(5)]
    times: dict[tuple[int, ...], float] = {
        state: math.exp(sum(w * (4 - at) for w, at in zip(weights, state, strict=True)))
        for state in itertools.product(range(5), repeat=5)
    }
    return flat("monotone", times)


def traps(seed: int) -> Recorded:
    """Make a space of ten switches: of three pairs one alone costs 5 % and both bring 30 %, four pay alone."""
    draw = random.Random(seed)
    order = list(range(10))
    draw.shuffle(order)
    times: dict[tuple[int, ...], float] = {}
    for number in range(1 << 10):
        state = tuple(number >> bit & 1 for bit in range(10))
        cost = -sum(0.05 * state[place] for place in order[6:])
        for one, two in zip(order[0:6:2], order[1:6:2], strict=True):
            cost += {0: 0.0, 1: math.log(1.05), 2: math.log(0.7)}[state[one] + state[two]]
        times[state] = math.exp(cost)
    return flat("traps", times)


def flat(name: str, times: Mapping[tuple[int, ...], float]) -> Recorded:
    rows = {tuple(map(float, state)): time for state, time in times.items()}
    return Recorded(name, [f"p{number}" for number in range(len(next(iter(rows))))], rows)
