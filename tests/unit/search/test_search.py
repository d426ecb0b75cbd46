"""The search: one node a state, a request at most once, confirmation, replay to the same bits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from benchmarks.search_spaces import Recorded, synthetic
from hkbench.search import (
    DEFAULTS,
    Beam,
    GraphSearch,
    Greedy,
    Kind,
    Move,
    Outcome,
    Request,
    Searcher,
    SearchMismatch,
    Uniform,
    replay,
)

SPACE = synthetic("bowl", (10, 8, 6), seed=1)
SMALL = replace(DEFAULTS, fresh_states=60, large_moves=10)


def plain(space: Recorded, start: Outcome, seed: int) -> GraphSearch:
    """Return the search without its surrogate: PUCT."""
    return GraphSearch(space, start, seed=seed, constants=SMALL, surrogate=False)


def with_surrogate(space: Recorded, start: Outcome, seed: int) -> GraphSearch:
    return GraphSearch(space, start, features=space.features(start.key), seed=seed, constants=SMALL)


SEARCHERS: list[Callable[[Recorded, Outcome, int], Searcher]] = [
    with_surrogate,
    plain,
    lambda space, start, seed: Uniform(space, start, seed=seed),
    lambda space, start, seed: Greedy(space, start, seed=seed),
    lambda space, start, seed: Beam(space, start, seed=seed),
]


def state(searcher: Searcher) -> str:
    return json.dumps(searcher.to_json())


def run(searcher: Searcher, evaluations: int, in_flight: int, seed: int = 0) -> list[str]:
    """Answer in a drawn order with up to `in_flight` requests open; return the state after each event."""
    draw = random.Random(seed)
    open_: list[Request] = []
    states = []
    while searcher.evaluations < evaluations:
        request = searcher.propose() if len(open_) < in_flight else None
        if request is not None:
            open_.append(request)
        else:
            answered = open_.pop(draw.randrange(len(open_)))
            searcher.tell(answered, SPACE.outcome(answered))
        states.append(state(searcher))
    return states


@pytest.mark.parametrize("make", SEARCHERS)
@pytest.mark.parametrize("in_flight", [1, 4])
def test_no_state_is_measured_twice_and_the_best_is_the_fastest(
    make: Callable[[Recorded, Outcome, int], Searcher], in_flight: int
) -> None:
    searcher = make(SPACE, SPACE.start(3), 5)
    run(searcher, 60, in_flight)
    asked = [request.move.to for request, outcome in searcher.history if outcome is None]
    assert len(asked) == len(set(asked))
    times = [node.time for node in searcher.graph.nodes.values() if node.time is not None]
    assert searcher.best.time == min(times)


@pytest.mark.parametrize("make", SEARCHERS[:2])
def test_a_replay_cut_at_any_point_gives_the_same_tree_and_goes_on_alike(
    make: Callable[[Recorded, Outcome, int], Searcher],
) -> None:
    def fresh() -> Searcher:
        return make(SPACE, SPACE.start(3), 5)

    whole = fresh()
    states = run(whole, 100, in_flight=3)
    history = whole.history
    assert len(states) >= 200
    # One replay passes through all of the cuts; a few are made from nothing.
    again = fresh()
    for (request, outcome), expected in zip(history, states, strict=True):
        if outcome is None:
            assert again.propose() == request
        else:
            again.tell(request, outcome)
        assert state(again) == expected
    for cut in random.Random(0).sample(range(len(history)), 1):
        resumed = replay(fresh, history[: cut + 1])
        assert state(resumed) == states[cut]
        assert set(resumed.pending) == {r.number for r, o in history[: cut + 1] if o is None} - {
            r.number for r, o in history[: cut + 1] if o is not None
        }


def test_a_replay_with_another_seed_is_refused() -> None:
    searcher = plain(SPACE, SPACE.start(3), 5)
    run(searcher, 20, 1)
    with pytest.raises(SearchMismatch):
        replay(lambda: plain(SPACE, SPACE.start(3), 6), searcher.history)


class Edits:
    """States whose moves lead to what is known afterwards only."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def moves(self, key: str) -> Sequence[Move]:
        return [Move(name) for name in self.names]

    def large(self, key: str, random: random.Random) -> Move | None:
        return None

    def fresh(self, random: random.Random) -> Move | None:
        return None


def outcome(key: str, seconds: float | None, width: float = 0.0) -> Outcome:
    if seconds is None:
        return Outcome(key, None)
    return Outcome(key, seconds, seconds * (1 - width / 2), seconds * (1 + width / 2))


def answer(searcher: Searcher, reply: Outcome) -> Request:
    request = searcher.propose()
    assert request is not None
    searcher.tell(request, reply)
    return request


def test_a_state_reached_by_two_ways_is_one_node_with_the_first_measurement() -> None:
    searcher = GraphSearch(Edits("a", "b"), outcome("start", 1.0))
    answer(searcher, outcome("same", 0.5))
    answer(searcher, outcome("same", 0.1))
    assert searcher.evaluations == 1 and len(searcher.graph.nodes) == 2
    assert searcher.best.key == "same" and searcher.graph.nodes["same"].measurements == 1
    assert sum(len(node.edges) for node in searcher.graph.nodes.values()) == 2


