"""What passes between a searcher and its caller."""

from __future__ import annotations

import enum
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Size(enum.StrEnum):
    """How far an edit goes."""

    SMALL = "small"
    LARGE = "large"
    FRESH = "fresh"  #: from no state in particular: a restart


class Kind(enum.StrEnum):
    """What the caller is asked for."""

    MEASURE = "measure"  #: make the state and measure it, unless the state that comes out has a node already
    CONFIRM = "confirm"  #: measure a state again that would be the new best


@dataclass(frozen=True)
class Move:
    """An edit that can be tried.

    Attributes:
        name: what is done; gains are learnt by it.
        to: the key of the state that it leads to. None: that is known when it has been made.
        features: coordinates of that state, of equal number for all moves of a space. None: not known.
        prior: weight beside the other moves of the same state.
    """

    name: str
    to: str | None = None
    features: tuple[float, ...] | None = None
    prior: float = 1.0
    size: Size = Size.SMALL


class Space(Protocol):
    """What the caller knows of states. The same arguments have to give the same answers, for a replay asks again."""

    def moves(self, key: str) -> Sequence[Move]:
        """Return the small edits of a state. One with `to=None` may be tried any number of times."""

    def large(self, key: str, random: random.Random) -> Move | None:
        """Return a large edit of a state; None where there is none."""

    def fresh(self, random: random.Random) -> Move | None:
        """Return an edit that leads to a state far from all; None where there is none."""


@dataclass(frozen=True)
class Request:
    """What is to be measured. `parent`: the state that the move starts from; of a confirmation the state itself."""

    number: int
    kind: Kind
    parent: str
    move: Move


@dataclass(frozen=True)
class Outcome:
    """What came of a request.

    Attributes:
        key: the state that was reached. Of one that has a node already the other fields are not read.
        seconds: its time. None: it failed.
        low, high: the interval of the time. Without a width there is nothing to confirm.
    """

    key: str
    seconds: float | None
    low: float | None = None
    high: float | None = None
