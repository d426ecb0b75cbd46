"""Moves: edits of a kernel's source, by rule or by a model."""

from hkbench.moves.base import MoveKind, Rule, Site, Span, without_overlaps, write
from hkbench.moves.keys import key_of
from hkbench.moves.kinds import KINDS, MOVES, sites_of
from hkbench.moves.priors import Priors
from hkbench.moves.space import KernelSpace

__all__ = [
    "KINDS", "MOVES", "KernelSpace", "MoveKind", "Priors", "Rule", "Site", "Span", "key_of", "sites_of",
    "without_overlaps", "write",
]  # fmt: skip
