"""Triton kernels of which every state was measured: the tables, a search on them, and the autotuned twin."""

from __future__ import annotations

import ast
import math

import pytest

from benchmarks import search
from benchmarks.autotuned import configurations, tuned
from benchmarks.measure_space import table
from benchmarks.search_measured import CHOICES, SHARE, MeasuredSpace, NarrowSpace, load, spec_of
from hkbench.moves import key_of
from hkbench.search import GraphSearch

SPACES = load()


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_a_table_has_every_state_of_its_kernel(space: MeasuredSpace) -> None:
    assert set(space.labels) == set(CHOICES[space.name])
    assert list(space.seconds) == space.all_states() and len(space.seconds) <= 600
    assert space.measure(space.start).seconds is not None
    assert len({key_of(space.source_of(texts)) for texts in space.seconds}) == len(space.seconds)
    kept = NarrowSpace(spec_of(space.name), CHOICES[space.name])
    assert kept.all_states() == space.all_states()


def test_a_state_is_written_into_the_source() -> None:
    space = NarrowSpace(spec_of("softmax_triton"), CHOICES["softmax_triton"])
    source = space.source_of(("512", "8", 'cache_modifier=".cg"', "default"))
    assert "BLOCK = 512" in source and "num_warps=8" in source and source.count('cache_modifier=".cg"') == 1


def test_a_label_that_no_rule_knows() -> None:
    with pytest.raises(ValueError, match="BLOCK_Q"):
        NarrowSpace(spec_of("softmax_triton"), {"BLOCK_Q": None})


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_a_fifth_of_the_states_is_enough(space: MeasuredSpace) -> None:
    start = space.measure(space.start)
    searcher = GraphSearch(space, start, features=space.features(start.key), seed=1)
    curve = search.follow(searcher, space, int(SHARE * len(space.seconds)), -math.log(0.95))
    assert math.exp(-curve[-1]) >= 0.95


def test_the_tables_have_a_row_a_kernel_and_a_searcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SEARCHERS", {name: search.SEARCHERS[name] for name in (search.DEFAULT, "uniform")})
    monkeypatch.setattr(search, "load_measured", lambda: SPACES[:2])
    lines = search.measured(1).splitlines()
    assert [line.split("|")[1].strip() for line in lines if line.startswith("| ")].count("uniform") == 2
    assert all(any(line.startswith(f"| {space.name} | ") for line in lines) for space in SPACES[:2])


def test_a_table_is_the_same_bytes_each_time() -> None:
    space = SPACES[0]
    assert table(space, space.seconds.items()) == table(space, space.seconds.items())


@pytest.mark.parametrize("name", CHOICES)
def test_the_autotuned_twin_chooses_among_what_was_drawn(name: str) -> None:
    space = NarrowSpace(spec_of(name), CHOICES[name])
    drawn = configurations(space, 7)
    assert len({tuple(config.items()) for config in drawn}) == 7
    source = tuned(spec_of(name), drawn)
    ast.parse(source)
    assert source.count("triton.Config(") == 7 and "lambda META" in source
    launch = source[source.index("[lambda META") :]
    assert not any(f"{label}=" in launch for label in drawn[0])
