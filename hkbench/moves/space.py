"""The states that a search goes through: a source, written in other ways at its sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hkbench.moves.base import Site, write
from hkbench.moves.keys import key_of
from hkbench.moves.kinds import KINDS, sites_of
from hkbench.moves.priors import Priors
from hkbench.records import Bottleneck
from hkbench.search import Move, Size

MAX_STEPS = 4  #: small edits of which a large one is made, at most
FRESH_SHARE = 0.5  #: chance of each site to be written anew in a fresh state


@dataclass(frozen=True)
class Base:
    """A source whose sites are known."""

    source: str
    sites: tuple[Site, ...]

    def written(self, chosen: Sequence[int]) -> str:
        return write(self.source, self.sites, chosen)


@dataclass(frozen=True)
class State:
    """A way of writing a base: for each site the number of a choice."""

    base: Base
    chosen: tuple[int, ...]

    @property
    def source(self) -> str:
        return self.base.written(self.chosen)


class KernelSpace:
    """The space of `hkbench.search` for kernels.

    Args:
        start: the source that the search starts from.
        by_rule: offer the edits that rules make.
        by_model: offer the moves that a model makes. What they lead to is known when it was made (`add`).
        priors: weigh the moves that a model makes by what the state waits for (`waits_for`).
    """

    def __init__(self, start: str, backend: str, by_rule: bool, by_model: bool, priors: Priors | None = None) -> None:
        self._backend = backend
        self._by_rule = by_rule
        self._by_model = by_model
        self._priors = priors or Priors()
        self._waits_for: dict[str, Bottleneck] = {}
        self._states: dict[str, State] = {}
        self._moves: dict[str, list[Move]] = {}
        self._keys: dict[tuple[str, tuple[int, ...]], str] = {}  # of what was written once
        self.start = self.add(start)

    def add(self, source: str) -> str:
        """Return the key of a source; one that is new is a state from now on."""
        key = key_of(source)
        if key not in self._states:
            sites = self._sites(source)
            self._states[key] = State(Base(source, sites), tuple(site.now for site in sites))
        return key

    def waits_for(self, key: str, what: Bottleneck | None) -> None:
        """Note what a measured state waits for; None leaves it as it was, for not all measurements tell."""
        if what is not None:
            self._waits_for[key] = what
            self._moves.pop(key, None)

    def source(self, key: str) -> str:
        """Return the source of a state."""
        return self._states[key].source

    def features(self, key: str) -> tuple[float, ...] | None:
        """Return where a state stands among the ways of writing the start; None where a model makes moves as well."""
        state = self._states[key]
        if self._by_model or not state.chosen:
            return None
        return tuple(map(float, state.chosen))

    @property
    def size(self) -> int:
        """The number of ways in which the start can be written."""
        number = 1
        for site in self._states[self.start].base.sites:
            number *= len(site.choices)
        return number

    def difference(self, key: str, parent: str) -> list[tuple[Site, str, str]]:
        """Return the sites at which a state differs from another one: site, choice before, choice now."""
        now, before = self._states[key], self._states[parent]
        if now.base is not before.base:
            return []
        pairs = zip(now.base.sites, before.chosen, now.chosen, strict=True)
        return [(site, site.choices[a], site.choices[b]) for site, a, b in pairs if a != b]

    # What hkbench.search asks for.

    def moves(self, key: str) -> Sequence[Move]:
        """Return the small edits of a state: one site, one step; and what a model may do."""
        state = self._states.get(key)
        if state is None:
            return ()  # no code came of it
        if key not in self._moves:
            self._moves[key] = [*self._steps(key, state), *self._asked(key)]
        return self._moves[key]

    def large(self, key: str, random: Random) -> Move | None:
        """Return an edit of one site to any of its choices, or some small ones at once."""
        state = self._states.get(key)
        if state is None or not state.base.sites:
            return None
        chosen = list(state.chosen)
        times = 1 if random.random() < 0.5 else random.randint(2, MAX_STEPS)
        for _ in range(times):
            place = random.randrange(len(chosen))
            count = len(state.base.sites[place].choices)
            if times == 1:
                chosen[place] = random.randrange(count)
            else:
                chosen[place] = min(count - 1, max(0, chosen[place] + random.choice((-1, 1))))
        name = state.base.sites[place].move
        return self._move(name, State(state.base, tuple(chosen)), Size.LARGE)

    def fresh(self, random: Random) -> Move | None:
        """Return the start with about half of its sites written anew."""
        state = self._states[self.start]
        if not state.base.sites:
            return None
        chosen = tuple(
            random.randrange(len(site.choices)) if random.random() < FRESH_SHARE else now
            for site, now in zip(state.base.sites, state.chosen, strict=True)
        )
        return self._move("restart", State(state.base, chosen), Size.FRESH)

    def _sites(self, source: str) -> tuple[Site, ...]:
        return tuple(sites_of(source, self._backend)) if self._by_rule else ()

    def _steps(self, key: str, state: State) -> list[Move]:
        found: list[Move] = []
        for place, site in enumerate(state.base.sites):
            for step in (-1, 1):
                at = state.chosen[place] + step
                if 0 <= at < len(site.choices):
                    chosen = (*state.chosen[:place], at, *state.chosen[place + 1 :])
                    move = self._move(site.move, State(state.base, chosen), Size.SMALL)
                    if move.to != key:
                        found.append(move)
        return found

    def _asked(self, key: str) -> list[Move]:
        found = [kind.name for kind in KINDS if self._by_model and self._backend in kind.guidance]
        return [Move(name, prior=self._priors.weight(name, self._waits_for.get(key))) for name in found]

    def _move(self, name: str, state: State, size: Size) -> Move:
        written = (state.base.source, state.chosen)
        if written not in self._keys:
            self._keys[written] = key_of(state.source)
        key = self._keys[written]
        self._states.setdefault(key, state)
        return Move(name, key, self.features(key), size=size)
