"""A kernel's states: steps, large edits, restarts, and sources that a model wrote."""

from __future__ import annotations

from random import Random

from support.doors import ROOT

from hkbench.moves import KINDS, KernelSpace, key_of
from hkbench.search import Size

SOURCE = (ROOT / "tests" / "honest" / "triton_matmul_bf16.py").read_text()


def space(by_model: bool = False, by_rule: bool = True) -> KernelSpace:
    return KernelSpace(SOURCE, "triton", by_rule, by_model)


def test_a_step_changes_one_site_by_one_choice() -> None:
    kernels = space()
    moves = kernels.moves(kernels.start)
    assert len({move.to for move in moves}) == len(moves) > 10
    for move in moves:
        assert move.to is not None and move.size is Size.SMALL and move.features is not None
        assert key_of(kernels.source(move.to)) == move.to
        [(site, before, now)] = kernels.difference(move.to, kernels.start)
        assert site.move == move.name and abs(site.choices.index(before) - site.choices.index(now)) == 1


def test_two_ways_to_the_same_source_lead_to_one_state() -> None:
    kernels = space()
    first, second = kernels.moves(kernels.start)[0].to, kernels.moves(kernels.start)[-1].to
    assert first is not None and second is not None
    below = [{move.to for move in kernels.moves(key)} for key in (first, second)]
    assert kernels.start in below[0] and len(below[0] & below[1]) == 2


def test_large_edits_and_restarts_are_of_the_space_and_repeat_with_the_seed() -> None:
    kernels = space()
    drawn = [[kernels.large(kernels.start, Random(seed)), kernels.fresh(Random(seed))] for seed in range(20)]
    assert drawn == [[kernels.large(kernels.start, Random(seed)), kernels.fresh(Random(seed))] for seed in range(20)]
    assert len({move.to for large, _ in drawn if (move := large) is not None}) > 10
    assert {fresh.size for _, fresh in drawn if fresh is not None} == {Size.FRESH}


def test_of_a_models_moves_only_the_names_are_known() -> None:
    kernels = space(by_model=True)
    unknown = [move for move in kernels.moves(kernels.start) if move.to is None]
    assert [move.name for move in unknown] == [kind.name for kind in KINDS]
    assert kernels.features(kernels.start) is None
    alone = space(by_model=True, by_rule=False)
    assert all(move.to is None for move in alone.moves(alone.start)) and alone.size == 1


def test_what_a_model_wrote_has_sites_of_its_own() -> None:
    kernels = space(by_model=True)
    key = kernels.add(SOURCE.replace("num_warps=8", "num_warps=4"))
    assert key in {move.to for move in kernels.moves(kernels.start)}, "a rule leads there as well"
    other = kernels.add(SOURCE.replace("total = tl.zeros", "HALF_TILE = 2\n    total = tl.zeros"))
    assert kernels.difference(other, kernels.start) == []
    assert len(kernels.moves(other)) > len(kernels.moves(kernels.start))
    assert kernels.moves("no such state") == ()
