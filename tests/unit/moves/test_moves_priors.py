"""What a move promises, by the class of the kernel and by what was gained before."""

from __future__ import annotations

import pytest

from hkbench.moves import KernelSpace, Priors
from hkbench.moves.priors import AIMED, AIMS, BESIDE, TEMPER
from hkbench.records import Bottleneck, MoveGain

FUSION, ATOMICS = "softmax_math_fusion", "avoid_atomics_reduce"


def gained(move: str, tried: int, log_gain: float, waits_for: Bottleneck | None = Bottleneck.GMEM) -> MoveGain:
    return MoveGain(move=move, bottleneck=waits_for, tried=tried, failed=0, gained=tried, log_gain=log_gain)


def test_a_move_that_aims_at_the_bottleneck_weighs_more() -> None:
    priors = Priors()
    assert priors.weight(ATOMICS, Bottleneck.ATOMICS) == AIMED**TEMPER
    assert priors.weight(ATOMICS, Bottleneck.GMEM) == BESIDE**TEMPER
    assert priors.weight(ATOMICS, None) == 1.0
    assert all(any(what in aims for aims in AIMS.values()) for what in Bottleneck), "each class has a move"


def test_what_was_gained_outweighs_that_in_time() -> None:
    priors = Priors([gained(ATOMICS, 40, 8.0), gained(FUSION, 40, 0.0)])
    assert priors.weight(ATOMICS, Bottleneck.GMEM) > 1.2
    assert priors.weight(FUSION, Bottleneck.GMEM) < 0.4
    assert priors.weight(ATOMICS, Bottleneck.SFU) == BESIDE**TEMPER, "it was gained with kernels that wait for memory"
    assert priors.weight(ATOMICS, None) > 1.2, "of all classes, where the kernel's is not known"


@pytest.mark.parametrize("waits_for", [None, *Bottleneck])
def test_weights_are_positive_whatever_was_gained(waits_for: Bottleneck | None) -> None:
    priors = Priors([gained(FUSION, 1000, 0.0, None), gained(ATOMICS, 1, 3.0, None)])
    assert all(priors.weight(move, waits_for) > 0.0 for move in AIMS)


def test_a_state_offers_its_moves_by_what_it_waits_for() -> None:
    space = KernelSpace("number = 1\n", "hip", by_rule=False, by_model=True)

    def weights() -> dict[str, float]:
        return {move.name: move.prior for move in space.moves(space.start)}

    assert set(weights().values()) == {1.0}
    space.waits_for(space.start, Bottleneck.ATOMICS)
    assert max(weights(), key=weights().__getitem__) == ATOMICS
    space.waits_for(space.start, None)
    assert weights()[ATOMICS] == AIMED**TEMPER, "a measurement without a profile takes nothing back"
