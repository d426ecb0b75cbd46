"""Every constant of the search, with its source. docs/search.md has the figures that the choices rest on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """What a search goes by. The defaults are those that won on the proving ground, benchmarks/search.py."""

    #: Weight of exploration in PUCT (Silver et al., "Mastering the game of Go without human knowledge" (2017)). Small,
    #: for among c = 0.3, 0.05 and 0 on recorded spaces every step towards exploitation helped.
    puct: float = 0.05
    #: A node may have `widen * visits ** widen_power` moves opened (Couetoux et al., "Continuous upper confidence
    #: trees" (2011)); of 1, 2, 3 and 5 the best on simulated edits.
    widen: float = 2.0
    widen_power: float = 0.5
    #: Share of noise in the priors at the root, and its concentration (Silver et al. 2017: 0.25, and 10 over the
    #: number of moves).
    noise_share: float = 0.25
    noise_total: float = 10.0
    #: The quantile of the rewards below a node that stands for it; 1 is the maximum. None: their mean, as the textbooks
    #: have it, which loses on recorded spaces.
    backup: float | None = 1.0
    #: Reward of what failed, in log speed-up over the start: just below that of no gain.
    failure: float = -0.05
    #: Taken off the value of a node for each evaluation in flight below it, as if it had come to little
    #: (Chaslot et al., "Parallel Monte-Carlo tree search" (2008)).
    virtual_loss: float = 0.05
    #: Share of proposals that are large edits (AdaExplore, arXiv 2604.16625, `p_large`), where no surrogate ranks them.
    large_share: float = 0.2
    #: Evaluations in a row without a gain after which the search starts afresh, where no surrogate decides that.
    restart_after: int = 12
    #: Log gain that a move is taken to bring before any was tried.
    first_gain: float = 0.1
    #: Gains of a move are counted as if this many tries with the mean yield of all moves had been seen before.
    gain_prior: float = 2.0
    #: Log speed-up below which a move's predicted gain is too weak to be tried; 0: all are.
    min_gain: float = 0.0
    #: States drawn at random before the surrogate is asked, the start among them. Jones et al., "Efficient global
    #: optimization" (1998), have ten a parameter, which 50 evaluations leave no room for.
    initial: int = 10
    #: Candidates that the surrogate chooses among: the open moves of the best nodes, large edits of them, fresh states.
    top_nodes: int = 8
    large_moves: int = 40
    fresh_states: int = 1000
    #: Proposals after which the fresh states are drawn anew.
    fresh_for: int = 10
    #: Early stop: not before `stop_least` evaluations, and then when the last `stop_share` of all brought no gain.
    stop_least: int = 10
    stop_share: float = 0.45


DEFAULTS = Constants()
