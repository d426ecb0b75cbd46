"""How much a move promises: by what the kernel waits for, and by what such moves gained before."""

from __future__ import annotations

from collections.abc import Iterable

from hkbench.records import Bottleneck, MoveGain
from hkbench.search import DEFAULTS

AIMED = 2.0  #: gain, over the mean of all moves, of one that aims at what the kernel waits for: a choice
BESIDE = 0.5  #: of one that leaves it as it is
#: The power of that by which moves weigh. By all of it a search tries the same few again: benchmarks/search_priors.py.
TEMPER = 0.5
PSEUDO_TRIES = 4.0  #: tries with the mean gain of all moves, by the weight, that are taken as seen before

#: What each move can do something about. A move that is not here has the weight 1 everywhere.
AIMS: dict[str, frozenset[Bottleneck]] = {
    "enable_async_pipeline": frozenset({Bottleneck.OVERLAP, Bottleneck.GMEM}),
    "vectorize_global_loads": frozenset({Bottleneck.GMEM, Bottleneck.OVERLAP}),
    "switch_to_mma_or_wgmma": frozenset({Bottleneck.COMPUTE}),
    "pad_tail_and_mask": frozenset({Bottleneck.COMPUTE, Bottleneck.OVERLAP}),
    "change_block_sizes": frozenset({Bottleneck.OVERLAP, Bottleneck.COMPUTE, Bottleneck.SMEM, Bottleneck.GMEM}),
    "cache_policy_cg": frozenset({Bottleneck.GMEM}),
    "avoid_atomics_reduce": frozenset({Bottleneck.ATOMICS}),
    "grouped_gemm_colmajor": frozenset({Bottleneck.GMEM, Bottleneck.SMEM}),
    "softmax_math_fusion": frozenset({Bottleneck.SFU, Bottleneck.COMPUTE}),
}


class Priors:
    """Weights of moves, from earlier runs. Nothing of the run at work is in them: a search learns that by itself."""

    def __init__(self, learnt: Iterable[MoveGain] = ()) -> None:
        self._tries: dict[tuple[str, str], int] = {}
        self._gains: dict[tuple[str, str], float] = {}
        for one in learnt:
            at = (one.move, one.bottleneck or "")
            self._tries[at] = self._tries.get(at, 0) + one.tried
            self._gains[at] = self._gains.get(at, 0.0) + one.log_gain
        tried = sum(self._tries.values())
        self._mean = (sum(self._gains.values()) + DEFAULTS.first_gain) / (tried + 1)

    def weight(self, move: str, waits_for: Bottleneck | None) -> float:
        """Return the weight of a move beside others, around 1, by its mean gain so far over that of all moves.

        Where the class is not known, what was seen in all classes counts.
        """
        aims = AIMS.get(move)
        expected = 1.0 if waits_for is None or aims is None else AIMED if waits_for in aims else BESIDE
        seen = [at for at in self._tries if at[0] == move and (waits_for is None or at[1] == waits_for)]
        tries = sum(self._tries[at] for at in seen)
        gains = sum(self._gains[at] for at in seen)
        return float(((gains / self._mean + PSEUDO_TRIES * expected) / (tries + PSEUDO_TRIES)) ** TEMPER)