def test_a_gain_inside_the_interval_is_none() -> None:
    searcher = GraphSearch(Edits("a"), outcome("start", 1.0, width=0.1))
    answer(searcher, outcome("near", 0.97, width=0.1))
    assert searcher.best.key == "start" and searcher.graph.nodes["near"].reward == 0.0
    assert searcher.graph.root.edges[0].gain == 0.0


def test_a_new_best_is_confirmed_before_it_counts() -> None:
    searcher = GraphSearch(Edits("a"), outcome("start", 1.0, width=0.1))
    answer(searcher, outcome("fast", 0.5, width=0.1))
    assert searcher.best.key == "start"
    confirmation = answer(searcher, outcome("fast", 0.52, width=0.1))
    assert confirmation.kind is Kind.CONFIRM and searcher.best.key == "fast"
    assert searcher.graph.nodes["fast"].measurements == 2


def test_a_new_best_that_is_not_confirmed_is_dropped() -> None:
    searcher = GraphSearch(Edits("a"), outcome("start", 1.0, width=0.1))
    answer(searcher, outcome("lucky", 0.8, width=0.1))
    answer(searcher, outcome("lucky", 1.3, width=0.1))
    assert searcher.best.key == "start"


@pytest.mark.parametrize(("again", "confirmed"), [(0.5, ["faster"]), (2.5, ["faster", "fast"])])
def test_of_new_bests_in_flight_together_the_fastest_is_confirmed_first(again: float, confirmed: list[str]) -> None:
    searcher = GraphSearch(Edits("a"), outcome("start", 1.0, width=0.1))
    asked = [searcher.propose() for _ in range(3)]
    for request, (key, seconds) in zip(asked, [("fast", 0.8), ("faster", 0.5), ("slow", 1.5)], strict=True):
        assert request is not None
        searcher.tell(request, outcome(key, seconds, width=0.1))
    seen = []
    while searcher.confirming:
        first, other = searcher.propose(), searcher.propose()
        assert first is not None and other is not None and other.kind is Kind.MEASURE
        seen.append(first.parent)
        searcher.tell(first, outcome(first.parent, again if first.parent == "faster" else 0.8, width=0.1))
        searcher.tell(other, outcome(f"none {len(seen)}", 2.0, width=0.1))
    assert seen == confirmed and searcher.best.key == confirmed[-1]


def test_what_failed_is_worth_a_little_less_than_no_gain() -> None:
    searcher = GraphSearch(Edits("a"), outcome("start", 1.0))
    answer(searcher, outcome("broken", None))
    assert DEFAULTS.failure < 0.0 == searcher.graph.root.reward
    assert searcher.graph.nodes["broken"].reward == DEFAULTS.failure


def test_a_move_that_gained_is_asked_for_more_often() -> None:
    searcher = GraphSearch(Edits("good", "bad"), outcome("start", 1.0), seed=1)
    names = []
    for number in range(60):
        request = searcher.propose()
        assert request is not None
        names.append(request.move.name)
        above = searcher.graph.nodes[request.parent].time
        assert above is not None
        factor = 0.9 if request.move.name == "good" else 1.0
        searcher.tell(request, outcome(f"s{number}", 2.718281828**above * factor))
    assert names.count("good") > 1.3 * names.count("bad")


@pytest.mark.parametrize(("backup", "value"), [(None, 0.2), (1.0, 0.6), (0.5, 0.0)])
def test_the_value_of_a_node_is_the_chosen_quantile_or_the_mean(backup: float | None, value: float) -> None:
    searcher = GraphSearch(Edits("a"), outcome("start", 1.0), constants=replace(DEFAULTS, backup=backup))
    searcher.graph.back_up(["start"], 0.0)
    searcher.graph.back_up(["start"], 0.6)
    assert searcher.graph.value(searcher.graph.root) == pytest.approx(value)


def test_the_search_stops_when_nothing_came_for_long() -> None:
    searcher = GraphSearch(Edits("a"), outcome("start", 1.0))
    for number in range(DEFAULTS.stop_least):
        assert not searcher.stop
        answer(searcher, outcome(f"s{number}", 2.0))
    assert searcher.stop


def test_answers_that_were_not_asked_for_are_refused() -> None:
    searcher = plain(SPACE, SPACE.start(3), 5)
    request = searcher.propose()
    assert request is not None
    with pytest.raises(ValueError):
        searcher.tell(request, Outcome("99,9,9", 1.0))
    searcher.tell(request, SPACE.outcome(request))
    with pytest.raises(ValueError):
        searcher.tell(request, SPACE.outcome(request))


def test_a_search_starts_from_a_state_that_works() -> None:
    with pytest.raises(ValueError):
        GraphSearch(SPACE, Outcome("0,0,0", None))


def test_the_search_beats_uniform_sampling_on_a_synthetic_space() -> None:
    logs: dict[str, float] = {}
    for name, make in (("graph", with_surrogate), ("uniform", SEARCHERS[2])):
        total = 0.0
        for seed in range(4):
            searcher = make(SPACE, SPACE.start(seed), seed)
            run(searcher, 40, 1)
            assert searcher.best.time is not None
            total += searcher.best.time
        logs[name] = total
    assert logs["graph"] < logs["uniform"]
