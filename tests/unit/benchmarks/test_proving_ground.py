"""The proving ground: its spaces, its figures, and one small run of each part."""

from __future__ import annotations

import gzip
import math
import sys
from pathlib import Path

import pytest

from benchmarks import search, search_parallel
from benchmarks.search_ablation import Unmerged
from benchmarks.search_edits import Edits
from benchmarks.search_figures import COMPARED, FIGURES, Run, difference
from benchmarks.search_parallel import ASYNCHRONOUS, BATCHES, SEQUENTIAL, WAYS, Flown, fly, on_edits, parallel_table
from benchmarks.search_spaces import key_of, load, monotone, state_of, synthetic, traps
from hkbench.search import GraphSearch, Greedy, Move, Request, Uniform
from hkbench.search.requests import Kind


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a recorded space of 60 configurations, of which one in ten failed."""
    space = synthetic("bowl", (5, 4, 3), seed=2, failing=0.1)
    rows = [
        f"{','.join(str(2**place) for place in state)},{'' if time is None else time}"
        for state, time in space.times.items()
    ]
    with gzip.open(tmp_path / "bowl_A100.csv.gz", "wt") as file:
        file.write("\n".join(["a,b,c,milliseconds", *rows]) + "\n")
    return tmp_path


def test_a_space_is_read_with_what_failed(folder: Path) -> None:
    space, made = load(folder / "bowl_A100.csv.gz"), synthetic("bowl", (5, 4, 3), seed=2, failing=0.1)
    assert space.times == made.times and space.best == made.best and None in space.times.values()


def test_neighbours_are_one_parameter_one_step() -> None:
    space = synthetic("bowl", (5, 4, 3), seed=2)
    states = {state_of(move.to) for move in space.moves(key_of((2, 0, 2))) if move.to is not None}
    assert states == {(1, 0, 2), (3, 0, 2), (2, 1, 2), (2, 0, 1)}


def test_one_half_of_a_trap_costs_and_both_pay() -> None:
    space = traps(3)
    start = (0,) * 10
    alone = {bit: space.times[(*start[:bit], 1, *start[bit + 1 :])] for bit in range(10)}
    assert sum(time is not None and time > 1.0 for time in alone.values()) == 6
    assert space.best == pytest.approx(0.7**3 * math.exp(-4 * 0.05))


def test_every_step_of_a_monotone_space_pays() -> None:
    space = monotone(1)
    for state, time in list(space.times.items())[:200]:
        assert time is not None
        later = [space.times[state_of(move.to)] for move in space.moves(key_of(state)) if move.to and "+1" in move.name]
        assert all(other is not None and other < time for other in later)


def test_simulated_edits_are_as_they_were_recorded() -> None:
    failed = same = gained = 0
    for kernel in range(400):
        space = Edits(kernel)
        key = space.make("start", "blocks")
        time = space.versions[key].time
        failed += time is None
        same += time is not None and abs(math.log(time)) < 0.02
        gained += time is not None and time < 0.98
    assert 0.06 < failed / 400 < 0.14 and 0.5 < gained / 400 < 0.75 and same > 0


def test_the_outcome_of_an_edit_depends_on_the_kernel_and_the_try_alone() -> None:
    one, two = Edits(7), Edits(7)
    request = Request(1, Kind.MEASURE, "start", Move("fuse"))
    assert [one.outcome(request) for _ in range(5)] == [two.outcome(request) for _ in range(5)]


def runs(name: str, best: float) -> list[Run]:
    return [Run(name, "space", seed, 1.0, [best + 0.001 * seed]) for seed in range(10)]


def test_a_difference_inside_the_interval_is_none() -> None:
    alike = [Run("other", "space", seed, 1.0, [0.1 + 0.001 * (9 - seed)]) for seed in range(10)]
    assert difference([*runs("mine", 0.1), *alike], "mine", "other", COMPARED[0]) == "no difference"
    assert difference([*runs("mine", 0.1), *runs("other", 0.2)], "mine", "other", COMPARED[0]).startswith("better")
    assert difference([*runs("mine", 0.3), *runs("other", 0.2)], "mine", "other", COMPARED[0]).startswith("worse")


def test_the_area_is_the_share_of_the_way_to_the_optimum() -> None:
    assert Run("a", "space", 0, 2.0, [2.0] * 100).area == 0.0
    assert Run("a", "space", 0, 2.0, [2.0] * 50 + [0.0] * 50).area == pytest.approx(0.5)
    assert len({figure.title for figure in FIGURES}) == len(FIGURES)


def test_recorded_spaces_by_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "runs.json"
    words = [
        "search.py",
        "recorded",
        "--spaces",
        str(folder),
        "--seeds",
        "2",
        "--evaluations",
        "12",
        "--json",
        str(out),
    ]
    monkeypatch.setattr(sys, "argv", [*words, "--only", search.DEFAULT, "uniform"])
    assert search.main() == 0
    table = capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["search.py", "tables", str(out)])
    assert search.main() == 0
    assert capsys.readouterr().out == table and "| uniform | 2 |" in table


def test_landscapes_and_edits_have_a_row_a_searcher(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {search.GREEDY: Greedy, search.DEFAULT: GraphSearch, "uniform": Uniform}
    monkeypatch.setattr(search, "SEARCHERS", few)
    monkeypatch.setattr(search, "OF_EDITS", few)
    monkeypatch.setattr(search, "MAX_STEPS", 15)
    for table in (search.of_landscapes(traps, 2), search.of_edits(4)):
        assert len(table.splitlines()) == 2 + len(few)


def flown(way: str, evaluations: int = 12) -> tuple[list[float], float]:
    space = synthetic("bowl", (5, 4, 3), seed=2, failing=0.4)
    searcher = Uniform(space, space.start(1), seed=1)
    return fly(searcher, space.outcome, lambda told: float(told.evaluations), "case", evaluations, way)


def test_the_clock_adds_up_what_is_in_flight_and_waits_for_the_slowest_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = iter([9.0, 1.0, 1.0, 1.0] * 9)
    monkeypatch.setattr(search_parallel, "duration", lambda *_: next(seconds))
    assert flown(SEQUENTIAL) == ([float(number) for number in range(1, 13)], 36.0)
    assert flown(BATCHES)[1] == 27.0
    assert flown(ASYNCHRONOUS)[1] == 11.0, "no device waits for the slow one"


def test_ways_evaluate_as_much_and_the_same_state_takes_as_long() -> None:
    runs = [on_edits(GraphSearch, 5, way) for way in WAYS]
    assert {len(run.curve) for run in runs} == {search_parallel.EDITS}
    assert runs[0].seconds > runs[1].seconds > runs[2].seconds
    assert runs[2] == on_edits(GraphSearch, 5, ASYNCHRONOUS)


def test_throughput_and_area_are_compared_run_for_run() -> None:
    runs = [Flown("part", f"case {case}", SEQUENTIAL, [1.0 * case] * 4, 40.0 * case) for case in range(1, 9)]
    runs += [Flown("part", f"case {case}", ASYNCHRONOUS, [0.75 * case] * 4, 10.0 * case) for case in range(1, 9)]
    last = parallel_table(runs).splitlines()[-1]
    assert "x4.00 [4.00, 4.00]" in last and "25.0% [25.0%, 25.0%]" in last


def test_without_transpositions_each_way_leads_to_a_state_of_its_own() -> None:
    space = synthetic("bowl", (5, 4, 3), seed=2)
    apart = Unmerged(space)
    start = key_of((2, 1, 1))
    ways = [
        {step.to for first in apart.moves(start) if first.to for step in apart.moves(first.to) if step.to},
        {step.to for first in space.moves(start) if first.to for step in space.moves(first.to) if step.to},
    ]
    assert len(ways[0]) == sum(len(space.moves(str(move.to))) for move in space.moves(start)) > len(ways[1])
    move = next(iter(apart.moves(start)))
    assert move.to is not None
    plain = move.to.partition("|")[0]
    assert apart.outcome(Request(1, Kind.MEASURE, start, move)).seconds == space.measure(state_of(plain)).seconds


@pytest.mark.parametrize("part", ["parallel", "ablation"])
def test_parts_that_are_on_spaces_or_on_edits(
    part: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(search, "AREA", 12)
    monkeypatch.setattr(search_parallel, "AREA", 12)
    for words in (["--spaces", str(folder)], []):
        monkeypatch.setattr(sys, "argv", ["search.py", part, "--seeds", "2", *words])
        assert search.main() == 0
        rows = [line for line in capsys.readouterr().out.splitlines() if " 2 |" in line]
        assert len(rows) == (3 if part == "parallel" else 12 if words else 7)
